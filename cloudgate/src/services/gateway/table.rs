//! Which service is a request for?
//!
//! By host, path, method and fields. The more exact host wins, then the longer path, an exact one before all below it, then
//! what asks for more. A path is one of whole segments.

use std::cmp::Reverse;
use std::sync::Arc;

use http::{Method, StatusCode};

use crate::message::host::HostPattern;
use crate::message::middleware::{Layer, Next, is_below};
use crate::message::query::normalise_target;
use crate::message::{Request, Response, Service, StartError};

/// What a request has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The hosts; none for all.
    pub(crate) hosts: Vec<HostPattern>,
    /// Without a slash at its end, so that `/` is empty.
    pub(crate) path: String,
    pub(crate) exact: bool,
    /// The methods; none for all.
    pub(crate) methods: Vec<Method>,
    /// Fields and their values.
    pub(crate) fields: Vec<(String, String)>,
}

impl Rule {
    /// How exact a rule is, where its host is this one; the least comes first.
    fn rank(&self, host: &HostPattern) -> impl Ord + use<> {
        (
            host.clone(),
            Reverse((self.path.len(), self.exact)),
            Reverse((self.fields.len(), !self.methods.is_empty())),
        )
    }

    fn takes_path(&self, path: &str) -> bool {
        if self.exact {
            return path == self.path || path.strip_suffix('/') == Some(&*self.path);
        }
        is_below(path, &self.path)
    }

    fn takes_fields(&self, request: &Request<'_>) -> bool {
        self.fields.iter().all(|(name, value)| {
            let mut values = request.headers().get_all(name);
            values.any(|sent| sent == value.as_bytes())
        })
    }
}

/// A service, what goes in front of it, and when it is the one.
pub(crate) struct Entry {
    pub(crate) rule: Rule,
    pub(crate) layers: Vec<Layer>,
    pub(crate) service: Arc<dyn Service>,
}

/// Services by what requests are for.
pub(crate) struct Table {
    /// A row for each host of each entry, the most exact first.
    rows: Vec<(HostPattern, Arc<Entry>)>,
    by_host: bool,
    /// What goes in front of the answer that there is no service.
    layers: Vec<Layer>,
}

impl Table {
    pub(crate) fn new(entries: impl IntoIterator<Item = Arc<Entry>>, layers: Vec<Layer>) -> Table {
        let mut rows = Vec::new();
        for entry in entries {
            if entry.rule.hosts.is_empty() {
                rows.push((HostPattern::Any, Arc::clone(&entry)));
            }
            for host in &entry.rule.hosts {
                rows.push((host.clone(), Arc::clone(&entry)));
            }
        }
        rows.sort_by_cached_key(|(host, entry)| entry.rule.rank(host));
        Table {
            by_host: rows.iter().any(|(host, _)| *host != HostPattern::Any),
            rows,
            layers,
        }
    }

    /// The entry for a request, or the methods that there would be one for.
    fn find(&self, request: &Request<'_>) -> Result<&Entry, Vec<&Method>> {
        let host = match self.by_host {
            true => request.host_name().unwrap_or_default(),
            false => String::new(),
        };
        let path = request.path();
        let mut methods = Vec::new();
        for (pattern, entry) in &self.rows {
            let rule = &entry.rule;
            if !pattern.fits(&host) || !rule.takes_path(path) || !rule.takes_fields(request) {
                continue;
            }
            if rule.methods.is_empty() || rule.methods.contains(request.method()) {
                return Ok(entry);
            }
            methods.extend(&rule.methods);
        }
        Err(methods)
    }
}

impl Service for Table {
    fn call(&self, request: &mut Request<'_>) -> Response {
        match self.find(request) {
            Ok(entry) => {
                let outer = request.mounted;
                request.mounted = entry.rule.path.len();
                let end = |request: &mut Request<'_>| entry.service.call(request);
                let response = Next::new(&entry.layers, &end).run(request);
                request.mounted = outer;
                response
            }
            Err(methods) => {
                let end = |_: &mut Request<'_>| refuse(&methods);
                Next::new(&self.layers, &end).run(request)
            }
        }
    }

    fn start(&self) -> Result<(), StartError> {
        for layer in &self.layers {
            layer.middleware.start()?;
        }
        for (_, entry) in &self.rows {
            for layer in &entry.layers {
                layer.middleware.start()?;
            }
            entry.service.start()?;
        }
        Ok(())
    }
}

fn refuse(methods: &[&Method]) -> Response {
    if methods.is_empty() {
        return Response::error(StatusCode::NOT_FOUND);
    }
    let mut names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    Response::error(StatusCode::METHOD_NOT_ALLOWED).header("Allow", &names.join(", "))
}

/// A path as rules have it: as requests are compared, and without a slash at its end.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn path(text: &str) -> Result<String, String> {
    let request_target = text.starts_with('/') && !text.contains(['?', '#']);
    let mut path = String::new();
    let normalised = normalise_target(text, &mut path);
    if !request_target || normalised.is_err() {
        return Err(format!(
            "{text:?} is no path: it begins with a slash, and what is not plain ASCII is percent-encoded"
        ));
    }
    path.truncate(path.trim_end_matches('/').len());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, rule: Rule) -> Arc<Entry> {
        let service = move |request: &mut Request<'_>| {
            Response::text_plain(format!("{name} {}", request.local_path()))
        };
        Arc::new(Entry {
            rule,
            layers: Vec::new(),
            service: Arc::new(service),
        })
    }

    fn rule(hosts: &[&str], at: &str) -> Rule {
        let parse = |host: &&str| HostPattern::parse(host).unwrap();
        Rule {
            hosts: hosts.iter().map(parse).collect(),
            path: path(at).unwrap(),
            ..Rule::default()
        }
    }

    #[track_caller]
    fn check(table: &Table, host: &str, target: &str, want: &str) {
        let mut request = Request::get(target).with_header("Host", host);
        let response = table.call(&mut request);
        let status = response.status();
        let got = if status == StatusCode::OK {
            response.text()
        } else {
            status.as_u16().to_string()
        };
        assert_eq!(got, want, "{host} {target}");
        assert_eq!(request.mounted, 0);
    }

    #[test]
    fn the_most_exact_rule_wins_whatever_their_order() {
        let exact = Rule {
            exact: true,
            ..rule(&[], "/orders/new")
        };
        let entries = [
            entry("root", rule(&[], "/")),
            entry("orders", rule(&[], "/orders/")),
            entry("new", exact),
            entry("below", rule(&["*.a.test"], "/")),
            entry("host", rule(&["b.a.test", "c.test"], "/orders")),
        ];
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]] {
            let table = Table::new(order.map(|index| Arc::clone(&entries[index])), Vec::new());
            check(&table, "h", "/", "root /");
            check(&table, "h", "/ordersX", "root /ordersX");
            check(&table, "h", "/orders", "orders /");
            check(&table, "h", "/orders/7?a", "orders /7");
            check(&table, "h", "/%6frders/%37", "orders /7");
            check(&table, "h", "/orders/new", "new /");
            check(&table, "h", "/orders/new/", "new /");
            check(&table, "h", "/orders/new/x", "orders /new/x");
            check(&table, "x.A.test:80", "/orders", "below /orders");
            check(&table, "b.a.test", "/orders", "host /");
            check(&table, "c.test", "/orders", "host /");
            check(&table, "c.test", "/x", "root /x");
        }
    }

    #[test]
    fn methods_and_fields_choose_among_rules_of_one_path() {
        let with = |methods: &[Method], fields: &[(&str, &str)]| Rule {
            methods: methods.to_vec(),
            fields: fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..rule(&[], "/a")
        };
        let table = Table::new(
            [
                entry("read", with(&[Method::GET, Method::HEAD], &[])),
                entry("write", with(&[Method::POST], &[])),
                entry("beta", with(&[], &[("X-Beta", "1")])),
            ],
            Vec::new(),
        );
        let ask = |method: Method, beta: &str| {
            table.call(&mut Request::new(method, "/a").with_header("X-Beta", beta))
        };
        assert_eq!(ask(Method::GET, "0").text(), "read /");
        assert_eq!(ask(Method::POST, "0").text(), "write /");
        assert_eq!(ask(Method::PUT, "1").text(), "beta /");
        let refused = ask(Method::PUT, "0");
        assert_eq!(refused.status(), 405);
        assert_eq!(refused.headers().get("allow"), Some("GET, HEAD, POST"));
        check(&table, "h", "/b", "404");
    }

    #[test]
    fn paths_of_rules_are_as_requests_are_compared() {
        for (text, want) in [("/", ""), ("/a", "/a"), ("/a/", "/a"), ("/%61%2f", "/a%2F")] {
            assert_eq!(path(text).unwrap(), want);
        }
        for text in ["", "a", "/a b", "/\u{e9}", "/%zz", "/a?b", "*"] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}
