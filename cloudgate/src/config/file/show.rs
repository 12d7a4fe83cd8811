//! How is a configuration written out for people?

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is not set.
    Nothing,
    /// What YAML takes as it stands: a number, `true`.
    Plain(String),
    Text(String),
    /// What nobody is to read.
    Secret,
    List(Vec<Shown>),
    Map(Vec<(String, Shown)>),
}

impl Shown {
    pub(crate) fn text(text: impl Into<String>) -> Shown {
        Shown::Text(text.into())
    }

    pub(crate) fn plain(value: impl ToString) -> Shown {
        Shown::Plain(value.to_string())
    }

    /// Whether it takes no lines of its own.
    fn is_scalar(&self) -> bool {
        match self {
            Shown::List(items) => items.is_empty(),
            Shown::Map(entries) => entries.is_empty(),
            _ => true,
        }
    }

    /// What stands on one line.
    pub(crate) fn inline(&self) -> String {
        match self {
            Shown::Nothing => "null".to_owned(),
            Shown::Plain(text) => text.clone(),
            Shown::Text(text) => quoted(text),
            Shown::Secret => "\"***\"".to_owned(),
            Shown::List(items) => {
                let items: Vec<_> = items.iter().map(Shown::inline).collect();
                format!("[{}]", items.join(", "))
            }
            Shown::Map(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", quoted(key), value.inline()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// As JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Shown::Nothing => serde_json::Value::Null,
            Shown::Plain(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| text.clone().into())
            }
            Shown::Text(text) => text.clone().into(),
            Shown::Secret => "***".into(),
            Shown::List(items) => items.iter().map(Shown::json).collect(),
            Shown::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.clone(), value.json()))
                .collect(),
        }
    }

    /// As YAML. `origin` says of the path of each value where it came from, or nothing.
    pub(crate) fn yaml(&self, origin: &dyn Fn(&str) -> Option<String>) -> String {
        let mut out = String::new();
        self.write(&mut out, 0, "", origin);
        out
    }

    fn write(
        &self,
        out: &mut String,
        depth: usize,
        path: &str,
        origin: &dyn Fn(&str) -> Option<String>,
    ) {
        let indent = "  ".repeat(depth);
        match self {
            Shown::Map(entries) => {
                for (key, value) in entries {
                    let path = match path {
                        "" => key.clone(),
                        _ => format!("{path}.{key}"),
                    };
                    out.push_str(&format!("{indent}{}:", quoted(key)));
                    value.behind(out, depth + 1, &path, origin);
                }
            }
            Shown::List(items) => {
                for (index, value) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    out.push_str(&format!("{indent}-"));
                    if let Shown::Map(entries) = value
                        && !entries.is_empty()
                    {
                        // The first key of a section stands behind the dash.
                        let mut section = String::new();
                        value.write(&mut section, depth + 1, &path, origin);
                        out.push(' ');
                        out.push_str(section.trim_start());
                    } else {
                        value.behind(out, depth + 1, &path, origin);
                    }
                }
            }
            _ => out.push_str(&self.inline()),
        }
    }

    /// What stands behind a key or a dash.
    fn behind(
        &self,
        out: &mut String,
        depth: usize,
        path: &str,
        origin: &dyn Fn(&str) -> Option<String>,
    ) {
        if self.is_scalar() {
            out.push(' ');
            out.push_str(&self.inline());
            if let Some(origin) = origin(path) {
                out.push_str("  # ");
                out.push_str(&origin);
            }
            out.push('\n');
        } else {
            out.push('\n');
            self.write(out, depth, path, origin);
        }
    }
}

/// A text so that YAML takes it for just that.
fn quoted(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '/')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && ![
            "true", "false", "null", "none", "yes", "no", "on", "off", "y", "n",
        ]
        .contains(&&*text.to_ascii_lowercase());
    // JSON's strings are YAML's, and a dollar sign must not become a variable when this is read again.
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text.replace('$', "$$")).to_string()
    }
}
