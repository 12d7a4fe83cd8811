//! How do users, items and attachments get into SQLite and out of it?
//!
//! Each function takes the owner and has it in its `WHERE`: another user's item is one that is not there.
//! Values go in as parameters, never as part of the SQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cloudgate::{HttpError, StartError, try_blocking};
use rusqlite::{Connection, OptionalExtension, Params, Row};
use serde::Serialize;

/// How much one user may keep.
const MOST_ITEMS: u32 = 1000;
const MOST_ATTACHMENTS: u32 = 100;

#[derive(Clone, Debug, Serialize)]
pub struct User {
    pub id: i64,
    pub name: String,
}

#[derive(Debug, Serialize)]
pub struct Item {
    pub id: i64,
    pub title: String,
    pub done: bool,
    pub attachments: Vec<Attachment>,
}

#[derive(Debug, Serialize)]
pub struct Attachment {
    pub id: i64,
    pub name: String,
    pub size: u64,
}

/// One connection behind a lock. SQLite has one writer at a time anyway; an application that reads a
/// lot would keep a few connections here, and nothing else would change.
pub struct Store {
    connection: Arc<Mutex<Connection>>,
    files: PathBuf,
}

impl Store {
    pub fn open(data: &Path) -> Result<Store, StartError> {
        let files = data.join("files");
        fs::create_dir_all(&files).map_err(|error| {
            let folder = data.display();
            format!("nothing can be kept in {folder}: {error} - set TODO_DATA to another folder")
        })?;
        let connection = Connection::open(data.join("todo.sqlite"))?;
        connection.execute_batch(include_str!("schema.sql"))?;
        let connection = Arc::new(Mutex::new(connection));
        Ok(Store { connection, files })
    }

    /// Where the file of an attachment is: its id is its name, so no client has a say in it.
    pub fn file_of(&self, attachment: i64) -> PathBuf {
        self.files.join(attachment.to_string())
    }

    /// Runs `work` on a thread that may wait, for the disk and for the lock: the worker meanwhile serves
    /// other connections. When too much waits already, `?` makes a 503 of it.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, HttpError> {
        let connection = Arc::clone(&self.connection);
        let result = try_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&connection)
        })?;
        Ok(result?)
    }

    /// The row that the statement gives, if it gives one.
    fn one<T: Send + 'static>(
        &self,
        sql: &'static str,
        values: impl Params + Send + 'static,
        read: fn(&Connection, &Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, HttpError> {
        self.run(move |db| {
            let mut statement = db.prepare_cached(sql)?;
            statement.query_row(values, |row| read(db, row)).optional()
        })
    }

    /// `None` if the name is taken.
    pub fn add_user(&self, name: String, password: Vec<u8>) -> Result<Option<User>, HttpError> {
        let sql = "INSERT INTO users (name, password) VALUES (?, ?)
                   ON CONFLICT DO NOTHING RETURNING id, name";
        self.one(sql, (name, password), user)
    }

    pub fn user(&self, id: i64) -> Result<Option<User>, HttpError> {
        self.one("SELECT id, name FROM users WHERE id = ?", [id], user)
    }

    /// A user by name, and what is kept of the password.
    pub fn credentials(&self, name: String) -> Result<Option<(User, Vec<u8>)>, HttpError> {
        let sql = "SELECT id, name, password FROM users WHERE name = ?";
        self.one(sql, [name], |db, row| {
            Ok((user(db, row)?, row.get("password")?))
        })
    }

    pub fn items(&self, owner: i64) -> Result<Vec<Item>, HttpError> {
        let sql = "SELECT id, title, done FROM items WHERE owner = ? ORDER BY done, id DESC";
        self.run(move |db| {
            let mut statement = db.prepare_cached(sql)?;
            let rows = statement.query_and_then([owner], |row| item(db, row))?;
            rows.collect()
        })
    }

    pub fn item(&self, owner: i64, id: i64) -> Result<Option<Item>, HttpError> {
        let sql = "SELECT id, title, done FROM items WHERE owner = ? AND id = ?";
        self.one(sql, [owner, id], item)
    }

    /// `None` if the user has too many.
    pub fn add_item(&self, owner: i64, title: String) -> Result<Option<Item>, HttpError> {
        let sql = "INSERT INTO items (owner, title) SELECT ?1, ?2
                   WHERE (SELECT count(*) FROM items WHERE owner = ?1) < ?3
                   RETURNING id, title, done";
        self.one(sql, (owner, title, MOST_ITEMS), item)
    }

    /// Changes what is given. `None` if there is no such item.
    pub fn change_item(
        &self,
        owner: i64,
        id: i64,
        title: Option<String>,
        done: Option<bool>,
    ) -> Result<Option<Item>, HttpError> {
        let sql = "UPDATE items SET title = coalesce(?3, title), done = coalesce(?4, done)
                   WHERE owner = ?1 AND id = ?2 RETURNING id, title, done";
        self.one(sql, (owner, id, title, done), item)
    }

    /// Removes an item with its files. Whether there was one.
    pub fn remove_item(&self, owner: i64, id: i64) -> Result<bool, HttpError> {
        let Some(item) = self.item(owner, id)? else {
            return Ok(false);
        };
        let files: Vec<_> = item
            .attachments
            .iter()
            .map(|it| self.file_of(it.id))
            .collect();
        self.run(move |db| {
            let sql = "DELETE FROM items WHERE owner = ? AND id = ?";
            let removed = db.execute(sql, [owner, id])? > 0;
            for file in files {
                // One that stays is never served again, and takes room only.
                let _ = fs::remove_file(file);
            }
            Ok(removed)
        })
    }

    /// `None` if there is no such item, or the user has too many attachments.
    pub fn add_attachment(
        &self,
        owner: i64,
        item: i64,
        name: String,
        size: u64,
    ) -> Result<Option<Attachment>, HttpError> {
        let sql = "INSERT INTO attachments (item, name, size)
                   SELECT id, ?3, ?4 FROM items WHERE owner = ?1 AND id = ?2 AND ?5 >
                       (SELECT count(*) FROM attachments JOIN items ON items.id = item
                        WHERE owner = ?1)
                   RETURNING id, name, size";
        self.one(sql, (owner, item, name, size, MOST_ATTACHMENTS), attachment)
    }

    pub fn remove_attachment(&self, id: i64) -> Result<(), HttpError> {
        let sql = "DELETE FROM attachments WHERE id = ?";
        self.run(move |db| db.execute(sql, [id]).map(drop))
    }

    pub fn attachment(&self, owner: i64, id: i64) -> Result<Option<Attachment>, HttpError> {
        let sql = "SELECT attachments.id, name, size FROM attachments
                   JOIN items ON items.id = item WHERE owner = ? AND attachments.id = ?";
        self.one(sql, [owner, id], attachment)
    }
}

fn user(_: &Connection, row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: row.get("id")?,
        name: row.get("name")?,
    })
}

fn item(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Item> {
    let id = row.get("id")?;
    let sql = "SELECT id, name, size FROM attachments WHERE item = ? ORDER BY id";
    let mut statement = db.prepare_cached(sql)?;
    let attachments = statement.query_and_then([id], |row| attachment(db, row))?;
    Ok(Item {
        id,
        title: row.get("title")?,
        done: row.get("done")?,
        attachments: attachments.collect::<rusqlite::Result<_>>()?,
    })
}

fn attachment(_: &Connection, row: &Row<'_>) -> rusqlite::Result<Attachment> {
    Ok(Attachment {
        id: row.get("id")?,
        name: row.get("name")?,
        size: row.get("size")?,
    })
}
