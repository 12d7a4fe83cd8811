//! How is a section of the configuration written down once, and read, described and shown by that?
//!
//! [`section!`] makes of a table of keys a struct, what reads it, its description (the JSON Schema and the reference page are
//! made of that), and what shows it. Keys are the names of the fields in camelCase.

use super::describe::{Form, Key};
use super::node::Node;
use super::reader::Reader;
use super::show::Shown;

/// What a key can hold.
pub(crate) trait Setting: Sized {
    /// Whether `none` is understood where this is optional.
    const NONE: bool = false;

    /// Reads it; `None` once what is wrong has been noted.
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self>;

    /// What it is where the key is left out; `None` where it must not be.
    fn unset() -> Option<Self> {
        None
    }

    /// What it looks like.
    fn form() -> Form;

    /// The value for people.
    fn shown(&self) -> Shown;
}

/// `strip_path` as `stripPath`.
pub(crate) fn camel(field: &str) -> String {
    let mut name = String::new();
    let mut upper = false;
    for letter in field.trim_start_matches("r#").chars() {
        if letter == '_' {
            upper = true;
        } else if upper {
            name.push(letter.to_ascii_uppercase());
            upper = false;
        } else {
            name.push(letter);
        }
    }
    name
}

/// The description of one key.
pub(crate) fn key<T: Setting>(field: &str, about: &'static str, unset: Option<T>) -> Key {
    Key {
        name: camel(field),
        about: about.trim(),
        form: T::form(),
        required: unset.is_none(),
        unset: unset.map_or(Shown::Nothing, |value| value.shown()),
    }
}

/// Declares a section: `/// what it is`, the fields with `/// what they are` and what they are where they are left out
/// (`= value`; without one what their type says), and at the end, if need be, a function that checks the whole. With
/// `or alone url` a text in place of the section is that key's.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident called $called:literal $(or alone $alone:ident)? {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty $(= $unset:expr)?, )*
        }
        $(check $check:path)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub(crate) $field: $type, )*
        }

        impl $crate::config::file::section::Setting for $name {
            fn read(
                node: &$crate::config::file::node::Node,
                reader: &mut $crate::config::file::reader::Reader<'_>,
            ) -> Option<Self> {
                $(let node = &node.alone_as(stringify!($alone));)?
                let names = [$($crate::config::file::section::camel(stringify!($field))),*];
                let entries = reader.entries(node, $called, &names)?;
                $(
                    let $field: Option<$type> = reader.field(
                        entries,
                        $called,
                        &$crate::config::file::section::camel(stringify!($field)),
                        node,
                        section!(@unset $type $(, $unset)?),
                    );
                )*
                let section = $name { $($field: $field?,)* };
                $( $check(&section, node, reader); )?
                Some(section)
            }

            fn unset() -> Option<Self> {
                Some($name { $($field: section!(@unset $type $(, $unset)?)?,)* })
            }

            fn form() -> $crate::config::file::describe::Form {
                let section = $crate::config::file::describe::Form::Section {
                    about: concat!($($about, "\n"),+),
                    keys: vec![$(
                        $crate::config::file::section::key::<$type>(
                            stringify!($field),
                            concat!($($doc, "\n"),+),
                            section!(@unset $type $(, $unset)?),
                        ),
                    )*],
                };
                $(let section = section.or_alone(stringify!($alone));)?
                section
            }

            fn shown(&self) -> $crate::config::file::show::Shown {
                $crate::config::file::show::Shown::Map(vec![$((
                    $crate::config::file::section::camel(stringify!($field)),
                    $crate::config::file::section::Setting::shown(&self.$field),
                )),*])
            }
        }
    };
    (@unset $type:ty) => { <$type as $crate::config::file::section::Setting>::unset() };
    (@unset $type:ty, $unset:expr) => { Some($unset) };
}

/// Declares words of which a key takes one.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        $name:ident { $( $(#[doc = $doc:literal])+ $case:ident = $word:literal, )* }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $( $(#[doc = $doc])+ $case, )*
        }

        impl $crate::config::file::section::Setting for $name {
            fn read(
                node: &$crate::config::file::node::Node,
                reader: &mut $crate::config::file::reader::Reader<'_>,
            ) -> Option<Self> {
                match reader.word(node, &[$($word),*])? {
                    $( $word => Some($name::$case), )*
                    _ => None,
                }
            }

            fn form() -> $crate::config::file::describe::Form {
                $crate::config::file::describe::Form::word(&[$($word),*])
            }

            fn shown(&self) -> $crate::config::file::show::Shown {
                $crate::config::file::show::Shown::text(match self { $( $name::$case => $word, )* })
            }
        }
    };
}

pub(crate) use {choice, section};
