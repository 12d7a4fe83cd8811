//! What does may_minihttp, the least framework on the same coroutines, need for the same answers?
//!
//! It is taken as published and without may's default features, as its own benchmark programs take it. It offers no files and
//! no templates: the page and the picture are bytes in memory here, read once at the start.

use std::net::TcpListener;
use std::{fs, io};

use may_minihttp::{HttpServer, HttpService, Request, Response};

use crate::cases::{Case, SIMPLE_BODY};
use crate::harness::child;
use crate::harness::options::Named;
use crate::site::Site;

/// What the child has to be told, or why there is nothing to tell.
pub(crate) fn arguments(case: Case, site: &Site) -> Result<Vec<String>, String> {
    let file = match case {
        Case::Simple => String::new(),
        Case::Html => site.public().join("index.html").display().to_string(),
        Case::Png => site
            .public()
            .join(site.png_target().trim_start_matches('/'))
            .display()
            .to_string(),
        Case::Full | Case::Template => return Err("not offered by may_minihttp".to_owned()),
    };
    Ok(vec![case.name().to_owned(), case.target(site), file])
}

/// The child's side.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let [case, target, file] = arguments else {
        return Err("floor: a case, a target and a file, please".to_owned());
    };
    let case = Case::named(case).ok_or_else(|| format!("floor: there is no case `{case}`"))?;
    let body = match case {
        Case::Simple => SIMPLE_BODY.as_bytes().to_vec(),
        _ => fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?,
    };
    let service = Fixed {
        // Its response borrows for ever, and this process has one answer for all its life.
        target: String::leak(target.clone()),
        body: Vec::leak(body),
        content_type: if case == Case::Png {
            "Content-Type: image/png"
        } else {
            "Content-Type: text/html; charset=utf-8"
        },
    };
    let told = |error: io::Error| format!("may_minihttp does not start: {error}");
    // It does not tell which port it was given, so a free one is found first.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(told)?
        .port();
    let server = HttpServer(service)
        .start(("127.0.0.1", port))
        .map_err(told)?;
    child::announce(port)?;
    server
        .join()
        .map_err(|_| "may_minihttp has ended".to_owned())
}

#[derive(Clone)]
struct Fixed {
    target: &'static str,
    content_type: &'static str,
    body: &'static [u8],
}

impl HttpService for Fixed {
    fn call(
        &mut self,
        request: Request<'_, '_, '_>,
        response: &mut Response<'_>,
    ) -> io::Result<()> {
        if request.path() != self.target {
            response.status_code(404, "Not Found");
            return Ok(());
        }
        response.header(self.content_type);
        response.body_mut().extend_from_slice(self.body);
        Ok(())
    }
}
