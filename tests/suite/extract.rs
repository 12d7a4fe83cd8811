//! What does a client hear whose request is not what the handler takes?

use cloudgate::{Bytes, Json, Path, Query, Rejection, State, route};
use cloudgate_suite::{ask, start_with};
use serde::{Deserialize, Serialize};

/// A state of these tests.
pub(crate) struct Word(pub(crate) &'static str);

#[route("/extract/path/{id}")]
fn path(Path(id): Path<u64>) -> String {
    format!("{id}")
}

#[derive(Deserialize)]
struct Page {
    page: u32,
    #[serde(default)]
    tag: Vec<String>,
}

#[route("/extract/query")]
fn query(Query(page): Query<Page>) -> String {
    format!("{} {:?}", page.page, page.tag)
}

#[derive(Deserialize, Serialize)]
struct Order {
    item: String,
    lines: Vec<Line>,
}

#[derive(Deserialize, Serialize)]
struct Line {
    count: u8,
}

#[route(POST, "/extract/json")]
fn json(Json(order): Json<Order>) -> Json<Order> {
    Json(order)
}

#[route(POST, "/extract/text")]
fn text(text: String) -> String {
    text
}

#[route(POST, "/extract/bytes")]
fn bytes(bytes: Bytes) -> Bytes {
    bytes
}

#[route(POST, "/extract/optional")]
fn optional(order: Option<Json<Order>>) -> String {
    order.map_or("none".to_owned(), |Json(order)| order.item)
}

#[route(POST, "/extract/result")]
fn result(order: Result<Json<Order>, Rejection>) -> String {
    order.map_or_else(
        |rejection| rejection.status().to_string(),
        |Json(order)| order.item,
    )
}

#[route(POST, "/extract/all/{id}")]
fn all(
    Path(id): Path<u8>,
    Query(page): Query<Page>,
    State(word): State<Word>,
    Json(order): Json<Order>,
) -> String {
    format!("{id} {} {} {}", page.page, word.0, order.item)
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn arguments_are_taken_out_of_the_request_or_the_client_hears_why_not() {
    let server = start_with(crate::app(), |settings| settings.body_limit = 100);
    let long = "x".repeat(101);
    let order = r#"{"item":"tea","lines":[{"count":2}]}"#;
    for (line, fields, body, status, text) in vec![
        ("GET /extract/path/7", "", "", 200, "7"),
        (
            "GET /extract/path/x",
            "",
            "",
            400,
            "400 Bad Request: the path does not fit: id is \"x\", not a positive whole number of 64 bits\n",
        ),
        ("GET /extract/path/-1", "", "", 400, "id is \"-1\""),
        ("GET /extract/query?page=2", "", "", 200, "2 []"),
        (
            "GET /extract/query?page=2&tag=a+b&tag=%26",
            "",
            "",
            200,
            r#"2 ["a b", "&"]"#,
        ),
        (
            "GET /extract/query?page=x",
            "",
            "",
            400,
            "400 Bad Request: the query does not fit: page",
        ),
        ("GET /extract/query", "", "", 400, "page"),
        ("POST /extract/json", JSON, order, 200, order),
        (
            "POST /extract/json",
            "Content-Type: application/x.y+JSON; charset=utf-8\r\n",
            order,
            200,
            order,
        ),
        (
            "POST /extract/json",
            "Content-Type: text/plain\r\n",
            order,
            415,
            "415 Unsupported Media Type: the body must be JSON, with Content-Type: application/json\n",
        ),
        (
            "POST /extract/json",
            "",
            order,
            415,
            "415 Unsupported Media Type",
        ),
        (
            "POST /extract/json",
            JSON,
            "{\"item\":",
            400,
            "400 Bad Request: the body is no JSON: EOF",
        ),
        ("POST /extract/json", JSON, "", 400, "the body is no JSON"),
        ("POST /extract/json", JSON, "{} {}", 422, "missing field"),
        (
            "POST /extract/json",
            JSON,
            r#"{"item":"tea","lines":[]} x"#,
            400,
            "the body is no JSON: trailing characters",
        ),
        (
            "POST /extract/json",
            JSON,
            r#"{"item":"tea","lines":[{"count":2},{"count":"x"}]}"#,
            422,
            "422 Unprocessable Entity: the JSON does not fit: lines[1].count: invalid type: string \"x\", expected u8\n",
        ),
        (
            "POST /extract/json",
            JSON,
            &long,
            413,
            "413 Payload Too Large: the request body has 101 bytes, more than the 100 bytes allowed here; \
             #[route(POST, \"/path\", body_limit = \"10 MiB\")] allows more on a route, Settings::body_limit on all\n",
        ),
        ("POST /extract/text", "", "caf\u{e9}", 200, "caf\u{e9}"),
        ("POST /extract/text", "", &long[..100], 200, &long[..100]),
        (
            "POST /extract/text",
            "",
            &long,
            413,
            "413 Payload Too Large",
        ),
        ("POST /extract/bytes", "", "abc", 200, "abc"),
        ("POST /extract/optional", JSON, "{", 200, "none"),
        ("POST /extract/optional", JSON, order, 200, "tea"),
        ("POST /extract/result", JSON, "{", 200, "400 Bad Request"),
        (
            "POST /extract/all/7?page=1",
            JSON,
            order,
            200,
            "7 1 shared tea",
        ),
        (
            "POST /extract/all/256?page=1",
            JSON,
            order,
            400,
            "id is \"256\", not a number from 0 to 255",
        ),
    ] {
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        let answer = ask(server.addr(), request);
        assert_eq!(answer.status, status, "{line} {body}: {}", answer.text());
        if status == 200 {
            assert_eq!(answer.text(), text, "{line}");
        } else {
            assert!(answer.text().contains(text), "{line}: {}", answer.text());
            assert_eq!(
                answer.header("content-type"),
                Some("text/plain; charset=utf-8")
            );
        }
    }
    let answer = ask(
        server.addr(),
        b"POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n\xff",
    );
    assert_eq!(
        answer.text(),
        "400 Bad Request: the body must be UTF-8 text\n"
    );
}

#[test]
fn json_that_is_nested_as_deep_as_it_may_be_does_not_overflow_the_stack() {
    // serde_json reads 127 levels; one more is a mistake of the client and not the server's end.
    let server = start_with(crate::app(), |_| ());
    for (depth, status) in [(126, 200), (127, 200), (128, 400), (100_000, 400)] {
        let body = "[".repeat(depth) + &"]".repeat(depth);
        let length = body.len();
        let request = format!(
            "POST /extract/value HTTP/1.1\r\nHost: h\r\n{JSON}Content-Length: {length}\r\n\r\n{body}"
        );
        assert_eq!(ask(server.addr(), request).status, status, "{depth}");
    }
}

#[route(POST, "/extract/value")]
fn value(Json(value): Json<serde_json::Value>) -> Json<serde_json::Value> {
    Json(value)
}
