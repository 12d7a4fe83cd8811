//! What this application is made of: the routes of `api/`, the files of `public/`, and shared state.

cloudgate::modules!("api");

use api::tests::full::Visits;
use cloudgate::{App, Config};

fn main() -> cloudgate::Result<()> {
    app().run(Config::from_env()?)
}

fn app() -> App {
    App::gather() // every #[route] of this program
        .state(Visits::default()) // one value that all requests share
        .files("public") // routes win over files
}

#[cfg(test)]
mod tests {
    use cloudgate::{Method, Request, Response, Status};
    use serde_json::{Value, json};

    /// Asks a fresh app, in process: no port, no network.
    fn ask(mut request: Request<'_>) -> Response {
        super::app().call(&mut request)
    }

    fn json_of(request: Request<'_>) -> Value {
        let response = ask(request.with_header("accept", "application/json"));
        assert_eq!(response.status(), Status::OK);
        serde_json::from_str(&response.text()).expect("the answer is JSON")
    }

    #[test]
    fn the_page_and_its_picture_are_served() {
        let page = ask(Request::get("/"));
        assert_eq!(page.status(), Status::OK);
        assert!(page.text().contains("<!doctype html>"));

        let picture = ask(Request::get("/cloudgate128.png"));
        assert_eq!(picture.headers().get("content-type"), Some("image/png"));
    }

    #[test]
    fn simple_says_hello() {
        let response = ask(Request::get("/api/tests/simple"));
        assert_eq!(response.status(), Status::OK);
        assert_eq!(response.text(), "Hello World!");
    }

    #[test]
    fn full_shows_the_query() {
        let answer = json_of(Request::get("/api/tests/full?color=blue"));
        assert_eq!(answer["method"], "GET");
        assert_eq!(answer["path"], "/api/tests/full");
        assert_eq!(answer["queryStringParameters"], json!({"color": "blue"}));
    }

    #[test]
    fn full_shows_a_posted_form() {
        let answer = json_of(
            Request::post("/api/tests/full")
                .with_header("content-type", "application/x-www-form-urlencoded")
                .with_body("name=Ada+Lovelace&city=London"),
        );
        assert_eq!(
            answer["POST"],
            json!({"name": "Ada Lovelace", "city": "London"})
        );
    }

    #[test]
    fn full_counts_the_visits_of_all_requests() {
        let app = super::app();
        for visit in 1..=3 {
            let mut request =
                Request::get("/api/tests/full").with_header("accept", "application/json");
            let answer: Value =
                serde_json::from_str(&app.call(&mut request).text()).expect("the answer is JSON");
            assert_eq!(answer["visits"], visit);
        }
    }

    #[test]
    fn full_escapes_what_the_client_sent() {
        let page = ask(Request::get(
            "/api/tests/full?a=%3Cscript%3Ealert(1)%3C/script%3E",
        ));
        assert!(!page.text().contains("<script>"));
    }

    #[test]
    fn template_fills_in_the_visitor() {
        let page = ask(Request::get("/api/tests/template?name=%3CAda%3E"));
        assert_eq!(page.status(), Status::OK);
        let text = page.text();
        assert!(text.contains("Hello, &lt;Ada&gt;!"), "{text}");
        assert!(!text.contains("${"), "a variable was left open: {text}");
    }

    #[test]
    fn mistakes_have_their_status() {
        assert_eq!(
            ask(Request::get("/nothing-here")).status(),
            Status::NOT_FOUND
        );
        let wrong_method = ask(Request::new(Method::DELETE, "/api/tests/simple"));
        assert_eq!(wrong_method.status(), Status::METHOD_NOT_ALLOWED);
    }
}
