//! How are header fields kept?
//!
//! As the text that goes over the wire, with a table of where each name and value lies. A parsed
//! head is one copy, an answer's fields are one copy into the output, and a lookup compares names
//! without making new strings (RFC 9110 section 5.1: names are case-insensitive).

use std::fmt;

use super::shared_list::List;

#[derive(Clone, Copy, Debug)]
struct Field {
    name: u32,
    name_length: u32,
    value: u32,
    value_length: u32,
}

/// The header fields of a request or a response, in order, repeated names kept apart.
///
/// ```
/// let mut headers = cloudgate::Headers::new();
/// headers.append("Set-Cookie", "a=1").unwrap();
/// headers.append("Set-Cookie", "b=2").unwrap();
/// assert_eq!(headers.get("set-cookie"), Some("a=1"));
/// assert_eq!(headers.get_all("set-cookie").count(), 2);
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    /// `Name: value` lines, each with its CRLF, from `start` on.
    text: List<u8>,
    /// Where the first field line begins: a parsed head keeps its request line in front.
    start: usize,
    fields: List<Field>,
}

/// The largest text, in bytes, whose memory the next message uses again.
const LARGEST_KEPT: usize = 8 << 10;

/// Why a field was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name is empty or holds a byte that no field name may hold (RFC 9110 section 5.1).
    InvalidName,
    /// The value holds CR, LF, NUL or another control byte: it would split the message (RFC 9110 section 5.5).
    InvalidValue,
    /// The fields together would pass 4 GiB.
    TooLarge,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderError::InvalidName => {
                "a header name may hold letters, digits and !#$%&'*+-.^_`|~ only"
            }
            HeaderError::InvalidValue => {
                "a header value may not hold a line break or another control character"
            }
            HeaderError::TooLarge => "the header fields are larger than 4 GiB",
        })
    }
}

impl std::error::Error for HeaderError {}

impl Headers {
    /// No fields.
    pub const fn new() -> Headers {
        Headers {
            text: List::Static(&[]),
            start: 0,
            fields: List::Static(&[]),
        }
    }

    /// The first value of `name`, if there is one and it is UTF-8 text.
    pub fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get_bytes(name)?).ok()
    }

    /// The first value of `name` as the bytes that were sent.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        let field = self
            .fields
            .iter()
            .find(|field| self.name_of(field).eq_ignore_ascii_case(name.as_bytes()))?;
        Some(self.value_of(field))
    }

    /// Every value of `name`, in order.
    pub fn get_all<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.fields
            .iter()
            .filter(move |field| self.name_of(field).eq_ignore_ascii_case(name.as_bytes()))
            .map(|field| self.value_of(field))
    }

    /// Whether a field of this name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.get_bytes(name).is_some()
    }

    /// Every field, in order, as bytes.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|field| (self.name_of(field), self.value_of(field)))
    }

    /// Every field, in order: the name as it was written, and the value's bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|field| {
            // A name is a token, and so ASCII, or it would not have come in.
            (
                std::str::from_utf8(self.name_of(field)).unwrap_or_default(),
                self.value_of(field),
            )
        })
    }

    /// How many field lines there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether one of the comma-separated members of `name` is `token`, in any case (RFC 9110 section 5.6.1).
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.get_all(name)
            .flat_map(|value| value.split(|&byte| byte == b','))
            .any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Adds a field behind those that are there.
    ///
    /// # Errors
    /// [`HeaderError`] when the name is no token or the value would split the message.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), HeaderError> {
        let value = value.as_ref().trim_ascii();
        if !is_token(name.as_bytes()) {
            return Err(HeaderError::InvalidName);
        }
        if !is_field_value(value) {
            return Err(HeaderError::InvalidValue);
        }
        self.push_line(name.as_bytes(), value)
    }

    /// Replaces every field of this name by one.
    ///
    /// # Errors
    /// As [`Headers::append`]; on an error nothing changed.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), HeaderError> {
        let old = self.len();
        self.append(name, value)?;
        if self.fields[..old]
            .iter()
            .any(|field| self.name_of(field).eq_ignore_ascii_case(name.as_bytes()))
        {
            let last = self.fields.len() - 1;
            self.retain(|index, other| {
                index == last || !other.eq_ignore_ascii_case(name.as_bytes())
            });
        }
        Ok(())
    }

    /// Removes every field of this name; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let found = self.contains(name);
        if found {
            self.retain(|_, other| !other.eq_ignore_ascii_case(name.as_bytes()));
        }
        found
    }

    /// One field that is known when the program is built: nothing is allocated until it is changed.
    pub(crate) const fn prepared(prepared: &'static Prepared) -> Headers {
        Headers {
            text: List::Static(prepared.text.as_bytes()),
            start: 0,
            fields: List::Static(&prepared.fields),
        }
    }

    /// Makes clones cheap: they share the text until they are changed.
    pub(crate) fn share(&mut self) {
        self.text.share();
        self.fields.share();
    }

    /// The field lines as they go over the wire, each ended by CRLF.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.text[self.start..]
    }

    /// Takes over a head that the parser has checked: `text` is copied, `fields` yields the position
    /// and length of each name and value in it. The first `start` bytes (the request line) and the
    /// blank line behind the fields are not part of [`Headers::wire`].
    pub(crate) fn load(
        &mut self,
        text: &[u8],
        start: usize,
        fields: impl Iterator<Item = ((usize, usize), (usize, usize))>,
    ) {
        self.clear();
        self.text.to_mut().extend_from_slice(text);
        self.start = start;
        // A head is limited to far less than 4 GiB before it gets here.
        self.fields
            .to_mut()
            .extend(fields.map(|(name, value)| Field {
                name: name.0 as u32,
                name_length: name.1 as u32,
                value: value.0 as u32,
                value_length: value.1 as u32,
            }));
    }

    /// Forgets every field and keeps the memory, unless one large message has made it large.
    pub(crate) fn clear(&mut self) {
        match (&mut self.text, &mut self.fields) {
            (List::Owned(text), List::Owned(fields)) if text.capacity() <= LARGEST_KEPT => {
                text.clear();
                fields.clear();
                self.start = 0;
            }
            _ => *self = Headers::new(),
        }
    }

    /// Makes room for this many more fields with this many bytes of text, so that adding them
    /// allocates once.
    pub(crate) fn reserve(&mut self, fields: usize, bytes: usize) {
        self.fields.reserve(fields);
        self.text.reserve(bytes);
    }

    fn name_of(&self, field: &Field) -> &[u8] {
        &self.text[field.name as usize..][..field.name_length as usize]
    }

    fn value_of(&self, field: &Field) -> &[u8] {
        &self.text[field.value as usize..][..field.value_length as usize]
    }

    fn push_line(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeaderError> {
        let at = self.text.len();
        if u32::try_from(at + name.len() + value.len() + 4).is_err() {
            return Err(HeaderError::TooLarge);
        }
        let line = name.len() + value.len() + 4;
        // What was prepared, or nothing: more is likely to follow.
        if !self.text.is_owned() {
            self.reserve(4, line.max(128));
        }
        let text = self.text.to_mut();
        text.reserve(line);
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
        self.fields.to_mut().push(Field {
            name: at as u32,
            name_length: name.len() as u32,
            value: (at + name.len() + 2) as u32,
            value_length: value.len() as u32,
        });
        Ok(())
    }

    /// Rebuilds the text from the fields for which `keep(index, name)` holds.
    fn retain(&mut self, keep: impl Fn(usize, &[u8]) -> bool) {
        let old = std::mem::take(self);
        for (index, field) in old.fields.iter().enumerate() {
            if keep(index, old.name_of(field)) {
                // Cannot fail: the result is no longer than what was there.
                let _ = self.push_line(old.name_of(field), old.value_of(field));
            }
        }
    }
}

/// A field line that is made while the program is built.
pub(crate) struct Prepared {
    text: &'static str,
    fields: [Field; 1],
}

impl Prepared {
    /// From a whole line, such as `A: b\r\n`.
    pub(crate) const fn line(text: &'static str) -> Prepared {
        let bytes = text.as_bytes();
        let mut colon = 0;
        while bytes[colon] != b':' {
            colon += 1;
        }
        assert!(
            bytes[colon + 1] == b' '
                && bytes[bytes.len() - 2] == b'\r'
                && bytes[bytes.len() - 1] == b'\n'
        );
        let field = Field {
            name: 0,
            name_length: colon as u32,
            value: colon as u32 + 2,
            value_length: (bytes.len() - colon - 4) as u32,
        };
        Prepared {
            text,
            fields: [field],
        }
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.iter()
                    .map(|(name, value)| (name, String::from_utf8_lossy(value))),
            )
            .finish()
    }
}

/// Whether `bytes` is a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether `byte` may stand in a token (RFC 9110 section 5.6.2).
pub(crate) const fn is_tchar(byte: u8) -> bool {
    matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

/// Whether `bytes` may be a field value: no control byte but HTAB (RFC 9110 section 5.5).
pub(crate) fn is_field_value(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|&byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_ignore_case_and_keep_repeats() {
        let mut headers = Headers::new();
        headers.append("Accept", "a").unwrap();
        headers.append("X-One", "").unwrap();
        headers.append("accept", "b").unwrap();
        assert_eq!(headers.get("ACCEPT"), Some("a"));
        assert_eq!(headers.get_all("Accept").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(headers.get("x-one"), Some(""));
        assert_eq!(headers.get("x-two"), None);
        assert_eq!(headers.wire(), b"Accept: a\r\nX-One: \r\naccept: b\r\n");
    }

    #[test]
    fn set_replaces_every_field_of_the_name() {
        let mut headers = Headers::new();
        for (name, value) in [("A", "1"), ("B", "2"), ("a", "3")] {
            headers.append(name, value).unwrap();
        }
        headers.set("A", "4").unwrap();
        assert_eq!(headers.wire(), b"B: 2\r\nA: 4\r\n");
        assert!(headers.remove("b"));
        assert!(!headers.remove("b"));
        assert_eq!(headers.wire(), b"A: 4\r\n");
    }

    #[test]
    fn a_value_that_would_split_the_message_is_refused() {
        let mut headers = Headers::new();
        for value in ["a\r\nB: c", "a\nb", "a\rb", "a\0b", "\x7f"] {
            assert_eq!(
                headers.append("A", value),
                Err(HeaderError::InvalidValue),
                "{value:?}"
            );
        }
        for name in ["", "a b", "a:", "a\r\n", "\u{e9}"] {
            assert_eq!(
                headers.append(name, "v"),
                Err(HeaderError::InvalidName),
                "{name:?}"
            );
        }
        assert!(headers.is_empty());
        headers.append("A", "tab\tand caf\u{e9}").unwrap();
        assert_eq!(headers.get("a"), Some("tab\tand caf\u{e9}"));
    }

    #[test]
    fn tokens_of_a_list_are_found_in_any_line_and_case() {
        let mut headers = Headers::new();
        headers.append("Connection", "").unwrap();
        headers.append("Connection", "foo, ClOsE ,bar").unwrap();
        assert!(headers.has_token("connection", "close"));
        assert!(!headers.has_token("connection", "clos"));
    }

    #[test]
    fn a_prepared_field_reads_and_changes_like_an_appended_one() {
        static PREPARED: Prepared = Prepared::line("Content-Type: text/html\r\n");
        let mut headers = Headers::prepared(&PREPARED);
        assert_eq!(headers.get("content-type"), Some("text/html"));
        headers.append("A", "b").unwrap();
        assert_eq!(headers.wire(), b"Content-Type: text/html\r\nA: b\r\n");
        headers.set("Content-Type", "text/plain").unwrap();
        assert_eq!(headers.wire(), b"A: b\r\nContent-Type: text/plain\r\n");
        assert_eq!(
            Headers::prepared(&PREPARED).get("content-type"),
            Some("text/html")
        );
    }

    #[test]
    fn a_loaded_head_reads_like_an_appended_one() {
        let text = b"GET / HTTP/1.1\r\nHost:  x \r\nA: b\r\n";
        let mut headers = Headers::new();
        headers.load(
            text,
            16,
            [((16, 4), (23, 1)), ((27, 1), (30, 1))].into_iter(),
        );
        assert_eq!(headers.get("host"), Some("x"));
        assert_eq!(headers.get("a"), Some("b"));
        assert_eq!(headers.wire(), b"Host:  x \r\nA: b\r\n");
        headers.remove("host");
        assert_eq!(headers.wire(), b"A: b\r\n");
    }
}
