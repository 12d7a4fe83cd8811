//! What does a browser see?
//!
//! The templates are compiled in: `format!` checks that every hole is filled, fills each once, and never
//! looks into what it has put there. The list is rendered here and only here; the script of the page
//! asks for it again when something has changed.

use cloudgate::{Html, HttpError, IntoResponse, PrivateCookies, Response, State, escape_html, get};

use crate::accounts::user_of;
use crate::store::{Attachment, Item, Store};

#[get("/")]
fn page(cookies: PrivateCookies, store: State<Store>) -> Result<Response, HttpError> {
    let html = match user_of(&cookies, &store)? {
        None => include_str!("templates/sign_in.html").to_owned(),
        Some(user) => format!(
            include_str!("templates/list.html"),
            name = escape_html(&user.name),
            items = store.items(user.id)?.iter().map(item).collect::<String>(),
        ),
    };
    // After signing out, the button "back" must not show it.
    Ok(Html(html)
        .into_response()
        .header("Cache-Control", "no-store"))
}

fn item(item: &Item) -> String {
    format!(
        include_str!("templates/item.html"),
        id = item.id,
        title = escape_html(&item.title),
        checked = if item.done { "checked" } else { "" },
        attachments = item.attachments.iter().map(attachment).collect::<String>(),
    )
}

fn attachment(attachment: &Attachment) -> String {
    format!(
        "<a href=\"/api/attachments/{}\">{} <small>{} KB</small></a>\n",
        attachment.id,
        escape_html(&attachment.name),
        attachment.size.div_ceil(1000),
    )
}
