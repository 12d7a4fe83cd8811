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
use super::section::Setting;
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
