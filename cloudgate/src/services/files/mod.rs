//! How does a folder become a web site?
//!
//! ```text
//!  path ─ resolve::SafePath ─▶ root::Root (opened beneath the folder) ─▶ disk::Cache
//!       ─ message::conditional ─▶ 200, 304 or 412
//! ```

#[allow(dead_code, reason = "`Files` does not ask it yet")]
pub mod cache_control;
#[allow(dead_code, reason = "for `cache_control`")]
mod directives;
mod hashed_name;
#[allow(dead_code, reason = "`Files` shows no folders yet")]
mod listing;
mod resolve;
mod root;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use http::{Method, StatusCode};

use crate::disk::{self, Cache, Content, Key, Load, Snapshot};
use crate::error::Error;
use crate::message::conditional::{self, Outcome, Validators};
use crate::message::{
    Body, FileRange, FileVersion, Headers, Request, Response, Service, StartError, mime,
};
use resolve::SafePath;
use root::Root;

/// The most bytes of files that one folder keeps in memory, for all workers together.
const MOST_BYTES: u64 = 64 << 20;

/// The largest file that is kept in memory, in bytes; larger ones are opened each time.
const LARGEST_KEPT: u64 = 256 << 10;

/// What answers for a folder.
const INDEX: &str = "index.html";

/// Serves the files of a folder and of the folders in it.
///
/// Names that begin with a dot are hidden but for `.well-known`, links that lead out of the folder
/// are not followed, and what is no regular file is not served.
///
/// ```no_run
/// use cloudgate::{Files, Server};
/// let server = Server::bind("127.0.0.1:3000")?.serve(Files::new("public"))?;
/// # Ok::<(), cloudgate::Error>(())
/// ```
pub struct Files {
    folder: PathBuf,
    cache: Cache<Opener>,
}

/// Opens what is asked for.
struct Opener {
    /// The folder as the system names it, where it can.
    absolute: Option<PathBuf>,
    /// The opened folder, or why it could not be: said at start.
    root: io::Result<Root>,
}

/// A file, and what is made once of one that is served often.
struct Prepared {
    snapshot: Snapshot,
    headers: Headers,
    validators: Validators,
}

impl Load for Opener {
    type Value = Prepared;

    fn load(&self, key: Key<'_>) -> io::Result<Prepared> {
        let file = self.open(key.name)?;
        Ok(prepare(key.name, disk::read(file, LARGEST_KEPT)?))
    }

    fn is_current(&self, key: Key<'_>, prepared: &Prepared) -> bool {
        self.open(key.name)
            .and_then(|file| file.metadata())
            .is_ok_and(|metadata| FileVersion::of(&metadata) == prepared.snapshot.version)
    }

    fn cost(&self, prepared: &Prepared) -> u64 {
        match prepared.snapshot.content {
            Content::Memory(_) => prepared.snapshot.version.length() + 768,
            // Thousands of them would use the descriptors up.
            Content::Open(_) => u64::MAX,
        }
    }

    fn for_worker(&self, prepared: &Prepared) -> Prepared {
        Prepared {
            snapshot: prepared.snapshot.for_worker(),
            headers: prepared.headers.clone(),
            validators: prepared.validators.clone(),
        }
    }

    fn folders(&self, key: Key<'_>) -> Vec<PathBuf> {
        let path = self.absolute.as_ref().map(|folder| folder.join(key.name));
        path.and_then(|path| path.parent().map(Path::to_owned))
            .into_iter()
            .collect()
    }
}

impl Opener {
    fn open(&self, name: &str) -> io::Result<std::fs::File> {
        match &self.root {
            Ok(root) => root.open_beneath(name),
            Err(error) => Err(error.kind().into()),
        }
    }
}

impl Files {
    /// The files of this folder; a relative path counts from the working directory.
    pub fn new(folder: impl AsRef<Path>) -> Files {
        let folder = folder.as_ref().to_owned();
        let opener = Opener {
            absolute: folder.canonicalize().ok(),
            root: Root::open(&folder),
        };
        Files {
            folder,
            cache: Cache::new(opener, MOST_BYTES),
        }
    }

    fn answer(&self, request: &Request<'_>) -> Response {
        if self.cache.loader().root.is_err() {
            return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let path = match SafePath::of(request.local_path()) {
            Ok(path) => path,
            Err(refusal) => return Response::error(refusal.status()),
        };
        // The prefix that the folder is mounted at, without a slash.
        if path.names_folder() && !request.path().ends_with('/') {
            return self.with_a_slash(request, &path);
        }
        let name = if path.names_folder() {
            path.join(INDEX)
        } else {
            path.as_str().to_owned()
        };
        match self.get(&name) {
            Ok(prepared) => respond(request, &prepared),
            Err(error) => self.answer_without(request, &path, &error),
        }
    }

    fn get(&self, name: &str) -> io::Result<Arc<Prepared>> {
        self.cache.get(Key { name, form: 0 })
    }

    /// The answer where no file could be opened.
    fn answer_without(
        &self,
        request: &Request<'_>,
        path: &SafePath,
        error: &io::Error,
    ) -> Response {
        match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::IsADirectory if !path.names_folder() => {
                self.with_a_slash(request, path)
            }
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
            | ErrorKind::PermissionDenied
            | ErrorKind::CrossesDevices => Response::error(StatusCode::NOT_FOUND),
            _ => {
                log::error!(
                    "{}/{} could not be read: {error}",
                    self.folder.display(),
                    path.as_str()
                );
                Response::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    /// Sends a client that asked for a folder by its name without the slash to the name with it:
    /// relative links in its page would go wrong.
    fn with_a_slash(&self, request: &Request<'_>, path: &SafePath) -> Response {
        if self.get(&path.join(INDEX)).is_err() {
            return Response::error(StatusCode::NOT_FOUND);
        }
        let query = if request.query().is_empty() {
            ""
        } else {
            &request.target()[request.path().len()..]
        };
        // One slash in front, or the browser would read the first segment as a host.
        let target = format!("/{}/{query}", request.path().trim_matches('/'));
        Response::new(StatusCode::PERMANENT_REDIRECT).header("Location", &target)
    }
}

fn prepare(name: &str, snapshot: Snapshot) -> Prepared {
    let tag = snapshot.version.entity_tag(SystemTime::now());
    let validators = Validators::new(tag, Some(snapshot.modified));
    let mut headers = Headers::new();
    let content_type = mime::content_type(name.as_ref());
    for (field, value) in [
        ("Content-Type", content_type.as_str()),
        ("ETag", validators.tag()),
        ("Last-Modified", validators.date().unwrap_or_default()),
        ("X-Content-Type-Options", "nosniff"),
    ] {
        // None of them can hold a control character.
        let _ = headers.append(field, value);
    }
    Prepared {
        snapshot,
        headers,
        validators,
    }
}

fn respond(request: &Request<'_>, prepared: &Prepared) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let status = if *request.method() == Method::OPTIONS {
            StatusCode::NO_CONTENT
        } else {
            StatusCode::METHOD_NOT_ALLOWED
        };
        return Response::new(status).header("Allow", "GET, HEAD, OPTIONS");
    }
    let mut response = Response::new(StatusCode::OK);
    match conditional::evaluate(request, &prepared.validators) {
        Outcome::Send => {
            let snapshot = &prepared.snapshot;
            let body = match &snapshot.content {
                Content::Memory(bytes) => Body::Bytes(bytes.clone()),
                Content::Open(file) => {
                    let length = snapshot.version.length();
                    let range = FileRange::new(Arc::clone(file), 0, length);
                    Body::File(range.of_version(snapshot.version))
                }
            };
            *response.headers_mut() = prepared.headers.clone();
            response.with_body(body)
        }
        Outcome::NotModified => {
            *response.headers_mut() = prepared.headers.clone();
            response.headers_mut().remove("Content-Type");
            response.with_status(StatusCode::NOT_MODIFIED)
        }
        Outcome::PreconditionFailed => Response::error(StatusCode::PRECONDITION_FAILED),
    }
}

impl Service for Files {
    fn call(&self, request: &mut Request<'_>) -> Response {
        self.answer(request)
    }

    fn start(&self) -> Result<(), StartError> {
        match &self.cache.loader().root {
            Ok(_) => Ok(()),
            Err(error) => Err(Box::new(Error::Folder {
                path: self.folder.clone(),
                working_directory: std::env::current_dir().unwrap_or_default(),
                source: io::Error::new(error.kind(), error.to_string()),
            })),
        }
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
