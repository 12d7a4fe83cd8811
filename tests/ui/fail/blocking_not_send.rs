//! An argument that cannot go to another thread.

use std::rc::Rc;

use cloudgate::{FromRequest, Request, Response, Status, route};

struct Session {
    _user: Rc<str>,
}

impl FromRequest for Session {
    type Rejection = Status;

    fn from_request(_request: &mut Request<'_>) -> Result<Session, Status> {
        Err(Status::UNAUTHORIZED)
    }
}

#[route("/", blocking)]
fn page(_session: Session, _text: String) -> Response {
    Response::new(Status::OK)
}

fn main() {}
