//! How does a handler fill in a page from a template?
//!
//! The templates of a folder are compiled when the application is made. A debug build compares the
//! folder with what it has, at most once a second and on a thread that may block; a release build
//! never looks again. Rendering waits for nothing, so it is bounded instead: by steps and by depth.

mod folder;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{
    AutoEscape, Environment, ErrorKind, Output, State as Rendering, UndefinedBehavior, Value,
};
use serde::Serialize;

use super::App;
use super::Core;
use super::extract::FromRequest;
use super::rejection::{HttpError, Rejection};
use super::reply::{Html, IntoResponse};
use super::state::Needs;
use crate::error::Error;
use crate::message::html::escape_html;
use crate::message::{Request, Response};
use crate::net::home;
use folder::Contents;

/// How many steps one page may take; see [`Templates::with_fuel`].
const FUEL: u64 = 1_000_000;

/// How deep includes, macros and blocks may be in each other, in units of the engine: an include costs 10 of
/// them, a macro about 6, a block or loop 1. The worst is a block in a block, which takes 3.3 KiB of stack a unit in a
/// release build: less than half of what a coroutine has.
const DEEPEST: usize = 70;

/// The stack that a page is rendered on in a debug build, in bytes of address space.
const DEBUG_STACK: usize = 8 << 20;

/// How long templates are used before they are compared with the disk, in a debug build.
const FRESH: Duration = Duration::from_secs(1);

/// Pages to be filled in: the templates of a folder, in the language of
/// [MiniJinja](https://docs.rs/minijinja/latest/minijinja/syntax/index.html).
///
/// [`App::templates`] reads them, and a handler takes them as an argument:
///
/// ```
/// use cloudgate::{App, Html, Request, TemplateError, Templates, route};
///
/// #[route("/hello/{name}")]
/// fn hello(cloudgate::Path(name): cloudgate::Path<String>, pages: Templates) -> Result<Html<String>, TemplateError> {
///     pages.render("hello.html", serde_json::json!({ "name": name }))
/// }
///
/// # let folder = std::env::temp_dir().join(format!("cloudgate-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # std::fs::write(folder.join("hello.html"), "<p>Hello {{ name }}!</p>\n")?;
/// let app = App::gather().templates(&folder); // with hello.html: <p>Hello {{ name }}!</p>
/// let response = app.call(&mut Request::get("/hello/%3CAda%3E"));
/// assert_eq!(response.text(), "<p>Hello &lt;Ada&gt;!</p>\n");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What a template is called decides how values are escaped: for HTML, unless the name ends in `.json`,
/// `.js`, `.yaml` or `.yml` (as JSON), or in `.txt`, `.md` or `.csv` (not at all).
///
/// A debug build notices files that come, go or change, within a second; a release build reads the folder
/// once. A name that has no value is an error, and not empty. One page takes at most a million steps
/// ([`Templates::with_fuel`]) and goes 70 units deep, of which an include costs 10, a macro about 6, a block or loop 1.
#[derive(Clone)]
pub struct Templates {
    folder: Arc<PathBuf>,
    fuel: u64,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// As they were at the start.
    Fixed(Arc<Environment<'static>>),
    /// Compared with the disk.
    Watched(Arc<Mutex<Watched>>),
}

struct Watched {
    compiled: Result<Arc<Environment<'static>>, TemplateError>,
    contents: Arc<Contents>,
    checked: Instant,
}

/// Why a template could not be rendered, with its name and line.
///
/// As an answer it is a 500 whose text is in the log alone.
#[derive(Clone, Debug)]
pub struct TemplateError {
    message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

impl IntoResponse for TemplateError {
    fn into_response(self) -> Response {
        HttpError::from(self).into_response()
    }
}

impl App {
    /// Reads the templates of a folder and those below it, for handlers that take [`Templates`].
    ///
    /// A folder that is not there, or a template with a mistake, is an error at start, with file and line.
    pub fn templates(mut self, folder: impl AsRef<Path>) -> App {
        match Templates::folder(folder) {
            Ok(templates) => self.state(templates),
            Err(error) => {
                self.note(error);
                self
            }
        }
    }
}

impl FromRequest for Templates {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Templates, Rejection> {
        Core::all_of(request)
            .find_map(|core| core.states.get::<Templates>())
            .map(|templates| Templates::clone(&templates))
            .ok_or(Rejection::MissingState {
                type_name: std::any::type_name::<Templates>(),
            })
    }

    fn needs(needs: &mut Needs) {
        needs.state::<Templates>();
    }
}

impl Templates {
    /// Reads the templates of a folder: what [`App::templates`] does, for programs that keep them elsewhere.
    ///
    /// Hidden files are left out. A template has at most 1 MiB, a folder 4096 of them, 32 folders deep.
    /// It reads from the disk, so it belongs into `main` or [`blocking`](crate::blocking).
    ///
    /// # Errors
    /// A folder that cannot be read, or a template that is no UTF-8 or has a mistake, with file and line.
    pub fn folder(folder: impl AsRef<Path>) -> Result<Templates, Error> {
        Templates::load(folder.as_ref(), cfg!(debug_assertions))
    }

    fn load(folder: &Path, watched: bool) -> Result<Templates, Error> {
        let contents = Contents::of(folder).map_err(|(path, source)| Error::Template {
            place: path.display().to_string(),
            reason: format!(
                "{source}; the folder is looked for in {} - start the program in the folder that holds it",
                std::env::current_dir().unwrap_or_default().display()
            ),
        })?;
        let compiled = compile(folder, &contents, FUEL)
            .map_err(|(place, reason)| Error::Template { place, reason })?;
        let compiled = Arc::new(compiled);
        let source = if watched {
            Source::Watched(Arc::new(Mutex::new(Watched {
                compiled: Ok(compiled),
                contents: Arc::new(contents),
                checked: Instant::now(),
            })))
        } else {
            Source::Fixed(compiled)
        };
        Ok(Templates {
            folder: Arc::new(folder.to_owned()),
            fuel: FUEL,
            source,
        })
    }

    /// The same templates with another limit to the steps of one page: roughly an instruction, or 64 bytes of
    /// text, each. Without this it is a million; a page that takes more fails.
    pub fn with_fuel(mut self, steps: u64) -> Templates {
        self.fuel = steps;
        let limit = |compiled: &mut Arc<Environment<'static>>| {
            Arc::make_mut(compiled).set_fuel(Some(steps));
        };
        match &mut self.source {
            Source::Fixed(compiled) => limit(compiled),
            Source::Watched(watched) => {
                if let Ok(compiled) = &mut lock(watched).compiled {
                    limit(compiled);
                }
            }
        }
        self
    }

    /// The page that this template makes of these values: a struct that serializes, a map, or
    /// `serde_json::json!({...})`.
    ///
    /// # Errors
    /// A template that is not there, has a mistake, wants a value that is not there, or goes beyond a limit; and
    /// one whose name says that it is no HTML.
    pub fn render(
        &self,
        name: &str,
        values: impl Serialize,
    ) -> Result<Html<String>, TemplateError> {
        if !matches!(escaping(name), AutoEscape::Html) {
            return Err(TemplateError {
                message: format!(
                    "{name} is no page by its name, so nothing in it is escaped for HTML: use render_text"
                ),
            });
        }
        self.render_text(name, values).map(Html)
    }

    /// As [`Templates::render`], for what is no page: a mail, a script.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_text(&self, name: &str, values: impl Serialize) -> Result<String, TemplateError> {
        let compiled = self.compiled()?;
        let values = Value::from(Serde(&values));
        let (name, folder, fuel) = (name.to_owned(), Arc::clone(&self.folder), self.fuel);
        with_a_stack(move || {
            let rendered = compiled
                .get_template(&name)
                .and_then(|template| template.render(values));
            rendered.map_err(|error| TemplateError {
                message: explain(&folder, &error, fuel),
            })
        })
    }

    fn compiled(&self) -> Result<Arc<Environment<'static>>, TemplateError> {
        let watched = match &self.source {
            Source::Fixed(compiled) => return Ok(Arc::clone(compiled)),
            Source::Watched(watched) => watched,
        };
        let known = {
            let mut watched = lock(watched);
            if watched.checked.elapsed() < FRESH {
                return watched.compiled.clone();
            }
            // Whoever comes while the disk is asked gets what is there.
            watched.checked = Instant::now();
            Arc::clone(&watched.contents)
        };
        let (folder, fuel) = (Arc::clone(&self.folder), self.fuel);
        let changed = home::blocking(move || {
            let contents = match Contents::of(&folder) {
                Ok(contents) if contents == *known => return None,
                Ok(contents) => contents,
                Err((path, error)) => {
                    let reason = (path.display().to_string(), error.to_string());
                    return Some((Contents::default(), Err(reason)));
                }
            };
            let compiled = compile(&folder, &contents, fuel);
            Some((contents, compiled))
        });
        let mut watched = lock(watched);
        if let Some((contents, compiled)) = changed {
            watched.contents = Arc::new(contents);
            watched.compiled = compiled
                .map(Arc::new)
                .map_err(|(place, reason)| TemplateError {
                    message: format!("{place}: {reason}"),
                });
        }
        watched.compiled.clone()
    }

    /// Lets the time pass after which the disk is asked.
    #[cfg(test)]
    fn age(&self) {
        if let Source::Watched(watched) = &self.source {
            lock(watched).checked -= FRESH;
        }
    }
}

/// Renders where the stack is large enough for the deepest page. The frames of the engine are many times as large
/// in a debug build, more than a coroutine or a thread of the pool has.
fn with_a_stack(
    render: impl FnOnce() -> Result<String, TemplateError> + Send + 'static,
) -> Result<String, TemplateError> {
    if !cfg!(debug_assertions) {
        return render();
    }
    home::blocking(move || {
        let thread = std::thread::Builder::new().name("template".to_owned());
        match thread.stack_size(DEBUG_STACK).spawn(render) {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(TemplateError {
                message: format!("the system gives no thread to render a template: {error}"),
            }),
        }
    })
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compiles all templates of a folder, or says in which file and line the first mistake is.
fn compile(
    folder: &Path,
    contents: &Contents,
    fuel: u64,
) -> Result<Environment<'static>, (String, String)> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(escaping);
    environment.set_formatter(write_value);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_recursion_limit(DEEPEST);
    environment.set_fuel(Some(fuel));
    // So that an error names the value that is not there.
    environment.set_debug(true);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment
        .set_syntax(syntax.map_err(|error| (folder.display().to_string(), error.to_string()))?);
    for (name, text) in contents.templates() {
        environment
            .add_template_owned(name.to_owned(), text.to_owned())
            .map_err(|error| {
                let line = error.line().unwrap_or(1);
                let place = format!("{}:{line}", folder.join(name).display());
                (place, what(&error))
            })?;
    }
    Ok(environment)
}

/// How the values of a template are escaped.
fn escaping(name: &str) -> AutoEscape {
    match name.rsplit('.').next() {
        Some("json" | "js" | "yaml" | "yml") => AutoEscape::Json,
        Some("txt" | "md" | "csv") => AutoEscape::None,
        _ => AutoEscape::Html,
    }
}

/// Writes a value as [`escape_html`] does. The engine's own way writes a slash as a reference too, which is
/// harmless and makes every address in a page unreadable.
fn write_value(
    out: &mut Output<'_>,
    rendering: &mut Rendering<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let escapes = matches!(rendering.auto_escape(), AutoEscape::Html) && !value.is_safe();
    let plain = matches!(
        value.kind(),
        ValueKind::Number | ValueKind::Bool | ValueKind::Undefined | ValueKind::None
    );
    if !escapes || plain {
        return minijinja::escape_formatter(out, rendering, value);
    }
    let escaped = match value.as_str() {
        Some(text) => escape_html(text),
        None => escape_html(&value.to_string()),
    };
    out.write_str(&escaped).map_err(minijinja::Error::from)
}

/// What went wrong, from the outermost template to the innermost.
fn explain(folder: &Path, error: &minijinja::Error, fuel: u64) -> String {
    let mut text = String::new();
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if !text.is_empty() {
            text.push_str("; ");
        }
        match error.downcast_ref::<minijinja::Error>() {
            Some(error) => {
                if let Some(name) = error.name() {
                    let file = folder.join(name);
                    text.push_str(&format!(
                        "{}:{}: ",
                        file.display(),
                        error.line().unwrap_or(1)
                    ));
                }
                text.push_str(&what(error));
                if error.kind() == ErrorKind::OutOfFuel {
                    text.push_str(&format!(" - it takes more than {fuel} steps; Templates::with_fuel sets another limit"));
                }
            }
            None => text.push_str(&error.to_string()),
        }
        next = error.source();
    }
    text
}

fn what(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
