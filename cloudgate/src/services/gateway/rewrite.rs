//! Which fields go on to the server, and which come back to the client?
//!
//! Fields of one connection end here (RFC 9110 section 7.6.1). What says who the client is, is said anew: a client's own
//! word for it goes on only where it came by a proxy that the application trusts.

use std::io::Write;
use std::net::IpAddr;

use http::Method;

use super::super::request_id::Id;
use super::super::trace_context;
use super::address::Address;
use super::settings::{Edits, HostField, Settings};
use crate::message::{Headers, Request, Version};
use crate::proto::h1::encode;

/// What a request to a server is made of, besides the client's own fields.
pub(crate) struct Outbound<'r> {
    pub(crate) settings: &'r Settings,
    pub(crate) server: &'r Address,
    /// The client's request id, or the one that it got here.
    pub(crate) id: &'r Id,
    /// How the body is framed.
    pub(crate) length: OutboundLength,
    /// Whether the server is asked to switch protocols.
    pub(crate) upgrade: bool,
    /// Whether the server is to say that it wants the body before that is sent.
    pub(crate) expects_continue: bool,
}

/// How the body of a request to a server is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboundLength {
    /// No body, and no word of one.
    None,
    Sized(u64),
    Chunked,
}

/// How a field of the client is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Keep,
    /// It belongs to the connection, or is written here.
    Drop,
    /// It says who the client is: kept in front of what is added where its sender is trusted.
    Extend(Chain),
    Via,
    MaxForwards,
}

/// The fields that name each hop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    For,
    Forwarded,
}

/// Appends the head of the request to a server.
pub(crate) fn request(out: &mut Vec<u8>, request: &Request<'_>, with: &Outbound<'_>) {
    // Its client was named by a proxy that the application trusts.
    let trusted = request.client.is_some();
    let (slash, target) = target(request, with.settings);
    encode::request_line(
        out,
        request.method().as_str(),
        &[&with.server.base, slash, target],
    );
    let client_host = request.host().unwrap_or_default();
    encode::field(out, b"Host", host_field(with, client_host).as_bytes());
    let edits = &with.settings.request_fields;
    let named = named_by_connection(request.headers());
    let traced = trace_context::forwardable(request.headers());
    let (mut hops, mut forwarded, mut via) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in request.headers().fields() {
        match treatment(name, trusted) {
            Treatment::Keep => {
                let broken = !traced && is_trace(name);
                if broken || is_named(&named, name) || edits.replaces(name) {
                    continue;
                }
                encode::field(out, name, value);
            }
            Treatment::Drop => {}
            Treatment::Extend(Chain::For) => join(&mut hops, value),
            Treatment::Extend(Chain::Forwarded) => join(&mut forwarded, value),
            Treatment::Via => join(&mut via, value),
            Treatment::MaxForwards => {
                let left = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok());
                if let Some(left) = left {
                    encode::field(out, name, left.saturating_sub(1).to_string().as_bytes());
                }
            }
        }
    }
    who_asks(out, request, trusted, client_host, hops, forwarded);
    if let Some(prefix) = prefix(request, with.settings) {
        encode::field(out, b"X-Forwarded-Prefix", prefix.as_bytes());
    }
    let version: &[u8] = match request.version() {
        Version::Http10 => b"1.0 cloudgate",
        Version::Http11 => b"1.1 cloudgate",
    };
    out.extend_from_slice(b"Via: ");
    extend_list(out, &via);
    out.extend_from_slice(version);
    out.extend_from_slice(b"\r\n");
    if !edits.replaces(b"x-request-id") {
        out.extend_from_slice(b"X-Request-Id: ");
        with.id.write(out);
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in edits.added() {
        encode::field(out, name.as_bytes(), value.as_bytes());
    }
    match with.length {
        OutboundLength::None => {}
        OutboundLength::Sized(length) => {
            out.extend_from_slice(b"Content-Length: ");
            encode::decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        OutboundLength::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    if with.expects_continue {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    if with.upgrade {
        for value in request.headers().get_all("upgrade") {
            encode::field(out, b"Upgrade", value);
        }
        out.extend_from_slice(b"Connection: Upgrade\r\n");
    } else if request.headers().has_token("te", "trailers") {
        // RFC 9110 section 10.1.4.
        out.extend_from_slice(b"TE: trailers\r\nConnection: TE\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends who the client is and how it came here.
fn who_asks(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    trusted: bool,
    client_host: &str,
    hops: Vec<u8>,
    forwarded: Vec<u8>,
) {
    let peer = request.peer().ip().to_canonical();
    // A peer on a Unix socket has no address.
    let shown = if peer.is_unspecified() {
        Shown::Unknown
    } else {
        Shown::Address(peer)
    };
    out.extend_from_slice(b"X-Forwarded-For: ");
    extend_list(out, &hops);
    shown.write(out);
    out.extend_from_slice(b"\r\nX-Real-IP: ");
    match (&shown, request.client) {
        (Shown::Address(_), Some(client)) => Shown::Address(client).write(out),
        _ => shown.write(out),
    }
    out.extend_from_slice(b"\r\n");
    let proto = if request.is_secure() { "https" } else { "http" };
    encode::field(out, b"X-Forwarded-Proto", proto.as_bytes());
    let host = match request.headers().get("x-forwarded-host") {
        Some(said) if trusted => said,
        _ => client_host,
    };
    if !host.is_empty() {
        encode::field(out, b"X-Forwarded-Host", host.as_bytes());
    }
    out.extend_from_slice(b"Forwarded: ");
    extend_list(out, &forwarded);
    // RFC 7239 section 4: what is no token is quoted, and an address of IPv6 has brackets.
    out.extend_from_slice(b"for=");
    match shown {
        Shown::Address(IpAddr::V6(_)) => {
            out.extend_from_slice(b"\"[");
            shown.write(out);
            out.extend_from_slice(b"]\"");
        }
        _ => shown.write(out),
    }
    if !client_host.is_empty() && !client_host.contains(['"', '\\']) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(client_host.as_bytes());
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    let secure = request.tls().is_some();
    out.extend_from_slice(if secure { b"https" } else { b"http" });
    out.extend_from_slice(b"\r\n");
}

/// A peer as fields name it.
enum Shown {
    Unknown,
    Address(IpAddr),
}

impl Shown {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Shown::Unknown => out.extend_from_slice(b"unknown"),
            Shown::Address(IpAddr::V4(address)) => {
                for (index, part) in address.octets().into_iter().enumerate() {
                    if index > 0 {
                        out.push(b'.');
                    }
                    encode::decimal(out, u64::from(part));
                }
            }
            // Writing to a vector does not fail.
            Shown::Address(IpAddr::V6(address)) => {
                let _ = write!(out, "{address}");
            }
        }
    }
}

/// Appends what a list holds already, and the comma for one more.
fn extend_list(out: &mut Vec<u8>, list: &[u8]) {
    if !list.is_empty() {
        out.extend_from_slice(list);
        out.extend_from_slice(b", ");
    }
}

/// Adds a member to a list.
fn join(list: &mut Vec<u8>, member: &[u8]) {
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(member);
}

fn host_field<'f>(with: &'f Outbound<'_>, client_host: &'f str) -> &'f str {
    match &with.settings.host {
        HostField::Keep if !client_host.is_empty() => client_host,
        HostField::Keep | HostField::Server => &with.server.authority,
        HostField::Named(name) => name,
    }
}

fn treatment(name: &[u8], trusted: bool) -> Treatment {
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let drop = match name.len() {
        2 => is(b"te"),
        3 if is(b"via") => return Treatment::Via,
        4 => is(b"host"),
        6 => is(b"expect"),
        7 => is(b"upgrade"),
        9 if is(b"forwarded") => return extend(Chain::Forwarded, trusted),
        9 => is(b"x-real-ip"),
        10 => is(b"connection") || is(b"keep-alive"),
        12 if is(b"max-forwards") => return Treatment::MaxForwards,
        12 => is(b"x-request-id"),
        13.. if name[..12].eq_ignore_ascii_case(b"x-forwarded-") => match &name[12..] {
            last if last.eq_ignore_ascii_case(b"for") => return extend(Chain::For, trusted),
            last if last.eq_ignore_ascii_case(b"host") || last.eq_ignore_ascii_case(b"proto") => {
                true
            }
            // What the servers behind may take for the word of this one.
            _ => !trusted,
        },
        14 => is(b"content-length"),
        16 => is(b"proxy-connection"),
        17 => is(b"transfer-encoding"),
        18 => is(b"proxy-authenticate"),
        19 => is(b"proxy-authorization"),
        _ => false,
    };
    // `X_Forwarded_For` and `X-Forwarded-For` are one variable to programs that get fields as such.
    if drop || (name.contains(&b'_') && hides_behind_underscores(name)) {
        Treatment::Drop
    } else {
        Treatment::Keep
    }
}

/// Whether a field belongs to the W3C Trace Context.
fn is_trace(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent") || name.eq_ignore_ascii_case(b"tracestate")
}

fn extend(chain: Chain, trusted: bool) -> Treatment {
    if trusted {
        Treatment::Extend(chain)
    } else {
        Treatment::Drop
    }
}

#[cold]
fn hides_behind_underscores(name: &[u8]) -> bool {
    let dashed: Vec<u8> = name
        .iter()
        .map(|&byte| if byte == b'_' { b'-' } else { byte })
        .collect();
    treatment(&dashed, false) != Treatment::Keep
}

/// The names that Connection lists, besides those that are looked at anyway.
fn named_by_connection(headers: &Headers) -> Vec<&[u8]> {
    // Connection may come more than once; an empty first one must not hide the rest.
    headers
        .get_all("connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty() && !is_plain_option(name))
        .collect()
}

fn is_plain_option(name: &[u8]) -> bool {
    [&b"close"[..], b"keep-alive", b"upgrade", b"te"]
        .iter()
        .any(|option| name.eq_ignore_ascii_case(option))
}

fn is_named(named: &[&[u8]], name: &[u8]) -> bool {
    named.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// What of the target the server gets: each byte as it was sent, but for what is cut; and the slash in front where that
/// was cut too.
fn target<'r>(request: &'r Request<'_>, settings: &Settings) -> (&'static str, &'r str) {
    let sent = request.head().sent_target();
    if sent == "*" || !settings.strip_path || request.mounted == 0 {
        return ("", sent);
    }
    let rest = &sent[length_as_sent(sent, request.mounted)..];
    (if rest.starts_with('/') { "" } else { "/" }, rest)
}

/// What has to come in front of a path of the server to make it one of the client.
pub(crate) fn prefix<'r>(request: &'r Request<'_>, settings: &Settings) -> Option<&'r str> {
    (settings.strip_path && request.mounted > 0).then(|| &request.path()[..request.mounted])
}

/// How many bytes of `sent` became the first `normalised` ones of a path: `%61` has become `a`.
fn length_as_sent(sent: &str, normalised: usize) -> usize {
    let bytes = sent.as_bytes();
    let (mut at, mut seen) = (0, 0);
    while seen < normalised && at < bytes.len() {
        if bytes[at] != b'%' {
            at += 1;
            seen += 1;
            continue;
        }
        let digit = |index: usize| {
            let byte = bytes.get(index).copied().unwrap_or_default();
            (byte as char).to_digit(16).unwrap_or_default()
        };
        let byte = (digit(at + 1) * 16 + digit(at + 2)) as u8;
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        seen += if unreserved { 1 } else { 3 };
        at += 3;
    }
    at.min(bytes.len())
}

/// Whether a path leaves the place that it seems to be in, for a server that takes `..` in whatever spelling for a step up.
pub(crate) fn climbs(path: &str) -> bool {
    // `.` is no longer encoded here, and most paths have none behind a slash.
    if !path.contains("..") {
        return false;
    }
    let spelled = path
        .replace("%2F", "/")
        .replace("%5C", "/")
        .replace('\\', "/");
    spelled
        .split('/')
        .any(|segment| segment.split(';').next() == Some("..") || segment.starts_with("..%3B"))
}

/// Makes of the fields of a server's answer those for the client. `origin` is where the client takes this to be.
pub(crate) fn answer(headers: &mut Headers, request: &Request<'_>, with: &Inbound<'_>) {
    let mut strange = false;
    let mut places = false;
    for (name, value) in headers.fields() {
        match name.len() {
            2 => strange |= name.eq_ignore_ascii_case(b"te"),
            7 => strange |= name.eq_ignore_ascii_case(b"upgrade"),
            8 => places |= name.eq_ignore_ascii_case(b"location"),
            // That the connection stays or not is left out when the head is written.
            10 if name.eq_ignore_ascii_case(b"connection") => {
                strange |= !is_plain_option(value.trim_ascii());
            }
            10.. => {
                places |= name.eq_ignore_ascii_case(b"content-location")
                    || name.eq_ignore_ascii_case(b"set-cookie");
                strange |= name.eq_ignore_ascii_case(b"proxy-connection");
            }
            _ => {}
        }
    }
    if strange {
        remove_hop_by_hop(headers);
    }
    if places {
        rewrite_places(headers, request, with);
    }
    with.settings.response_fields.apply(headers);
}

/// What the fields of an answer are seen against.
pub(crate) struct Inbound<'r> {
    pub(crate) settings: &'r Settings,
    pub(crate) server: &'r Address,
}

#[cold]
fn remove_hop_by_hop(headers: &mut Headers) {
    let named: Vec<String> = named_by_connection(headers)
        .into_iter()
        .filter_map(|name| std::str::from_utf8(name).ok())
        // What says how long the answer is has been read already.
        .map(str::to_owned)
        .collect();
    for name in named {
        headers.remove(&name);
    }
    for name in ["Connection", "Proxy-Connection", "TE", "Upgrade"] {
        headers.remove(name);
    }
}

fn rewrite_places(headers: &mut Headers, request: &Request<'_>, with: &Inbound<'_>) {
    for name in ["Location", "Content-Location"] {
        let moved = headers
            .get(name)
            .and_then(|value| place_for_client(value, request, with));
        if let Some(moved) = moved {
            // It was a value before, and nothing was added that could not be in one.
            let _ = headers.set(name, moved);
        }
    }
    let Some(prefix) = prefix(request, with.settings) else {
        return;
    };
    let cookies: Vec<Vec<u8>> = headers
        .get_all("set-cookie")
        .map(|value| cookie_for_client(value, prefix, &with.server.base))
        .collect();
    if !cookies.is_empty() {
        headers.remove("Set-Cookie");
        for cookie in cookies {
            let _ = headers.append("Set-Cookie", cookie);
        }
    }
}

/// The place that a server names, as the client reaches it; `None` where that is as it stands there.
fn place_for_client(value: &str, request: &Request<'_>, with: &Inbound<'_>) -> Option<String> {
    let prefix = prefix(request, with.settings);
    let ours = |path: &str| -> Option<String> {
        let rest = match with.server.base.as_str() {
            "" => path,
            base => {
                let rest = path.strip_prefix(base)?;
                if !rest.is_empty() && !rest.starts_with(['/', '?', '#']) {
                    return None;
                }
                rest
            }
        };
        match prefix {
            Some(prefix) => Some(format!("{prefix}{rest}")),
            None if rest.starts_with('/') => Some(rest.to_owned()),
            None => Some(format!("/{rest}")),
        }
    };
    if value.starts_with('/') && !value.starts_with("//") {
        return ours(value).filter(|moved| moved != value);
    }
    // The server's own name, which clients may not reach.
    let (scheme, rest) = value.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = request.host().unwrap_or_default();
    let own = &with.server.authority;
    let server_name = authority.eq_ignore_ascii_case(own) && !host.is_empty();
    let client_name = authority.eq_ignore_ascii_case(host) && prefix.is_some();
    if !(server_name || client_name) {
        return None;
    }
    let path = if path.starts_with('/') {
        ours(path)?
    } else {
        ours(&format!("/{path}"))?
    };
    let scheme = match server_name {
        true if request.is_secure() => "https",
        true => "http",
        false => scheme,
    };
    Some(format!("{scheme}://{host}{path}"))
}

/// A cookie whose path is one of the client.
fn cookie_for_client(value: &[u8], prefix: &str, base: &str) -> Vec<u8> {
    let mut moved = Vec::with_capacity(value.len() + prefix.len());
    for (index, part) in value.split(|&byte| byte == b';').enumerate() {
        if index > 0 {
            moved.push(b';');
        }
        let trimmed = part.trim_ascii();
        let path = trimmed
            .get(..5)
            .filter(|start| index > 0 && start.eq_ignore_ascii_case(b"path="))
            .map(|_| &trimmed[5..]);
        match path {
            Some(path) if path.starts_with(b"/") => {
                let rest = path.strip_prefix(base.as_bytes()).unwrap_or(path);
                moved.extend_from_slice(b" Path=");
                moved.extend_from_slice(prefix.as_bytes());
                // A cookie for `/` is one for the prefix itself too.
                if rest != b"/" {
                    moved.extend_from_slice(rest);
                }
            }
            _ => moved.extend_from_slice(part),
        }
    }
    moved
}

/// Whether a method may be done twice (RFC 9110 section 9.2.2).
pub(crate) fn is_idempotent(method: &Method) -> bool {
    matches!(
        method.as_str(),
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" | "PROPFIND" | "REPORT" | "SEARCH"
    )
}

impl Edits {
    /// Changes the fields of an answer.
    fn apply(&self, headers: &mut Headers) {
        for name in self.names() {
            headers.remove(name);
        }
        for (name, value) in self.added() {
            // Checked when it was set.
            let _ = headers.append(name, value);
        }
    }
}

#[cfg(test)]
mod tests;
