//! Where does a redirect or rewrite lead, given what its parameters stand for?
//!
//! ```text
//! target = [ ("http://" / "https://") authority ] path [ "?" query ]
//! path   = as in a URL, with "{name}" of the pattern anywhere in it; the query too, the authority not
//! ```

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::message::host::HostPattern;
use crate::message::query::normalise_target;

/// What is encoded in a query: all but unreserved characters (RFC 3986 section 2.3).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What is encoded in a segment of a path: all but `pchar` (RFC 3986 section 3.3).
const SEGMENT: &AsciiSet = &QUERY
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// A path or URL with the places where parameters go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    text: String,
    /// `https://example.com`; empty for a path.
    origin: String,
    path: Vec<Piece>,
    query: Option<Vec<Piece>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// The parameter of this number.
    Parameter(usize),
}

impl Target {
    /// Reads a target; `parameters` are the names in the pattern.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub(crate) fn parse(text: &str, parameters: &[&str]) -> Result<Target, String> {
        let after_scheme = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let (origin, rest) = match after_scheme {
            Some(after) => {
                let end = after.find(['/', '?', '#']).unwrap_or(after.len());
                host_of(&after[..end])?;
                text.split_at(text.len() - after.len() + end)
            }
            None if text.starts_with("//") => {
                return Err("a target on another host begins with http:// or https://".to_owned());
            }
            None => ("", text),
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let path = match path {
            "" if !origin.is_empty() => "/",
            path => path,
        };
        let path = pieces(path, parameters)?;
        let query = query.map(|query| pieces(query, parameters)).transpose()?;
        let target = Target {
            text: text.to_owned(),
            origin: origin.to_owned(),
            path,
            query,
        };
        target.check()?;
        Ok(target)
    }

    /// Holds the target against the grammar of URLs, with something harmless for the parameters.
    fn check(&self) -> Result<(), String> {
        let join = |pieces: &[Piece]| {
            let each = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Parameter(_) => "x",
            });
            each.collect::<String>()
        };
        let mut sample = join(&self.path);
        if !sample.starts_with('/') || sample.contains("//") {
            return Err("the target is a path that begins with one /, such as /new/{id}, or a URL such as https://example.com/new/{id}, and has no empty segment".to_owned());
        }
        if let Some(query) = &self.query {
            sample = format!("{sample}?{}", join(query));
        }
        let shaped = normalise_target(&sample, &mut String::new());
        if shaped.is_err() || sample.contains(['\\', '"', '<', '>', '`']) {
            return Err("the target has a character that no URL has there: percent-encode it, such as %20 for a space; a part behind # cannot be given".to_owned());
        }
        Ok(())
    }

    /// Whether it leads to a host that it names.
    pub(crate) fn is_url(&self) -> bool {
        !self.origin.is_empty()
    }

    /// The target with these values of the parameters, which are as they stood in the path. `base`
    /// goes before a path, `query` behind a target without a query of its own.
    pub(crate) fn expand(&self, captures: &[&str], base: &str, query: &str) -> String {
        let mut path = if self.is_url() {
            String::new()
        } else {
            base.to_owned()
        };
        fill(&mut path, &self.path, captures, SEGMENT, "/");
        let mut own_query = String::new();
        if let Some(pieces) = &self.query {
            fill(&mut own_query, pieces, captures, QUERY, "%2F");
        }
        let query = if self.query.is_some() {
            &own_query
        } else {
            query
        };
        if self.is_url() {
            with_query(format!("{}{path}", self.origin), query)
        } else {
            location(&path, query)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A path and query as a Location on the same host. Browsers take two slashes at the start, or a
/// backslash for one of them, for the beginning of a host.
pub(super) fn location(path: &str, query: &str) -> String {
    let path = path.replace('\\', "%5C");
    with_query(format!("/{}", path.trim_start_matches('/')), query)
}

fn with_query(mut target: String, query: &str) -> String {
    if !query.is_empty() {
        target.push('?');
        target.push_str(query);
    }
    target
}

/// The name of a host that may have a port, in lower case.
pub(super) fn host_of(authority: &str) -> Result<String, String> {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => authority,
    };
    match HostPattern::parse(name) {
        Ok(HostPattern::Exact(name)) => Ok(name),
        _ => Err(format!(
            "{authority:?} is no host to be sent to: it is a name such as example.com, with or without a port, and without parameters"
        )),
    }
}

fn pieces(text: &str, parameters: &[&str]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let Some(close) = rest[open..].find('}').filter(|close| *close > 0) else {
            return Err("a brace has no partner: a parameter is written {name}".to_owned());
        };
        let name = &rest[open + 1..open + close];
        let name = name.strip_prefix('*').unwrap_or(name);
        let Some(index) = parameters.iter().position(|known| *known == name) else {
            let known = match parameters {
                [] => "no parameters".to_owned(),
                known => format!("only {{{}}}", known.join("}, {")),
            };
            return Err(format!(
                "the target has a parameter {{{name}}}, and the pattern has {known}"
            ));
        };
        if open > 0 {
            pieces.push(Piece::Text(rest[..open].to_owned()));
        }
        pieces.push(Piece::Parameter(index));
        rest = &rest[open + close + 1..];
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Adds the pieces; `slash` stands for one that separates segments in what a wildcard took.
fn fill(
    into: &mut String,
    pieces: &[Piece],
    captures: &[&str],
    encoded: &'static AsciiSet,
    slash: &str,
) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => into.push_str(text),
            Piece::Parameter(index) => {
                let value = captures.get(*index).copied().unwrap_or_default();
                // Split first and decoded after: an encoded slash is no separator.
                for (at, segment) in value.split('/').enumerate() {
                    if at > 0 {
                        into.push_str(slash);
                    }
                    let bytes: Vec<u8> = percent_decode_str(segment).collect();
                    into.extend(percent_encode(&bytes, encoded));
                }
            }
        }
    }
}

/// What the parameters of a pattern stand for in a path that it fits, as it stands there.
pub(super) fn captures<'p>(pattern: &str, path: &'p str) -> Vec<&'p str> {
    let mut captures = Vec::new();
    let mut rest = path.strip_prefix('/').unwrap_or(path);
    for part in pattern.split('/').skip(1) {
        if part.starts_with("{*") {
            captures.push(rest);
            break;
        }
        let (segment, behind) = rest.split_once('/').unwrap_or((rest, ""));
        if part.starts_with('{') {
            captures.push(segment);
        }
        rest = behind;
    }
    captures
}

/// A path that a pattern fits; `rest` is what its wildcard stands for.
pub(super) fn sample(pattern: &str, rest: &str) -> String {
    let parts = pattern.split('/').map(|part| {
        if part.starts_with("{*") {
            rest
        } else if part.starts_with('{') {
            "sample"
        } else {
            part
        }
    });
    parts.collect::<Vec<_>>().join("/")
}
