//! How do files get to an item, and back to the user?

use cloudgate::{
    Download, Extension, HttpError, Json, Multipart, Path, State, Status, UploadedFile, get, post,
};

use crate::live::{Change, Hub};
use crate::store::{Attachment, Store, User};

/// Takes the field `file` of a form. A larger form is refused before it is read.
#[post("/api/items/{id}/attachments", body_limit = "10 MiB")]
fn attach(
    Extension(user): Extension<User>,
    Path(id): Path<i64>,
    store: State<Store>,
    hub: State<Hub>,
    form: Multipart,
) -> Result<Option<(Status, Json<Attachment>)>, HttpError> {
    let Some(file) = form.file("file") else {
        let text = "file: choose one to upload";
        return Err(HttpError::unprocessable(text));
    };
    if store.item(user.id, id)?.is_none() {
        return Ok(None);
    }
    let attachment = keep(&store, user.id, id, file)?;
    hub.publish(user.id, Change::Changed(id));
    Ok(Some((Status::CREATED, Json(attachment))))
}

fn keep(store: &Store, user: i64, item: i64, file: &UploadedFile) -> Result<Attachment, HttpError> {
    // For people to read only: on our disk the file is called by its id.
    let name = file.safe_filename().unwrap_or("unnamed").to_owned();
    let Some(attachment) = store.add_attachment(user, item, name, file.len())? else {
        let text = "there are too many attachments: remove an item that has some";
        return Err(HttpError::conflict(text));
    };
    if let Err(error) = file.persist(store.file_of(attachment.id)) {
        store.remove_attachment(attachment.id)?;
        return Err(error.into());
    }
    Ok(attachment)
}

/// Always a file to save, never a page of this site: somebody's HTML must not run as ours.
#[get("/api/attachments/{id}")]
fn download(
    Extension(user): Extension<User>,
    Path(id): Path<i64>,
    store: State<Store>,
) -> Result<Option<Download>, HttpError> {
    let attachment = store.attachment(user.id, id)?;
    Ok(attachment.map(|it| Download::file(store.file_of(it.id)).named(it.name)))
}
