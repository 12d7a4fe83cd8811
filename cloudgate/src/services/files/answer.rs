//! Which file is meant by a request, and in which form is it sent?

use std::io;
use std::sync::Arc;

use http::{Method, StatusCode};

use super::listing::{self, Sort};
use super::load::{Known, Loader, Representation, What, form};
use super::resolve::SafePath;
use super::source::is_missing;
use crate::disk::{Cache, Key, reader};
use crate::message::conditional::{self, Outcome};
use crate::message::{Headers, Request, Response, mime, negotiate, partial};
use crate::net::home;
use crate::services::coding::{Coding, accept};

/// The methods that files are asked by.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A folder, or several, as a site.
pub(super) struct Site(Cache<Arc<Loader>>);

/// What a path comes to.
enum Target<'p> {
    /// The file of this name.
    File(std::borrow::Cow<'p, str>, Arc<Known>),
    /// Another path, percent-encoded, where the client should ask.
    Elsewhere(String),
    /// The folder itself, to be listed.
    Folder,
    Missing,
}

impl Site {
    pub(super) fn new(loader: Loader, most_bytes: u64) -> Site {
        Site(Cache::new(Arc::new(loader), most_bytes))
    }

    pub(super) fn answer(&self, request: &Request<'_>) -> Response {
        let rules = &self.0.loader().rules;
        let path = match SafePath::of(request.local_path(), rules.dot_names) {
            Ok(path) => path,
            Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => {
                return self.answer_missing(request, None);
            }
            Err(refusal) => return Response::error(refusal.status()),
        };
        let target = match self.find(request, &path) {
            Ok(target) => target,
            Err(error) => {
                log::error!("{:?} could not be read: {error}", path.as_str());
                return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        match target {
            Target::Missing => self.answer_missing(request, Some(&path)),
            Target::Elsewhere(path) => redirect(request, &path),
            _ if *request.method() == Method::OPTIONS => {
                Response::new(StatusCode::NO_CONTENT).header("Allow", ALLOW)
            }
            _ if !reads => Response::error(StatusCode::METHOD_NOT_ALLOWED).header("Allow", ALLOW),
            Target::Folder => self.list(request, &path),
            Target::File(name, plain) => match self.in_wanted_form(request, &name, plain) {
                Ok(known) => match &known.what {
                    What::File(file) => send(request, file),
                    _ => Response::error(StatusCode::NOT_FOUND),
                },
                Err(error) => {
                    log::error!("{name:?} could not be read: {error}");
                    Response::error(StatusCode::INTERNAL_SERVER_ERROR)
                }
            },
        }
    }

    fn get(&self, name: &str, coding: Option<Coding>) -> io::Result<Arc<Known>> {
        let form = form(coding);
        self.0.get(Key { name, form })
    }

    /// The file of this name, if it is one.
    fn file(&self, name: &str) -> io::Result<Option<Arc<Known>>> {
        let known = self.get(name, None)?;
        Ok(matches!(known.what, What::File(_)).then_some(known))
    }

    fn find<'p>(&self, request: &Request<'_>, path: &'p SafePath<'_>) -> io::Result<Target<'p>> {
        let rules = &self.0.loader().rules;
        let name = path.as_str();
        let asked = request.path();
        if path.names_folder() {
            // The prefix that the folder is mounted at, without a slash.
            if !asked.ends_with('/') {
                return Ok(match self.index_of(path)? {
                    Some(_) => Target::Elsewhere(format!("{asked}/")),
                    None if rules.listing => Target::Elsewhere(format!("{asked}/")),
                    None => Target::Missing,
                });
            }
            if let Some((name, known)) = self.index_of(path)? {
                return Ok(Target::File(name.into(), known));
            }
            if rules.listing && matches!(self.get(name, None)?.what, What::Folder) {
                return Ok(Target::Folder);
            }
            if rules.clean_urls && !name.is_empty() && self.file(&with_html(name))?.is_some() {
                return Ok(Target::Elsewhere(asked.trim_end_matches('/').to_owned()));
            }
            return Ok(Target::Missing);
        }
        let known = self.get(name, None)?;
        match known.what {
            What::File(_) => Ok(match clean(rules.clean_urls, asked, &rules.index) {
                Some(cleaned) => Target::Elsewhere(cleaned),
                None => Target::File(name.into(), known),
            }),
            // Relative links in its page would go wrong without the slash.
            What::Folder if rules.listing || self.index_of(path)?.is_some() => {
                Ok(Target::Elsewhere(format!("{asked}/")))
            }
            What::Folder | What::Missing | What::NoSuchForm => {
                if rules.clean_urls {
                    let name = with_html(name);
                    if let Some(known) = self.file(&name)? {
                        return Ok(Target::File(name.into(), known));
                    }
                }
                Ok(Target::Missing)
            }
        }
    }

    /// The page that answers for a folder.
    fn index_of(&self, path: &SafePath<'_>) -> io::Result<Option<(String, Arc<Known>)>> {
        for index in &self.0.loader().rules.index {
            let name = path.join(index);
            if let Some(known) = self.file(&name)? {
                return Ok(Some((name, known)));
            }
        }
        Ok(None)
    }

    /// The file in the form that the client wants most, of those that there are.
    fn in_wanted_form(
        &self,
        request: &Request<'_>,
        name: &str,
        plain: Arc<Known>,
    ) -> io::Result<Arc<Known>> {
        let varies = matches!(&plain.what, What::File(file) if file.varies);
        if !varies || !request.headers().contains("accept-encoding") {
            return Ok(plain);
        }
        let mut offered = Coding::ALL.to_vec();
        while let Some(coding) = accept::choose(request.headers(), &offered).coding {
            let known = self.get(name, Some(coding))?;
            if let What::File(_) = known.what {
                return Ok(known);
            }
            offered.retain(|other| *other != coding);
        }
        Ok(plain)
    }

    /// The answer where there is nothing at the path; `None` for one that is not shown.
    fn answer_missing(&self, request: &Request<'_>, path: Option<&SafePath<'_>>) -> Response {
        let rules = &self.0.loader().rules;
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Response::error(StatusCode::NOT_FOUND);
        }
        if let (Some(page), Some(path)) = (&rules.spa, path)
            && names_html(request.headers())
            && !is_asset(path.as_str())
            && let Some(response) = self.page(request, page, send)
        {
            return response;
        }
        if let Some(page) = &rules.not_found
            && negotiate::media_type(request.headers(), &["text/html"]).is_some()
            && let Some(response) = self.page(request, page, |_, file| not_found(file))
        {
            return response;
        }
        Response::error(StatusCode::NOT_FOUND)
    }

    /// The file of this name, answered by `answer`; `None` where there is no such file, which is logged.
    fn page(
        &self,
        request: &Request<'_>,
        name: &str,
        answer: impl Fn(&Request<'_>, &Representation) -> Response,
    ) -> Option<Response> {
        let known = self
            .get(name, None)
            .and_then(|plain| self.in_wanted_form(request, name, plain));
        match known {
            Ok(known) => match &known.what {
                What::File(file) => Some(answer(request, file)),
                _ => {
                    log::warn!("there is no {name:?} to be shown in place of what is missing");
                    None
                }
            },
            Err(error) => {
                log::error!("{name:?} could not be read: {error}");
                None
            }
        }
    }

    fn list(&self, request: &Request<'_>, path: &SafePath<'_>) -> Response {
        let loader = Arc::clone(self.0.loader());
        let name = path.as_str().to_owned();
        let listed = home::try_blocking(move || {
            let mut missing = io::Error::from(io::ErrorKind::NotFound);
            for source in &loader.sources {
                match source.list(&name, loader.rules.dot_names) {
                    Err(error) if is_missing(&error) => missing = error,
                    other => return other,
                }
            }
            Err(missing)
        });
        let items = match listed {
            Ok(Ok(items)) => items,
            Ok(Err(error)) if is_missing(&error) => return Response::error(StatusCode::NOT_FOUND),
            Ok(Err(error)) => {
                log::error!(
                    "the folder {:?} could not be listed: {error}",
                    path.as_str()
                );
                return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            }
            Err(_) => {
                return Response::error(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", "1");
            }
        };
        let shown = match path.as_str() {
            "" => "/".to_owned(),
            path => format!("/{path}/"),
        };
        let sort = Sort::of(request.query());
        let types = ["text/html", "application/json"];
        let response = match negotiate::media_type(request.headers(), &types) {
            Some("application/json") => {
                Response::of_type("application/json", listing::json(&shown, items, sort))
            }
            _ => Response::html(listing::page(&shown, shown == "/", items, sort))
                .header("Content-Security-Policy", listing::CONTENT_SECURITY_POLICY),
        };
        response
            .header("Cache-Control", "no-cache")
            .header("Vary", "Accept")
            .header("X-Content-Type-Options", "nosniff")
    }
}

/// The file, or the part of it, or the word that it is unchanged.
fn send(request: &Request<'_>, file: &Representation) -> Response {
    let whole = |headers: &Headers| {
        let mut response = Response::new(StatusCode::OK);
        *response.headers_mut() = headers.clone();
        response
    };
    match conditional::evaluate(request, &file.validators) {
        Outcome::Send => {
            let response = whole(&file.headers).with_body(file.body());
            partial::part(request, &file.validators, response, reader::open)
        }
        Outcome::NotModified => whole(&file.not_modified).with_status(StatusCode::NOT_MODIFIED),
        Outcome::PreconditionFailed => Response::error(StatusCode::PRECONDITION_FAILED),
    }
}

/// The page for what is not there. It has no validators: it would be taken for the page at its own path.
fn not_found(file: &Representation) -> Response {
    let mut response = Response::new(StatusCode::NOT_FOUND);
    *response.headers_mut() = file.headers.clone();
    for name in ["ETag", "Last-Modified", "Accept-Ranges"] {
        response.headers_mut().remove(name);
    }
    response
        .header("Cache-Control", "no-cache")
        .with_body(file.body())
}

/// Sends the client to another path, and keeps the query.
fn redirect(request: &Request<'_>, path: &str) -> Response {
    // One slash in front, or the browser would read the first segment as a host.
    let mut target = format!("/{}", path.trim_start_matches('/'));
    if !request.query().is_empty() {
        target.push('?');
        target.push_str(request.query());
    }
    Response::new(StatusCode::PERMANENT_REDIRECT).header("Location", &target)
}

fn with_html(name: &str) -> String {
    format!("{name}.html")
}

/// The address without the ending that it is asked with, where addresses are clean: without `.html`, and
/// without the name of the page that answers for its folder.
fn clean(clean_urls: bool, asked: &str, index: &[String]) -> Option<String> {
    if !clean_urls {
        return None;
    }
    let (folder, name) = asked.rsplit_once('/')?;
    if index.iter().any(|index| index == name) {
        return Some(format!("{folder}/"));
    }
    let stem = name.strip_suffix(".html").filter(|stem| !stem.is_empty())?;
    Some(format!("{folder}/{stem}"))
}

/// Whether the client is somebody who opens a page: it asks for HTML by its name.
fn names_html(headers: &Headers) -> bool {
    let named = headers
        .get_all("accept")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .filter_map(|member| member.split(|&byte| byte == b';').next())
        .any(|range| range.trim_ascii().eq_ignore_ascii_case(b"text/html"));
    named && negotiate::media_type(headers, &["text/html"]).is_some()
}

/// Whether the path is that of a script, picture or the like: to get a page in its place would be an error
/// that is hard to find.
fn is_asset(path: &str) -> bool {
    let content_type = mime::content_type(path.as_ref());
    let essence = content_type.split(';').next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    // Versions, names of hosts and addresses have dots too, and some of their endings mean a rare type.
    let is_page = matches!(essence, "application/octet-stream" | "text/html")
        || essence.starts_with("text/x-")
        || name.ends_with(".com")
        || name.contains('@');
    !is_page
}
