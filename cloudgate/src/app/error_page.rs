//! In which form does a client hear that something went wrong?
//!
//! As the line of text that [`Response::error`] makes, unless the client says that it prefers HTML
//! or JSON (RFC 9110 section 12.5.1). Only answers that still are that line are changed, so a page of
//! the handler's own goes out as it is.

use super::problem::Problem;
use super::reply::IntoResponse;
use crate::message::html::escape_html;
use crate::message::negotiate::media_type;
use crate::message::response::Note;
use crate::message::{Body, Request, Response};

const PLAIN: &str = "text/plain";
const HTML: &str = "text/html";

/// What is told apart; the text is first, so it is what `*/*` and a missing Accept get.
const OFFERS: [&str; 4] = [PLAIN, HTML, "application/problem+json", "application/json"];

/// Gives an error answer the form that the request asks for; any other answer stays as it is.
#[inline]
pub(super) fn render(request: &Request<'_>, response: &mut Response) {
    if matches!(
        response.note,
        Note::Status | Note::Because(_) | Note::Public(_)
    ) {
        *response = render_error(request, std::mem::take(response));
    }
}

#[cold]
fn render_error(request: &Request<'_>, mut response: Response) -> Response {
    let note = std::mem::take(&mut response.note);
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get("content-type").unwrap_or("");
    if !is_error || !content_type.starts_with(PLAIN) {
        return response;
    }
    // What went wrong inside stays inside, whoever wrote the text.
    let reason_at = match note {
        Note::Because(at) if !status.is_server_error() => Some(at),
        Note::Public(at) => Some(at),
        _ => None,
    };
    let reason = match (reason_at, response.body()) {
        (Some(at), Body::Bytes(text)) => text
            .get(usize::from(at)..)
            .map(|reason| String::from_utf8_lossy(reason.trim_ascii_end()).into_owned()),
        _ => None,
    };
    let form = media_type(request.headers(), &OFFERS).unwrap_or(PLAIN);
    let told = match form {
        // The text says what it must not, and the status that it was made with.
        PLAIN if status.is_server_error() && matches!(note, Note::Because(_)) => {
            Some(Response::text_plain(Response::error(status).take_body()))
        }
        PLAIN => None,
        HTML => {
            let title = format!(
                "{} {}",
                status.as_u16(),
                status.canonical_reason().unwrap_or("Error")
            );
            Some(Response::html(page(&title, reason.as_deref())))
        }
        _ => {
            let problem = Problem::new(status);
            Some(
                match reason {
                    Some(reason) => problem.detail(reason),
                    None => problem,
                }
                .into_response(),
            )
        }
    };
    if let Some(mut told) = told {
        // Fields such as Allow, Retry-After or Set-Cookie belong to the answer in any form.
        for (name, value) in response.headers().iter() {
            if !name.eq_ignore_ascii_case("content-type") {
                // Cannot be refused: it is in a response already.
                let _ = told.headers_mut().append(name, value);
            }
        }
        response = told.with_status(status);
    }
    // A cache must not give one client's form to another (RFC 9110 section 12.5.5).
    let _ = response.headers_mut().append("Vary", "Accept");
    response
}

fn page(title: &str, reason: Option<&str>) -> String {
    let title = escape_html(title);
    let reason = reason.map_or(String::new(), |reason| {
        format!("<p>{}</p>\n", escape_html(reason))
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n{reason}</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, HttpError, Status};

    fn app() -> App {
        App::new()
            .get("/refused", || -> Result<&str, HttpError> {
                Err(HttpError::new(Status::CONFLICT, "no <b> & \"c\""))
            })
            .get("/failed", || -> Result<&str, HttpError> {
                Err(HttpError::new(Status::BAD_GATEWAY, "secret"))
            })
            .get("/own", || {
                Response::error(Status::GONE)
                    .with_body("my own page")
                    .header("X-A", "1")
            })
            .get("/own-type", || {
                Response::error(Status::GONE).header("Content-Type", "text/markdown")
            })
            .get("/fine", || {
                Response::error(Status::GONE).with_status(Status::OK)
            })
            .get("/busy", || {
                Response::error(Status::SERVICE_UNAVAILABLE).header("Retry-After", "1")
            })
    }

    fn ask(path: &str, accept: Option<&str>) -> Response {
        let request = Request::get(path);
        let mut request = match accept {
            Some(accept) => request.with_header("Accept", accept),
            None => request,
        };
        app().call(&mut request)
    }

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[test]
    fn text_is_what_a_client_gets_that_asks_for_nothing_else() {
        for accept in [
            None,
            Some("*/*"),
            Some("text/plain"),
            Some("text/*"),
            Some("image/png"),
            Some(""),
        ] {
            let response = ask("/refused", accept);
            assert_eq!(response.status(), 409);
            assert_eq!(response.headers().get("vary"), Some("Accept"), "{accept:?}");
            assert_eq!(
                response.text(),
                "409 Conflict: no <b> & \"c\"\n",
                "{accept:?}"
            );
        }
    }

    #[test]
    fn a_browser_gets_a_page_in_which_foreign_text_is_no_markup() {
        let response = ask("/refused", Some(BROWSER));
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers().get_all("content-type").count(), 1);
        assert_eq!(
            response.headers().get("content-type"),
            Some("text/html; charset=utf-8")
        );
        let text = response.text();
        assert!(text.contains("<title>409 Conflict</title>"), "{text}");
        assert!(text.contains("no &lt;b&gt; &amp; &quot;c&quot;"), "{text}");
    }

    #[test]
    fn a_client_of_json_gets_a_problem() {
        for accept in [
            "application/json",
            "application/problem+json",
            "application/json, text/plain, */*",
            "application/*;q=0.5, text/html;q=0.4",
        ] {
            let response = ask("/refused", Some(accept));
            assert_eq!(
                response.headers().get("content-type"),
                Some("application/problem+json"),
                "{accept}"
            );
            assert_eq!(
                response.text(),
                r#"{"type":"about:blank","status":409,"title":"Conflict","detail":"no <b> & \"c\""}"#
            );
        }
    }

    #[test]
    fn what_went_wrong_inside_is_told_in_no_form() {
        for accept in ["*/*", BROWSER, "application/json"] {
            let text = ask("/failed", Some(accept)).text();
            assert!(text.contains("502") && !text.contains("secret"), "{text}");
        }
        // Not even where a text of 4xx becomes a 5xx behind the handler.
        for accept in ["*/*", BROWSER, "application/json"] {
            let mut response = Response::error_because(Status::BAD_REQUEST, "secret")
                .with_status(Status::INTERNAL_SERVER_ERROR);
            let request = Request::get("/").with_header("Accept", accept);
            render(&request, &mut response);
            let text = response.text();
            assert!(text.contains("500") && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn answers_of_the_router_have_the_form_too_and_keep_their_fields() {
        for (method, path, status) in [
            (http::Method::GET, "/nothing", 404),
            (http::Method::DELETE, "/fine", 405),
        ] {
            let mut request = Request::new(method, path).with_header("Accept", "application/json");
            let response = app().call(&mut request);
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().contains("allow"), status == 405);
            let value: serde_json::Value = serde_json::from_str(&response.text()).unwrap();
            assert_eq!(value["status"], status);
        }
        let response = ask("/busy", Some(BROWSER));
        assert_eq!(response.headers().get("retry-after"), Some("1"));
    }

    #[test]
    fn what_a_handler_made_of_it_stays() {
        for (path, text) in [
            ("/own", "my own page"),
            ("/own-type", "410 Gone\n"),
            ("/fine", "410 Gone\n"),
        ] {
            let response = ask(path, Some("application/json"));
            assert!(!response.headers().contains("vary"));
            assert_eq!(response.text(), text, "{path}");
        }
    }
}
