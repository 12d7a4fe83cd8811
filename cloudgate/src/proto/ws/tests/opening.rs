//! Are handshakes what RFC 6455 section 4 and RFC 7692 section 7.1 say?

use http::{Method, StatusCode};

use crate::message::{Headers, Request};
use crate::proto::ws::Role;
use crate::proto::ws::deflate::Coding;
use crate::proto::ws::extension::{Agreed, ExtensionError, FIELD, Wanted, agree, negotiate, offer};
use crate::proto::ws::handshake::{
    AnswerError, ClientHandshake, HandshakeError, Opened, Origins, Upgrade, check,
};

const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
const GOOD: &[(&str, &str)] = &[
    ("Host", "server.example.com"),
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    KEY,
    ("Sec-WebSocket-Version", "13"),
];

/// The good request with other values for these fields; an empty one leaves the field out.
fn request(changes: &[(&str, &str)]) -> Request<'static> {
    let mut request = Request::get("/chat");
    for (name, value) in GOOD {
        request = request.with_header(name, value);
    }
    for (name, _) in changes {
        request.headers_mut().remove(name);
    }
    for (name, value) in changes.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.with_header(name, value);
    }
    request
}

fn checked(changes: &[(&str, &str)]) -> Result<Upgrade, HandshakeError> {
    check(&request(changes), &Origins::Same, None)
}

#[test]
fn the_example_of_the_rfc() {
    // Section 1.3.
    let request = request(&[
        ("Origin", "http://server.example.com"),
        ("Sec-WebSocket-Protocol", "chat, superchat"),
    ]);
    let upgrade = check(&request, &Origins::Same, None).unwrap();
    assert_eq!(upgrade.protocols(), ["chat", "superchat"]);
    let want = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("Sec-WebSocket-Protocol", "chat"),
    ];
    let want = want.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(upgrade.answer(upgrade.choose(&["video", "chat"])), want);
    assert_eq!(upgrade.answer(None), want[..3]);
    assert_eq!(upgrade.answer(Some("video")), want[..3]);
    assert_eq!(upgrade.choose(&["Chat"]), None);
}

#[test]
fn each_rule_of_a_request_is_checked() {
    use HandshakeError as E;
    type Row<'r> = (&'r [(&'r str, &'r str)], Option<HandshakeError>);
    let rows: &[Row<'_>] = &[
        (&[], None),
        (&[("Connection", "keep-alive, Upgrade")], None),
        (&[("Upgrade", "WebSocket")], None),
        (&[("Upgrade", "h2c, websocket")], None),
        (&[("Connection", "")], Some(E::NoUpgrade)),
        (&[("Connection", "keep-alive")], Some(E::NoUpgrade)),
        (&[("Upgrade", "")], Some(E::NoUpgrade)),
        (&[("Upgrade", "websockets")], Some(E::NoUpgrade)),
        (
            &[("Sec-WebSocket-Version", "")],
            Some(E::UnsupportedVersion),
        ),
        (
            &[("Sec-WebSocket-Version", "8")],
            Some(E::UnsupportedVersion),
        ),
        (
            &[("Sec-WebSocket-Version", "013")],
            Some(E::UnsupportedVersion),
        ),
        (
            &[
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Version", "8"),
            ],
            Some(E::UnsupportedVersion),
        ),
        (&[("Sec-WebSocket-Key", "")], Some(E::InvalidKey)),
        (&[KEY, KEY], Some(E::InvalidKey)),
        (
            &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ")],
            Some(E::InvalidKey),
        ),
        (
            &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j")],
            Some(E::InvalidKey),
        ),
        (
            &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZTE=")],
            Some(E::InvalidKey),
        ),
        (
            &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=!")],
            Some(E::InvalidKey),
        ),
        // The last bits say nothing.
        (&[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZR==")], None),
        (&[("Content-Length", "0")], None),
        (&[("Content-Length", "5")], Some(E::Body)),
        (&[("Transfer-Encoding", "chunked")], Some(E::Body)),
        (&[("Origin", "http://server.example.com")], None),
        (
            &[("Origin", "https://evil.example.com")],
            Some(E::ForeignOrigin),
        ),
        (&[("Origin", "null")], Some(E::ForeignOrigin)),
        (
            &[
                ("Origin", "http://server.example.com"),
                ("Origin", "http://server.example.com"),
            ],
            Some(E::ForeignOrigin),
        ),
        (
            &[("Sec-WebSocket-Protocol", "a b")],
            Some(E::InvalidProtocol),
        ),
        (
            &[("Sec-WebSocket-Protocol", "a,,b")],
            Some(E::InvalidProtocol),
        ),
        (
            &[
                ("Sec-WebSocket-Protocol", "a,b"),
                ("Sec-WebSocket-Protocol", "c,a"),
            ],
            None,
        ),
        (
            &[("Sec-WebSocket-Extensions", "x;;")],
            Some(E::InvalidExtensions),
        ),
        (&[("Sec-WebSocket-Extensions", "x-unknown; a=1")], None),
    ];
    for (changes, want) in rows {
        assert_eq!(checked(changes).err(), *want, "{changes:?}");
    }
    let mut post = request(&[]);
    post.head_mut().method = Method::POST;
    assert_eq!(check(&post, &Origins::Same, None), Err(E::NotGet));
    let mut old = request(&[]);
    old.head_mut().version = crate::message::Version::Http10;
    assert_eq!(check(&old, &Origins::Same, None), Err(E::OldHttp));
    let repeated = [
        ("Sec-WebSocket-Protocol", "a,b"),
        ("Sec-WebSocket-Protocol", "c,a"),
    ];
    assert_eq!(checked(&repeated).unwrap().protocols(), ["a", "b", "c"]);
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
        checked(&[("Sec-WebSocket-Protocol", &names.join(","))]).err()
    };
    assert_eq!((many(100), many(101)), (None, Some(E::InvalidProtocol)));
}

#[test]
fn refusals_say_what_is_wanted() {
    use HandshakeError as E;
    for (error, status) in [
        (E::NotGet, 405),
        (E::OldHttp, 400),
        (E::Body, 400),
        (E::NoUpgrade, 426),
        (E::UnsupportedVersion, 426),
        (E::InvalidKey, 400),
        (E::ForeignOrigin, 403),
        (E::InvalidProtocol, 400),
        (E::InvalidExtensions, 400),
    ] {
        assert_eq!(error.status().as_u16(), status, "{error}");
        let version = error.fields().contains(&("Sec-WebSocket-Version", "13"));
        assert_eq!(version, status == 426, "{error}");
    }
}

#[test]
fn pages_of_other_hosts_are_kept_out() {
    for (origin, host, same) in [
        ("http://a.example", "a.example", true),
        ("https://a.example", "a.example", true),
        ("https://A.example", "a.EXAMPLE", true),
        ("https://a.example", "a.example:443", true),
        ("http://a.example", "a.example:80", true),
        ("http://a.example:80", "a.example", true),
        ("http://a.example:8080", "a.example:8080", true),
        ("http://[::1]:3000", "[::1]:3000", true),
        ("http://a.example", "a.example:443", false),
        ("http://a.example:8080", "a.example", false),
        ("http://a.example", "b.example", false),
        ("http://a.example.evil", "a.example", false),
        ("http://evil-a.example", "a.example", false),
        ("null", "null", false),
        ("", "", false),
        ("http://", "", false),
        ("a.example", "a.example", false),
        ("http://a.example/", "a.example/", false),
        ("http://user@a.example", "user@a.example", false),
    ] {
        assert_eq!(
            Origins::Same.allow(origin, Some(host)),
            same,
            "{origin} {host}"
        );
        assert!(Origins::Any.allow(origin, Some(host)));
    }
    assert!(!Origins::Same.allow("http://a.example", None));
    assert!(!Origins::Same.allow("null", None));
    let also = Origins::Also(vec!["https://app.example.com/".to_owned()]);
    assert!(also.allow("https://app.example.com", Some("api.example.com")));
    assert!(also.allow("https://api.example.com", Some("api.example.com")));
    assert!(!also.allow("http://app.example.com", Some("api.example.com")));
    assert!(!also.allow("https://app.example.com.evil", Some("api.example.com")));
}

fn headers(fields: &[(&str, String)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in fields {
        headers.append(name, value).unwrap();
    }
    headers
}

#[test]
fn client_and_server_agree() {
    let client = ClientHandshake::new([7; 16], &["a", "b"], Some(Wanted::default()));
    let mut request = Request::get("/").with_header("Host", "h");
    for (name, value) in client.fields() {
        request = request.with_header(name, &value);
    }
    for (wanted, protocol) in [(Some(Wanted::default()), Some("b")), (None, None)] {
        let upgrade = check(&request, &Origins::Same, wanted.as_ref()).unwrap();
        let answer = headers(&upgrade.answer(protocol));
        let opened = client
            .check(StatusCode::SWITCHING_PROTOCOLS, &answer)
            .unwrap();
        assert_eq!(opened.protocol.as_deref(), protocol);
        let codings = |agreed: Option<Agreed>| {
            agreed.map(|agreed| (agreed.sends(Role::Server), agreed.receives(Role::Server)))
        };
        assert_eq!(codings(opened.deflate), codings(upgrade.deflate()));
        assert_eq!(opened.deflate.is_some(), wanted.is_some());
    }
}

#[test]
fn an_answer_has_to_fit_the_request() {
    let client = ClientHandshake::new([7; 16], &["a"], None);
    let mut request = Request::get("/").with_header("Host", "h");
    for (name, value) in client.fields() {
        request = request.with_header(name, &value);
    }
    let good = check(&request, &Origins::Same, None).unwrap().answer(None);
    let answer = |name: &str, value: &str| {
        let mut headers = headers(&good);
        headers.remove(name);
        if !value.is_empty() {
            headers.append(name, value).unwrap();
        }
        client.check(StatusCode::SWITCHING_PROTOCOLS, &headers)
    };
    let plain = Opened {
        protocol: None,
        deflate: None,
    };
    assert_eq!(answer("Upgrade", "WebSocket"), Ok(plain));
    assert_eq!(
        client.check(StatusCode::OK, &headers(&good)),
        Err(AnswerError::Status(200))
    );
    for (name, value, want) in [
        ("Upgrade", "", AnswerError::NoUpgrade),
        ("Upgrade", "h2c", AnswerError::NoUpgrade),
        ("Connection", "", AnswerError::NoUpgrade),
        ("Sec-WebSocket-Accept", "", AnswerError::WrongAccept),
        (
            "Sec-WebSocket-Accept",
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            AnswerError::WrongAccept,
        ),
        ("Sec-WebSocket-Protocol", "b", AnswerError::WrongProtocol),
        (
            FIELD,
            "permessage-deflate",
            AnswerError::Extensions(ExtensionError::NotOffered),
        ),
    ] {
        assert_eq!(answer(name, value), Err(want), "{name}: {value}");
    }
}

fn remembers(window_bits: u8) -> Coding {
    Coding {
        takeover: true,
        window_bits,
    }
}

#[test]
fn offers_are_taken_in_order_and_the_answer_says_what_was_agreed() {
    let eager = Wanted {
        server: remembers(15),
        client: remembers(15),
    };
    let small = Wanted {
        server: remembers(11),
        client: remembers(10),
    };
    let modest = Wanted::default();
    for (wanted, offer, want) in [
        (&eager, "permessage-deflate", Some("permessage-deflate")),
        (&eager, "Permessage-Deflate", Some("permessage-deflate")),
        (
            &eager,
            "x-other, permessage-deflate",
            Some("permessage-deflate"),
        ),
        (&eager, "x-other", None),
        (&eager, "", None),
        (
            &eager,
            "permessage-deflate; client_max_window_bits",
            Some("permessage-deflate"),
        ),
        (
            &eager,
            "permessage-deflate; client_max_window_bits=10",
            Some("permessage-deflate; client_max_window_bits=10"),
        ),
        (
            &eager,
            "permessage-deflate; client_max_window_bits=8",
            Some("permessage-deflate; client_max_window_bits=8"),
        ),
        (
            &eager,
            "permessage-deflate; server_max_window_bits=\"9\"",
            Some("permessage-deflate; server_max_window_bits=9"),
        ),
        (
            &eager,
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=12",
            Some(
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=12",
            ),
        ),
        (
            &modest,
            "permessage-deflate",
            Some("permessage-deflate; server_no_context_takeover; client_no_context_takeover"),
        ),
        (
            &small,
            "permessage-deflate",
            Some("permessage-deflate; server_max_window_bits=11"),
        ),
        (
            &small,
            "permessage-deflate; client_max_window_bits",
            Some("permessage-deflate; server_max_window_bits=11; client_max_window_bits=10"),
        ),
        (
            &small,
            "permessage-deflate; server_max_window_bits=15; client_max_window_bits=15",
            Some("permessage-deflate; server_max_window_bits=11; client_max_window_bits=10"),
        ),
        // What cannot be agreed to is passed over, and the next offer counts.
        (&eager, "permessage-deflate; server_max_window_bits=8", None),
        (
            &eager,
            "permessage-deflate; server_max_window_bits=8, permessage-deflate",
            Some("permessage-deflate"),
        ),
        (
            &eager,
            "permessage-deflate; server_max_window_bits=10, permessage-deflate",
            Some("permessage-deflate; server_max_window_bits=10"),
        ),
    ] {
        let fields = headers(&[(FIELD, offer.to_owned())]);
        let agreed = negotiate(&fields, wanted).unwrap();
        assert_eq!(
            agreed.map(|agreed| agreed.answer()).as_deref(),
            want,
            "{offer}"
        );
    }
    // Over several lines.
    let lines = headers(&[
        (FIELD, "x-a; b".to_owned()),
        (FIELD, "permessage-deflate".to_owned()),
    ]);
    assert!(negotiate(&lines, &eager).unwrap().is_some());
}

#[test]
fn an_offer_that_breaks_the_rules_is_passed_over() {
    for parameters in [
        "unknown",
        "server_no_context_takeover=1",
        "client_no_context_takeover=true",
        "server_no_context_takeover; server_no_context_takeover",
        "client_no_context_takeover; client_no_context_takeover",
        "server_max_window_bits",
        "server_max_window_bits=7",
        "server_max_window_bits=16",
        "server_max_window_bits=08",
        "server_max_window_bits=+9",
        "server_max_window_bits=1000000000000000000000",
        "server_max_window_bits=9; server_max_window_bits=9",
        "client_max_window_bits=7",
        "client_max_window_bits=16",
        "client_max_window_bits=010",
        "client_max_window_bits; client_max_window_bits=10",
    ] {
        let fallback = format!("permessage-deflate; {parameters}, permessage-deflate");
        for (offer, want) in [
            (&fallback[..fallback.len() - 20], false),
            (&fallback[..], true),
        ] {
            let fields = headers(&[(FIELD, offer.to_owned())]);
            let agreed = negotiate(&fields, &Wanted::default()).unwrap();
            assert_eq!(agreed.is_some(), want, "{offer}");
        }
    }
    for malformed in [
        "permessage-deflate;",
        "permessage-deflate; =1",
        "permessage-deflate; a=",
        "permessage-deflate; a=\"b",
        "permessage-deflate; a=\"b c\"",
        "permessage-deflate; a=\"\"",
        "permessage-deflate a",
        "permessage-deflate, /",
        "permessage-deflate; a=b c",
        "\u{e9}",
    ] {
        let fields = headers(&[(FIELD, malformed.to_owned())]);
        let agreed = negotiate(&fields, &Wanted::default());
        assert_eq!(agreed, Err(ExtensionError::Malformed), "{malformed}");
    }
    for fine in [
        ", permessage-deflate ,",
        "x; a=\"b\\c\", permessage-deflate",
        "x;a = b ;c,permessage-deflate",
    ] {
        let fields = headers(&[(FIELD, fine.to_owned())]);
        assert!(
            negotiate(&fields, &Wanted::default()).unwrap().is_some(),
            "{fine}"
        );
    }
}

#[test]
fn a_client_takes_what_it_offered_and_nothing_else() {
    let eager = Wanted {
        server: remembers(15),
        client: remembers(15),
    };
    let small = Wanted {
        server: remembers(11),
        client: remembers(10),
    };
    let modest = Wanted::default();
    assert_eq!(offer(&eager), "permessage-deflate; client_max_window_bits");
    assert_eq!(
        offer(&small),
        "permessage-deflate; server_max_window_bits=11; client_max_window_bits=10"
    );
    assert_eq!(
        offer(&modest),
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits"
    );
    let agree = |wanted: Option<&Wanted>, answer: &str| {
        agree(&headers(&[(FIELD, answer.to_owned())]), wanted)
    };
    for (wanted, answer, server, client) in [
        (&eager, "permessage-deflate", remembers(15), remembers(15)),
        (
            &eager,
            "permessage-deflate; server_max_window_bits=8",
            remembers(8),
            remembers(15),
        ),
        (
            &eager,
            "permessage-deflate; client_max_window_bits=9",
            remembers(15),
            remembers(9),
        ),
        (
            &small,
            "permessage-deflate; server_max_window_bits=10",
            remembers(10),
            remembers(10),
        ),
    ] {
        let agreed = agree(Some(wanted), answer).unwrap().unwrap();
        assert_eq!(agreed.receives(Role::Client), server, "{answer}");
        assert_eq!(agreed.sends(Role::Client), client, "{answer}");
    }
    let agreed = agree(
        Some(&eager),
        "permessage-deflate; client_no_context_takeover",
    );
    assert!(!agreed.unwrap().unwrap().sends(Role::Client).takeover);
    for (wanted, answer, error) in [
        (Some(&eager), "x-other", ExtensionError::NotOffered),
        (
            Some(&eager),
            "permessage-deflate, permessage-deflate",
            ExtensionError::NotOffered,
        ),
        (None, "permessage-deflate", ExtensionError::NotOffered),
        (
            Some(&eager),
            "permessage-deflate;",
            ExtensionError::Malformed,
        ),
        (
            Some(&eager),
            "permessage-deflate; unknown",
            ExtensionError::InvalidAnswer,
        ),
        (
            Some(&eager),
            "permessage-deflate; client_max_window_bits",
            ExtensionError::InvalidAnswer,
        ),
        (
            Some(&eager),
            "permessage-deflate; client_max_window_bits=8",
            ExtensionError::InvalidAnswer,
        ),
        (
            Some(&small),
            "permessage-deflate",
            ExtensionError::InvalidAnswer,
        ),
        (
            Some(&small),
            "permessage-deflate; server_max_window_bits=12",
            ExtensionError::InvalidAnswer,
        ),
        (
            Some(&modest),
            "permessage-deflate",
            ExtensionError::InvalidAnswer,
        ),
    ] {
        assert_eq!(agree(wanted, answer), Err(error), "{answer}");
    }
    assert_eq!(
        super::super::extension::agree(&Headers::new(), Some(&eager)),
        Ok(None)
    );
}
