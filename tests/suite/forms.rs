//! Are forms and uploads taken as browsers send them, and refused with a clear word when they are hostile?

use cloudgate::{Form, HttpError, Json, Multipart, Running, route};
use cloudgate_suite::{Wire, ask, start, start_with};
use serde_json::{Value, json};

const URLENCODED: &str = "application/x-www-form-urlencoded";
pub(crate) const MULTIPART: &str = "multipart/form-data; boundary=x";

#[derive(serde::Deserialize, serde::Serialize)]
struct Order {
    item: String,
    count: u8,
    #[serde(default)]
    tag: Vec<String>,
}

#[route(GET, POST, "/forms/order")]
fn order(Form(order): Form<Order>) -> Json<Order> {
    Json(order)
}

fn shown(form: &Multipart) -> Result<Value, HttpError> {
    let mut files = Vec::new();
    for file in form.files() {
        files.push(json!([
            file.name,
            file.filename,
            file.safe_filename(),
            file.content_type,
            String::from_utf8_lossy(&file.bytes()?)
        ]));
    }
    Ok(json!([form.fields().collect::<Vec<_>>(), files]))
}

#[route(POST, "/forms/upload")]
fn upload(form: Multipart) -> Result<Json<Value>, HttpError> {
    Ok(Json(shown(&form)?))
}

#[route(POST, "/forms/upload/blocking", blocking)]
fn upload_blocking(form: Multipart) -> Result<Json<Value>, HttpError> {
    Ok(Json(shown(&form)?))
}

pub(crate) fn request(target: &str, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = body.as_ref().len();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_ref()].concat()
}

fn field(disposition: &str, data: &str) -> String {
    format!("--x\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{data}\r\n")
}

#[track_caller]
pub(crate) fn check(
    server: &Running,
    target: &str,
    content_type: &str,
    body: &[u8],
    status: u16,
    text: &str,
) {
    let answer = ask(server.addr(), request(target, content_type, body));
    let what = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    assert!(
        answer.text().contains(text),
        "{what}: {} instead of {text}",
        answer.text()
    );
}

/// As [`check`], for a form with files: taken whole, and part by part.
#[track_caller]
fn check_both(server: &Running, body: &[u8], status: u16, text: &str) {
    for target in ["/forms/upload", "/forms/stream"] {
        check(server, target, MULTIPART, body, status, text);
    }
}

#[test]
fn a_form_becomes_a_struct_or_names_the_field_that_does_not_fit() {
    let server = start_with(crate::app(), |settings| settings.body_limit = 100);
    let fits = r#"{"item":"green tea","count":2,"tag":["a","é"]}"#;
    let long = format!("item=tea&count=2&tag={}", "x".repeat(80));
    for (content_type, body, status, text) in [
        (
            URLENCODED,
            "item=green+tea&count=2&tag=a&tag=%C3%A9",
            200,
            fits,
        ),
        (
            "Application/X-WWW-Form-Urlencoded;charset=utf-8",
            "item=tea&count=2",
            200,
            r#""tag":[]"#,
        ),
        (URLENCODED, &long[..100], 200, r#""count":2"#),
        (
            URLENCODED,
            "item=tea&count=256",
            422,
            "422 Unprocessable Entity: the form does not fit: count: ",
        ),
        (URLENCODED, "count=2", 422, "missing field `item`"),
        (URLENCODED, "item=a&item=b&count=2", 422, "item"),
        (URLENCODED, "", 422, "missing field `item`"),
        (
            "application/json",
            "{}",
            415,
            "Content-Type: application/x-www-form-urlencoded",
        ),
        (
            MULTIPART,
            "--x--",
            415,
            "Content-Type: application/x-www-form-urlencoded",
        ),
        ("text/plain", "item=tea&count=2", 415, "must be a form"),
        (
            URLENCODED,
            &long,
            413,
            "has 101 bytes, more than the 100 bytes allowed here; ",
        ),
        (
            URLENCODED,
            &long,
            413,
            r#"#[route(POST, "/path", body_limit = "10 MiB")]"#,
        ),
        (URLENCODED, &long, 413, "Settings::body_limit"),
    ] {
        check(
            &server,
            "/forms/order",
            content_type,
            body.as_bytes(),
            status,
            text,
        );
    }
    let get = |query: &str| {
        let answer = cloudgate_suite::get(server.addr(), &format!("/forms/order{query}"));
        (answer.status, answer.text())
    };
    assert_eq!(
        get("?item=green%20tea&count=2&tag=a&tag=%C3%A9"),
        (200, fits.to_owned())
    );
    let (status, text) = get("?item=tea&count=two");
    assert_eq!(status, 400);
    assert!(text.contains("the query does not fit: count: "), "{text}");
}

#[test]
fn uploads_are_taken_as_browsers_send_them() {
    let server = start(crate::app());
    let body = "preamble\r\n".to_owned()
        + &field("name=\"_charset_\"", "utf-8")
        + &field("name=\"tag\"", "a")
        + &field("name=\"tag\"", "")
        + "--x\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"é %22q%22.png\"\r\nContent-Type: image/png\r\n\r\n\
           \r\n--\r\n--y--x\r\n\r\n"
        + &field("name=\"photo\"; filename=\"empty\"", "")
        + "--x\r\nContent-Disposition: form-data; name=\"none\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n\
           --x--\r\nepilogue";
    let want = json!([
        [["_charset_", "utf-8"], ["tag", "a"], ["tag", ""]],
        [
            [
                "photo",
                "é \"q\".png",
                "é \"q\".png",
                "image/png",
                "\r\n--\r\n--y--x\r\n"
            ],
            ["photo", "empty", "empty", "text/plain", ""]
        ]
    ]);
    let mut wire = Wire::open(server.addr());
    for target in ["/forms/upload", "/forms/upload/blocking"] {
        let answer = wire.send(request(target, MULTIPART, &body)).answer();
        assert_eq!((answer.status, answer.json()), (200, want.clone()));
    }
    // In small pieces and chunks; the connection lives on.
    wire.send(format!(
        "POST /forms/upload HTTP/1.1\r\nHost: h\r\nContent-Type: {MULTIPART}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    for piece in body.as_bytes().chunks(7) {
        wire.send(format!("{:x}\r\n", piece.len()))
            .send(piece)
            .send("\r\n");
    }
    assert_eq!(wire.send("0\r\n\r\n").answer().json(), want);
    assert_eq!(wire.send_get("/routes/get").answer().text(), "get");
}

#[test]
fn hostile_file_names_are_told_and_never_safe() {
    let server = start(crate::app());
    let long = "n".repeat(10_000);
    for (disposition, filename, safe) in [
        (
            r#"filename="../../etc/passwd""#,
            "../../etc/passwd",
            Some("passwd"),
        ),
        (r#"filename="C:\\x""#, r"C:\x", Some("x")),
        (r#"filename="C:\dir\x.txt""#, r"C:\dir\x.txt", Some("x.txt")),
        (r#"filename="C:x""#, "C:x", None),
        (r#"filename="..""#, "..", None),
        (r#"filename="/""#, "/", None),
        (r#"filename=".htaccess""#, ".htaccess", None),
        (r#"filename="a\"b;c.txt""#, "a\"b;c.txt", Some("a\"b;c.txt")),
        (r#"filename=CON"#, "CON", None),
        ("filename=\"a\u{7}b\"", "a\u{7}b", None),
        ("filename=\"x\"; filename*=UTF-8''..%2fy", "x", Some("x")),
    ] {
        let body = field(&format!("name=f; {disposition}"), "1") + "--x--";
        let answer = ask(server.addr(), request("/forms/upload", MULTIPART, body));
        let want = json!([[], [["f", filename, safe, "text/plain", "1"]]]);
        assert_eq!((answer.status, answer.json()), (200, want), "{disposition}");
    }
    for (disposition, status, text) in [
        (
            "name=f; filename=\"a\0b\"",
            400,
            "a NUL, or a CR or LF alone",
        ),
        (
            "name=f; filename=\"a\nX: b\"",
            400,
            "a NUL, or a CR or LF alone",
        ),
        (
            "name=f; filename=\"a\r\nX: b\"",
            400,
            "a quote that is not closed",
        ),
        ("name=f; filename=\"a", 400, "a quote that is not closed"),
        (
            "name=f; filename=\"a\"b\"",
            400,
            "text behind a closing quote",
        ),
        (
            "name=f; filename=a; filename=b",
            400,
            "a part with two file names",
        ),
        ("name=f; name=g; filename=a", 400, "a part with two names"),
        ("filename=a", 400, "a part without a name"),
        (
            &format!("name=f; filename={long}"),
            413,
            "larger than the 8192 bytes",
        ),
        (
            &format!("name={long}"),
            413,
            "MultipartLimits::part_head_bytes",
        ),
    ] {
        let body = field(disposition, "1") + "--x--";
        check_both(&server, body.as_bytes(), status, text);
    }
    // RFC 7578 section 4.2 forbids `filename*`: what has nothing else is a field.
    let body = field("name=f; filename*=UTF-8''x", "1") + "--x--";
    check(
        &server,
        "/forms/upload",
        MULTIPART,
        body.as_bytes(),
        200,
        r#"[[["f","1"]],[]]"#,
    );
}

#[test]
fn malformed_forms_are_refused_with_the_place() {
    let server = start_with(crate::app(), |settings| settings.body_limit = 3 << 20);
    let good = field("name=a", "1");
    let many = good.repeat(1001) + "--x--";
    let large = field("name=a", &"1".repeat((1 << 20) + 1)) + "--x--";
    let too_large = field("name=f; filename=n", &"1".repeat(3 << 20)) + "--x--";
    let lf = (good.clone() + "--x--").replace('\r', "");
    for (body, status, text) in [
        (
            "",
            400,
            "malformed at byte 0: the end of the body without the boundary",
        ),
        ("hello", 400, "malformed at byte 5"),
        (
            &good[..],
            400,
            "the last boundary, with -- behind it, is missing",
        ),
        (
            &(good.clone() + "--x"),
            400,
            "the end of the body in the line of a boundary",
        ),
        (
            &lf,
            400,
            "malformed at byte 3: a line that ends in LF alone",
        ),
        (
            "--xy\r\n\r\n--x--",
            400,
            "a boundary with more than spaces behind it",
        ),
        (
            "--x\r\n\r\n1\r\n--x--",
            400,
            "a part without Content-Disposition",
        ),
        ("--x\r\n--x--", 400, "the head of a part"),
        (&many, 413, "more than the 1000 parts"),
        (
            &large,
            413,
            "with the field \"a\" the form's fields are larger than the 1048576 bytes",
        ),
        (&too_large, 413, "more than the 3145728 bytes allowed here"),
    ] {
        check_both(&server, body.as_bytes(), status, text);
    }
    for (content_type, status, text) in [
        (
            URLENCODED,
            415,
            "must be a form with Content-Type: multipart/form-data",
        ),
        ("multipart/mixed; boundary=x", 415, "multipart/form-data"),
        ("multipart/form-data", 400, "names no boundary"),
        (
            "multipart/form-data; boundary=\"\"",
            400,
            "names no boundary",
        ),
        (
            "multipart/form-data; boundary=y",
            400,
            "without the boundary that its Content-Type names",
        ),
    ] {
        let body = good.clone() + "--x--";
        check(
            &server,
            "/forms/upload",
            content_type,
            body.as_bytes(),
            status,
            text,
        );
        check(
            &server,
            "/forms/stream",
            content_type,
            body.as_bytes(),
            status,
            text,
        );
    }
}
