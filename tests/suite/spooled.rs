//! Do large uploads go by the disk, in little memory, and is nothing of them left behind?

use std::fs;
use std::io::Read;
use std::path::Path;

use cloudgate::{
    App, FromRequest, HttpError, Multipart, MultipartLimits, MultipartReader, Request, Running,
    route,
};
use cloudgate_suite::{Wire, ask, start_with, wait_for};

use crate::forms::{MULTIPART, check, request};

/// Lengths and sums of the files.
#[route(POST, "/forms/sums")]
fn sums(form: Multipart) -> Result<String, HttpError> {
    let mut text = String::new();
    for file in form.files() {
        text += &summed(&file.name, file.reader())?;
    }
    Ok(text)
}

/// The same from the stream.
#[route(POST, "/forms/stream")]
fn stream(request: &mut Request<'_>) -> Result<String, HttpError> {
    let mut form = MultipartReader::new(request)?;
    let mut text = String::new();
    while let Some(part) = form.next_part()? {
        let name = part.name().to_owned();
        text += &summed(&name, part)?;
    }
    Ok(text)
}

fn summed(name: &str, mut reader: impl Read) -> Result<String, HttpError> {
    let (mut length, mut sum) = (0_u64, 0_u64);
    let mut piece = vec![0; 50_000];
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(format!("{name} {length} {sum}\n")),
            count => {
                length += count as u64;
                sum += piece[..count]
                    .iter()
                    .map(|byte| u64::from(*byte))
                    .sum::<u64>();
            }
        }
    }
}

#[route(POST, "/forms/panic")]
#[allow(clippy::panic, reason = "this is what is tested")]
fn panics(form: Multipart) {
    panic!("with {} files in the hand", form.files().len());
}

/// A server whose large uploads wait in `folder`.
fn start_in(folder: &Path) -> Running {
    let limits = MultipartLimits::new().folder(folder);
    start_with(crate::app().state(limits), |settings| {
        settings.body_limit = 1 << 30;
    })
}

/// How many descriptors of this process are open on files below `folder`, deleted ones too.
fn open_below(folder: &Path) -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(folder))
        .count()
}

fn nothing_left(folder: &Path) {
    wait_for("the files to be gone", || open_below(folder) == 0);
    assert_eq!(fs::read_dir(folder).expect("the folder").count(), 0);
}

const FILE: &str = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\n";
const END: &str = "\r\n--x--\r\n";

/// Sends a form with one file of this many pieces, which have a MiB each.
#[track_caller]
fn send_file<'w>(wire: &'w mut Wire, target: &str, pieces: usize) -> &'w mut Wire {
    let piece = vec![b'1'; 1 << 20];
    let length = FILE.len() + (pieces << 20) + END.len();
    wire.send(format!(
        "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Type: {MULTIPART}\r\nContent-Length: {length}\r\n\r\n{FILE}"
    ));
    for _ in 0..pieces {
        wire.send(&piece);
    }
    wire
}

fn sum_of(pieces: usize) -> String {
    format!(
        "f {} {}\n",
        pieces << 20,
        (pieces << 20) * usize::from(b'1')
    )
}

#[test]
fn a_large_file_goes_by_the_disk_or_through_the_handler_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_in(folder.path());
    let mut wire = Wire::open(server.addr());
    for target in ["/forms/sums", "/forms/stream"] {
        let answer = send_file(&mut wire, target, 8).send(END).answer();
        assert_eq!((answer.status, answer.text()), (200, sum_of(8)), "{target}");
    }
    nothing_left(folder.path());
}

#[test]
fn a_handler_puts_a_large_file_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let (spool, place) = (folder.path().join("spool"), folder.path().join("kept"));
    fs::create_dir(&spool).expect("a folder");
    let target = place.clone();
    let app = App::new()
        .state(MultipartLimits::new().folder(&spool))
        .post("/keep", move |request: &mut Request<'_>| {
            for file in Multipart::from_request(request)?.files() {
                file.persist(&target)?;
            }
            Ok::<_, HttpError>("kept")
        });
    let server = start_with(app, |settings| settings.body_limit = 1 << 30);
    let mut wire = Wire::open(server.addr());
    let answer = send_file(&mut wire, "/keep", 3).send(END).answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "kept"));
    assert!(fs::read(&place).expect("the file") == vec![b'1'; 3 << 20]);
    // A second one of that name is the program's fault, and no reason to lose the first.
    let answer = send_file(&mut wire, "/keep", 2).send(END).answer();
    assert_eq!(answer.status, 500);
    assert_eq!(fs::metadata(&place).expect("the file").len(), 3 << 20);
    nothing_left(&spool);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
}

#[test]
fn nothing_is_left_of_an_upload_that_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_in(folder.path());
    let on_disk = || wait_for("the file on disk", || open_below(folder.path()) == 1);

    let mut malformed = Wire::open(server.addr());
    let answer = send_file(&mut malformed, "/forms/sums", 2)
        .send("\r\n--x-y\r\n")
        .answer();
    assert_eq!(answer.status, 400);
    nothing_left(folder.path());

    let mut gone = Wire::open(server.addr());
    send_file(&mut gone, "/forms/sums", 2);
    on_disk();
    drop(gone);
    nothing_left(folder.path());

    let mut panicking = Wire::open(server.addr());
    let answer = send_file(&mut panicking, "/forms/panic", 2)
        .send(END)
        .answer();
    assert_eq!(answer.status, 500);
    nothing_left(folder.path());
}

#[test]
fn a_folder_that_is_gone_is_a_500_that_tells_the_client_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_in(&folder.path().join("gone"));
    let small = FILE.to_owned() + "1" + END;
    check(
        &server,
        "/forms/sums",
        MULTIPART,
        small.as_bytes(),
        200,
        "f 1 49",
    );
    let large = FILE.to_owned() + &"1".repeat(100_000) + END;
    let answer = ask(server.addr(), request("/forms/sums", MULTIPART, large));
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (500, "500 Internal Server Error\n")
    );
}

/// The most memory in KiB that this process has held since it was last asked.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
    fs::write("/proc/self/clear_refs", "5").expect("the peak to be set back");
    peak.expect("a number of kB")
}

/// `cargo test --release --test suite -- --ignored --exact --nocapture spooled::memory_stays_flat_for_a_large_upload`
#[test]
#[ignore = "a measurement: other tests in the same process would spoil it"]
#[allow(clippy::print_stderr, reason = "it tells what it measured")]
fn memory_stays_flat_for_a_large_upload() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_in(folder.path());
    let mut wire = Wire::open(server.addr());
    let measure = |wire: &mut Wire, target: &str, pieces: usize| {
        peak();
        let began = std::time::Instant::now();
        let answer = send_file(wire, target, pieces).send(END).answer();
        assert_eq!((answer.status, answer.text()), (200, sum_of(pieces)));
        let peak = peak();
        eprintln!(
            "{target}: {pieces} MiB, peak {peak} KiB, {:.1?}",
            began.elapsed()
        );
        peak
    };
    for target in ["/forms/sums", "/forms/stream"] {
        measure(&mut wire, target, 4);
        let small = measure(&mut wire, target, 4);
        let large = measure(&mut wire, target, 256);
        assert!(large < small + 2048, "{small} KiB and then {large} KiB");
    }
    nothing_left(folder.path());
}
