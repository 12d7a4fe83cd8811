//! Are the files of the size they should have, are wrong answers noticed, and does every case have its servers?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use std::io::Write;

use crate::cases::Case;
use crate::content;
use crate::harness::ask;
use crate::harness::options::{Named, choose};
use crate::scripts;
use crate::servers::{self, Server};

pub(crate) fn run() {
    contents();
    codings();
    choices();
}

fn contents() {
    let whole = content::pattern(0, 4096);
    for (offset, length) in [(0, 4096), (1, 15), (8, 8), (13, 1), (4000, 96), (7, 0)] {
        assert_eq!(
            content::pattern(offset as u64, length),
            &whole[offset..offset + length],
            "{length} bytes from {offset} on"
        );
    }
    assert!(whole.chunks(8).skip(1).all(|word| word != &whole[..8]));
    let page = content::page("/a.html", 600);
    assert_eq!(page.len(), 600);
    assert_ne!(page, content::page("/b.html", 600));
    let json = content::json();
    assert!((100_000..101_000).contains(&json.len()), "{}", json.len());
    assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    assert_eq!(json, content::json());
}

fn codings() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    let zipped = encoder
        .write_all(b"hi")
        .and_then(|()| encoder.finish())
        .expect("memory takes everything");
    let answer = |coding: &str, body: &[u8]| {
        let mut raw = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        raw.extend_from_slice(body);
        ask::parse(&raw).expect("HTTP").expect("a whole answer")
    };
    assert_eq!(
        servers::unzipped(&answer("gzip", &zipped), "/").as_deref(),
        Ok(&b"hi"[..])
    );
    assert!(servers::unzipped(&answer("identity", b"hi"), "/").is_err());
    assert!(servers::unzipped(&answer("gzip", &zipped[..zipped.len() - 1]), "/").is_err());
}

fn choices() {
    let (cases, servers) =
        choose::<Case, Server>(&["html600", "gzip", "nginx"]).expect("two cases and a server");
    assert_eq!((cases.len(), servers.len()), (2, 1));
    for &case in Case::ALL {
        assert!(Server::Cloudgate.takes_part_in(case) && Server::Nginx.takes_part_in(case));
        assert!(
            scripts::script(case).contains("done = function"),
            "{} is not counted",
            case.name()
        );
    }
}
