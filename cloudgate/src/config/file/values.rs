//! Which values can keys have, beside sections of their own?

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::super::{HOSTS, parse_host};
use super::describe::Form;
use super::node::{Node, Value, shorten};
use super::reader::Reader;
use super::section::{Setting, section};
use super::show::Shown;
use super::units;
use crate::message::network::Network;

impl<T: Setting> Setting for Option<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Option<T>> {
        let none = T::NONE
            && matches!(&node.value, Value::Scalar { text, .. } if text == "none" || text == "unlimited");
        if none || node.is_null() {
            return Some(None);
        }
        T::read(node, reader).map(Some)
    }

    fn unset() -> Option<Option<T>> {
        Some(None)
    }

    fn form() -> Form {
        match T::NONE {
            true => Form::Either(vec![T::form(), Form::word(&["none"])]),
            false => T::form(),
        }
    }

    fn shown(&self) -> Shown {
        match self {
            Some(value) => value.shown(),
            None if T::NONE => Shown::text("none"),
            None => Shown::Nothing,
        }
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<T>> {
        match &node.value {
            Value::List(items) => {
                let mut values = Vec::new();
                let mut whole = true;
                for (index, item) in items.iter().enumerate() {
                    let part = format!("[{index}]");
                    match reader.below(&part, |reader| T::read(item, reader)) {
                        Some(value) => values.push(value),
                        None => whole = false,
                    }
                }
                whole.then_some(values)
            }
            Value::Broken => None,
            // Said by whoever wants at least one.
            _ if node.is_null() => Some(Vec::new()),
            _ => {
                let kind = node.kind();
                reader.wrong(node, format!("this should be a list, not {kind}: write each on a line of its own with `- ` in front"));
                None
            }
        }
    }

    fn unset() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn form() -> Form {
        Form::List(Box::new(T::form()))
    }

    fn shown(&self) -> Shown {
        Shown::List(self.iter().map(Setting::shown).collect())
    }
}

impl Setting for bool {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<bool> {
        match &node.value {
            Value::Scalar { text, plain: true } if text == "true" || text == "True" => Some(true),
            Value::Scalar { text, plain: true } if text == "false" || text == "False" => {
                Some(false)
            }
            Value::Broken => None,
            _ => {
                let kind = node.kind();
                reader.wrong(
                    node,
                    format!("this should be `true` or `false`, not {kind}"),
                );
                None
            }
        }
    }

    fn form() -> Form {
        Form::scalar("`true` or `false`", json!({"type": "boolean"}))
    }

    fn shown(&self) -> Shown {
        Shown::plain(self)
    }
}

/// Whole numbers, each with what it is called and whether `none` is one, where it is optional.
macro_rules! numbers {
    ($($type:ty, $what:literal, $none:literal;)*) => {
        $(
            impl Setting for $type {
                const NONE: bool = $none;

                fn read(node: &Node, reader: &mut Reader<'_>) -> Option<$type> {
                    let what = $what;
                    let text = reader.text(node, what)?;
                    let number = text.bytes().all(|byte| byte.is_ascii_digit());
                    let value = text.parse().ok().filter(|_| number);
                    if value.is_none() {
                        let shown = shorten(text);
                        reader.wrong(node, format!("`{shown}` should be {what}"));
                    }
                    value
                }

                fn form() -> Form {
                    Form::scalar(
                        "number",
                        json!({"type": ["integer", "string"], "minimum": 0, "maximum": <$type>::MAX, "pattern": "^[0-9]+$"}),
                    )
                }

                fn shown(&self) -> Shown {
                    Shown::plain(self)
                }
            }
        )*
    };
}

numbers! {
    u16, "a port, which is a number from 0 to 65535", false;
    u32, "a whole number up to 4294967295", false;
    u64, "a whole number", false;
    usize, "a whole number", true;
}

impl Setting for String {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        reader.text(node, "a text").map(str::to_owned)
    }

    fn form() -> Form {
        Form::scalar("text", json!({"type": ["string", "number", "boolean"]}))
    }

    fn shown(&self) -> Shown {
        Shown::text(self)
    }
}

impl Setting for PathBuf {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<PathBuf> {
        reader.text(node, "a file").map(PathBuf::from)
    }

    fn form() -> Form {
        Form::text("file")
    }

    fn shown(&self) -> Shown {
        Shown::text(self.to_string_lossy())
    }
}

impl Setting for Duration {
    const NONE: bool = true;

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Duration> {
        let text = reader.text(node, "a time, such as 500ms, 5s or 1m")?;
        let time = units::time(text);
        time.map_err(|reason| reader.wrong(node, reason)).ok()
    }

    fn form() -> Form {
        Form::scalar(
            "time",
            json!({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *(ms|s|m|h|d)?$"}),
        )
    }

    fn shown(&self) -> Shown {
        Shown::Text(units::show_time(*self))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Setting for Size {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Size> {
        let text = reader.text(node, "a size, such as 512, 64KiB or 10MB")?;
        let size = units::size(text).map(Size);
        size.map_err(|reason| reader.wrong(node, reason)).ok()
    }

    fn form() -> Form {
        Form::scalar(
            "size",
            json!({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *([kK]?B|MB|GB|TB|KiB|MiB|GiB|TiB)?$"}),
        )
    }

    fn shown(&self) -> Shown {
        Shown::Text(units::show_size(self.0))
    }
}

/// The largest request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    /// This many bytes.
    Bytes(u64),
    /// Any.
    Unlimited,
}

impl BodyLimit {
    /// What zolly takes where nothing or 0 is said: 4 MiB.
    pub(crate) const ZOLLYS: BodyLimit = BodyLimit::Bytes(4 << 20);
}

impl Setting for BodyLimit {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<BodyLimit> {
        let text = reader.text(node, "a size, such as 64KiB or 10MB, or `none`")?;
        if text == "none" || text == "unlimited" {
            return Some(BodyLimit::Unlimited);
        }
        let bytes = units::size(text);
        let bytes = bytes.map_err(|reason| reader.wrong(node, reason)).ok()?;
        if bytes == 0 {
            return Some(BodyLimit::ZOLLYS);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let reason = format!(
                "bodyLimit: {bytes} means {bytes} bytes; write a unit, such as {bytes}B or 4MiB, to say so"
            );
            reader.warn(node, reason);
        }
        Some(BodyLimit::Bytes(bytes))
    }

    fn form() -> Form {
        Form::Either(vec![Size::form(), Form::word(&["none", "unlimited"])])
    }

    fn shown(&self) -> Shown {
        match self {
            BodyLimit::Bytes(bytes) => Size(*bytes).shown(),
            BodyLimit::Unlimited => Shown::text("none"),
        }
    }
}

/// What is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Setting for Secret {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Secret> {
        match &node.value {
            Value::Scalar { text, plain } if !*plain || !node.is_null() => {
                Some(Secret(text.clone()))
            }
            _ => reader
                .text(node, "a text")
                .map(|text| Secret(text.to_owned())),
        }
    }

    fn form() -> Form {
        Form::scalar("text", json!({"type": ["string", "number", "boolean"]}))
    }

    fn shown(&self) -> Shown {
        match self.0.is_empty() {
            true => Shown::Text(String::new()),
            false => Shown::Secret,
        }
    }
}

impl Setting for IpAddr {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<IpAddr> {
        let text = reader.text(node, HOSTS)?;
        let address = parse_host(text);
        if address.is_none() {
            let shown = shorten(text);
            reader.wrong(node, format!("`{shown}` should be {HOSTS}"));
        }
        address
    }

    fn form() -> Form {
        Form::text("IP address, or `localhost`")
    }

    fn shown(&self) -> Shown {
        Shown::text(self.to_string())
    }
}

impl Setting for Network {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Network> {
        let text = reader.text(node, "a network, such as 10.0.0.0/8")?;
        let network = text.parse();
        if network.is_err() {
            let shown = shorten(text);
            reader.wrong(node, format!("`{shown}` is no network: it must be an address, or the first address of a network with its length, such as 10.0.0.0/8"));
        }
        network.ok()
    }

    fn form() -> Form {
        Form::text("network, such as 10.0.0.0/8, or an address")
    }

    fn shown(&self) -> Shown {
        Shown::text(self.to_string())
    }
}

impl Setting for http::Method {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<http::Method> {
        const KNOWN: [&str; 8] = [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
        ];
        let text = reader.text(node, "a method, such as GET")?;
        if text.bytes().all(|byte| byte.is_ascii_uppercase())
            && let Ok(method) = http::Method::from_bytes(text.as_bytes())
        {
            return Some(method);
        }
        let shown = shorten(text);
        let reason = match KNOWN.iter().find(|known| known.eq_ignore_ascii_case(text)) {
            Some(meant) => format!("methods are in capitals: did you mean `{meant}`?"),
            None => format!("`{shown}` is no method: write one such as GET or POST"),
        };
        reader.wrong(node, reason);
        None
    }

    fn form() -> Form {
        Form::scalar(
            "method, such as GET",
            json!({"type": "string", "pattern": "^[A-Z]+$"}),
        )
    }

    fn shown(&self) -> Shown {
        Shown::text(self.as_str())
    }
}

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
