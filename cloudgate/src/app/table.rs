//! What does an application answer, as a table for people?

use std::fmt::Write;

use super::App;
use super::core::{Core, Mounted};
use super::pattern;
use super::route::{Action, Route};
use crate::message::Layer;

/// What stands where there is nothing to say.
const NOTHING: &str = "-";

/// What separates two columns.
const GAP: &str = "  ";

const TITLES: [&str; 6] = ["METHODS", "PATTERN", "ANSWER", "WHERE", "BEHIND", "OPTIONS"];

impl App {
    /// The table of all routes, redirects, mounts and files, those of mounted applications and hosts too:
    /// methods, pattern with host, what answers, the place in the source, the middlewares in front, and
    /// what else was asked for.
    ///
    /// A program that serves an application by [`App::run`] prints it and ends when `--routes` is its only
    /// argument.
    ///
    /// ```
    /// let app = cloudgate::App::new().get("/health", || "ok");
    /// let table = app.routes_table();
    /// assert!(table.contains("/health"));
    /// ```
    ///
    /// The order is that in which an application looks for an answer: rewrites, hosts, routes by their
    /// pattern, mounts, what is left. A number in `BEHIND` is explained below the table; a middleware with
    /// `at` there sees only some of the paths. The text is for people and may change.
    pub fn routes_table(&self) -> String {
        let mut table = Table::default();
        table.application(self.core(), &Around::default());
        table.print()
    }
}

/// Where an application stands.
#[derive(Clone, Default)]
struct Around<'c> {
    /// `example.com`, or nothing.
    host: String,
    /// The prefix of its paths.
    base: String,
    /// The middlewares of the applications around it and of itself, each with the `base` of its own.
    layers: Vec<(String, &'c Layer)>,
}

#[derive(Default)]
struct Table {
    rows: Vec<[String; 6]>,
    /// The middlewares in front of something, once each.
    stacks: Vec<String>,
}

impl Table {
    fn application(&mut self, core: &Core, around: &Around<'_>) {
        for route in &core.detours.rewrites {
            self.route(route, around, "any");
        }
        let mut around = around.clone();
        for layer in &core.layers {
            around.layers.push((around.base.clone(), layer));
        }
        for (host, moved) in &core.detours.hosts {
            let answer = format!("308 to {}", moved.to);
            self.row("any", &format!("{host}/*"), &answer, &moved.place, "", "");
        }
        for (host, site) in &core.sites {
            let inside = Around {
                host: host.to_string(),
                ..around.clone()
            };
            self.mounted(site, &inside);
        }
        let mut routes: Vec<_> = core.routes.iter().collect();
        let key = |route: &Route| {
            (
                route.options.host.clone(),
                route.pattern.clone(),
                methods(route),
            )
        };
        routes.sort_by_cached_key(|route| key(route));
        for route in routes {
            let methods = match route.action {
                Action::Handler(_) => methods(route),
                _ => "any".to_owned(),
            };
            self.route(route, &around, &methods);
        }
        for (prefix, mounted) in &core.mounts {
            let inside = Around {
                base: format!("{}{prefix}", around.base),
                ..around.clone()
            };
            self.mounted(mounted, &inside);
        }
        if core.fallback.is_some() {
            let answer = match &core.folder {
                Some(folder) => format!("files of {folder}"),
                None => "fallback".to_owned(),
            };
            self.rest(&around, &answer);
        }
    }

    fn mounted(&mut self, mounted: &Mounted, around: &Around<'_>) {
        match mounted {
            Mounted::App(app) => self.application(app.core(), around),
            Mounted::Service(_, name) => self.rest(around, &short(name)),
        }
    }

    /// A row for all that is below a prefix.
    fn rest(&mut self, around: &Around<'_>, answer: &str) {
        let path = format!("{}/*", around.base);
        let behind = self.behind(&around.layers, &format!("{}/{{*rest}}", around.base), &[]);
        let pattern = format!("{}{path}", around.host);
        self.row("any", &pattern, answer, "", &behind, "");
    }

    fn route(&mut self, route: &Route, around: &Around<'_>, methods: &str) {
        let path = format!("{}{}", around.base, route.pattern);
        let host = route.options.host.as_deref().unwrap_or(&around.host);
        let answer = match &route.action {
            Action::Handler(name) => short(name),
            other => other.to_string(),
        };
        let behind = match route.action {
            Action::Rewrite(_) => String::new(),
            _ => self.behind(&around.layers, &path, &route.layers),
        };
        let pattern = format!("{host}{path}");
        self.row(
            methods,
            &pattern,
            &answer,
            &route.place,
            &behind,
            &options(route),
        );
    }

    /// The number of the middlewares in front of a route; `pattern` is its whole one.
    fn behind(&mut self, around: &[(String, &Layer)], pattern: &str, own: &[Layer]) -> String {
        let of_apps = around.iter().filter_map(|(base, layer)| {
            let name = short(layer.middleware.name());
            let Some(prefix) = &layer.prefix else {
                return Some(name);
            };
            match concerns(&format!("{base}{prefix}"), pattern) {
                Concerns::All => Some(name),
                Concerns::Some => Some(format!("{name} at {base}{prefix}")),
                Concerns::None => None,
            }
        });
        let own = own.iter().map(|layer| short(layer.middleware.name()));
        let names: Vec<_> = of_apps.chain(own).collect();
        if names.is_empty() {
            return String::new();
        }
        let stack = names.join(", ");
        let known = self.stacks.iter().position(|known| *known == stack);
        let number = known.unwrap_or_else(|| {
            self.stacks.push(stack);
            self.stacks.len() - 1
        });
        format!("[{}]", number + 1)
    }

    fn row(
        &mut self,
        methods: &str,
        pattern: &str,
        answer: &str,
        place: &str,
        behind: &str,
        options: &str,
    ) {
        let cells = [methods, pattern, answer, place, behind, options];
        self.rows
            .push(cells.map(|cell| if cell.is_empty() { NOTHING } else { cell }.to_owned()));
    }

    fn print(&self) -> String {
        let titles = TITLES.map(str::to_owned);
        let rows = || std::iter::once(&titles).chain(&self.rows);
        // A column of which no row has anything to say is left out.
        let shown: Vec<_> = (0..TITLES.len())
            .filter(|&at| self.rows.iter().any(|row| row[at] != NOTHING))
            .map(|at| {
                let widths = rows().map(|row| row[at].chars().count());
                (at, widths.max().unwrap_or(0))
            })
            .collect();
        let mut text = String::new();
        for row in rows() {
            let cells: Vec<_> = shown
                .iter()
                .map(|&(at, width)| format!("{:width$}", row[at]))
                .collect();
            text.push_str(cells.join(GAP).trim_end());
            text.push('\n');
        }
        for (number, stack) in self.stacks.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n[{}] {stack}", number + 1);
        }
        if !self.stacks.is_empty() {
            text.push('\n');
        }
        text
    }
}

fn methods(route: &Route) -> String {
    let names: Vec<_> = route.methods.iter().map(http::Method::as_str).collect();
    names.join(",")
}

fn options(route: &Route) -> String {
    let mut parts = Vec::new();
    if let Some(limit) = route.options.body_limit {
        parts.push(format!("body up to {}", bytes(limit)));
    }
    if route.options.private {
        parts.push("private".to_owned());
    }
    if !route.options.required.is_empty() {
        parts.push(format!("needs {}", route.options.required.join(" ")));
    }
    parts.join(", ")
}

fn bytes(count: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units
        .iter()
        .find(|(unit, _)| count >= *unit && count.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{} {name}", count / unit),
        None => format!("{count} bytes"),
    }
}

/// For which of the paths of a pattern a middleware stands.
#[derive(Debug, PartialEq, Eq)]
enum Concerns {
    All,
    Some,
    None,
}

fn concerns(prefix: &str, pattern: &str) -> Concerns {
    let mut of_pattern = pattern.split('/').skip(1);
    let mut answer = Concerns::All;
    for part in prefix.split('/').skip(1) {
        match of_pattern.next() {
            Some(wildcard) if wildcard.starts_with("{*") => return Concerns::Some,
            Some(parameter) if !pattern::parameters(parameter).is_empty() => {
                answer = Concerns::Some;
            }
            Some(literal) if super::router::spell(literal) == part => {}
            _ => return Concerns::None,
        }
    }
    answer
}

/// The name of a function or type without the modules it is in; a closure by the function around it.
fn short(name: &str) -> String {
    let mut short = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let in_path = |c: char| c.is_alphanumeric() || "_:{}#".contains(c);
        let end = rest.find(|c| !in_path(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        let mut segments = path.rsplit("::");
        let last = segments.next().unwrap_or_default();
        if last.starts_with('{') {
            let around = segments.find(|segment| !segment.starts_with('{'));
            let _ = write!(short, "closure in {}", around.unwrap_or("?"));
        } else {
            short.push_str(last);
        }
        let other = behind.find(in_path).unwrap_or(behind.len());
        short.push_str(&behind[..other]);
        rest = &behind[other..];
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Middleware, Next, Request, Response};
    use http::{Method, StatusCode};

    struct Log;

    impl Middleware for Log {
        fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
            next.run(request)
        }
    }

    fn guard(request: &mut Request<'_>, next: Next<'_>) -> Response {
        next.run(request)
    }

    fn list() -> &'static str {
        "list"
    }

    fn one(_: &mut Request<'_>) -> &'static str {
        "one"
    }

    fn raw(_: &mut Request<'_>) -> Response {
        Response::html("")
    }

    /// The table with `#` for the digits of lines of this file, which move.
    fn shown(app: &App) -> String {
        let place = concat!(file!(), ":");
        let mut text = String::new();
        for line in app.routes_table().split_inclusive('\n') {
            let (before, after) = match line.find(place) {
                Some(at) => line.split_at(at + place.len()),
                None => (line, ""),
            };
            let number = after.find(' ').unwrap_or(after.trim_end().len());
            let (number, rest) = after.split_at(number);
            text.push_str(before);
            text.push_str(&"#".repeat(number.len()));
            text.push_str(rest);
        }
        text
    }

    fn build() -> App {
        let orders = App::new().wrap(guard).get("/", list).get("/{id}", one);
        let mut upload = Route::explicit(Method::POST, "/upload", one, "api/upload.rs:7".into());
        upload.options.body_limit = Some(1 << 20);
        upload.options.private = true;
        upload.options.required = vec!["name".to_owned(), "kind".to_owned()];
        upload.methods.push(Method::PUT);
        let mut hosted = Route::explicit(Method::GET, "/", list, "api/host.rs:3".into());
        hosted.options.host = Some("*.example.com".to_owned());
        let mut app = App::new()
            .wrap(Log)
            .wrap_at("/admin", guard)
            .get("/admin/users", list)
            .get("/health", || "ok")
            .redirect("/old/{id}", "/orders/{id}", StatusCode::PERMANENT_REDIRECT)
            .rewrite("/o/{id}", "/orders/{id}")
            .redirect_host("www.example.com", "example.com")
            .host("api.example.com", App::new().get("/v1", list))
            .mount("/orders", orders)
            .mount("/raw", raw)
            .fallback(raw);
        app.insert(upload);
        app.insert(hosted);
        app.core_mut().folder = Some("public/".to_owned());
        app
    }

    #[test]
    fn the_whole_table_of_an_application() {
        let want = "\
METHODS   PATTERN             ANSWER                WHERE                           BEHIND  OPTIONS
any       /o/{id}             as /orders/{id}       cloudgate/src/app/table.rs:###  -       -
any       www.example.com/*   308 to //example.com  cloudgate/src/app/table.rs:###  -       -
GET       api.example.com/v1  list                  cloudgate/src/app/table.rs:###  [1]     -
GET       /admin/users        list                  cloudgate/src/app/table.rs:###  [2]     -
GET       /health             closure in build      cloudgate/src/app/table.rs:###  [1]     -
any       /old/{id}           308 to /orders/{id}   cloudgate/src/app/table.rs:###  [1]     -
POST,PUT  /upload             one                   api/upload.rs:7                 [1]     body up to 1 MiB, private, needs name kind
GET       *.example.com/      list                  api/host.rs:3                   [1]     -
GET       /orders/            list                  cloudgate/src/app/table.rs:###  [2]     -
GET       /orders/{id}        one                   cloudgate/src/app/table.rs:###  [2]     -
any       /raw/*              raw                   -                               [1]     -
any       /*                  files of public/      -                               [3]     -

[1] Log
[2] Log, guard
[3] Log, guard at /admin
";
        assert_eq!(shown(&build()), want);
    }

    #[test]
    fn columns_without_content_are_left_out() {
        let app = App::new().get("/a", list).post("/longer", one);
        assert_eq!(
            shown(&app),
            "METHODS  PATTERN  ANSWER  WHERE\n\
             GET      /a       list    cloudgate/src/app/table.rs:###\n\
             POST     /longer  one     cloudgate/src/app/table.rs:###\n"
        );
    }

    #[test]
    fn names_are_short_and_still_say_what_it_is() {
        for (name, want) in [
            ("api::tests::full::full", "full"),
            ("cloudgate::services::cors::Cors", "Cors"),
            ("my_app::app::{{closure}}", "closure in app"),
            ("my_app::app::{{closure}}::{{closure}}", "closure in app"),
            ("my_app::app::{closure#0}", "closure in app"),
            (
                "a::Limit<b::c::Key, alloc::string::String>",
                "Limit<Key, String>",
            ),
            ("plain", "plain"),
            ("&a::B", "&B"),
        ] {
            assert_eq!(short(name), want);
        }
    }

    #[test]
    fn a_middleware_for_a_prefix_concerns_all_some_or_none_of_a_pattern() {
        for (prefix, pattern, want) in [
            ("/a", "/a", Concerns::All),
            ("/a", "/a/{id}", Concerns::All),
            ("/a", "/%61/b", Concerns::All),
            ("/a", "/ab", Concerns::None),
            ("/a", "/{id}", Concerns::Some),
            ("/a/b", "/{id}/c", Concerns::None),
            ("/a/b", "/{id}/b/c", Concerns::Some),
            ("/a/b", "/{*rest}", Concerns::Some),
            ("/a/b", "/a", Concerns::None),
            ("", "/a", Concerns::All),
        ] {
            assert_eq!(concerns(prefix, pattern), want, "{prefix} {pattern}");
        }
    }
}
