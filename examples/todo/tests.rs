//! Does the application do what its users expect, and nothing for others?
//!
//! Requests are answered in this process: no port, no server.

use std::fs;
use std::sync::Arc;

use cloudgate::test::{self, Client, Reply};
use cloudgate::{App, CookieKey, Request, Response, Status};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An application with a data folder of its own.
struct Site {
    app: Arc<App>,
    data: TempDir,
}

impl Site {
    fn new() -> Site {
        let data = tempfile::tempdir().unwrap();
        let app = crate::app(data.path(), CookieKey::generate().unwrap()).unwrap();
        let app = Arc::new(app);
        Site { app, data }
    }

    /// A browser with cookies of its own.
    fn browser(&self) -> Client {
        let app = Arc::clone(&self.app);
        test::client(move |request: &mut Request<'_>| app.call(request))
            .with_header("Accept", "application/json")
    }

    /// A browser in which a new user has signed up.
    fn user(&self, name: &str) -> Client {
        let browser = self.browser();
        sign(&browser, "/sign-up", name, "correct horse").assert_status(201);
        browser
    }

    /// A stream of changes, open and not read yet.
    fn stream(&self, browser: &Client) -> Response {
        let session = format!("session={}", browser.cookie("session").unwrap());
        let mut request = Request::get("/api/changes").with_header("Cookie", &session);
        self.app.call(&mut request)
    }
}

fn sign(browser: &Client, path: &str, name: &str, password: &str) -> Reply {
    let account = json!({"name": name, "password": password});
    browser.post(path).json(&account).send()
}

/// Adds an item and gives its path.
#[track_caller]
fn add(browser: &Client, title: &str) -> String {
    let reply = browser
        .post("/api/items")
        .json(&json!({"title": title}))
        .send();
    let item = reply.assert_status(201).json_value();
    format!("/api/items/{}", item["id"])
}

fn list(browser: &Client) -> Value {
    browser.get("/api/items").send().json_value()
}

fn upload(browser: &Client, item: &str, filename: &str, content: &[u8]) -> Reply {
    let request = browser.post(&format!("{item}/attachments"));
    request
        .multipart(|form| form.file("file", filename, "text/html", content))
        .send()
}

#[test]
fn who_signs_up_is_signed_in_and_can_sign_in_again() {
    let site = Site::new();
    assert_eq!(list(&site.user("Ada")), json!([]));

    let again = site.browser();
    again.get("/api/items").send().assert_status(401);
    let reply = sign(&again, "/sign-in", "ada", "correct horse"); // names in any case
    reply.assert_status(200);
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Lax"), "{cookie}");
    assert_eq!(list(&again), json!([]));

    again.post("/sign-out").send().assert_status(204);
    again.get("/api/items").send().assert_status(401);
}

#[test]
fn a_wrong_password_and_an_unknown_name_are_told_the_same() {
    let site = Site::new();
    site.user("Ada");
    let stranger = site.browser();
    let told = ["Ada", "Bob"].map(|name| {
        let reply = sign(&stranger, "/sign-in", name, "wrong horse");
        assert_eq!(reply.assert_status(401).header("set-cookie"), None);
        reply.text()
    });
    assert_eq!(told[0], told[1]);
    sign(&stranger, "/sign-up", "ADA", "my own horse").assert_status(409);
}

#[test]
fn guessing_passwords_is_slowed_down() {
    let stranger = Site::new().browser();
    for _ in 0..20 {
        sign(&stranger, "/sign-in", "Ada", "?").assert_status(401);
    }
    sign(&stranger, "/sign-in", "Ada", "?").assert_status(429);
}

#[test]
fn the_database_holds_no_password() {
    let site = Site::new();
    site.user("Ada");
    let files = fs::read_dir(site.data.path()).unwrap();
    let bytes = files.map(|file| fs::read(file.unwrap().path()).unwrap_or_default());
    let all = String::from_utf8_lossy(&bytes.flatten().collect::<Vec<u8>>()).into_owned();
    assert!(all.contains("Ada") && !all.contains("correct horse"));
}

#[test]
fn an_item_is_added_changed_and_removed() {
    let site = Site::new();
    let ada = site.user("Ada");
    let tea = add(&ada, "  buy tea ");
    add(&ada, "buy milk");
    let made = json!({"id": 1, "title": "buy tea", "done": false, "attachments": []});
    assert_eq!(ada.get(&tea).send().json_value(), made);

    let changed = ada.patch(&tea).json(&json!({"done": true})).send();
    let want = json!({"id": 1, "title": "buy tea", "done": true, "attachments": []});
    assert_eq!(changed.json_value(), want);
    ada.patch(&tea).json(&json!({"title": "buy coffee"})).send();
    let coffee = json!({"id": 1, "title": "buy coffee", "done": true, "attachments": []});
    assert_eq!(
        (&list(&ada)[0]["title"], &list(&ada)[1]),
        (&json!("buy milk"), &coffee)
    );

    ada.delete(&tea).send().assert_status(204);
    ada.get(&tea).send().assert_status(404);
    assert_eq!(list(&ada).as_array().unwrap().len(), 1);
}

#[test]
fn what_does_not_fit_is_refused_with_the_field() {
    let site = Site::new();
    let ada = site.user("Ada");
    let long = "x".repeat(201);
    for (path, body, field) in [
        (
            "/api/items",
            json!({"title": ""}),
            "title: a title has 1 to",
        ),
        ("/api/items", json!({"title": " \n"}), "title: a title has"),
        ("/api/items", json!({"title": long}), "title: a title has"),
        ("/api/items", json!({"title": 7}), "title: invalid type"),
        ("/api/items", json!({}), "missing field `title`"),
        (
            "/api/items",
            json!({"title": "x", "colour": 1}),
            "unknown field `colour`",
        ),
        (
            "/sign-up",
            json!({"name": "<b>", "password": "12345678"}),
            "name: a name has",
        ),
        (
            "/sign-up",
            json!({"name": "Bob", "password": "1234567"}),
            "password: a password has",
        ),
    ] {
        let reply = ada.post(path).json(&body).send();
        let detail = reply.assert_status(422).json_value()["detail"].to_string();
        assert!(
            detail.contains(field) && !detail.contains("column"),
            "{detail}"
        );
    }
    add(&ada, &long[..200]);
    sign(&ada, "/sign-up", "Bob", "12345678").assert_status(201);
}

#[test]
fn another_users_items_and_files_are_not_there() {
    let site = Site::new();
    let (ada, bob) = (site.user("Ada"), site.user("Bob"));
    let item = add(&ada, "secret");
    let file = upload(&ada, &item, "a.txt", b"secret").json_value();
    let path = format!("/api/attachments/{}", file["id"]);
    ada.get(&path).send().assert_status(200);
    for reply in [
        bob.get(&item).send(),
        bob.patch(&item).json(&json!({"title": "mine"})).send(),
        bob.delete(&item).send(),
        upload(&bob, &item, "b.txt", b"b"),
        bob.get(&path).send(),
    ] {
        reply.assert_status(404);
    }
    assert_eq!(list(&bob), json!([]));
    assert_eq!(ada.get(&item).send().json_value()["title"], "secret");
}

#[test]
fn a_file_comes_back_as_it_went_whatever_its_name_was() {
    let site = Site::new();
    let ada = site.user("Ada");
    let item = add(&ada, "read");
    let hostile = b"<script>alert(1)</script>";
    for (filename, kept) in [
        ("notes.txt", "notes.txt"),
        ("../../x", "x"),
        ("..", "unnamed"),
        ("evil.html", "evil.html"),
    ] {
        let made = upload(&ada, &item, filename, hostile);
        let made = made.assert_status(201).json_value();
        assert_eq!(made["name"], kept);
        let file = ada.get(&format!("/api/attachments/{}", made["id"])).send();
        file.assert_header(
            "content-disposition",
            &format!("attachment; filename=\"{kept}\""),
        )
        .assert_header("x-content-type-options", "nosniff");
        assert_eq!(file.bytes(), &hostile[..]);
        let path = site.data.path().join(format!("files/{}", made["id"]));
        assert!(path.is_file(), "it is kept under its id");
    }
    assert!(!site.data.path().join("x").exists());

    ada.delete(&item).send().assert_status(204);
    let left = fs::read_dir(site.data.path().join("files")).unwrap();
    assert_eq!(left.count(), 0, "files go with their item");
}

#[test]
fn an_upload_without_a_file_or_too_large_is_refused() {
    let site = Site::new();
    let ada = site.user("Ada");
    let item = add(&ada, "read");
    upload(&ada, &item, "", b"").assert_status(422);
    upload(&ada, &item, "a", &vec![0; 9 << 20]).assert_status(201);
    upload(&ada, &item, "a", &vec![0; 10 << 20]).assert_status(413);
}

#[test]
fn a_list_holds_1000_items_and_100_attachments() {
    let site = Site::new();
    let ada = site.user("Ada");
    let item = add(&ada, "x");
    let fill = |sql: &str| {
        let file = site.data.path().join("todo.sqlite");
        let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 98)";
        let connection = rusqlite::Connection::open(file).unwrap();
        connection
            .execute_batch(&format!("{numbers} {sql}"))
            .unwrap();
    };
    // One is there; 98 times 10, and 19 by hand.
    fill("INSERT INTO items (owner, title) SELECT 1, n.i FROM n, n AS m WHERE m.i <= 10");
    for _ in 0..19 {
        add(&ada, "x");
    }
    let past = ada.post("/api/items").json(&json!({"title": "x"})).send();
    past.assert_status(409);

    fill("INSERT INTO attachments (item, name, size) SELECT 1, i, 1 FROM n");
    upload(&ada, &item, "a", b"a").assert_status(201);
    upload(&ada, &item, "a", b"a").assert_status(201);
    upload(&ada, &item, "a", b"a").assert_status(409);

    let bob = site.user("Bob"); // who has room of his own
    upload(&bob, &add(&bob, "x"), "a", b"a").assert_status(201);
}

#[test]
fn text_is_text_in_the_page_and_in_the_database() {
    let site = Site::new();
    let ada = site.user("Ada");
    let hostile = "\"><script>alert('x')</script>{name}";
    let injection = "x'); DROP TABLE items; --";
    add(&ada, hostile);
    add(&ada, injection);
    let page = ada.get("/").send().text();
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(page.contains("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;{name}"));
    let titles = [&list(&ada)[0]["title"], &list(&ada)[1]["title"]].map(Value::clone);
    assert_eq!(titles, [json!(injection), json!(hostile)]);
}

#[test]
fn a_stranger_sees_the_form_and_the_files_of_the_page() {
    let stranger = Site::new().browser();
    let page = stranger.get("/").send().text();
    assert!(page.contains("Sign up") && !page.contains("id=\"items\""));
    for path in ["/app.js", "/style.css", "/icon.svg"] {
        stranger.get(path).send().assert_status(200);
    }
}

#[test]
fn another_sites_page_cannot_change_anything() {
    let site = Site::new();
    let ada = site.user("Ada");
    for (origin, status) in [
        ("http://localhost", 201),
        ("http://evil.example", 403),
        ("http://localhost:8080", 403),
        ("null", 403),
    ] {
        let request = ada.post("/api/items").header("Origin", origin);
        let reply = request.json(&json!({"title": "x"})).send();
        reply.assert_status(status);
    }
    // What a form of another site could send, were the cookie sent with it.
    let form = ada.post("/api/items").header("Content-Type", "text/plain");
    form.body(r#"{"title": "x"}"#).send().assert_status(415);
}

/// The changes that a stream tells until it ends.
fn changes(stream: Response) -> Vec<Value> {
    let text = stream.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn every_open_page_of_the_user_hears_of_changes_and_no_other() {
    let site = Site::new();
    let (ada, bob) = (site.user("Ada"), site.user("Bob"));
    let [one, two, other] = [&ada, &ada, &bob].map(|browser| site.stream(browser));
    let item = add(&ada, "buy tea");
    ada.patch(&item).json(&json!({"done": true})).send();
    upload(&ada, &item, "a.txt", b"a");
    ada.delete(&item).send();
    drop((ada, bob, site)); // the streams end with the application
    let want = [
        json!({"added": 1}),
        json!({"changed": 1}),
        json!({"changed": 1}),
        json!({"removed": 1}),
    ];
    assert_eq!((changes(one), changes(two)), (want.to_vec(), want.to_vec()));
    assert_eq!(changes(other), [] as [Value; 0]);
}

#[test]
fn a_page_that_does_not_read_loses_its_stream_at_the_33rd_change() {
    let site = Site::new();
    let ada = site.user("Ada");
    let slow = site.stream(&ada);
    (0..32).for_each(|_| drop(add(&ada, "x")));
    let quick = site.stream(&ada);
    add(&ada, "the 33rd");
    assert_eq!(changes(slow).len(), 32); // it ends although the application goes on
    drop((ada, site));
    assert_eq!(changes(quick).len(), 1);
}

#[test]
fn a_user_has_20_streams_and_a_closed_one_makes_room() {
    let site = Site::new();
    let ada = site.user("Ada");
    let mut streams: Vec<_> = (0..20).map(|_| site.stream(&ada)).collect();
    assert_eq!(site.stream(&ada).status(), Status::TOO_MANY_REQUESTS);
    streams.pop();
    assert_eq!(site.stream(&ada).status(), Status::OK);
}
