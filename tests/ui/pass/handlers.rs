//! Which forms may a handler have?

#![allow(
    clippy::needless_pass_by_value,
    reason = "a handler takes its arguments by value"
)]

use cloudgate::{App, Event, IntoResponse, Method, Path, Request, Response, State, Status, route};

#[route("/nothing")]
fn nothing() {}

#[route("/twice/{id}")]
#[route(POST, PUT, "/again/{id}")]
fn twice(Path(id): Path<u64>) -> String {
    format!("number {id}")
}

// Named as a variable of the generated code is, which must not hide it.
#[route("/request/{name}")]
fn request(request: &mut Request<'_>, Path(name): Path<String>, event: Event) -> String {
    format!("{} {name} {}", request.method(), event.path())
}

#[route("/keyword")]
fn r#type(State(word): State<&'static str>) -> impl IntoResponse {
    word.to_string()
}

#[route("/result/{number}")]
pub(crate) fn result(Path(number): Path<u64>) -> Result<&'static str, Status> {
    if number == 0 {
        Err(Status::IM_A_TEAPOT)
    } else {
        Ok("more than none")
    }
}

#[route("/thread", blocking)]
fn thread() {}

// The reply need not be able to leave its thread.
#[route(PUT, PATCH, "/thread/{id}", blocking)]
fn on_a_thread(
    Path(id): Path<u64>,
    State(word): State<&'static str>,
    event: Event,
) -> impl IntoResponse {
    let text = std::rc::Rc::new(format!("{} {id} {word}", event.method()));
    Shared(text)
}

struct Shared(std::rc::Rc<String>);

impl IntoResponse for Shared {
    fn into_response(self) -> Response {
        self.0.to_string().into_response()
    }
}

#[cfg(false)]
#[route("/absent")]
fn absent(_: NoSuchType) {}

#[route("/absent")]
#[cfg(false)]
fn absent_too(_: NoSuchType) {}

#[route("/absent")]
#[cfg_attr(true, cfg(false))]
fn absent_as_well(_: NoSuchType) {}

macro_rules! page {
    ($name:ident, $method:ident, $pattern:literal, $argument:ty, $returns:ty) => {
        #[route($method, $pattern)]
        fn $name(_argument: $argument, _request: &mut Request<'_>) -> $returns {
            Response::html("from a macro")
        }
    };
}

page!(made, DELETE, "/made", Event, Response);

#[track_caller]
fn check(method: Method, path: &str, status: Status, text: &str) {
    let app = App::gather().state("a word");
    let response = app.call(&mut Request::new(method, path));
    assert_eq!(response.status(), status, "{path}");
    assert_eq!(response.text(), text, "{path}");
}

#[test]
fn every_form_of_handler_is_called() {
    #[route("/inside")]
    fn inside_of_a_function() -> &'static str {
        "inside"
    }

    check(Method::GET, "/nothing", Status::NO_CONTENT, "");
    check(Method::GET, "/twice/7", Status::OK, "number 7");
    check(Method::POST, "/again/7", Status::OK, "number 7");
    check(Method::PUT, "/again/7", Status::OK, "number 7");
    check(Method::GET, "/request/me", Status::OK, "GET me /request/me");
    check(Method::GET, "/keyword", Status::OK, "a word");
    check(Method::GET, "/result/1", Status::OK, "more than none");
    check(Method::DELETE, "/made", Status::OK, "from a macro");
    check(Method::GET, "/inside", Status::OK, "inside");
    check(Method::GET, "/thread", Status::NO_CONTENT, "");
    check(Method::PUT, "/thread/7", Status::OK, "PUT 7 a word");
    check(Method::PATCH, "/thread/8", Status::OK, "PATCH 8 a word");
}

#[test]
fn an_error_of_a_handler_is_its_reply() {
    let response = App::gather()
        .state("a word")
        .call(&mut Request::get("/result/0"));
    assert_eq!(response.status(), Status::IM_A_TEAPOT);
}

#[test]
fn a_handler_that_is_compiled_out_has_no_route() {
    let response = App::gather()
        .state("a word")
        .call(&mut Request::get("/absent"));
    assert_eq!(response.status(), Status::NOT_FOUND);
}

#[test]
fn a_handler_is_still_a_function() {
    assert_eq!(twice(Path(3)), "number 3");
    assert_eq!(result(Path(3)), Ok("more than none"));
}
