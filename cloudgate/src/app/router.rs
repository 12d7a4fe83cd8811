//! Which route answers a request?
//!
//! A pattern without parameters is found by one look into a map. The others are in a tree of
//! segments: at each level a literal is tried before a parameter before a wildcard, with a step
//! back where a branch leads nowhere. A lookup visits each node at most once, and its depth is that
//! of the patterns and not of the path. (Router crates at hand refuse `/a/{id}` beside `/a/{*rest}`.)

use http::{Method, StatusCode};
use rustc_hash::FxHashMap;

use super::pattern;
use super::route::Route;
use crate::error::Error;
use crate::message::query::{decode_segment, normalise_target};
use crate::message::{Request, Response};

// The keys of these maps are the program's own patterns, so a hash that a client could aim at
// collides with nothing but them.

/// What the router says of a request.
pub(super) enum Found {
    /// This route answers it.
    Route(usize),
    /// The router answers it: OPTIONS, a wrong method, a path that cannot be decoded.
    Answer(Response),
    /// No pattern fits its path.
    Nothing,
}

#[derive(Clone, Default)]
pub(super) struct Router {
    literals: FxHashMap<String, usize>,
    tree: Node,
    patterns: Vec<Methods>,
}

/// The routes of one pattern.
#[derive(Clone, Default)]
struct Methods {
    routes: Vec<(Method, usize)>,
    /// The value of Allow.
    allow: String,
}

/// A place between two segments: where the ways go on, and which pattern ends here.
#[derive(Clone, Default)]
struct Node {
    literals: FxHashMap<String, Node>,
    parameter: Option<Box<Node>>,
    /// The pattern whose wildcard takes the rest.
    wildcard: Option<usize>,
    end: Option<usize>,
}

impl Router {
    /// Adds a route that will have this index; `routes` are those that are there.
    pub(super) fn insert(
        &mut self,
        route: &Route,
        index: usize,
        routes: &[Route],
    ) -> Result<(), Error> {
        pattern::check(&route.pattern).map_err(|error| Error::Pattern {
            pattern: route.pattern.clone(),
            place: route.place.clone(),
            reason: error.to_string(),
        })?;
        let next = self.patterns.len();
        let end = if route.parameters.is_empty() {
            self.literals.entry(spell(&route.pattern)).or_insert(next)
        } else {
            self.tree.end_of(&route.pattern).get_or_insert(next)
        };
        let at = *end;
        if at == next {
            self.patterns.push(Methods::default());
        }
        let methods = &mut self.patterns[at];
        for method in &route.methods {
            if let Some((_, other)) = methods.routes.iter().find(|(known, _)| known == method) {
                return Err(Error::RouteConflict {
                    route: format!("{method} {}", route.pattern),
                    first: routes[*other].place.clone(),
                    second: route.place.clone(),
                });
            }
        }
        methods
            .routes
            .extend(route.methods.iter().map(|method| (method.clone(), index)));
        methods.allow = methods.reckon_allow();
        Ok(())
    }

    /// Finds the route for a request and notes the captures of its path.
    pub(super) fn find(&self, request: &mut Request<'_>) -> Found {
        self.find_as(None, request)
    }

    /// As [`Router::find`]; a path counts in place of the request's own.
    pub(super) fn find_as(&self, path: Option<&str>, request: &mut Request<'_>) -> Found {
        let mut captures = None;
        let path = path.unwrap_or_else(|| request.local_path());
        let found = self.look(path, request.method(), &mut captures);
        if let Some(captures) = captures {
            request.scope.captures = captures;
        }
        found
    }

    /// A route whose pattern fits the path, whatever the method.
    pub(super) fn locate(&self, path: &str) -> Option<usize> {
        let pattern = match self.literals.get(path) {
            Some(at) => *at,
            None => self
                .tree
                .find(Some(path.strip_prefix('/')?), &mut Vec::new())?,
        };
        let (_, index) = self.patterns[pattern].routes.first()?;
        Some(*index)
    }

    fn look(&self, path: &str, method: &Method, captures: &mut Option<Vec<String>>) -> Found {
        if let Some(at) = self.literals.get(path) {
            return self.patterns[*at].find(method);
        }
        if path == "*" {
            // The server as a whole: it knows the methods that some route or file answers.
            return Found::Answer(options("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        let mut raw = Vec::new();
        let path = path.strip_prefix('/').unwrap_or_default();
        let Some(at) = self.tree.find(Some(path), &mut raw) else {
            return Found::Nothing;
        };
        let decoded: Option<_> = raw
            .into_iter()
            .map(|text| Some(decode_segment(text)?.into_owned()))
            .collect();
        if decoded.is_none() {
            return Found::Answer(Response::error(StatusCode::BAD_REQUEST));
        }
        *captures = decoded;
        self.patterns[at].find(method)
    }
}

impl Node {
    /// The place in the tree where this pattern ends, made if need be.
    fn end_of(&mut self, pattern: &str) -> &mut Option<usize> {
        let mut node = self;
        for segment in pattern.split('/').skip(1) {
            node = match segment.strip_prefix('{') {
                // The grammar has seen to it that nothing follows.
                Some(name) if name.starts_with('*') => return &mut node.wildcard,
                Some(_) => node.parameter.get_or_insert_default(),
                None => node.literals.entry(spell(segment)).or_default(),
            };
        }
        &mut node.end
    }

    /// The pattern that fits the rest of a path (`None`: nothing is left, not even an empty
    /// segment), with what its parameters stand for.
    fn find<'p>(&self, rest: Option<&'p str>, captures: &mut Vec<&'p str>) -> Option<usize> {
        let Some(rest) = rest else { return self.end };
        let (segment, behind) = match memchr::memchr(b'/', rest.as_bytes()) {
            Some(slash) => (&rest[..slash], Some(&rest[slash + 1..])),
            None => (rest, None),
        };
        if let Some(node) = self.literals.get(segment)
            && let Some(found) = node.find(behind, captures)
        {
            return Some(found);
        }
        if segment.is_empty() && behind.is_none() {
            // A parameter or wildcard stands for at least one character.
            return None;
        }
        let before = captures.len();
        if let Some(node) = &self.parameter
            && !segment.is_empty()
        {
            captures.push(segment);
            if let Some(found) = node.find(behind, captures) {
                return Some(found);
            }
            captures.truncate(before);
        }
        self.wildcard.inspect(|_| captures.push(rest))
    }
}

impl Methods {
    fn find(&self, method: &Method) -> Found {
        let route_of = |wanted: &Method| self.routes.iter().find(|(known, _)| known == wanted);
        if let Some((_, index)) = route_of(method) {
            return Found::Route(*index);
        }
        // The server leaves the body of the answer to HEAD out (RFC 9110 section 9.3.2).
        if *method == Method::HEAD
            && let Some((_, index)) = route_of(&Method::GET)
        {
            return Found::Route(*index);
        }
        if *method == Method::OPTIONS {
            return Found::Answer(options(&self.allow));
        }
        Found::Answer(Response::error(StatusCode::METHOD_NOT_ALLOWED).header("Allow", &self.allow))
    }

    fn reckon_allow(&self) -> String {
        let has = |wanted: &Method| self.routes.iter().any(|(known, _)| known == wanted);
        let mut names: Vec<&str> = self
            .routes
            .iter()
            .map(|(method, _)| method.as_str())
            .collect();
        if has(&Method::GET) && !has(&Method::HEAD) {
            names.push("HEAD");
        }
        if !has(&Method::OPTIONS) {
            names.push("OPTIONS");
        }
        names.sort_unstable();
        names.join(", ")
    }
}

fn options(allow: &str) -> Response {
    Response::new(StatusCode::NO_CONTENT).header("Allow", allow)
}

/// A literal as requests spell it: their unreserved characters come decoded.
pub(super) fn spell(literal: &str) -> String {
    let mut spelled = String::new();
    let rooted = if literal.starts_with('/') {
        literal.to_owned()
    } else {
        format!("/{literal}")
    };
    match normalise_target(&rooted, &mut spelled) {
        Ok(_) => spelled[rooted.len() - literal.len()..].to_owned(),
        // The grammar lets nothing through that this refuses.
        Err(_) => literal.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_spelled_as_requests_spell_them() {
        for (literal, want) in [
            ("/", "/"),
            ("/%61%2f/b", "/a%2F/b"),
            ("%7Ea", "~a"),
            ("a", "a"),
            ("", ""),
        ] {
            assert_eq!(spell(literal), want);
        }
    }
}
