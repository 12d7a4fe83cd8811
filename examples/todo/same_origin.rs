//! Does a request that changes something come from our own page?
//!
//! Cross-site request forgery: another site's page makes the visitor's browser send a request here, with
//! the visitor's cookie. Three things stand against it, each enough for most attacks:
//!
//! - The session cookie is `SameSite=Lax`: a browser does not send it with a form that another site posts.
//! - The API takes JSON, which no form can send, and a script of another origin only with our permission
//!   (CORS), which nobody gets.
//! - This middleware: browsers name the page's origin in every request that is not GET or HEAD. It also
//!   covers what `SameSite` calls the same site, such as another port or `other.example.com`, and the
//!   upload, which is a form.
//!
//! A program such as curl sends no `Origin` and no stranger's cookies, so it may do without.

use cloudgate::{HttpError, IntoResponse, Method, Next, Request, Response};

pub fn check(request: &mut Request<'_>, next: Next<'_>) -> Response {
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if only_reads || is_ours(request) {
        return next.run(request);
    }
    HttpError::forbidden("this comes from another site's page").into_response()
}

fn is_ours(request: &Request<'_>) -> bool {
    let Some(origin) = request.header("origin") else {
        return true;
    };
    // `null` has no host: it is the origin of pages that hide where they come from.
    let host = origin.split_once("://").map(|(_scheme, host)| host);
    host.is_some() && host == request.host()
}
