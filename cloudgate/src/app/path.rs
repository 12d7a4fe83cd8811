//! How do the parts of a path become a handler's values?

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::extract::{FromRequest, captures};
use super::rejection::Rejection;
use crate::message::Request;

/// The parts of the path that the parameters of the pattern stand for, percent-decoded: a single
/// value, a tuple in the pattern's order, or a struct with fields of the parameters' names.
///
/// A part that is not what the handler wants, such as letters for a `u64`, is 400.
///
/// ```
/// # use cloudgate::{App, Path, Request, route};
/// #[route("/orders/{id}")]
/// fn order(Path(id): Path<u64>) -> String { format!("order {id}") }
///
/// #[route("/{shop}/items/{item}")]
/// fn item(Path((shop, item)): Path<(String, u32)>) -> String { format!("{shop} {item}") }
///
/// #[derive(serde::Deserialize)]
/// struct File { owner: String, name: String }
///
/// #[route("/files/{owner}/{*name}")]
/// fn file(Path(file): Path<File>) -> String { format!("{} {}", file.owner, file.name) }
/// # let app = App::gather();
/// # assert_eq!(app.call(&mut Request::get("/orders/7")).text(), "order 7");
/// # assert_eq!(app.call(&mut Request::get("/orders/x")).status(), 400);
/// # assert_eq!(app.call(&mut Request::get("/a%2Fb/items/3")).text(), "a/b 3");
/// # assert_eq!(app.call(&mut Request::get("/files/ada/a/b.txt")).text(), "ada a/b.txt");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Path<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Path<T>, Rejection> {
        let parts: Vec<(&str, &str)> = captures(request).collect();
        T::deserialize(Parts(&parts))
            .map(Path)
            .map_err(|error| Rejection::Path { reason: error.0 })
    }
}

/// Why the parts do not fit.
#[derive(Debug)]
struct Misfit(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Misfit {
        Misfit(message.to_string())
    }
}

/// All parts of a path: names and decoded values.
struct Parts<'r>(&'r [(&'r str, &'r str)]);

impl<'r> Parts<'r> {
    fn single(&self) -> Result<Part<'r>, Misfit> {
        match self.0 {
            [(name, value)] => Ok(Part { name, value }),
            parts => Err(Misfit(format!(
                "the route has {} parameters, and the handler takes one value: take a tuple or a struct",
                parts.len()
            ))),
        }
    }

    fn each(&self) -> impl Iterator<Item = (&'r str, Part<'r>)> + use<'r> {
        self.0
            .iter()
            .map(|(name, value)| (*name, Part { name, value }))
    }
}

macro_rules! single_value {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.single()?.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Parts<'de> {
    type Error = Misfit;

    single_value! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_option deserialize_identifier deserialize_any
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_seq(SeqDeserializer::new(self.each().map(|(_, part)| part)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if length != self.0.len() {
            return Err(Misfit(format!(
                "the route has {} parameters, and the handler takes {length} values",
                self.0.len()
            )));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(MapDeserializer::new(self.each()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.single()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }
}

/// One part of a path.
#[derive(Clone, Copy)]
struct Part<'r> {
    name: &'r str,
    value: &'r str,
}

macro_rules! parsed_value {
    ($($method:ident $visit:ident $wanted:literal)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match self.value.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Misfit(format!("{} is {:?}, not {}", self.name, self.value, $wanted))),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Misfit;

    parsed_value! {
        deserialize_bool visit_bool "true or false"
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number from -32768 to 32767"
        deserialize_i32 visit_i32 "a whole number of 32 bits"
        deserialize_i64 visit_i64 "a whole number of 64 bits"
        deserialize_i128 visit_i128 "a whole number of 128 bits"
        deserialize_u8 visit_u8 "a number from 0 to 255"
        deserialize_u16 visit_u16 "a number from 0 to 65535"
        deserialize_u32 visit_u32 "a positive whole number of 32 bits"
        deserialize_u64 visit_u64 "a positive whole number of 64 bits"
        deserialize_u128 visit_u128 "a positive whole number of 128 bits"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
        deserialize_char visit_char "a single character"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_borrowed_str(self.value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_enum(self.value.into_deserializer())
    }

    forward_to_deserialize_any! {
        str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Misfit> for Part<'de> {
    type Deserializer = Part<'de>;

    fn into_deserializer(self) -> Part<'de> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    fn read<T: DeserializeOwned>(parts: &[(&str, &str)]) -> Result<T, String> {
        // The borrowed parts outlive the call; the owned result does not borrow from them.
        T::deserialize(Parts(parts)).map_err(|error| error.0)
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Small,
        Large,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Id(u32);

    #[derive(Debug, Deserialize, PartialEq)]
    struct Item {
        kind: Kind,
        id: Id,
        extra: Option<String>,
    }

    #[test]
    fn values_tuples_and_structs() {
        assert_eq!(read(&[("id", "7")]), Ok(7_u64));
        assert_eq!(read(&[("id", "7")]), Ok(Id(7)));
        assert_eq!(read(&[("id", "7")]), Ok((7_u8,)));
        assert_eq!(
            read(&[("a", "x"), ("b", "-2")]),
            Ok(("x".to_owned(), -2_i32))
        );
        assert_eq!(
            read(&[("kind", "large"), ("id", "7")]),
            Ok(Item {
                kind: Kind::Large,
                id: Id(7),
                extra: None
            })
        );
        assert_eq!(
            read(&[("a", "x"), ("b", "y")]),
            Ok(vec!["x".to_owned(), "y".to_owned()])
        );
        assert_eq!(read::<Kind>(&[("kind", "small")]), Ok(Kind::Small));
    }

    #[test]
    fn misfits_name_the_parameter_and_the_value() {
        assert_eq!(
            read::<u64>(&[("id", "x")]).unwrap_err(),
            "id is \"x\", not a positive whole number of 64 bits"
        );
        assert!(
            read::<u64>(&[("a", "1"), ("b", "2")])
                .unwrap_err()
                .contains("2 parameters")
        );
        assert!(
            read::<(u8, u8)>(&[("a", "1")])
                .unwrap_err()
                .contains("takes 2 values")
        );
        assert!(read::<u8>(&[("a", "256")]).is_err());
        assert!(
            read::<Kind>(&[("kind", "huge")])
                .unwrap_err()
                .contains("huge")
        );
    }
}
