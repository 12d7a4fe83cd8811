//! What can a user do with the items of the list?

use cloudgate::{Extension, HttpError, Json, Path, State, Status, delete, get, patch, post};
use serde::Deserialize;

use crate::live::{Change, Hub};
use crate::store::{Item, Store, User};

/// The text of an item: 1 to 200 characters, without space around it.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Title(String);

impl TryFrom<String> for Title {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Title, &'static str> {
        let text = text.trim();
        match text.chars().count() {
            1..=200 => Ok(Title(text.to_owned())),
            _ => Err("a title has 1 to 200 characters"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewItem {
    title: Title,
}

/// What is left out stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemChange {
    title: Option<Title>,
    done: Option<bool>,
}

#[get("/api/items")]
fn list(
    Extension(user): Extension<User>,
    store: State<Store>,
) -> Result<Json<Vec<Item>>, HttpError> {
    Ok(Json(store.items(user.id)?))
}

#[post("/api/items")]
fn add(
    Extension(user): Extension<User>,
    store: State<Store>,
    hub: State<Hub>,
    Json(new): Json<NewItem>,
) -> Result<(Status, Json<Item>), HttpError> {
    let Some(item) = store.add_item(user.id, new.title.0)? else {
        return Err(HttpError::conflict(
            "the list is full: remove something first",
        ));
    };
    hub.publish(user.id, Change::Added(item.id));
    Ok((Status::CREATED, Json(item)))
}

// `None` is a 404.
#[get("/api/items/{id}")]
fn show(
    Extension(user): Extension<User>,
    Path(id): Path<i64>,
    store: State<Store>,
) -> Result<Option<Json<Item>>, HttpError> {
    Ok(store.item(user.id, id)?.map(Json))
}

#[patch("/api/items/{id}")]
fn change(
    Extension(user): Extension<User>,
    Path(id): Path<i64>,
    store: State<Store>,
    hub: State<Hub>,
    Json(change): Json<ItemChange>,
) -> Result<Option<Json<Item>>, HttpError> {
    let title = change.title.map(|title| title.0);
    let changed = store.change_item(user.id, id, title, change.done)?;
    if changed.is_some() {
        hub.publish(user.id, Change::Changed(id));
    }
    Ok(changed.map(Json))
}

#[delete("/api/items/{id}")]
fn remove(
    Extension(user): Extension<User>,
    Path(id): Path<i64>,
    store: State<Store>,
    hub: State<Hub>,
) -> Result<Option<()>, HttpError> {
    let removed = store.remove_item(user.id, id)?;
    if removed {
        hub.publish(user.id, Change::Removed(id));
    }
    Ok(removed.then_some(()))
}
