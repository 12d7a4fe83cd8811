//! Which values do keys of services have, that others do not?

use std::fmt;

use serde_json::json;

use super::describe::Form;
use super::node::{Node, Value, shorten};
use super::reader::Reader;
use super::section::{Setting, section};
use super::show::Shown;
use super::values::Secret;

/// Fields of a message and their values, in the order of the file.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

/// As it is shown: a field's value may well be a key to the servers.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown().inline())
    }
}

/// Names and their passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Users(pub(crate) Vec<(String, Secret)>);

/// Reads names of one's own with a value each.
fn pairs<T: Setting>(
    node: &Node,
    reader: &mut Reader<'_>,
    what: &str,
    mut check: impl FnMut(&str, &T) -> Result<(), String>,
) -> Option<Vec<(String, T)>> {
    let entries = match &node.value {
        Value::Map(entries) => entries,
        Value::Broken => return None,
        _ if node.is_null() => return Some(Vec::new()),
        _ => {
            let kind = node.kind();
            reader.wrong(node, format!("this should be {what}, not {kind}"));
            return None;
        }
    };
    let mut read = Vec::new();
    for (name, node) in entries {
        let value = reader.below(&name.text, |reader| {
            reader.came_from(&node.place);
            T::read(node, reader)
        });
        let Some(value) = value else {
            continue;
        };
        match check(&name.text, &value) {
            Ok(()) => read.push((name.text.clone(), value)),
            Err(reason) => reader.wrong(&name.place, reason),
        }
    }
    (read.len() == entries.len()).then_some(read)
}

impl Setting for Fields {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Fields> {
        let check = |name: &str, value: &String| {
            let shown = shorten(name);
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!(
                    "`{shown}` is no name of a header field: write letters, digits and `-`, such as X-Request-Id"
                ));
            }
            if http::HeaderValue::from_str(value).is_err() {
                return Err(format!(
                    "the value of `{shown}` holds what a header field cannot hold, such as a line break"
                ));
            }
            Ok(())
        };
        pairs(
            node,
            reader,
            "names of header fields with a value each",
            check,
        )
        .map(Fields)
    }

    fn unset() -> Option<Fields> {
        Some(Fields::default())
    }

    fn form() -> Form {
        Form::Map(Box::new(String::form()))
    }

    fn shown(&self) -> Shown {
        let entries = self.0.iter();
        let hidden = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["authorization", "cookie", "key", "token", "secret"]
                .iter()
                .any(|part| name.contains(part))
        };
        Shown::Map(
            entries
                .map(|(name, value)| match hidden(name) {
                    true => (name.clone(), Shown::Secret),
                    false => (name.clone(), value.shown()),
                })
                .collect(),
        )
    }
}

impl Setting for Users {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Users> {
        let check = |name: &str, password: &Secret| {
            if name.is_empty() || name.contains(':') {
                return Err("a name is not empty and has no colon (RFC 7617)".to_owned());
            }
            if password.0.is_empty() {
                return Err(format!("`{}` has an empty password", shorten(name)));
            }
            Ok(())
        };
        pairs(node, reader, "names with a password each", check).map(Users)
    }

    fn unset() -> Option<Users> {
        Some(Users::default())
    }

    fn form() -> Form {
        Form::Map(Box::new(Secret::form()))
    }

    fn shown(&self) -> Shown {
        let entries = self.0.iter();
        Shown::Map(
            entries
                .map(|(name, password)| (name.clone(), password.shown()))
                .collect(),
        )
    }
}

/// What tells one client from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientKey {
    /// Its address.
    Address,
    /// A field of its requests.
    Header(String),
    /// A cookie.
    Cookie(String),
}

impl Setting for ClientKey {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<ClientKey> {
        let what = "`address`, `header: NAME` or `cookie: NAME`";
        let (kind, name, place) = match &node.value {
            Value::Map(entries) if entries.len() == 1 => {
                let (kind, name) = &entries[0];
                reader.below(&kind.text, |reader| reader.came_from(&name.place));
                (&*kind.text, reader.text(name, "a name")?, name)
            }
            Value::Map(_) => {
                reader.wrong(node, format!("this should be one of {what}"));
                return None;
            }
            _ => {
                let text = reader.text(node, what)?;
                match text.split_once(':') {
                    Some((kind, name)) => (kind, name.trim(), node),
                    None => (text, "", node),
                }
            }
        };
        // Both are tokens (RFC 9110 section 5.6.2, RFC 6265 section 4.1.1).
        let token = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        match (kind, token) {
            ("address", _) if name.is_empty() => Some(ClientKey::Address),
            ("header", true) => Some(ClientKey::Header(name.to_owned())),
            ("cookie", true) => Some(ClientKey::Cookie(name.to_owned())),
            ("header" | "cookie", false) => {
                let shown = shorten(name);
                reader.wrong(
                    place,
                    format!("`{shown}` is no name of a {kind}: write {what}"),
                );
                None
            }
            _ => {
                let shown = shorten(kind);
                reader.wrong(node, format!("`{shown}` is not known here: write {what}"));
                None
            }
        }
    }

    fn form() -> Form {
        let name = |kind: &str| json!({"type": "object", "properties": {kind: {"type": "string"}}, "required": [kind], "additionalProperties": false});
        Form::scalar(
            "`address`, `header: NAME` or `cookie: NAME`",
            json!({"anyOf": [{"type": "string", "pattern": "^(address|(header|cookie): *.+)$"}, name("header"), name("cookie")]}),
        )
    }

    fn shown(&self) -> Shown {
        let named = |kind: &str, name: &str| Shown::Map(vec![(kind.to_owned(), Shown::text(name))]);
        match self {
            ClientKey::Address => Shown::text("address"),
            ClientKey::Header(name) => named("header", name),
            ClientKey::Cookie(name) => named("cookie", name),
        }
    }
}

/// The field Host that a server gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostField {
    /// The server's own name.
    Upstream,
    /// What the client said.
    Keep,
    /// This.
    Named(String),
}

impl Setting for HostField {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<HostField> {
        match reader.text(node, "`upstream`, `keep` or a name")? {
            "upstream" => Some(HostField::Upstream),
            "keep" => Some(HostField::Keep),
            name if http::uri::Authority::try_from(name).is_ok() && !name.contains('@') => {
                Some(HostField::Named(name.to_owned()))
            }
            name => {
                let shown = shorten(name);
                reader.wrong(node, format!("`{shown}` is no host: write `upstream`, `keep` or a name such as api.example.com"));
                None
            }
        }
    }

    fn form() -> Form {
        Form::text("`upstream`, `keep` or a name")
    }

    fn shown(&self) -> Shown {
        match self {
            HostField::Upstream => Shown::text("upstream"),
            HostField::Keep => Shown::text("keep"),
            HostField::Named(name) => Shown::text(name),
        }
    }
}

/// Statuses from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusRange {
    pub(crate) first: u16,
    pub(crate) last: u16,
}

impl Setting for StatusRange {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<StatusRange> {
        // A list of one is how a range may be written, too.
        if let Value::List(items) = &node.value
            && let [only] = &items[..]
        {
            return StatusRange::read(only, reader);
        }
        let what = "a status or two of them, such as 200 or 200..399";
        let text = reader.text(node, what)?;
        let (first, last) = match text.split_once("..").or_else(|| text.split_once('-')) {
            Some((first, last)) => (first.trim().parse(), last.trim().parse()),
            None => (text.parse(), text.parse()),
        };
        match (first, last) {
            (Ok(first), Ok(last)) if 100 <= first && first <= last && last <= 599 => {
                Some(StatusRange { first, last })
            }
            _ => {
                let shown = shorten(text);
                reader.wrong(node, format!("`{shown}` should be {what}, from 100 to 599"));
                None
            }
        }
    }

    fn form() -> Form {
        Form::scalar(
            "status, or two of them with `..` between",
            json!({"type": ["integer", "string"], "minimum": 100, "maximum": 599, "pattern": "^[1-5][0-9][0-9]( *(\\.\\.|-) *[1-5][0-9][0-9])?$"}),
        )
    }

    fn shown(&self) -> Shown {
        match self.first == self.last {
            true => Shown::plain(self.first),
            false => Shown::Text(format!("{}..{}", self.first, self.last)),
        }
    }
}

/// A server's URL, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url(pub(crate) String);

impl Setting for Url {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Url> {
        let text = reader.text(node, "a server, such as http://localhost:3001")?;
        let fine = (reader.server)(text);
        fine.map_err(|reason| reader.wrong(node, reason)).ok()?;
        Some(Url(text.to_owned()))
    }

    fn form() -> Form {
        Form::text("URL")
    }

    fn shown(&self) -> Shown {
        Shown::text(&self.0)
    }
}

section! {
    /// A server.
    Upstream called "a server" or alone url {
        /// Where it is: `http://host:port`, `https://host`, `host:port` or `unix:/path`.
        url: Url,
        /// How many requests it gets, beside the weights of the others.
        weight: u32 = 1,
        /// The most requests that it has at once, in place of the service's.
        max_connections: Option<usize>,
    }
}
