//! What do the parameters of a request look like when nobody said which to expect?

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::query;

/// Named values of a query, a form or a JSON object; serializes as a JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Params(Map<String, Value>);

impl Params {
    /// The value of `name`, if it is a single text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// The value of `name`, whatever it is: a text, a list of texts, or anything that JSON can hold.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All names and values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From `a=1&a=2`: a name that comes more than once has a list.
    pub(super) fn with_lists(text: &[u8]) -> Params {
        let mut map = Map::new();
        for (name, value) in query::pairs(text) {
            let value = Value::String(value.into_owned());
            match map.get_mut(&*name) {
                None => {
                    map.insert(name.into_owned(), value);
                }
                Some(Value::Array(list)) => list.push(value),
                Some(single) => *single = Value::Array(vec![single.take(), value]),
            }
        }
        Params(map)
    }

    /// From `a=1&a=2`: the last value of a name counts.
    pub(super) fn with_last(text: &[u8]) -> Params {
        query::pairs(text)
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect()
    }

    /// From a JSON object; anything else, also what is no JSON, has no names.
    pub(super) fn from_json(text: &[u8]) -> Params {
        serde_json::from_slice(text).map(Params).unwrap_or_default()
    }
}

impl FromIterator<(String, Value)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Params {
        Params(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeated_names_make_a_list_or_the_last_counts() {
        assert_eq!(
            json!(Params::with_lists(b"a=1&b=x+y&a=2&a=%33")),
            json!({"a": ["1", "2", "3"], "b": "x y"})
        );
        assert_eq!(
            json!(Params::with_last(b"a=1&b=x&a=2")),
            json!({"a": "2", "b": "x"})
        );
        assert_eq!(Params::with_lists(b"a=1").get("a"), Some("1"));
        assert_eq!(Params::with_lists(b"a=1&a=2").get("a"), None);
    }

    #[test]
    fn json_that_is_no_object_has_no_names() {
        assert_eq!(
            Params::from_json(br#"{"a": 1, "b": "x"}"#).get("b"),
            Some("x")
        );
        for text in ["[1]", "1", "{", "", "\u{feff}{}"] {
            assert!(Params::from_json(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
