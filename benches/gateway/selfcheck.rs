//! Does every case have an answer, and does the bare gateway pass on what it should?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use crate::cases::{Case, SIMPLE_BODY};
use crate::harness::ask;
use crate::harness::options::{Named, choose};
use crate::servers::{Bench, Server};
use crate::site::Site;

pub(crate) fn run() {
    for &case in Case::ALL {
        let answer = ask::parse(&case.answer())
            .expect("an answer")
            .expect("a whole one");
        assert_eq!(answer.body, case.body(), "{}", case.name());
    }
    assert_eq!(Case::Bundle.body().len(), 452_460);
    assert_eq!(SIMPLE_BODY.len(), 23);
    let (cases, servers) =
        choose::<Case, Server>(&["hello", "limit"]).expect("a case and a server");
    assert_eq!((cases.len(), servers.len()), (1, 1));
    // What needs no program of somebody else.
    let bench = Bench {
        seconds: 1,
        connections: 2,
        site: Site::lay_out().expect("a folder"),
    };
    for server in [Server::Direct, Server::Cloudgate, Server::Limit] {
        for &case in Case::ALL {
            if server.takes_part_in(case) {
                let started = bench.start(case, server).map(drop);
                assert_eq!(started, Ok(()), "{} {}", case.name(), server.name());
            }
        }
    }
}
