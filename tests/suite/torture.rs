//! Does an answer ever lie while everything changes under the server?
//!
//! One thread changes files in every way that there is and notes in a ledger which content each had when.
//! Others ask for them in every way and look each complete answer up there. `TORTURE_SECONDS` says how long;
//! 3 unless told otherwise.

mod client;
mod ledger;
pub(crate) mod random;
mod reader;
mod writer;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cloudgate::Files;
use cloudgate_suite::{get, start};
use ledger::Ledger;
use reader::{Counts, Reader, Tags};
use writer::{FILES, Writer};

/// How many clients ask at the same time.
const READERS: u64 = 6;

#[test]
#[allow(
    clippy::print_stderr,
    reason = "whoever lets it run for longer wants to know"
)]
fn no_complete_answer_is_wrong_while_files_change() {
    let seconds = std::env::var("TORTURE_SECONDS").ok();
    let seconds = seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(3);
    let outer = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::default();
    let mut writer = Writer::new(outer.path(), &ledger);
    // Too little for everything, so that some of it is read often.
    let server = start(Files::new(outer.path().join("site")).memory(10 << 20));
    let address = server.addr();
    let (over, tags) = (AtomicBool::new(false), Tags::default());
    let total = Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for number in 0..READERS {
            let (over, tags, ledger, total) = (&over, &tags, &ledger, &total);
            scope.spawn(move || {
                let mut reader = Reader::new(address, ledger, tags, number);
                while !over.load(Ordering::Relaxed) {
                    reader.ask();
                }
                total.lock().expect("no panic").add(&reader.counts);
            });
        }
        writer.run(Instant::now() + Duration::from_secs(seconds));
        let end = Instant::now();
        // Readers go on, and what is kept ages.
        std::thread::sleep(Duration::from_secs(2));
        over.store(true, Ordering::Relaxed);
        for (name, _) in FILES {
            let answer = get(address, &format!("/{name}"));
            match ledger.last(name) {
                Some(bytes) => assert!(answer.body == *bytes, "{name} after {:?}", end.elapsed()),
                None => assert_eq!(answer.status, 404, "{name}"),
            }
        }
    });
    let total = total.into_inner().expect("no panic");
    eprintln!("{} edits; {total:?}", writer.edits);
    let first: Vec<_> = total.wrong.iter().take(20).collect();
    assert!(first.is_empty(), "{first:#?} of {}", total.wrong.len());
    assert!(total.whole > 0 && total.parts > 0 && total.unchanged > 0 && total.coded > 0);
}
