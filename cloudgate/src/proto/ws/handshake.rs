//! May a request become a WebSocket, and has a server agreed to one (RFC 6455 section 4)?

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{Method, StatusCode};

use super::extension::{self, Agreed, ExtensionError, Wanted};
use crate::message::headers::is_token;
use crate::message::{Headers, Request, Version};

const KEY: &str = "Sec-WebSocket-Key";
const ACCEPT: &str = "Sec-WebSocket-Accept";
const VERSION: &str = "Sec-WebSocket-Version";
const PROTOCOL: &str = "Sec-WebSocket-Protocol";

/// What is hashed behind the key (section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Padding has to be there; what the last two bits of 16 bytes are nobody looks at.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// From which pages a browser may open a socket (section 10.2). A browser sends cookies along whatever page asks,
/// so by default only pages of the same host may. Programs other than browsers send no Origin, and are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// Those whose host and port are those of the Host field. The scheme is not compared: TLS may end in
    /// front of this server.
    #[default]
    Same,
    /// The same, and these, such as `https://app.example.com`.
    Also(Vec<String>),
    /// Any.
    Any,
}

impl Origins {
    /// Whether a page of `origin` may open a socket to `host`.
    pub fn allow(&self, origin: &str, host: Option<&str>) -> bool {
        let same = || match (authority(origin), host) {
            (Some(own), Some(host)) => own == without_port_of(scheme(origin), host),
            _ => false,
        };
        match self {
            Origins::Any => true,
            Origins::Same => same(),
            Origins::Also(allowed) => {
                allowed
                    .iter()
                    .any(|one| one.trim_end_matches('/').eq_ignore_ascii_case(origin))
                    || same()
            }
        }
    }
}

fn scheme(origin: &str) -> &str {
    origin.split_once("://").map_or("", |(scheme, _)| scheme)
}

/// The host and port of `scheme://host:port`, in lower case.
fn authority(origin: &str) -> Option<String> {
    let (scheme, authority) = origin.split_once("://")?;
    let odd = |byte: u8| matches!(byte, b'/' | b'?' | b'#' | b'@' | b' ');
    if authority.is_empty() || authority.bytes().any(odd) {
        return None;
    }
    Some(without_port_of(scheme, authority))
}

/// A host in lower case, without the port that the scheme has anyway.
fn without_port_of(scheme: &str, host: &str) -> String {
    let port = match () {
        () if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("wss") => ":443",
        () if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws") => ":80",
        () => "",
    };
    host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase()
}

/// Why a request does not become a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The method is not GET.
    NotGet,
    /// The version is below HTTP/1.1.
    OldHttp,
    /// The request has a body, which would be taken for frames.
    Body,
    /// Connection and Upgrade do not ask for a WebSocket.
    NoUpgrade,
    /// Sec-WebSocket-Version is not 13.
    UnsupportedVersion,
    /// Sec-WebSocket-Key is missing, repeated, or not 16 bytes in base64.
    InvalidKey,
    /// A page of this origin may not open a socket here.
    ForeignOrigin,
    /// Sec-WebSocket-Protocol is no list of tokens.
    InvalidProtocol,
    /// Sec-WebSocket-Extensions is malformed.
    InvalidExtensions,
}

impl HandshakeError {
    /// The status to answer with.
    pub fn status(self) -> StatusCode {
        match self {
            HandshakeError::NotGet => StatusCode::METHOD_NOT_ALLOWED,
            HandshakeError::NoUpgrade | HandshakeError::UnsupportedVersion => {
                StatusCode::UPGRADE_REQUIRED
            }
            HandshakeError::ForeignOrigin => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The fields that the answer has to have with that status (section 4.2.2, RFC 9110 section 15).
    pub fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            HandshakeError::NotGet => &[("Allow", "GET")],
            HandshakeError::NoUpgrade | HandshakeError::UnsupportedVersion => &[
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                (VERSION, "13"),
            ],
            _ => &[],
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeError::NotGet => "a WebSocket is opened with GET",
            HandshakeError::OldHttp => "a WebSocket is opened with HTTP/1.1",
            HandshakeError::Body => "a request for a WebSocket has no body",
            HandshakeError::NoUpgrade => {
                "this is a WebSocket: the fields `Connection: Upgrade` and `Upgrade: websocket` are wanted"
            }
            HandshakeError::UnsupportedVersion => "the only version of WebSocket spoken here is 13",
            HandshakeError::InvalidKey => "Sec-WebSocket-Key is not one value of 16 bytes in base64",
            HandshakeError::ForeignOrigin => "a page of this origin may not open a WebSocket here",
            HandshakeError::InvalidProtocol => "Sec-WebSocket-Protocol is no list of names",
            HandshakeError::InvalidExtensions => "Sec-WebSocket-Extensions is malformed",
        })
    }
}

impl std::error::Error for HandshakeError {}

/// A request that may become a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    accept: String,
    protocols: Vec<String>,
    deflate: Option<Agreed>,
}

/// A request that is well-formed; from which page it may come, and what is compressed, is still to be said.
#[derive(Clone, Debug)]
pub struct Offer {
    accept: String,
    protocols: Vec<String>,
    origin: Option<String>,
    host: Option<String>,
    /// The field of extensions alone.
    extensions: Headers,
}

/// Checks a request (section 4.2.1). `deflate` says whether messages may be compressed, and how.
///
/// # Errors
/// The first rule that is broken.
pub fn check(
    request: &Request<'_>,
    origins: &Origins,
    deflate: Option<&Wanted>,
) -> Result<Upgrade, HandshakeError> {
    Offer::of(request)?.open(origins, deflate)
}

impl Offer {
    /// Reads a request (section 4.2.1).
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn of(request: &Request<'_>) -> Result<Offer, HandshakeError> {
        let headers = request.headers();
        if request.method() != Method::GET {
            return Err(HandshakeError::NotGet);
        }
        if !headers.has_token("Connection", "upgrade") || !headers.has_token("Upgrade", "websocket")
        {
            return Err(HandshakeError::NoUpgrade);
        }
        if request.version() != Version::Http11 {
            return Err(HandshakeError::OldHttp);
        }
        let empty = headers
            .get_all("Content-Length")
            .all(|length| length == b"0");
        if !empty || headers.contains("Transfer-Encoding") {
            return Err(HandshakeError::Body);
        }
        if one(headers, VERSION) != Some(b"13") {
            return Err(HandshakeError::UnsupportedVersion);
        }
        let key = one(headers, KEY).ok_or(HandshakeError::InvalidKey)?;
        if BASE64.decode(key).map_or(0, |key| key.len()) != 16 {
            return Err(HandshakeError::InvalidKey);
        }
        let origin = if headers.contains("Origin") {
            let origin = one(headers, "Origin").and_then(|origin| std::str::from_utf8(origin).ok());
            // What cannot be told apart comes from nowhere that is allowed.
            Some(origin.ok_or(HandshakeError::ForeignOrigin)?.to_owned())
        } else {
            None
        };
        let mut extensions = Headers::new();
        for line in headers.get_all(extension::FIELD) {
            let line = std::str::from_utf8(line).map_err(|_| HandshakeError::InvalidExtensions)?;
            let kept = extensions.append(extension::FIELD, line);
            kept.map_err(|_| HandshakeError::InvalidExtensions)?;
        }
        Ok(Offer {
            accept: accept_value(key),
            protocols: protocols(headers).ok_or(HandshakeError::InvalidProtocol)?,
            origin,
            host: request.host().map(str::to_owned),
            extensions,
        })
    }

    /// The page that asks, if a browser does.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The subprotocols that the client speaks, the one it likes best first.
    pub fn protocols(&self) -> &[String] {
        &self.protocols
    }

    /// Goes on if the page may. `deflate` says whether messages may be compressed, and how.
    ///
    /// # Errors
    /// [`HandshakeError::ForeignOrigin`] and [`HandshakeError::InvalidExtensions`].
    pub fn open(
        self,
        origins: &Origins,
        deflate: Option<&Wanted>,
    ) -> Result<Upgrade, HandshakeError> {
        if let Some(origin) = &self.origin
            && !origins.allow(origin, self.host.as_deref())
        {
            return Err(HandshakeError::ForeignOrigin);
        }
        // What is not wanted has to be well-formed all the same.
        let agreed = extension::negotiate(&self.extensions, deflate.unwrap_or(&Wanted::default()))
            .map_err(|_| HandshakeError::InvalidExtensions)?;
        Ok(Upgrade {
            accept: self.accept,
            protocols: self.protocols,
            deflate: agreed.filter(|_| deflate.is_some()),
        })
    }
}

impl Upgrade {
    /// The subprotocols that the client speaks, the one it likes best first.
    pub fn protocols(&self) -> &[String] {
        &self.protocols
    }

    /// The first of `ours` that the client speaks. Names are compared as they are (section 4.1).
    pub fn choose<'a>(&self, ours: &[&'a str]) -> Option<&'a str> {
        ours.iter()
            .copied()
            .find(|own| self.protocols.iter().any(|offered| offered == own))
    }

    /// What was agreed to compress.
    pub fn deflate(&self) -> Option<Agreed> {
        self.deflate
    }

    /// The fields of the answer, whose status is 101 (section 4.2.2). A `protocol` that was not offered would
    /// make the client end the connection; it is left out.
    pub fn answer(&self, protocol: Option<&str>) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("Upgrade", "websocket".to_owned()),
            ("Connection", "Upgrade".to_owned()),
            (ACCEPT, self.accept.clone()),
        ];
        if let Some(protocol) = protocol.and_then(|protocol| self.choose(&[protocol])) {
            fields.push((PROTOCOL, protocol.to_owned()));
        }
        if let Some(deflate) = &self.deflate {
            fields.push((extension::FIELD, deflate.answer()));
        }
        fields
    }
}

/// The only value of a field; `None` where it is missing or repeated.
fn one<'a>(headers: &'a Headers, name: &str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name);
    values.next().filter(|_| values.next().is_none())
}

/// The members of Sec-WebSocket-Protocol, each once; `None` where one is no token (section 4.1).
fn protocols(headers: &Headers) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for line in headers.get_all(PROTOCOL) {
        for member in line.split(|&byte| byte == b',') {
            let member = member.trim_ascii();
            if !is_token(member) {
                return None;
            }
            let member = std::str::from_utf8(member).ok()?;
            if found.len() == MOST_PROTOCOLS {
                return None;
            }
            if !found.iter().any(|other| other == member) {
                found.push(member.to_owned());
            }
        }
    }
    Some(found)
}

/// The most subprotocols that a client may offer: each is looked for among the others.
const MOST_PROTOCOLS: usize = 100;

/// The answer to a key (section 4.2.2). SHA-1 is what the RFC wants; it keeps nothing secret.
fn accept_value(key: &[u8]) -> String {
    let mut hash = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(GUID);
    BASE64.encode(hash.finish())
}

/// The client's side of the handshake.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    key: String,
    protocols: Vec<String>,
    deflate: Option<Wanted>,
}

/// Why an answer opens no WebSocket (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerError {
    /// The status is not 101.
    Status(u16),
    /// Connection and Upgrade do not speak of a WebSocket.
    NoUpgrade,
    /// Sec-WebSocket-Accept does not answer the key.
    WrongAccept,
    /// A subprotocol that was not offered.
    WrongProtocol,
    /// An extension that was not offered, or not like this.
    Extensions(ExtensionError),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::Status(status) => write!(f, "the server answered {status} and not 101"),
            AnswerError::NoUpgrade => f.write_str("the server does not switch to WebSocket"),
            AnswerError::WrongAccept => f.write_str("Sec-WebSocket-Accept does not answer the key"),
            AnswerError::WrongProtocol => {
                f.write_str("the server chose a subprotocol that was not offered")
            }
            AnswerError::Extensions(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AnswerError {}

/// What client and server agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The subprotocol.
    pub protocol: Option<String>,
    /// How messages are compressed.
    pub deflate: Option<Agreed>,
}

impl ClientHandshake {
    /// Makes the key of a request out of 16 random bytes, which nobody may be able to foretell.
    pub fn new(random: [u8; 16], protocols: &[&str], deflate: Option<Wanted>) -> ClientHandshake {
        ClientHandshake {
            key: BASE64.encode(random),
            protocols: protocols.iter().map(|&name| name.to_owned()).collect(),
            deflate,
        }
    }

    /// The fields of the request, besides Host and Origin.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("Upgrade", "websocket".to_owned()),
            ("Connection", "Upgrade".to_owned()),
            (VERSION, "13".to_owned()),
            (KEY, self.key.clone()),
        ];
        if !self.protocols.is_empty() {
            fields.push((PROTOCOL, self.protocols.join(", ")));
        }
        if let Some(wanted) = &self.deflate {
            fields.push((extension::FIELD, extension::offer(wanted)));
        }
        fields
    }

    /// Checks the answer.
    ///
    /// # Errors
    /// The first rule that is broken; the connection is to be closed then.
    pub fn check(&self, status: StatusCode, headers: &Headers) -> Result<Opened, AnswerError> {
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(AnswerError::Status(status.as_u16()));
        }
        let upgrade =
            one(headers, "Upgrade").is_some_and(|name| name.eq_ignore_ascii_case(b"websocket"));
        if !upgrade || !headers.has_token("Connection", "upgrade") {
            return Err(AnswerError::NoUpgrade);
        }
        if one(headers, ACCEPT) != Some(accept_value(self.key.as_bytes()).as_bytes()) {
            return Err(AnswerError::WrongAccept);
        }
        let protocol = if headers.contains(PROTOCOL) {
            let chosen = one(headers, PROTOCOL);
            let known = self
                .protocols
                .iter()
                .find(|name| Some(name.as_bytes()) == chosen);
            Some(known.ok_or(AnswerError::WrongProtocol)?.clone())
        } else {
            None
        };
        let deflate =
            extension::agree(headers, self.deflate.as_ref()).map_err(AnswerError::Extensions)?;
        Ok(Opened { protocol, deflate })
    }
}
