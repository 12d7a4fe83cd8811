//! Which texts are route patterns?
//!
//! [`check`] is the whole grammar, once: `#[route]` runs it while the user's crate compiles, through [`assert_valid`], and the
//! router runs it on patterns that come at run time.
//!
//! ```text
//! pattern  = "/" [ segment *( "/" segment ) [ "/" ] ]     at most 1024 bytes and 16 parameters
//! segment  = literal / "{" name "}" / "{*" name "}"       the last form only at the very end
//! literal  = 1*pchar (RFC 3986), not "." or "..", not starting with ":" or "*"
//! name     = ASCII letters, digits and "_", not starting with a digit; no name twice
//! ```

use std::fmt;

/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 1024;

/// The most parameters in one pattern.
const MAX_PARAMETERS: usize = 16;

/// Which rule a text breaks that was meant as a route pattern.
///
/// Its `Display` says what is wrong and what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is empty or does not start with `/`.
    NoLeadingSlash,
    /// More than 1024 bytes.
    TooLong,
    /// More than 16 parameters.
    TooManyParameters,
    /// Two `/` in a row.
    EmptySegment,
    /// A segment `.` or `..`, percent-encoded or not.
    DotSegment,
    /// A `{` without its `}` in the same segment.
    UnclosedBrace,
    /// A `}` that closes nothing.
    StrayBrace,
    /// A parameter beside other text in its segment, such as `/{name}.json` or `/{a}{b}`.
    PartialParameter,
    /// `{}` or `{*}`.
    EmptyName,
    /// A parameter's name that could not be a name in Rust.
    InvalidName,
    /// Two parameters of one name.
    RepeatedName,
    /// `{*name}` followed by more.
    WildcardNotLast,
    /// `:name`, as other frameworks write a parameter.
    ColonParameter,
    /// A segment that starts with `*`, as other frameworks write a wildcard.
    BareWildcard,
    /// `?` or `#`: a pattern is compared with the path alone.
    QueryOrFragment,
    /// A space or another white-space or control character.
    Whitespace,
    /// A character outside ASCII.
    NotAscii,
    /// `%` without two hexadecimal digits after it.
    InvalidPercentEncoding,
    /// Another character that no path may hold as it is.
    ForbiddenCharacter,
}

impl PatternError {
    /// The text of the error, for `const` code, where `Display` cannot be used.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoLeadingSlash => "a route pattern starts with `/`, such as \"/users/{id}\"",
            Self::TooLong => "a route pattern has at most 1024 bytes",
            Self::TooManyParameters => "a route pattern has at most 16 parameters",
            Self::EmptySegment => {
                "a route pattern has no empty segment: write one `/` instead of `//`"
            }
            Self::DotSegment => {
                "a route pattern has no segment `.` or `..`: clients resolve them before they send a path, so the route would never be reached"
            }
            Self::UnclosedBrace => {
                "a `{` is not closed in its segment: write a parameter as a whole segment, such as `/users/{id}`"
            }
            Self::StrayBrace => {
                "a `}` closes nothing: write a parameter as a whole segment, such as `/users/{id}`, and a brace that is meant literally as %7B or %7D"
            }
            Self::PartialParameter => {
                "a parameter is a whole segment: write `/files/{name}`, not `/files/{name}.json` or `/files/{a}{b}`, and take the rest apart in the handler"
            }
            Self::EmptyName => {
                "a parameter needs a name: write `{id}` for one segment or `{*rest}` for the rest of the path"
            }
            Self::InvalidName => {
                "a parameter's name is made of ASCII letters, digits and `_`, and does not start with a digit, such as `{user_id}`"
            }
            Self::RepeatedName => {
                "two parameters of a route pattern have the same name: give each its own"
            }
            Self::WildcardNotLast => {
                "a wildcard such as `{*rest}` takes the rest of the path: nothing can follow it, not even a `/`"
            }
            Self::ColonParameter => "a parameter is written `{id}`, not `:id`",
            Self::BareWildcard => "a wildcard is written `{*rest}`, not `*`",
            Self::QueryOrFragment => {
                "a route pattern is compared with the path alone, which has no `?` or `#`: take the query with a `Query` argument"
            }
            Self::Whitespace => {
                "a route pattern has no white space or control characters: a space in a path is written %20"
            }
            Self::NotAscii => {
                "a route pattern is ASCII, as paths are on the wire: percent-encode other characters, such as %C3%A9 for `é`"
            }
            Self::InvalidPercentEncoding => {
                "a `%` is followed by two hexadecimal digits, such as %20; the percent sign itself is %25"
            }
            Self::ForbiddenCharacter => {
                "a route pattern holds letters, digits, and -._~!$&'()*+,;=:@ in its segments: percent-encode any other character"
            }
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for PatternError {}

/// Checks a text against the grammar of route patterns.
///
/// # Errors
///
/// The first rule that the text breaks, from the left.
pub const fn check(pattern: &str) -> Result<(), PatternError> {
    let text = pattern.as_bytes();
    if text.len() > MAX_LENGTH {
        return Err(PatternError::TooLong);
    }
    if text.is_empty() || text[0] != b'/' {
        return Err(PatternError::NoLeadingSlash);
    }
    // Start and end of each name seen so far: `const` code has no collections.
    let mut names = [(0, 0); MAX_PARAMETERS];
    let mut count = 0;
    let mut start = 1;
    while start < text.len() {
        let end = segment_end(text, start);
        if end == start {
            return Err(PatternError::EmptySegment);
        }
        let name = match parse_segment(text, start, end) {
            Ok(Segment::Literal) => None,
            Ok(Segment::Parameter(name)) => Some(name),
            Ok(Segment::Wildcard(name)) => {
                if end < text.len() {
                    return Err(PatternError::WildcardNotLast);
                }
                Some(name)
            }
            Err(error) => return Err(error),
        };
        if let Some(name) = name {
            if count == MAX_PARAMETERS {
                return Err(PatternError::TooManyParameters);
            }
            if is_among(text, name, &names, count) {
                return Err(PatternError::RepeatedName);
            }
            names[count] = name;
            count += 1;
        }
        start = end + 1;
    }
    Ok(())
}

/// Panics with the rule's message if the text is no route pattern. `#[route]` calls it in a `const`, where a panic is a compile error.
///
/// # Panics
///
/// If the text is no route pattern.
#[track_caller]
#[expect(
    clippy::panic,
    reason = "in a const this is how a compile error is written"
)]
pub const fn assert_valid(pattern: &str) {
    if let Err(error) = check(pattern) {
        panic!("{}", error.message());
    }
}

/// The names of a valid pattern's parameters, in order: `id` and `path` for `/users/{id}/files/{*path}`.
#[must_use]
pub fn parameters(pattern: &str) -> Vec<&str> {
    pattern
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.strip_prefix('*').unwrap_or(name))
        .collect()
}

/// Start and end of a parameter's name in the pattern.
type Name = (usize, usize);

enum Segment {
    Literal,
    Parameter(Name),
    Wildcard(Name),
}

/// Where the segment that starts at `from` ends. A `/` inside braces ends it too: a brace is closed in its own segment.
const fn segment_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < text.len() && text[at] != b'/' {
        at += 1;
    }
    at
}

const fn parse_segment(text: &[u8], start: usize, end: usize) -> Result<Segment, PatternError> {
    if text[start] == b'{' {
        return parse_parameter(text, start + 1, end);
    }
    match text[start] {
        // A colon alone is an ordinary segment; with a name after it, it is how other frameworks write a parameter.
        b':' if end - start > 1 => return Err(PatternError::ColonParameter),
        b'*' => return Err(PatternError::BareWildcard),
        _ => {}
    }
    match check_literal(text, start, end) {
        Ok(()) => Ok(Segment::Literal),
        Err(error) => Err(error),
    }
}

/// `start` is behind the opening brace.
const fn parse_parameter(text: &[u8], start: usize, end: usize) -> Result<Segment, PatternError> {
    let mut close = start;
    while close < end && text[close] != b'}' {
        if text[close] == b'{' {
            return Err(PatternError::UnclosedBrace);
        }
        close += 1;
    }
    if close == end {
        return Err(PatternError::UnclosedBrace);
    }
    if close + 1 < end {
        return Err(if text[close + 1] == b'}' {
            PatternError::StrayBrace
        } else {
            PatternError::PartialParameter
        });
    }
    let wildcard = text[start] == b'*';
    let name = (if wildcard { start + 1 } else { start }, close);
    match check_name(text, name) {
        Ok(()) if wildcard => Ok(Segment::Wildcard(name)),
        Ok(()) => Ok(Segment::Parameter(name)),
        Err(error) => Err(error),
    }
}

const fn check_name(text: &[u8], (start, end): Name) -> Result<(), PatternError> {
    if start == end {
        return Err(PatternError::EmptyName);
    }
    if text[start].is_ascii_digit() {
        return Err(PatternError::InvalidName);
    }
    let mut at = start;
    while at < end {
        if !text[at].is_ascii_alphanumeric() && text[at] != b'_' {
            return Err(PatternError::InvalidName);
        }
        at += 1;
    }
    Ok(())
}

const fn check_literal(text: &[u8], start: usize, end: usize) -> Result<(), PatternError> {
    let mut at = start;
    let mut dots = 0;
    let mut others = 0;
    while at < end {
        let mut byte = text[at];
        if byte == b'%' {
            byte = match percent_decoded(text, at, end) {
                Some(byte) => byte,
                None => return Err(PatternError::InvalidPercentEncoding),
            };
            at += 2;
        } else if let Some(error) = refusal(byte) {
            return Err(error);
        }
        // WHATWG URL counts `%2e` as a dot, so `/%2e%2e/` is resolved by browsers as `/../` is.
        if byte == b'.' {
            dots += 1;
        } else {
            others += 1;
        }
        at += 1;
    }
    if others == 0 && dots <= 2 {
        Err(PatternError::DotSegment)
    } else {
        Ok(())
    }
}

/// Why a byte cannot stand in a literal segment; `None` for RFC 3986 `pchar`.
const fn refusal(byte: u8) -> Option<PatternError> {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => None,
        b'-' | b'.' | b'_' | b'~' | b':' | b'@' => None,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => None,
        b'{' => Some(PatternError::PartialParameter),
        b'}' => Some(PatternError::StrayBrace),
        b'?' | b'#' => Some(PatternError::QueryOrFragment),
        0..=b' ' | 0x7f => Some(PatternError::Whitespace),
        0x80..=0xff => Some(PatternError::NotAscii),
        _ => Some(PatternError::ForbiddenCharacter),
    }
}

const fn percent_decoded(text: &[u8], at: usize, end: usize) -> Option<u8> {
    if at + 2 >= end {
        return None;
    }
    match (hex_digit(text[at + 1]), hex_digit(text[at + 2])) {
        (Some(high), Some(low)) => Some(high * 16 + low),
        _ => None,
    }
}

const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

const fn is_among(text: &[u8], name: Name, names: &[Name; MAX_PARAMETERS], count: usize) -> bool {
    let mut index = 0;
    while index < count {
        if is_same(text, name, names[index]) {
            return true;
        }
        index += 1;
    }
    false
}

const fn is_same(text: &[u8], one: Name, other: Name) -> bool {
    let length = one.1 - one.0;
    if length != other.1 - other.0 {
        return false;
    }
    let mut offset = 0;
    while offset < length {
        if text[one.0 + offset] != text[other.0 + offset] {
            return false;
        }
        offset += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn accepts(pattern: &str, names: &[&str]) {
        assert_eq!(check(pattern), Ok(()), "{pattern:?}");
        assert_eq!(parameters(pattern), names, "{pattern:?}");
    }

    #[track_caller]
    fn refuses(pattern: &str, want: PatternError) {
        assert_eq!(check(pattern), Err(want), "{pattern:?}");
    }

    #[test]
    fn valid_patterns_and_their_parameters() {
        accepts("/", &[]);
        accepts("/a", &[]);
        accepts("/a/", &[]);
        accepts("/api/tests/simple", &[]);
        accepts("/users/{id}", &["id"]);
        accepts("/users/{id}/", &["id"]);
        accepts("/{a}/{b}/x", &["a", "b"]);
        accepts("/{*rest}", &["rest"]);
        accepts("/files/{dir}/{*path}", &["dir", "path"]);
        accepts("/{_}/{_x}/{x9}/{Type}", &["_", "_x", "x9", "Type"]);
        // RFC 3986 pchar, every one of its symbols.
        accepts("/-._~!$&'()*+,;=:@", &[]);
        accepts("/v1/things:cancel", &[]);
        accepts("/:", &[]);
        accepts("/favicon.ico", &[]);
        accepts("/.well-known/acme-challenge/{token}", &["token"]);
        accepts("/...", &[]);
        accepts("/a%20b/%C3%A9/%7Bx%7D/%3Aid/%2A", &[]);
    }

    #[test]
    fn every_rule_has_its_error() {
        use PatternError::*;

        refuses("", NoLeadingSlash);
        refuses("a", NoLeadingSlash);
        refuses("{id}", NoLeadingSlash);
        refuses("http://host/", NoLeadingSlash);

        refuses("//", EmptySegment);
        refuses("/a//b", EmptySegment);
        refuses("/a//", EmptySegment);

        refuses("/.", DotSegment);
        refuses("/..", DotSegment);
        refuses("/a/../b", DotSegment);
        refuses("/a/./", DotSegment);
        refuses("/%2e", DotSegment);
        refuses("/.%2E/a", DotSegment);

        refuses("/{", UnclosedBrace);
        refuses("/{id", UnclosedBrace);
        refuses("/{id/x}", UnclosedBrace);
        refuses("/{*rest", UnclosedBrace);
        refuses("/{{id}}", UnclosedBrace);

        refuses("/}", StrayBrace);
        refuses("/id}", StrayBrace);
        refuses("/{id}}", StrayBrace);

        refuses("/a{id}", PartialParameter);
        refuses("/{id}.json", PartialParameter);
        refuses("/{a}{b}", PartialParameter);
        refuses("/{*a}b", PartialParameter);

        refuses("/{}", EmptyName);
        refuses("/{*}", EmptyName);

        refuses("/{9}", InvalidName);
        refuses("/{user-id}", InvalidName);
        refuses("/{user id}", InvalidName);
        refuses("/{id:u64}", InvalidName);
        refuses("/{**rest}", InvalidName);
        refuses("/{naïve}", InvalidName);
        refuses("/{id?}", InvalidName);

        refuses("/{id}/{id}", RepeatedName);
        refuses("/{a}/{b}/{*a}", RepeatedName);

        refuses("/{*rest}/", WildcardNotLast);
        refuses("/{*rest}/x", WildcardNotLast);
        refuses("/{*a}/{*b}", WildcardNotLast);

        refuses("/users/:id", ColonParameter);
        refuses("/files/*", BareWildcard);
        refuses("/files/*path", BareWildcard);

        refuses("/a?b=1", QueryOrFragment);
        refuses("/a#b", QueryOrFragment);

        refuses("/a b", Whitespace);
        refuses("/a\tb", Whitespace);
        refuses("/a\0", Whitespace);
        refuses("/a\u{7f}", Whitespace);

        refuses("/é", NotAscii);

        refuses("/%", InvalidPercentEncoding);
        refuses("/%2", InvalidPercentEncoding);
        refuses("/%2/0", InvalidPercentEncoding);
        refuses("/%zz", InvalidPercentEncoding);
        refuses("/100%", InvalidPercentEncoding);

        for forbidden in ["\"", "<", ">", "[", "]", "\\", "^", "`", "|"] {
            refuses(&format!("/a{forbidden}b"), ForbiddenCharacter);
        }
    }

    #[test]
    fn limits_hold_at_the_limit_and_not_one_past_it() {
        let longest = format!("/{}", "a".repeat(MAX_LENGTH - 1));
        accepts(&longest, &[]);
        refuses(&format!("{longest}a"), PatternError::TooLong);

        let most: String = (0..MAX_PARAMETERS)
            .map(|number| format!("/{{p{number}}}"))
            .collect();
        assert_eq!(check(&most), Ok(()));
        refuses(
            &format!("{most}/{{one_more}}"),
            PatternError::TooManyParameters,
        );
    }

    #[test]
    fn messages_hold_the_limits_in_words() {
        assert!(
            PatternError::TooLong
                .to_string()
                .contains(&MAX_LENGTH.to_string())
        );
        assert!(
            PatternError::TooManyParameters
                .to_string()
                .contains(&MAX_PARAMETERS.to_string())
        );
    }

    #[test]
    fn the_grammar_runs_at_compile_time() {
        const _: () = assert_valid("/users/{id}/files/{*path}");
        const REFUSED: bool = check("/users/{id").is_err();
        const { assert!(REFUSED) };
    }

    #[test]
    #[should_panic(expected = "a `{` is not closed in its segment")]
    fn an_invalid_pattern_panics_with_its_rule() {
        assert_valid("/users/{id");
    }

    /// Any text is judged without a panic: every prefix and every one-byte change of a long pattern.
    #[test]
    fn no_text_makes_the_check_panic() {
        let pattern = "/a%20b/{id}/x.y/{*rest}";
        for end in 0..=pattern.len() {
            let _ = check(&pattern[..end]);
            for byte in 0..=0x7f_u8 {
                let _ = check(&format!("{}{}", &pattern[..end], char::from(byte)));
                let _ = check(&format!(
                    "{}{}{}",
                    &pattern[..end],
                    char::from(byte),
                    &pattern[end..]
                ));
            }
        }
    }
}
