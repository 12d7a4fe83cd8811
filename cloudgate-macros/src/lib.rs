//! Which macros does cloudgate have?
//!
//! Use them through the crate `cloudgate`, which re-exports both: the code they make names `::cloudgate`.

use proc_macro::TokenStream;

mod attr;
mod expand;
mod folder;
mod handler;
mod mistakes;
mod modules;

/// Makes a function the handler of a route.
///
/// ```
/// use cloudgate::{Event, Path, Request, Response, Status, route};
///
/// #[route("/hello")]
/// fn hello(_event: Event) -> Response {
///     Response::html("Hello World!")
/// }
///
/// #[route(GET, HEAD, "/orders/{id}")]
/// fn order(Path(id): Path<u64>) -> Result<String, Status> {
///     if id == 0 { Err(Status::NOT_FOUND) } else { Ok(format!("order {id}")) }
/// }
///
/// #[route(PUT, "/files/{*path}")]
/// fn upload(Path(path): Path<String>, request: &mut Request) -> String {
///     format!("{} {path}", request.method())
/// }
/// ```
///
/// `App::gather()` finds every such function of the program. The function itself stays as it is written: other code and tests can
/// call it, and it may carry several `#[route]`s.
///
/// # The attribute
///
/// Methods, if it is not `GET` alone, then one pattern, and then `blocking` where that is wanted:
///
/// | | |
/// |---|---|
/// | `#[route("/path")]` | `GET` |
/// | `#[route(POST, "/path")]` | one other method |
/// | `#[route(GET, POST, "/path")]` | several |
/// | `#[route("/path", blocking)]` | on a thread that may block |
///
/// The methods are `GET`, `POST`, `PUT`, `PATCH`, `DELETE`, `HEAD` and `OPTIONS`.
///
/// # The pattern
///
/// | segment | matches | |
/// |---|---|---|
/// | `orders` | this text | the characters of a path (RFC 3986), others percent-encoded: `caf%C3%A9` |
/// | `{id}` | one segment | always a whole segment; named in ASCII letters, digits and `_` |
/// | `{*rest}` | the rest of the path | only at the end |
///
/// A pattern starts with `/`. It may end with one, and then is another pattern than without. Empty segments, `.` and `..` are refused,
/// and so are a name that occurs twice, more than 16 parameters, and more than 1024 bytes.
///
/// # The function
///
/// - Each argument is a value that an extractor makes of the request, such as `Event`, `Path<T>`, `Query<T>`, `Json<T>` or `State<T>`:
///   any type that implements `FromRequest`. The first one that cannot be made answers the request.
/// - One argument may be `&mut Request`, at any position. It is handed over after all others were made.
/// - It returns any type that implements `IntoResponse`. Nothing, which is `()`, answers 204.
/// - It is a plain function: not `async`, `unsafe`, `extern` or generic, without `self`.
/// - `#[cfg]` and `#[allow]` on the function hold for its route too.
///
/// # Handlers that take long
///
/// A handler runs on a worker, which serves other connections only while the handler waits in cloudgate's own calls. One that
/// computes for long, or waits for a disk, a lock or a database driver, holds them all up; the log names one that does so for more
/// than 100 ms. With `blocking` it runs on one of the threads that `cloudgate::blocking` uses:
///
/// ```
/// use cloudgate::{Json, route};
///
/// #[route(POST, "/primes", blocking)]
/// fn primes(Json(up_to): Json<u32>) -> Json<Vec<u32>> {
///     Json((2..up_to).filter(|number| (2..*number).all(|other| number % other != 0)).collect())
/// }
/// ```
///
/// The arguments are made before, on the worker, so the body of a request is read at the client's pace without such a thread. They go
/// to the thread by value: each is `Send`, and `&mut Request` is not among them. The reply is made on the thread; the closure of a
/// `Response::stream` runs on the worker as ever. When all of these threads are busy and 1024 requests or other pieces of work wait for
/// them, the client gets 503 with `Retry-After: 1` at once.
///
/// # Errors
///
/// All mistakes are compile errors, shown at the word that is wrong:
///
/// ```compile_fail
/// # use cloudgate::route;
/// #[route("/orders/{id")]     // a `{` is not closed in its segment
/// fn order() {}
/// ```
///
/// ```compile_fail
/// # use cloudgate::route;
/// #[route(post, "/orders")]   // unknown method `post`: did you mean POST?
/// async fn order() {}         // a handler cannot be async: write it as a plain `fn`
/// ```
#[proc_macro_attribute]
pub fn route(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::route(arguments.into(), &item.into()).into()
}

/// Declares every `.rs` file below a folder as a module.
///
/// ```ignore (reads a folder of the package)
/// // main.rs
/// cloudgate::modules!("api");
/// ```
///
/// ```text
/// api/users.rs          →  mod api { mod users; mod tests { mod simple; } }
/// api/tests/simple.rs
/// ```
///
/// A new file is part of the program without being listed anywhere, and so are its routes. Cargo has to be told to look for new files,
/// by a `build.rs` beside `Cargo.toml` of one line:
///
/// ```ignore (the whole of another file)
/// fn main() { println!("cargo::rerun-if-changed=api"); }
/// ```
///
/// The folder is given from the folder of `Cargo.toml` on; the module has the name of the folder, `api` for `"src/api"` too.
/// All modules are `pub(crate)`.
///
/// # Names
///
/// A file or folder is named as a module is: letters, digits and `_`, so `my_file.rs` and not `my-file.rs`. The module of a file that is
/// named as a keyword is written with `r#`: `api::r#type` for `api/type.rs`. Hidden files, files that do not end in `.rs`, and folders
/// without any `.rs` file are passed over.
///
/// # Shared items
///
/// A folder's own file, `api/mod.rs`, holds what its modules share: its `pub` and `pub(crate)` items are items of `api`, written
/// `crate::api::Visits` or, in `api/users.rs`, `super::Visits`. For a folder further down, `api/orders.rs` beside `api/orders/` does
/// the same as `api/orders/mod.rs`. `super` in such a file means what it means in every one: the module around the folder's.
///
/// It differs from a hand-written tree in two points: the file has no `mod users;` lines, and items without `pub` stay its own.
///
/// # Errors
///
/// A folder that is missing or holds no `.rs` file, a name that is no module name, a `mod users;` line in a folder's own file, a link
/// that leads out of the folder, and folders nested more than 16 deep are compile errors that say what to change.
#[proc_macro]
pub fn modules(input: TokenStream) -> TokenStream {
    modules::expand(input.into()).into()
}
