//! What do both sides agree to compress (RFC 6455 section 9.1, RFC 7692 section 7.1)?

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::Role;
use super::deflate::Coding;
use crate::message::Headers;
use crate::message::headers::is_token;

/// The field that offers and answers go in.
pub const FIELD: &str = "Sec-WebSocket-Extensions";

const NAME: &str = "permessage-deflate";

/// What one side wants of permessage-deflate.
///
/// Context takeover is off by default: a compressor that remembers takes 300 KiB a socket, all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What the server's messages are compressed with.
    pub server: Coding,
    /// What the client's messages are compressed with.
    pub client: Coding,
}

impl Default for Wanted {
    fn default() -> Wanted {
        let coding = Coding {
            takeover: false,
            window_bits: 15,
        };
        Wanted {
            server: coding,
            client: coding,
        }
    }
}

/// What was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    server: Coding,
    client: Coding,
    /// Whether the answer may speak of the client's window, which is so where the offer does.
    client_window_offered: bool,
}

impl Agreed {
    /// How `role` compresses what it sends.
    pub fn sends(&self, role: Role) -> Coding {
        match role {
            Role::Server => self.server,
            Role::Client => self.client,
        }
    }

    /// How what `role` gets is compressed.
    pub fn receives(&self, role: Role) -> Coding {
        match role {
            Role::Server => self.client,
            Role::Client => self.server,
        }
    }

    /// The server's answer.
    pub fn answer(&self) -> String {
        let mut answer = NAME.to_owned();
        for (coding, name) in [
            (self.server, "; server_no_context_takeover"),
            (self.client, "; client_no_context_takeover"),
        ] {
            if !coding.takeover {
                answer.push_str(name);
            }
        }
        // Writing to a string cannot fail.
        if self.server.window_bits < 15 {
            let _ = write!(
                answer,
                "; server_max_window_bits={}",
                self.server.window_bits
            );
        }
        if self.client_window_offered && self.client.window_bits < 15 {
            let _ = write!(
                answer,
                "; client_max_window_bits={}",
                self.client.window_bits
            );
        }
        answer
    }
}

/// Why the other end's extensions were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The field is no list of extensions with parameters (RFC 6455 section 9.1).
    Malformed,
    /// An answer to what was not offered, or more than one.
    NotOffered,
    /// An answer with a parameter that is unknown, repeated, has a wrong value or was not offered.
    InvalidAnswer,
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExtensionError::Malformed => "Sec-WebSocket-Extensions is malformed",
            ExtensionError::NotOffered => "the server chose an extension that was not offered",
            ExtensionError::InvalidAnswer => "the server's answer does not fit the offer",
        })
    }
}

impl std::error::Error for ExtensionError {}

/// The first offer of permessage-deflate that can be agreed to, in the client's order; `None` where there is none.
///
/// # Errors
/// [`ExtensionError::Malformed`]. An offer with parameters that are unknown, repeated or out of range is
/// passed over (RFC 7692 section 7).
pub fn negotiate(headers: &Headers, wanted: &Wanted) -> Result<Option<Agreed>, ExtensionError> {
    let mut agreed = None;
    // The whole field is looked at, for it has to be well-formed as a whole.
    for extension in parse(headers)? {
        if agreed.is_none() && extension.name.eq_ignore_ascii_case(NAME) {
            agreed = Parameters::of(&extension).and_then(|offer| accept(&offer, wanted));
        }
    }
    Ok(agreed)
}

fn accept(offer: &Parameters, wanted: &Wanted) -> Option<Agreed> {
    let asked = offer.server_window.unwrap_or(15);
    // zlib has no window of 256 bytes, so nothing could be sent as was agreed (section 7.1.2.1).
    if asked < 9 {
        return None;
    }
    let own = |bits: u8| bits.clamp(9, 15);
    Some(Agreed {
        // A server may give up its context, and use a smaller window, also where nobody asked for that.
        server: Coding {
            takeover: wanted.server.takeover && !offer.server_forgets,
            window_bits: own(wanted.server.window_bits).min(asked),
        },
        // It may ask the client to give up its context, but for a smaller window only where the client said
        // that it can (section 7.1.2.2).
        client: Coding {
            takeover: wanted.client.takeover && !offer.client_forgets,
            window_bits: match offer.client_window {
                Some(bits) => own(wanted.client.window_bits).min(bits.unwrap_or(15)),
                None => 15,
            },
        },
        client_window_offered: offer.client_window.is_some(),
    })
}

/// The client's offer.
pub fn offer(wanted: &Wanted) -> String {
    let mut offer = NAME.to_owned();
    if !wanted.server.takeover {
        offer.push_str("; server_no_context_takeover");
    }
    if !wanted.client.takeover {
        offer.push_str("; client_no_context_takeover");
    }
    if wanted.server.window_bits < 15 {
        let _ = write!(
            offer,
            "; server_max_window_bits={}",
            wanted.server.window_bits
        );
    }
    offer.push_str("; client_max_window_bits");
    if wanted.client.window_bits < 15 {
        let _ = write!(offer, "={}", wanted.client.window_bits);
    }
    offer
}

/// What the server's answer agrees to; `None` where it wants no compression. `offered` is what [`offer`] was
/// made of, or `None`.
///
/// # Errors
/// [`ExtensionError`]: the client has to end the connection (RFC 7692 section 7.1).
pub fn agree(
    headers: &Headers,
    offered: Option<&Wanted>,
) -> Result<Option<Agreed>, ExtensionError> {
    let mut extensions = parse(headers)?.into_iter();
    let Some(first) = extensions.next() else {
        return Ok(None);
    };
    let (Some(offered), None) = (offered, extensions.next()) else {
        return Err(ExtensionError::NotOffered);
    };
    if !first.name.eq_ignore_ascii_case(NAME) {
        return Err(ExtensionError::NotOffered);
    }
    let answer = Parameters::of(&first).ok_or(ExtensionError::InvalidAnswer)?;
    let server_window = answer.server_window.unwrap_or(15);
    let client_window = match answer.client_window {
        Some(Some(bits)) => bits,
        Some(None) => return Err(ExtensionError::InvalidAnswer),
        None => 15,
    };
    // A server that does not say that it keeps to the offer does not (sections 7.1.1.1 and 7.1.2.1). Of a window
    // of 256 bytes for the client zlib knows nothing.
    if (!offered.server.takeover && !answer.server_forgets)
        || server_window > offered.server.window_bits
        || client_window < 9
    {
        return Err(ExtensionError::InvalidAnswer);
    }
    Ok(Some(Agreed {
        server: Coding {
            takeover: !answer.server_forgets,
            window_bits: server_window,
        },
        client: Coding {
            takeover: offered.client.takeover && !answer.client_forgets,
            window_bits: client_window.min(offered.client.window_bits).max(9),
        },
        client_window_offered: true,
    }))
}

/// The parameters of permessage-deflate.
#[derive(Debug, Default)]
struct Parameters {
    server_forgets: bool,
    client_forgets: bool,
    server_window: Option<u8>,
    /// An offer may name it without a value: the client can, with any.
    client_window: Option<Option<u8>>,
}

impl Parameters {
    /// `None` where one is unknown, repeated, or has a value that it may not have (RFC 7692 section 7.1).
    fn of(extension: &Extension<'_>) -> Option<Parameters> {
        let mut found = Parameters::default();
        for (name, value) in &extension.parameters {
            let value = value.as_deref();
            let repeated = if name.eq_ignore_ascii_case("server_no_context_takeover")
                && value.is_none()
            {
                std::mem::replace(&mut found.server_forgets, true)
            } else if name.eq_ignore_ascii_case("client_no_context_takeover") && value.is_none() {
                std::mem::replace(&mut found.client_forgets, true)
            } else if name.eq_ignore_ascii_case("server_max_window_bits") {
                found.server_window.replace(window_bits(value?)?).is_some()
            } else if name.eq_ignore_ascii_case("client_max_window_bits") {
                let bits = match value {
                    Some(value) => Some(window_bits(value)?),
                    None => None,
                };
                found.client_window.replace(bits).is_some()
            } else {
                return None;
            };
            if repeated {
                return None;
            }
        }
        Some(found)
    }
}

/// 8 to 15 without leading zeros (RFC 7692 section 7.1.2).
fn window_bits(value: &str) -> Option<u8> {
    Some(match value {
        "8" => 8,
        "9" => 9,
        "10" => 10,
        "11" => 11,
        "12" => 12,
        "13" => 13,
        "14" => 14,
        "15" => 15,
        _ => return None,
    })
}

/// One member of the list.
#[derive(Debug, PartialEq, Eq)]
struct Extension<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, Option<Cow<'a, str>>)>,
}

/// The members of every field line, in order (RFC 6455 section 9.1).
fn parse(headers: &Headers) -> Result<Vec<Extension<'_>>, ExtensionError> {
    let mut found = Vec::new();
    for line in headers.get_all(FIELD) {
        let line = std::str::from_utf8(line).map_err(|_| ExtensionError::Malformed)?;
        let mut reader = Reader { rest: line };
        loop {
            reader.skip_space();
            // Empty members are to be passed over (RFC 9110 section 5.6.1).
            if !reader.rest.is_empty() && !reader.rest.starts_with(',') {
                found.push(reader.extension().ok_or(ExtensionError::Malformed)?);
            }
            if !reader.eat(',') {
                break;
            }
        }
        if !reader.rest.is_empty() {
            return Err(ExtensionError::Malformed);
        }
    }
    Ok(found)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self) -> Option<&'a str> {
        self.skip_space();
        let end = self
            .rest
            .find(|c: char| !is_token(c.encode_utf8(&mut [0; 4]).as_bytes()));
        let (token, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    fn extension(&mut self) -> Option<Extension<'a>> {
        let name = self.token()?;
        let mut parameters = Vec::new();
        while self.eat(';') {
            let name = self.token()?;
            let value = if self.eat('=') {
                Some(self.value()?)
            } else {
                None
            };
            parameters.push((name, value));
        }
        Some(Extension { name, parameters })
    }

    /// A token, or one in quotes.
    fn value(&mut self) -> Option<Cow<'a, str>> {
        if !self.eat('"') {
            return self.token().map(Cow::Borrowed);
        }
        let mut value = String::new();
        let mut characters = self.rest.char_indices();
        loop {
            let (at, character) = characters.next()?;
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    // Unquoted it has to be a token as well (RFC 6455 section 9.1).
                    return is_token(value.as_bytes()).then_some(Cow::Owned(value));
                }
                '\\' => value.push(characters.next()?.1),
                character => value.push(character),
            }
        }
    }
}
