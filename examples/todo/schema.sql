PRAGMA journal_mode = WAL;
PRAGMA foreign_keys = ON;

-- AUTOINCREMENT: an id is never given twice, so an old cookie or file name means nobody else.
CREATE TABLE IF NOT EXISTS users (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL UNIQUE COLLATE NOCASE,
    password BLOB NOT NULL
);

CREATE TABLE IF NOT EXISTS items (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    title TEXT NOT NULL,
    done  INTEGER NOT NULL DEFAULT FALSE
);
CREATE INDEX IF NOT EXISTS items_of ON items (owner);

CREATE TABLE IF NOT EXISTS attachments (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
    name TEXT NOT NULL,
    size INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS attachments_of ON attachments (item);
