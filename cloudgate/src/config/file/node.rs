//! What stands in a YAML file, and where?
//!
//! The parser's events become a small tree in which everything knows its place, so that each mistake can be shown where it
//! is. What a file can ask for is bounded: bytes, depth, and how much its aliases come to.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::mistake::Mistake;
use super::variables::expand;

/// The largest file, in bytes.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The most sections and lists in each other.
pub(crate) const MOST_DEPTH: usize = 32;

/// The most values, those that come by aliases counted each time.
pub(crate) const MOST_NODES: usize = 100_000;

/// Where something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the file: line and column from 1, and how many letters it has on that line.
    File {
        line: usize,
        column: usize,
        width: usize,
    },
    /// In an environment variable.
    Environment(&'static str),
    /// In a flag of the command line.
    Flag(&'static str),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A key of a section.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar {
        text: String,
        /// Whether it stands there without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Name, Node)>),
    /// Its mistake has been noted.
    Broken,
}

impl AsRef<Place> for Node {
    fn as_ref(&self) -> &Place {
        &self.place
    }
}

impl AsRef<Place> for Place {
    fn as_ref(&self) -> &Place {
        self
    }
}

impl Node {
    /// A text that came from outside of the file.
    pub(crate) fn outside(place: Place, text: impl Into<String>) -> Node {
        Node {
            place,
            value: Value::Scalar {
                text: text.into(),
                plain: true,
            },
        }
    }

    fn entry(&self, key: &str) -> Option<&(Name, Node)> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(name, _)| name.text == key),
            _ => None,
        }
    }

    /// The value of a key, or all of it where the key is not there.
    pub(crate) fn at(&self, key: &str) -> &Node {
        self.entry(key).map_or(self, |(_, node)| node)
    }

    /// The place of a key, or of all where it is not there.
    pub(crate) fn at_key(&self, key: &str) -> &Place {
        self.entry(key).map_or(&self.place, |(name, _)| &name.place)
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// A section of one key in place of a text.
    pub(crate) fn alone_as(&self, key: &str) -> Node {
        if self.is_null() || !matches!(self.value, Value::Scalar { .. }) {
            return self.clone();
        }
        let name = Name {
            text: key.to_owned(),
            place: self.place.clone(),
        };
        Node {
            place: self.place.clone(),
            value: Value::Map(vec![(name, self.clone())]),
        }
    }

    /// Whether the list or section of a key is not there or has nothing in it.
    pub(crate) fn lacks(&self, key: &str) -> bool {
        match self.entry(key).map(|(_, node)| (node, &node.value)) {
            Some((_, Value::List(items))) => items.is_empty(),
            Some((_, Value::Map(entries))) => entries.is_empty(),
            Some((node, _)) => node.is_null(),
            None => true,
        }
    }

    /// A value of a list, or all of it.
    pub(crate) fn item(&self, index: usize) -> &Node {
        match &self.value {
            Value::List(items) => items.get(index).unwrap_or(self),
            _ => self,
        }
    }

    /// Whether nothing stands there.
    pub(crate) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain: true } => {
                matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// What stands there, for messages.
    pub(crate) fn kind(&self) -> String {
        match &self.value {
            Value::Scalar { .. } if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, .. } => format!("`{}`", shorten(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a section".to_owned(),
            Value::Broken => "something broken".to_owned(),
        }
    }

    /// Puts a value in the place of the one at the end of these keys.
    pub(crate) fn put(&mut self, path: &[&str], node: Node) {
        let Some((key, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if self.is_null() {
            self.value = Value::Map(Vec::new());
        }
        let Value::Map(entries) = &mut self.value else {
            return;
        };
        let at = entries.iter().position(|(name, _)| name.text == *key);
        let at = at.unwrap_or_else(|| {
            let name = Name {
                text: (*key).to_owned(),
                place: node.place.clone(),
            };
            let empty = Node {
                place: node.place.clone(),
                value: Value::Map(Vec::new()),
            };
            entries.push((name, empty));
            entries.len() - 1
        });
        entries[at].1.put(rest, node);
    }
}

/// The beginning of a long text.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(SHOWN).collect();
    short.push('…');
    short
}

/// Reads a file into a tree; `None` where it is none at all. What is wrong is noted.
pub(crate) fn parse(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Node> {
    if text.len() > MOST_BYTES {
        let place = Place::File {
            line: 1,
            column: 1,
            width: 1,
        };
        let reason = format!("the file has more than {MOST_BYTES} bytes");
        mistakes.push(Mistake::new(place, reason));
        return None;
    }
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        variable,
        mistakes,
        anchors: HashMap::new(),
        nodes: 0,
    };
    match builder.document() {
        Ok(node) => Some(node),
        Err(mistake) => {
            builder.mistakes.push(mistake);
            None
        }
    }
}

struct Builder<'a, 'm> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    variable: &'m dyn Fn(&str) -> Option<String>,
    mistakes: &'m mut Vec<Mistake>,
    /// Anchored nodes, and how many values they come to.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Builder<'a, '_> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Mistake> {
        loop {
            let end = Place::File {
                line: 1,
                column: 1,
                width: 1,
            };
            match self.parser.next_event() {
                None => return Err(Mistake::new(end, "the file ends too soon")),
                Some(Err(error)) => {
                    let marker = error.marker();
                    let place = Place::File {
                        line: marker.line().max(1),
                        column: marker.col() + 1,
                        width: 1,
                    };
                    return Err(Mistake::new(place, format!("no YAML: {}", error.info())));
                }
                Some(Ok((Event::Anchor(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
            }
        }
    }

    fn document(&mut self) -> Result<Node, Mistake> {
        let mut root: Option<Node> = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    let reason = "a second document begins here: one file is one configuration";
                    return Err(Mistake::new(place(&span), reason));
                }
                Event::DocumentStart(..) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, &span, 0)?);
                }
                Event::StreamEnd => {
                    return Ok(root.unwrap_or(Node {
                        place: place(&span),
                        value: Value::Map(Vec::new()),
                    }));
                }
                _ => return Err(Mistake::new(place(&span), "this belongs to nothing")),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Mistake> {
        let place = place(span);
        self.count(1, &place)?;
        if depth > MOST_DEPTH {
            let reason = format!("more than {MOST_DEPTH} sections and lists in each other");
            return Err(Mistake::new(place, reason));
        }
        let before = self.nodes;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                (self.scalar(&text, plain, &place), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        break;
                    }
                    items.push(self.node(event, &span, depth + 1)?);
                }
                (Value::List(items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id).cloned() else {
                    return Err(Mistake::new(place, "an alias inside of what it stands for"));
                };
                self.count(size, &place)?;
                return Ok(node);
            }
            _ => return Err(Mistake::new(place, "this belongs to nothing")),
        };
        let node = Node { place, value };
        if anchor != 0 {
            // A copy costs what it holds, so it is counted like one that stands in the file.
            let size = self.nodes - before + 1;
            self.count(size, &node.place)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    fn map(&mut self, depth: usize) -> Result<Value, Mistake> {
        let mut entries: Vec<(Name, Node)> = Vec::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            let place = place(&span);
            let text = match event {
                Event::MappingEnd => return Ok(Value::Map(entries)),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(Mistake::new(place, "a key is a text")),
            };
            self.count(1, &place)?;
            let (event, span) = self.next()?;
            let node = self.node(event, &span, depth + 1)?;
            if let Some(first) = lines.get(&text) {
                let reason = format!(
                    "`{}` is given twice: line {first} has it already",
                    shorten(&text)
                );
                self.mistakes.push(Mistake::new(place, reason));
                continue;
            }
            let line = match place {
                Place::File { line, .. } => line,
                _ => 0,
            };
            lines.insert(text.clone(), line);
            entries.push((Name { text, place }, node));
        }
    }

    fn scalar(&mut self, text: &str, plain: bool, place: &Place) -> Value {
        match expand(text, self.variable) {
            Ok(text) => Value::Scalar { text, plain },
            Err(reason) => {
                self.mistakes.push(Mistake::new(place.clone(), reason));
                Value::Broken
            }
        }
    }

    fn count(&mut self, nodes: usize, place: &Place) -> Result<(), Mistake> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            let reason = format!(
                "more than {MOST_NODES} values, those that come by aliases counted each time"
            );
            return Err(Mistake::new(place.clone(), reason));
        }
        Ok(())
    }
}

fn place(span: &Span) -> Place {
    let width = if span.start.line() == span.end.line() {
        span.end.col().saturating_sub(span.start.col()).max(1)
    } else {
        1
    };
    Place::File {
        line: span.start.line().max(1),
        column: span.start.col() + 1,
        width,
    }
}
