//! How are the values of a tree read, and what is wrong with them noted?

use std::collections::BTreeMap;

use super::mistake::{Mistake, near};
use super::node::{Name, Node, Place, Value, shorten};
use super::section::Setting;

/// Reads values and notes mistakes, warnings and where each value came from.
pub(crate) struct Reader<'a> {
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) warnings: Vec<(Place, String)>,
    /// Where the value at a path such as `server.port` or `services[0].path` came from; the others are defaults.
    pub(crate) origins: BTreeMap<String, Place>,
    /// What is wrong with a text that should name a server.
    pub(crate) server: &'a dyn Fn(&str) -> Result<(), String>,
    path: String,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(server: &'a dyn Fn(&str) -> Result<(), String>) -> Reader<'a> {
        Reader {
            mistakes: Vec::new(),
            warnings: Vec::new(),
            origins: BTreeMap::new(),
            server,
            path: String::new(),
        }
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, place: impl AsRef<Place>, reason: impl Into<String>) {
        self.mistakes
            .push(Mistake::new(place.as_ref().clone(), reason));
    }

    /// Notes what works and may not be what was meant.
    pub(crate) fn warn(&mut self, place: impl AsRef<Place>, reason: impl Into<String>) {
        self.warnings.push((place.as_ref().clone(), reason.into()));
    }

    /// Reads below a part of the path.
    pub(crate) fn below<T>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        if !part.starts_with('[') && !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(part);
        let value = read(self);
        self.path.truncate(before);
        value
    }

    /// Notes where the value at the path came from.
    pub(crate) fn came_from(&mut self, place: &Place) {
        self.origins.insert(self.path.clone(), place.clone());
    }

    /// The entries of a section with these keys; others are mistakes.
    pub(crate) fn entries<'n>(
        &mut self,
        node: &'n Node,
        called: &str,
        known: &[String],
    ) -> Option<&'n [(Name, Node)]> {
        let entries: &[(Name, Node)] = match &node.value {
            Value::Map(entries) => entries,
            Value::Scalar { .. } if node.is_null() => &[],
            Value::Broken => return None,
            _ => {
                let kind = node.kind();
                self.wrong(node, format!("{called} is a section of keys, not {kind}"));
                return None;
            }
        };
        let known: Vec<&str> = known.iter().map(|name| &**name).collect();
        for (name, _) in entries {
            if known.contains(&&*name.text) {
                continue;
            }
            let shown = shorten(&name.text);
            let reason = match (&*name.text, near(&name.text, &known)) {
                ("plugins", _) => "there are no `plugins`: take `apiKey`, `basicAuth`, `rateLimit`, `allow` and `deny`, `requestHeaders` and `responseHeaders`, or a service of your own".to_owned(),
                (_, Some(meant)) => format!("unknown key `{shown}` in {called}: did you mean `{meant}`?"),
                ("<<", _) => "keys are not merged: write them out, or give a whole section an anchor".to_owned(),
                (_, None) => format!("unknown key `{shown}` in {called}: it knows {}", listed(&known)),
            };
            self.wrong(&name.place, reason);
        }
        Some(entries)
    }

    /// Reads the value of a key; what it is without one where there is none.
    pub(crate) fn field<T: Setting>(
        &mut self,
        entries: &[(Name, Node)],
        called: &str,
        key: &str,
        section: &Node,
        unset: Option<T>,
    ) -> Option<T> {
        match entries.iter().find(|(name, _)| name.text == key) {
            Some((_, node)) => {
                let value = self.below(key, |reader| {
                    reader
                        .origins
                        .insert(reader.path.clone(), node.place.clone());
                    T::read(node, reader)
                });
                value.or(unset)
            }
            None => {
                if unset.is_none() {
                    self.wrong(section, format!("{called} needs `{key}`"));
                }
                unset
            }
        }
    }

    /// The text of a value; `what` says what it should be.
    pub(crate) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Broken => None,
            Value::Scalar { text, .. } if !node.is_null() => Some(text),
            _ => {
                let kind = node.kind();
                self.wrong(node, format!("this should be {what}, not {kind}"));
                None
            }
        }
    }

    /// One of these words.
    pub(crate) fn word<'w>(&mut self, node: &Node, words: &[&'w str]) -> Option<&'w str> {
        let what = format!("one of {}", listed(words));
        let text = self.text(node, &what)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let shown = shorten(text);
            let reason = match near(text, words) {
                Some(meant) => format!("`{shown}` is not known here: did you mean `{meant}`?"),
                None => format!("`{shown}` is not known here: write {what}"),
            };
            self.wrong(node, reason);
        }
        found
    }

    /// Looks whether texts are names of fields.
    pub(crate) fn field_names(&mut self, node: &Node, names: &[String]) {
        for (index, name) in names.iter().enumerate() {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                let shown = shorten(name);
                self.wrong(
                    node.item(index),
                    format!("`{shown}` is no name of a header field: write letters, digits and `-`, such as X-Request-Id"),
                );
            }
        }
    }
}

/// Words for a sentence.
pub(crate) fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
