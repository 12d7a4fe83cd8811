//! Does a client learn that a file changed while it was sent?

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::script::{Answer, Case};
use crate::message::{FileRange, FileVersion, Request, Response};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// How much the pipe holds, and how much is held back, in bytes.
const PIPE: usize = 64 << 10;

const OFFSET: usize = 7;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn file(length: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&pattern(length)).unwrap();
    // The clock of the system may stand for some milliseconds, and with it the times of change.
    let past = UNIX_EPOCH + Duration::from_secs(784_111_777);
    file.set_modified(past).unwrap();
    Arc::new(file)
}

/// What happens to a file.
type Change = fn(&File) -> io::Result<()>;

/// Sends all but the first and last bytes of a file of `length` bytes; `change` happens to it when the
/// client has `before` bytes and the pipe is full. Gives the answer's body and how the connection ended.
#[track_caller]
fn sent(length: usize, versioned: bool, before: usize, change: Change) -> (Vec<u8>, String) {
    sent_after(Duration::ZERO, length, versioned, before, change)
}

/// As [`sent`], by a server that takes files for restless for so long.
#[track_caller]
fn sent_after(
    restless: Duration,
    length: usize,
    versioned: bool,
    before: usize,
    change: Change,
) -> (Vec<u8>, String) {
    let file = file(length);
    let range = FileRange::new(
        Arc::clone(&file),
        OFFSET as u64,
        (length - 2 * OFFSET) as u64,
    );
    let range = if versioned {
        range.of_version(FileVersion::of(&file.metadata().unwrap()))
    } else {
        range
    };
    let service = move |_: &mut Request<'_>| Response::file(range.clone());
    let case = Case::new(service)
        .restless(restless)
        .capacity(PIPE)
        .stop_reading()
        .send(GET);
    let case = (0..before / PIPE)
        .fold(case, |case, _| case.take(PIPE))
        .happen(move || change(&file).unwrap());
    let outcome = (0..length / PIPE + 2)
        .fold(case, |case, _| case.take(PIPE))
        .run();
    let body = Answer::take(&mut &outcome.received[..]).body;
    (body, outcome.end)
}

const LENGTH: usize = 400_000;

fn whole() -> Vec<u8> {
    pattern(LENGTH)[OFFSET..LENGTH - OFFSET].to_vec()
}

#[test]
fn a_file_that_stays_as_it_is_arrives_whole() {
    for versioned in [true, false] {
        let (body, end) = sent(LENGTH, versioned, PIPE, |_| Ok(()));
        assert!(body == whole() && end == "open", "{versioned} {end}");
    }
}

#[test]
fn a_file_that_changes_does_not_arrive_whole() {
    let changes: [(&str, Change); 3] = [
        ("same length", |file| file.write_all_at(b"changed", 350_000)),
        ("longer", |file| file.set_len(LENGTH as u64 + 1)),
        ("shorter by a byte", |file| file.set_len(LENGTH as u64 - 1)),
    ];
    for (name, change) in changes {
        // Until all but what is held back was handed over, and once the pipe held it.
        for before in [0, PIPE, 4 * PIPE] {
            let (body, end) = sent(LENGTH, true, before, change);
            assert_eq!(end, "BodyFailed", "{name} at {before}");
            assert_eq!(body.len(), whole().len() - PIPE, "{name} at {before}");
        }
        // Without a version nobody has said which content it is.
        let (body, end) = sent(LENGTH, false, PIPE, change);
        assert_eq!((body.len(), &*end), (whole().len(), "open"), "{name}");
    }
}

#[test]
fn of_a_file_that_has_just_changed_no_byte_is_of_another_version() {
    let restless = Duration::from_secs(10);
    let (body, end) = sent_after(restless, LENGTH, true, PIPE, |_| Ok(()));
    assert!(body == whole() && end == "open", "{end}");
    for before in [0, PIPE, 4 * PIPE] {
        let change: Change = |file| file.write_all_at(&vec![255; LENGTH], 0);
        let (body, end) = sent_after(restless, LENGTH, true, before, change);
        assert_eq!(end, "BodyFailed", "at {before}");
        assert!(
            body.len() < LENGTH && body == whole()[..body.len()],
            "at {before}"
        );
    }
}

#[test]
fn a_file_that_ends_too_soon_ends_the_connection() {
    for versioned in [true, false] {
        let (body, end) = sent(LENGTH, versioned, PIPE, |file| file.set_len(200_000));
        assert_eq!(end, "BodyFailed");
        assert!(body == whole()[..200_000 - OFFSET]);
    }
}

#[test]
fn a_file_that_is_not_the_version_any_more_sends_nothing_of_the_end() {
    for (length, arrives) in [(1, 0), (PIPE, 0), (PIPE + 1, 1)] {
        let file = file(length);
        let version = FileVersion::of(&file.metadata().unwrap());
        file.write_all_at(b"c", 0).unwrap();
        let range = FileRange::new(file, 0, length as u64).of_version(version);
        let service = move |_: &mut Request<'_>| Response::file(range.clone());
        let outcome = Case::new(service).send(GET).run();
        assert_eq!(outcome.end, "BodyFailed");
        let answer = Answer::take(&mut &outcome.received[..]);
        assert_eq!((answer.body.len(), answer.whole), (arrives, false));
    }
}
