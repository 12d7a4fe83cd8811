//! Do the JSON Schema and the reference page say what the file can hold?

use serde_json::{Map, Value as Json, json};

use super::super::node::{self, Node, Value};
use super::super::section::Setting;
use super::super::show::Shown;
use super::*;

/// A file as an editor sees it: numbers and booleans where there are no quotes.
fn json_of(node: &Node) -> Json {
    match &node.value {
        Value::Scalar { text, plain: true } => match serde_json::from_str(text) {
            Ok(value @ (Json::Number(_) | Json::Bool(_) | Json::Null)) => value,
            _ => text.clone().into(),
        },
        Value::Scalar { text, .. } => text.clone().into(),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(name, node)| (name.text.clone(), json_of(node)))
            .collect(),
        Value::Broken => Json::Null,
    }
}

fn parsed(text: &str) -> Json {
    let mut mistakes = Vec::new();
    json_of(&node::parse(text, &|_| None, &mut mistakes).unwrap())
}

/// Whether a value is of a type of JSON Schema.
fn is(value: &Json, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => panic!("{kind} is no type"),
    }
}

/// What is wrong with a value by a schema; by those of its words that ours uses, except `pattern`.
fn validate(value: &Json, schema: &Json, path: &str) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("{path}: {what}: {value}"));
    for (word, rule) in schema.as_object().unwrap() {
        match &**word {
            "type" => {
                let fits = match rule {
                    Json::Array(kinds) => {
                        kinds.iter().any(|kind| is(value, kind.as_str().unwrap()))
                    }
                    kind => is(value, kind.as_str().unwrap()),
                };
                if !fits {
                    return refuse(&format!("no {rule}"));
                }
            }
            "properties" => {
                for (key, value) in value.as_object().unwrap_or(&Map::new()) {
                    if let Some(schema) = rule.get(key) {
                        validate(value, schema, &format!("{path}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().unwrap_or(&Map::new()) {
                    let known = schema
                        .get("properties")
                        .is_some_and(|keys| keys.get(key).is_some());
                    match rule {
                        Json::Bool(false) if !known => return refuse(&format!("unknown {key}")),
                        Json::Object(_) if !known => {
                            validate(value, rule, &format!("{path}.{key}"))?;
                        }
                        _ => {}
                    }
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.get(key.as_str().unwrap()).is_none() {
                        return refuse(&format!("{key} is missing"));
                    }
                }
            }
            "items" => {
                for item in value.as_array().unwrap_or(&Vec::new()) {
                    validate(item, rule, &format!("{path}[]"))?;
                }
            }
            "anyOf" => {
                let rules = rule.as_array().unwrap();
                if rules
                    .iter()
                    .all(|rule| validate(value, rule, path).is_err())
                {
                    return refuse("nothing fits");
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => return refuse("no such word"),
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                return refuse("too small");
            }
            "maximum" if value.as_f64() > rule.as_f64() && value.is_number() => {
                return refuse("too large");
            }
            "minItems" if value.as_array().is_some_and(Vec::is_empty) => return refuse("empty"),
            "enum" | "minimum" | "maximum" | "minItems" | "pattern" | "description" | "default"
            | "title" | "$schema" => {}
            word => panic!("{word} is not a word that this knows"),
        }
    }
    Ok(())
}

fn schema() -> Json {
    serde_json::from_str(&GatewayFile::schema()).unwrap()
}

#[test]
fn right_files_fit_and_wrong_ones_do_not() {
    for file in [BASIC, AUTO_SSL, FULL] {
        load(file).unwrap();
        validate(&parsed(file), &schema(), "").unwrap();
    }
    for wrong in [
        "server: {}",
        "services: []",
        "services: [{path: /a}]",
        "services: [{path: /a, servers: []}]",
        "services: [{path: /a, servers: [a:1], strip_path: true}]",
        "services: [{path: /a, servers: [a:1], stripPath: 1}]",
        "services: [{path: /a, servers: [a:1], methods: GET}]",
        "{server: {port: 70000}, services: [{path: /a, servers: [a:1]}]}",
    ] {
        assert!(load(wrong).is_err(), "{wrong}");
        assert!(validate(&parsed(wrong), &schema(), "").is_err(), "{wrong}");
    }
}

/// All paths of keys that a value shows.
fn keys_of(shown: &Shown, path: &str, keys: &mut Vec<String>) {
    match shown {
        Shown::Map(entries) => {
            for (key, value) in entries {
                let path = format!("{path}.{key}");
                keys.push(path.clone());
                keys_of(value, &path, keys);
            }
        }
        Shown::List(items) => items.iter().for_each(|item| keys_of(item, path, keys)),
        _ => {}
    }
}

/// All paths of keys that a schema knows.
fn keys_of_schema(schema: &Json, path: &str, keys: &mut Vec<String>) {
    for (key, value) in schema["properties"].as_object().unwrap_or(&Map::new()) {
        let path = format!("{path}.{key}");
        keys.push(path.clone());
        keys_of_schema(value, &path, keys);
    }
    keys_of_schema_of(&schema["items"], path, keys);
    for one in schema["anyOf"].as_array().unwrap_or(&Vec::new()) {
        keys_of_schema(one, path, keys);
    }
}

fn keys_of_schema_of(schema: &Json, path: &str, keys: &mut Vec<String>) {
    if schema.is_object() {
        keys_of_schema(schema, path, keys);
    }
}

#[test]
fn the_full_file_has_each_key_of_the_schema_and_the_schema_each_of_the_file() {
    // Read from the file itself, so that no default fills in for a key that is not there.
    let mut in_file = Vec::new();
    keys_of(&shown_of(&parsed(FULL)), "", &mut in_file);
    let mut in_schema = Vec::new();
    keys_of_schema(&schema(), "", &mut in_schema);
    for key in &in_schema {
        // Both ways to tell clients apart are in the schema.
        let choice = [".header", ".cookie"].iter().any(|end| key.ends_with(end));
        // `responseHeaders` has the keys of `requestHeaders`, and `server.cors` those of a service's.
        let twin = key.contains("responseHeaders.") || key.starts_with(".server.cors.");
        assert!(
            choice || twin || in_file.contains(key),
            "{key} is not in full.yml"
        );
    }
    let mut in_struct = Vec::new();
    keys_of(&load(FULL).unwrap().config.shown(), "", &mut in_struct);
    for key in in_struct {
        let own = ["headers.", "set.", "add.", "users."]
            .iter()
            .any(|part| key.contains(part));
        assert!(
            own || in_schema.contains(&key),
            "{key} is not in the schema"
        );
    }
}

fn shown_of(value: &Json) -> Shown {
    match value {
        Json::Object(entries) => Shown::Map(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), shown_of(value)))
                .collect(),
        ),
        Json::Array(items) => Shown::List(items.iter().map(shown_of).collect()),
        _ => Shown::Nothing,
    }
}

#[test]
fn each_key_is_described() {
    fn look(schema: &Json, path: &str) {
        for (key, value) in schema["properties"].as_object().unwrap_or(&Map::new()) {
            let told = value["description"].as_str().unwrap_or("");
            assert!(
                told.len() > 10 || path.contains("hashBy") || path.ends_with(".by"),
                "{path}.{key}: {told:?}"
            );
            look(value, &format!("{path}.{key}"));
        }
    }
    look(&schema(), "");
    assert_eq!(
        schema()["properties"]["server"]["properties"]["port"]["default"],
        json!(3000)
    );
    assert_eq!(
        schema()["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
}

#[test]
fn the_reference_page_is_what_the_keys_say() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/guide/gateway-reference.md"
    );
    let text = std::fs::read_to_string(page).unwrap();
    let (before, _) = text.split_once("<!-- keys -->\n").unwrap();
    let want = format!("{before}<!-- keys -->\n{}", GatewayFile::reference());
    if std::env::var_os("OVERWRITE_REFERENCE").is_some() {
        std::fs::write(page, &want).unwrap();
    }
    assert!(
        text == want,
        "run this test with OVERWRITE_REFERENCE=1 and look at what has changed"
    );
}
