//! Which macros does cloudgate have?
//!
//! Use them through the crate `cloudgate`, which re-exports them: the code they make names `::cloudgate`.

use proc_macro::TokenStream;

use attr::Attribute;

mod attr;
mod expand;
mod fit;
mod folder;
mod handler;
mod mistakes;
mod modules;
mod options;
mod spelling;

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
/// Methods, if it is not `GET` alone, then one pattern, and then options in any order:
///
/// | | |
/// |---|---|
/// | `#[route("/path")]` | `GET` |
/// | `#[route(POST, "/path")]` | one other method |
/// | `#[route(GET, POST, "/path")]` | several |
/// | `#[route("/path", timeout = "5s", private)]` | with options |
///
/// The methods are `GET`, `POST`, `PUT`, `PATCH`, `DELETE`, `HEAD` and `OPTIONS`. Each has an attribute of its own for a route of that
/// method alone, with the same options: `#[get("/path")]` is `#[route(GET, "/path")]`, and so on for `#[post]`, `#[put]`, `#[patch]`,
/// `#[delete]`, `#[head]` and `#[options]`.
///
/// | option | the route | |
/// |---|---|---|
/// | [`body_limit = "10 MiB"`](#body_limit) | takes bodies of up to that size | else 413 |
/// | [`timeout = "5s"`](#timeout) | has that long to answer | |
/// | [`host = "api.example.com"`](#host) | answers requests for that host only | |
/// | [`params("name", "age")`](#params) | is called when the request has these parameters | else 400 |
/// | [`private`](#private) | is for clients with an API key | else 403 |
/// | [`blocking`](#handlers-that-take-long) | runs on a thread that may block | 503 when all are busy |
/// | [`wrap(check_token, trace)`](#wrap) | stands behind these middlewares | |
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
/// A parameter of the pattern is taken by a `Path`, whose tuple has as many values as the pattern has parameters, or from the `&mut
/// Request` or the `Event`. One that nobody needs has a name with an underscore in front: `{_rest}`. Of the arguments that read the
/// body - `Event`, `Json`, `Form`, `Multipart`, `String`, `Bytes` - there is one at most. The macro holds a function against both as far
/// as the names of cloudgate's own types go; what stands behind a name of yours it does not judge.
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
/// # `body_limit`
///
/// The most bytes of a body, as a text with a unit - `B`, `KB` or `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB` - or as a plain number of bytes.
/// A body of more is 413. Without it the limit is the server's, 2 MiB by default; the one of a route may be higher or lower.
///
/// ```
/// use cloudgate::{App, Bytes, Request, route};
///
/// #[route(POST, "/avatar", body_limit = "64 KiB")]
/// fn avatar(image: Bytes) -> String {
///     format!("{} bytes", image.len())
/// }
///
/// let send = |length| App::gather().call(&mut Request::post("/avatar").with_body(vec![0; length]));
/// assert_eq!(send(64 << 10).status(), 200);
/// assert_eq!(send((64 << 10) + 1).status(), 413);
/// ```
///
/// # `timeout`
///
/// How long the route may take to answer, as a text with a unit: `"500ms"`, `"5s"`, `"2m"`, `"1h"`.
///
/// ```
/// use cloudgate::route;
///
/// #[route("/report", timeout = "30s")]
/// fn report() -> &'static str {
///     "all is well"
/// }
/// ```
///
/// # `host`
///
/// The host that a request is for: a name without port, `*.example.com` for all names below it, or `*` for any. Of several routes for one
/// path the one for the more exact host answers, and one without a host answers for all the others.
///
/// ```
/// use cloudgate::{App, Request, route};
///
/// #[route("/", host = "api.example.com")]
/// fn api() -> &'static str { "api" }
///
/// #[route("/")]
/// fn web() -> &'static str { "web" }
///
/// let at = |host| App::gather().call(&mut Request::get("/").with_header("Host", host)).text();
/// assert_eq!((&*at("api.example.com"), &*at("example.com")), ("api", "web"));
/// ```
///
/// # `params`
///
/// Parameters without which the handler is not called: those of the query for GET and HEAD, else those of the body, a form or a JSON
/// object, as `Event::params` gives them; a parameter of the pattern counts too. The body is read into memory for that, and the handler
/// finds it there again. The answer to a request without them is 400 with their names.
///
/// ```
/// use cloudgate::{App, Event, Request, route};
///
/// #[route("/greet", params("name", "age"))]
/// fn greet(event: Event) -> String {
///     format!("Hello {}!", event.params().get("name").unwrap_or("?"))
/// }
///
/// let get = |target| App::gather().call(&mut Request::get(target));
/// assert_eq!(get("/greet?name=Ada&age=36").text(), "Hello Ada!");
/// assert_eq!(get("/greet?name=Ada").status(), 400);
/// assert!(get("/greet?name=Ada").text().contains(r#""list":["age"]"#));
/// ```
///
/// # `private`
///
/// A client has to show one of the keys of `App::api_keys`, as the query parameter `apiKey` or in the field `x-api-key`. An application
/// with a private route and no key does not start.
///
/// ```
/// use cloudgate::{App, Request, route};
///
/// #[route("/accounts", private)]
/// fn accounts() -> &'static str { "the accounts" }
///
/// let app = App::gather().api_keys(["secret"]);
/// assert_eq!(app.call(&mut Request::get("/accounts?apiKey=secret")).text(), "the accounts");
/// assert_eq!(app.call(&mut Request::get("/accounts")).status(), 403);
/// ```
///
/// # `wrap`
///
/// Middlewares of this route alone, behind those of the application: names of functions, or any expression whose value implements
/// `Middleware`. Each is made once, when the application gathers its routes. The first one sees a request first. A request that
/// `private` or `params` refuses comes to none of them.
///
/// ```
/// use cloudgate::{App, Middleware, Next, Request, Response, route};
///
/// fn no_store(request: &mut Request<'_>, next: Next<'_>) -> Response {
///     next.run(request).header("Cache-Control", "no-store")
/// }
///
/// struct Tag(&'static str);
///
/// impl Middleware for Tag {
///     fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
///         next.run(request).header("X-Tag", self.0)
///     }
/// }
///
/// #[route("/account", wrap(no_store, Tag("account")))]
/// fn account() -> &'static str { "yours" }
///
/// let response = App::gather().call(&mut Request::get("/account"));
/// assert_eq!(response.headers().get("cache-control"), Some("no-store"));
/// assert_eq!(response.headers().get("x-tag"), Some("account"));
/// ```
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
///
/// ```compile_fail
/// # use cloudgate::{Path, route};
/// #[route("/shops/{shop}/items/{item}", body_limit = "10 mib")]  // unknown unit `mib`: did you mean "10 MiB"?
/// fn item(Path(item): Path<u64>) {}      // the pattern has 2 parameters, `shop` and `item`, and this takes one
/// ```
#[proc_macro_attribute]
pub fn route(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::route(Attribute::Route, arguments.into(), &item.into()).into()
}

macro_rules! method_attributes {
    ($($name:ident $method:literal $item:literal)*) => {
        $(
            #[doc = concat!("Makes a function the handler of a ", $method, " route: `#[", stringify!($name), "(\"/path\")]` is")]
            #[doc = concat!("`#[route(", $method, ", \"/path\")]`, with all the options of [`macro@route`].")]
            ///
            /// ```
            #[doc = concat!("use cloudgate::{Response, Status, ", stringify!($name), "};")]
            ///
            #[doc = concat!("#[", stringify!($name), "(\"/orders\", timeout = \"5s\")]")]
            #[doc = $item]
            /// ```
            #[proc_macro_attribute]
            pub fn $name(arguments: TokenStream, item: TokenStream) -> TokenStream {
                let attribute = Attribute::Method(stringify!($name), $method);
                expand::route(attribute, arguments.into(), &item.into()).into()
            }
        )*
    };
}

method_attributes! {
    get "GET" "fn orders() -> &'static str { \"all orders\" }"
    post "POST" "fn order(text: String) -> String { format!(\"you ordered {text}\") }"
    put "PUT" "fn replace(text: String) -> String { format!(\"you ordered {text} instead\") }"
    patch "PATCH" "fn change(text: String) -> String { format!(\"you ordered {text} too\") }"
    delete "DELETE" "fn forget() {}"
    head "HEAD" "fn exists() -> Response { Response::new(Status::OK) }"
    options "OPTIONS" "fn may() -> Response { Response::new(Status::NO_CONTENT).header(\"Allow\", \"GET, OPTIONS\") }"
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
