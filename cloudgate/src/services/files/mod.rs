//! How does a folder become a web site?
//!
//! ```text
//!  path ─ resolve::SafePath ─▶ answer::Site: which file is meant, and in which form
//!                                 │ disk::Cache, a Key a form
//!                                 ▼
//!                              load::Loader ─ source::Source ─ root::Root, opened beneath the folder
//!                                 │
//!                                 ▼
//!  Representation: bytes or open file, validators, finished fields ─ message::partial ─▶ 200, 206, 304, 412, 416
//! ```

mod answer;
pub mod cache_control;
mod contents;
mod directives;
#[cfg(feature = "embed")]
pub mod embedded;
mod hashed_name;
mod listing;
mod load;
mod resolve;
mod root;
mod rules;
mod source;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use http::StatusCode;

use crate::error::Error;
use crate::message::{Request, Response, Service, StartError};
use answer::Site;
use cache_control::CacheControl;
use load::Loader;
use resolve::DotNames;
use root::{Links, Root};
use rules::Rules;
use source::Source;

/// The most bytes of files that are kept in memory, unless told otherwise.
const MOST_BYTES: u64 = 64 << 20;

/// Serves the files of a folder, and of the folders in it.
///
/// ```no_run
/// use cloudgate::{CacheControl, Files, Server};
///
/// let site = Files::new("dist")
///     .spa("index.html")                                             // the application's own paths
///     .cache_control(CacheControl::new().path("downloads/**", "public, max-age=3600"));
/// let server = Server::bind("127.0.0.1:3000")?.serve(site)?;
/// # Ok::<(), cloudgate::Error>(())
/// ```
///
/// **What is sent.** GET and HEAD are answered with `ETag` and `Last-Modified`, conditions (RFC 9110 section 13) and
/// ranges (section 14) are honoured, other methods are 405. Files of up to 1 MiB are kept in memory
/// ([`Files::memory`]) with their finished fields, and compared with the disk at least once a second while they
/// are asked for; larger ones are sent by the system. A file that changes while it is sent ends the connection in front of
/// its last bytes, so that the client can tell.
///
/// **Compressed forms.** Where `app.js.br`, `app.js.zst` or `app.js.gz` lies beside `app.js` and is no older, a client that
/// wants that coding gets it. Where none does, text and the like of 1 KiB to 1 MiB is compressed once and kept
/// ([`Files::compress`]).
///
/// **What is not shown.** Names that begin with a dot are hidden but for `.well-known`; links that lead out of the
/// folder are not followed; devices, pipes and sockets are not opened. Names that another system could misread
/// (`a\b`, `a:b`, `CON`, a dot or a space at the end) are refused everywhere.
///
/// Serves one folder in several places, or several folders in one application, by
/// [`App::mount`](crate::App::mount), [`App::host`](crate::App::host) and [`App::files`](crate::App::files).
pub struct Files {
    places: Vec<Place>,
    links: Links,
    rules: Rules,
    most_bytes: u64,
    /// What is made of all that when it is first needed, or the folder that could not be opened and why.
    site: OnceLock<Result<Site, (PathBuf, io::Error)>>,
}

/// Where files are.
#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    #[cfg(feature = "embed")]
    Embedded(embedded::Embedded),
}

impl Files {
    /// The files of this folder; a relative path counts from the working directory.
    pub fn new(folder: impl AsRef<Path>) -> Files {
        Files::of(Place::Folder(folder.as_ref().to_owned()))
    }

    /// The files of a folder that is part of the program: see [`include_files!`](crate::include_files).
    #[cfg(feature = "embed")]
    pub fn embedded(folder: embedded::Embedded) -> Files {
        Files::of(Place::Embedded(folder))
    }

    fn of(place: Place) -> Files {
        Files {
            places: vec![place],
            links: Links::Beneath,
            rules: Rules::new(),
            most_bytes: MOST_BYTES,
            site: OnceLock::new(),
        }
    }

    /// Looks in this folder too, for what the folders before it do not have.
    ///
    /// ```no_run
    /// use cloudgate::Files;
    /// let site = Files::new("theme").also("theme-default");
    /// ```
    #[must_use]
    pub fn also(mut self, folder: impl AsRef<Path>) -> Files {
        self.places.push(Place::Folder(folder.as_ref().to_owned()));
        self.changed()
    }

    /// Looks in this folder of the program too, for what the folders before it do not have.
    #[cfg(feature = "embed")]
    #[must_use]
    pub fn also_embedded(mut self, folder: embedded::Embedded) -> Files {
        self.places.push(Place::Embedded(folder));
        self.changed()
    }

    /// Sets the names of the page that answers for a folder, the first one that is there; `index.html` unless told
    /// otherwise.
    #[must_use]
    pub fn index<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Files {
        self.rules.index = names.into_iter().map(str::to_owned).collect();
        self.changed()
    }

    /// Sets whether a folder without such a page is listed: as a page for people, and as JSON for who prefers
    /// `application/json`. Off unless told otherwise: the names of files may be nobody's business.
    #[must_use]
    pub fn listing(mut self, on: bool) -> Files {
        self.rules.listing = on;
        self.changed()
    }

    /// Answers with this page where nothing is at a path, for an application in the browser that has paths of its own.
    ///
    /// Only GET and HEAD of clients that ask for `text/html` by name, as a browser does that opens a page, get it, and
    /// never for a path that ends as a script, a style, a picture or the like does: those are 404.
    #[must_use]
    pub fn spa(mut self, page: &str) -> Files {
        self.rules.spa = Some(page.to_owned());
        self.changed()
    }

    /// Answers 404 with this page, for clients that take HTML.
    #[must_use]
    pub fn not_found(mut self, page: &str) -> Files {
        self.rules.not_found = Some(page.to_owned());
        self.changed()
    }

    /// Sets whether `/about` is answered by `about.html`. Then `/about.html` and `/about/` are sent there, and
    /// `/index.html` to `/`. Off unless told otherwise.
    #[must_use]
    pub fn clean_urls(mut self, on: bool) -> Files {
        self.rules.clean_urls = on;
        self.changed()
    }

    /// Sets the rules for `Cache-Control`; [`CacheControl::new`] unless told otherwise.
    #[must_use]
    pub fn cache_control(mut self, rules: CacheControl) -> Files {
        self.rules.cache_control = rules;
        self.changed()
    }

    /// Sets the `Content-Type` of files whose name has this ending, such as `"gmi"`.
    ///
    /// ```
    /// use cloudgate::Files;
    /// let files = Files::new(".").content_type("gmi", "text/gemini; charset=utf-8");
    /// ```
    #[must_use]
    pub fn content_type(mut self, ending: &str, media_type: &str) -> Files {
        let ending = ending.trim_start_matches('.').to_owned();
        self.rules.types.push((ending, media_type.to_owned()));
        self.changed()
    }

    /// Sets whether files that are compressible are compressed where no compressed one lies beside them. On unless
    /// told otherwise.
    #[must_use]
    pub fn compress(mut self, on: bool) -> Files {
        self.rules.compress = on;
        self.changed()
    }

    /// Sets the most bytes of files that are kept in memory, for all workers together; 64 MiB unless told otherwise. A
    /// file that alone would take a quarter of it is not kept.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Files {
        self.most_bytes = bytes;
        self.changed()
    }

    /// Sets whether links are followed that lead out of the folder. Off unless told otherwise: whoever can make a link
    /// in the folder could then show any file that the program may read.
    #[must_use]
    pub fn follow_links(mut self, on: bool) -> Files {
        self.links = if on { Links::Anywhere } else { Links::Beneath };
        self.changed()
    }

    /// Sets whether names that begin with a dot are shown. Off unless told otherwise: `.git` and `.env` were not meant
    /// for the world.
    #[must_use]
    pub fn dot_files(mut self, on: bool) -> Files {
        self.rules.dot_names = if on {
            DotNames::Shown
        } else {
            DotNames::Hidden
        };
        self.changed()
    }

    /// What was made for other rules is made again.
    fn changed(mut self) -> Files {
        self.site = OnceLock::new();
        self
    }

    /// The places, for the line that the program starts with.
    pub(crate) fn describe(&self) -> String {
        let names: Vec<String> = self
            .places
            .iter()
            .map(|place| match place {
                Place::Folder(folder) => format!("{}/", folder.display()),
                #[cfg(feature = "embed")]
                Place::Embedded(_) => "files of the program".to_owned(),
            })
            .collect();
        names.join(", ")
    }

    fn site(&self) -> Result<&Site, &(PathBuf, io::Error)> {
        let made = self.site.get_or_init(|| {
            let open = |place: &Place| match place {
                Place::Folder(folder) => Root::open(folder, self.links)
                    .map(Source::Folder)
                    .map_err(|error| (folder.clone(), error)),
                #[cfg(feature = "embed")]
                Place::Embedded(folder) => Ok(Source::Embedded(folder.clone())),
            };
            let sources = self.places.iter().map(open).collect::<Result<_, _>>()?;
            let rules = self.rules.clone();
            Ok(Site::new(Loader { sources, rules }, self.most_bytes))
        });
        made.as_ref()
    }
}

impl Service for Files {
    fn call(&self, request: &mut Request<'_>) -> Response {
        match self.site() {
            Ok(site) => site.answer(request),
            Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    fn start(&self) -> Result<(), StartError> {
        self.rules.check()?;
        match self.site() {
            Ok(_) => Ok(()),
            Err((folder, error)) => Err(Box::new(Error::Folder {
                path: folder.clone(),
                working_directory: std::env::current_dir().unwrap_or_default(),
                source: io::Error::new(error.kind(), error.to_string()),
            })),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Files {
    fn from(folder: P) -> Files {
        Files::new(folder)
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("places", &self.places)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
