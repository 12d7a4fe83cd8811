//! Are the names understood by which cases and servers are chosen?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use crate::cases::Case;
use crate::harness::options::choose;
use crate::servers::Server;

pub(crate) fn run() {
    let (cases, servers) =
        choose::<Case, Server>(&["simple", "nginx"]).expect("a case and a server");
    assert_eq!((cases.len(), servers.len()), (1, 1));
    let (cases, servers) = choose::<Case, Server>(&["simple"]).expect("a case");
    assert_eq!((cases.len(), servers.len()), (1, 4));
    assert!(choose::<Case, Server>(&["simpel"]).is_err());
}
