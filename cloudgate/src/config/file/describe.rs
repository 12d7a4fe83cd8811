//! What can a configuration hold, as a JSON Schema and as a page to read?

use serde_json::{Map, Value, json};

use super::show::Shown;

/// What a value looks like.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Section {
        about: &'static str,
        keys: Vec<Key>,
    },
    List(Box<Form>),
    /// Names of one's own, and a value for each.
    Map(Box<Form>),
    /// A word of these, or a text, or a number.
    Scalar {
        /// What people call it: `time`, `size`.
        what: String,
        schema: Value,
    },
    Either(Vec<Form>),
}

/// A key of a section.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) form: Form,
    pub(crate) required: bool,
    pub(crate) unset: Shown,
}

impl Form {
    pub(crate) fn scalar(what: &str, schema: Value) -> Form {
        Form::Scalar {
            what: what.to_owned(),
            schema,
        }
    }

    /// A text.
    pub(crate) fn text(what: &str) -> Form {
        Form::scalar(what, json!({"type": "string"}))
    }

    /// One of these words.
    pub(crate) fn word(words: &[&str]) -> Form {
        let shown: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        Form::Scalar {
            what: shown.join(", "),
            schema: json!({"enum": words}),
        }
    }

    /// A section, or the value of one of its keys in place of it.
    pub(crate) fn or_alone(self, name: &str) -> Form {
        let alone = match &self {
            Form::Section { keys, .. } => keys.iter().find(|key| key.name == name),
            _ => None,
        };
        match alone.map(|key| key.form.clone()) {
            Some(alone) => Form::Either(vec![alone, self]),
            None => self,
        }
    }

    /// The JSON Schema of a value like this.
    pub(crate) fn schema(&self) -> Value {
        match self {
            Form::Section { about, keys } => {
                let properties: Map<String, Value> = keys
                    .iter()
                    .map(|key| (key.name.clone(), key.schema()))
                    .collect();
                let required: Vec<&str> = keys
                    .iter()
                    .filter(|key| key.required || key.is_needed())
                    .map(|key| &*key.name)
                    .collect();
                let mut schema = json!({
                    "type": ["object", "null"],
                    "description": sentence(about),
                    "properties": properties,
                    "additionalProperties": false,
                });
                if !required.is_empty() {
                    schema["type"] = json!("object");
                    schema["required"] = json!(required);
                }
                schema
            }
            Form::List(form) => json!({"type": "array", "items": form.schema()}),
            Form::Map(form) => json!({"type": "object", "additionalProperties": form.schema()}),
            // Whatever it is, a variable of the environment can give it.
            Form::Scalar { schema, .. } => match schema["type"] == "string"
                && schema.as_object().is_some_and(|rules| rules.len() == 1)
            {
                true => schema.clone(),
                false => json!({"anyOf": [schema, {"type": "string", "pattern": "\\$\\{"}]}),
            },
            Form::Either(forms) => {
                let forms: Vec<_> = forms.iter().map(Form::schema).collect();
                json!({"anyOf": forms})
            }
        }
    }

    /// What people call it.
    fn what(&self) -> String {
        match self {
            Form::Section { .. } => "section".to_owned(),
            Form::List(form) => format!("list of: {}", form.what()),
            Form::Map(form) => format!("names, each with: {}", form.what()),
            Form::Scalar { what, .. } => what.clone(),
            Form::Either(forms) => {
                let forms: Vec<_> = forms.iter().map(Form::what).collect();
                forms.join(", or ")
            }
        }
    }

    /// The section in it, if there is one.
    fn section(&self) -> Option<&Form> {
        match self {
            Form::Section { .. } => Some(self),
            Form::List(form) | Form::Map(form) => form.section(),
            Form::Either(forms) => forms.iter().find_map(Form::section),
            Form::Scalar { .. } => None,
        }
    }
}

impl Key {
    fn schema(&self) -> Value {
        let mut schema = self.form.schema();
        schema["description"] = sentence(self.about).into();
        // What a section is without being there is said by its keys.
        let said = !matches!(self.unset, Shown::Nothing | Shown::Map(_))
            && self.unset != Shown::List(Vec::new());
        if said && !self.required {
            schema["default"] = self.unset.json();
        }
        if self.is_needed() {
            schema["minItems"] = json!(1);
        }
        schema
    }

    /// Whether it is a list that must not be empty.
    fn is_needed(&self) -> bool {
        matches!(&*self.name, "servers" | "services")
    }
}

/// A doc comment on one line.
fn sentence(about: &str) -> String {
    let words: Vec<_> = about.split_whitespace().collect();
    words.join(" ")
}

/// The JSON Schema of a whole file, in the dialect 2020-12.
pub(crate) fn schema(root: &Form) -> Value {
    let mut schema = root.schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "cloudgate's gateway: config.yml".into();
    schema
}

/// The tables of the reference page: one a section, in the order in which they come in the file.
pub(crate) fn reference(root: &Form) -> String {
    let mut page = String::new();
    tables("", root, &mut page);
    page
}

fn tables(path: &str, form: &Form, page: &mut String) {
    let Form::Section { about, keys } = form else {
        return;
    };
    if !path.is_empty() {
        page.push_str(&format!("\n## `{path}`\n"));
    }
    page.push_str(&format!("\n{}\n\n", sentence(about)));
    page.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let unset = match &key.unset {
            _ if key.required || key.is_needed() => "must be given".to_owned(),
            Shown::Nothing | Shown::Map(_) => String::new(),
            Shown::List(items) if items.is_empty() => String::new(),
            shown => format!("`{}`", shown.inline().trim_matches('"')),
        };
        page.push_str(&format!(
            "| `{}` | {} | {unset} | {} |\n",
            key.name,
            key.form.what(),
            sentence(key.about)
        ));
    }
    for key in keys {
        if let Some(section) = key.form.section() {
            let list = if matches!(key.form, Form::List(_)) {
                "[]"
            } else {
                ""
            };
            let path = match path {
                "" => format!("{}{list}", key.name),
                _ => format!("{path}.{}{list}", key.name),
            };
            tables(&path, section, page);
        }
    }
}
