//! Does a server answer what opens a WebSocket as the client that asked can take it?
//!
//! The first three bytes of an input say what either side wants; lines of `Name: value` behind them are added to the
//! request, and to an answer.

use cloudgate::__fuzz::ws::Role;
use cloudgate::__fuzz::ws::deflate::Coding;
use cloudgate::__fuzz::ws::extension::{self, Agreed, Wanted};
use cloudgate::__fuzz::ws::handshake::{self, ClientHandshake, Opened, Origins, Upgrade};
use cloudgate::{Headers, Request, Status};

const PROTOCOLS: [&str; 2] = ["chat", "v2.chat"];

/// What a client offers that can do all there is.
const ALL: Wanted = Wanted {
    server: Coding {
        takeover: true,
        window_bits: 15,
    },
    client: Coding {
        takeover: true,
        window_bits: 15,
    },
};

/// A refusal has a status of its own kind; an answer is what the client can take, and both agree on the same; an
/// answer with more fields than that is taken only within what was offered.
pub fn handshake(input: &[u8]) {
    let Some((&[flags, server, client], rest)) = input.split_first_chunk() else {
        return;
    };
    let lines: Vec<(&str, &[u8])> = rest.split(|&byte| byte == b'\n').filter_map(line).collect();
    let ours = (flags & 1 != 0).then(|| wanted(server));
    let theirs = (flags & 2 != 0).then(|| wanted(client));
    let origins = match flags >> 2 & 3 {
        0 | 1 => Origins::Same,
        2 => Origins::Also(vec!["https://app.example.com/".to_owned()]),
        _ => Origins::Any,
    };
    let asks = ClientHandshake::new([flags; 16], &PROTOCOLS, theirs);
    // As the client writes it: every such request is taken.
    let plain = request(&asks.fields(), &[]);
    let upgrade = handshake::check(&plain, &origins, ours.as_ref()).expect("a client's request");
    for protocol in [None, Some("chat"), Some("chat2")] {
        let opened = take(&asks, &upgrade, protocol).expect("an answer to this client");
        assert_eq!(
            opened.protocol.as_deref(),
            protocol.filter(|name| PROTOCOLS.contains(name))
        );
        same(upgrade.deflate(), opened.deflate);
    }
    strange_request(&asks, flags, &lines, &origins, ours.as_ref());
    strange_answer(&asks, &upgrade, &lines, theirs.as_ref());
    let mut headers = Headers::new();
    add(&mut headers, &lines);
    if let Ok(Some(agreed)) = extension::negotiate(&headers, &ours.unwrap_or_default()) {
        within(&agreed, &ours.unwrap_or_default());
        is_an_answer(&agreed);
    }
}

fn line(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    Some((name, &line[colon + 1..]))
}

/// Windows of 9 to 15 bits.
fn wanted(byte: u8) -> Wanted {
    Wanted {
        server: Coding {
            takeover: byte & 1 != 0,
            window_bits: 9 + (byte >> 1 & 7).min(6),
        },
        client: Coding {
            takeover: byte & 16 != 0,
            window_bits: 9 + (byte >> 5).min(6),
        },
    }
}

/// Adds what a parsed head could hold; the rest is refused with the head.
fn add(headers: &mut Headers, lines: &[(&str, &[u8])]) {
    for (name, value) in lines {
        let _ = headers.append(name, value);
    }
}

fn request(fields: &[(&str, String)], lines: &[(&str, &[u8])]) -> Request<'static> {
    let mut request = Request::get("/socket").with_header("Host", "www.example.com:8080");
    for (name, value) in fields {
        request = request.with_header(name, value);
    }
    for (name, value) in lines {
        let Ok(value) = std::str::from_utf8(value) else {
            continue;
        };
        if Headers::new().append(name, value).is_ok() {
            request = request.with_header(name, value);
        }
    }
    request
}

fn take(
    asks: &ClientHandshake,
    upgrade: &Upgrade,
    protocol: Option<&str>,
) -> Result<Opened, handshake::AnswerError> {
    let mut headers = Headers::new();
    for (name, value) in upgrade.answer(protocol) {
        headers.append(name, value).expect("a field of an answer");
    }
    asks.check(Status::SWITCHING_PROTOCOLS, &headers)
}

fn same(ours: Option<Agreed>, theirs: Option<Agreed>) {
    assert_eq!(ours.is_some(), theirs.is_some());
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        assert_eq!(ours.sends(Role::Server), theirs.receives(Role::Client));
        let (gets, sent) = (ours.receives(Role::Server), theirs.sends(Role::Client));
        // A client may do with less than it may use.
        assert!(gets.takeover || !sent.takeover);
        assert!(gets.window_bits >= sent.window_bits);
    }
}

/// Whether what was agreed on is at most what was wanted, and no window that DEFLATE does not have.
fn within(agreed: &Agreed, wanted: &Wanted) {
    let sends = agreed.sends(Role::Server);
    assert!(wanted.server.takeover || !sends.takeover);
    assert!((8..=wanted.server.window_bits).contains(&sends.window_bits));
    let gets = agreed.receives(Role::Server);
    assert!(wanted.client.takeover || !gets.takeover);
    assert!((8..=15).contains(&gets.window_bits));
}

/// A client that can do all reads out of the answer what was agreed on.
fn is_an_answer(agreed: &Agreed) {
    // zlib cannot send with less.
    assert!(agreed.sends(Role::Server).window_bits >= 9);
    let mut headers = Headers::new();
    let answer = agreed.answer();
    headers.append(extension::FIELD, &answer).expect("a field");
    let read = extension::agree(&headers, Some(&ALL));
    if agreed.receives(Role::Server).window_bits < 9 {
        // This client has no such window, and did not offer it.
        assert_eq!(read, Err(extension::ExtensionError::InvalidAnswer));
        return;
    }
    let read = read.expect(&answer).expect(&answer);
    assert_eq!(read.receives(Role::Client), agreed.sends(Role::Server));
    assert_eq!(read.sends(Role::Client), agreed.receives(Role::Server));
}

/// A request with fields of any kind, with those of a client or without.
fn strange_request(
    asks: &ClientHandshake,
    flags: u8,
    lines: &[(&str, &[u8])],
    origins: &Origins,
    ours: Option<&Wanted>,
) {
    let fields: Vec<_> = asks
        .fields()
        .into_iter()
        // Some of them, so that the lines may take their place.
        .enumerate()
        .filter(|(index, _)| index & 3 != usize::from(flags >> 4 & 7))
        .map(|(_, field)| field)
        .collect();
    match handshake::check(&request(&fields, lines), origins, ours) {
        Err(error) => {
            assert!(matches!(error.status().as_u16(), 400 | 403 | 405 | 426));
            for (name, value) in error.fields() {
                Headers::new().append(name, value).expect("a field");
            }
        }
        Ok(upgrade) => {
            let protocols = upgrade.protocols();
            assert!(protocols.len() <= 100);
            for (index, name) in protocols.iter().enumerate() {
                assert!(!protocols[..index].contains(name), "{name} is there twice");
                assert_eq!(upgrade.choose(&[name]), Some(name.as_str()));
            }
            let mut answer = Headers::new();
            for (name, value) in upgrade.answer(protocols.last().map(String::as_str)) {
                answer.append(name, value).expect("a field of an answer");
            }
            assert_eq!(answer.get("Sec-WebSocket-Accept").map_or(0, str::len), 28);
            assert!(ours.is_some() || upgrade.deflate().is_none());
            if let (Some(agreed), Some(ours)) = (upgrade.deflate(), ours) {
                within(&agreed, ours);
                is_an_answer(&agreed);
            }
        }
    }
}

/// An answer with fields of any kind.
fn strange_answer(
    asks: &ClientHandshake,
    upgrade: &Upgrade,
    lines: &[(&str, &[u8])],
    theirs: Option<&Wanted>,
) {
    let mut headers = Headers::new();
    for (name, value) in upgrade.answer(None) {
        // The lines may hold these.
        if name != extension::FIELD {
            headers.append(name, value).expect("a field of an answer");
        }
    }
    add(&mut headers, lines);
    assert!(asks.check(Status::OK, &headers).is_err());
    let Ok(opened) = asks.check(Status::SWITCHING_PROTOCOLS, &headers) else {
        return;
    };
    let known = |name: &String| PROTOCOLS.contains(&name.as_str());
    assert!(opened.protocol.as_ref().is_none_or(known));
    assert!(theirs.is_some() || opened.deflate.is_none());
    if let (Some(agreed), Some(theirs)) = (opened.deflate, theirs) {
        within(&agreed, theirs);
        let sends = agreed.sends(Role::Client);
        assert!(theirs.client.takeover || !sends.takeover);
        assert!((9..=theirs.client.window_bits).contains(&sends.window_bits));
    }
}
