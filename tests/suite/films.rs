//! Can a film be played, and sought in, as browsers do it?
//!
//! Chromium asks for all of it from the first byte on, ends the connection once it has read enough, and asks from
//! another byte on when somebody seeks; it goes on with what it has by `If-Range`.

use std::fs;
use std::path::Path;

use cloudgate::Files;
use cloudgate_suite::{Wire, start, wait_for};

const LENGTH: usize = 24 << 20;

fn film() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 253) as u8).collect()
}

/// How many descriptors of this process lead to the file.
#[cfg(target_os = "linux")]
fn opened(path: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("the process's own descriptors");
    all.filter_map(Result::ok)
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path))
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_film_is_sought_in_and_nothing_of_it_is_held_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder
        .path()
        .canonicalize()
        .expect("it is there")
        .join("film.mp4");
    let film = film();
    fs::write(&path, &film).expect("room on the disk");
    // Nothing is kept for the next request, so what is open is open for a connection.
    let server = start(Files::new(folder.path()).memory(0));
    let ask = |first: usize, more: &str| {
        let mut wire = Wire::open(server.addr());
        wire.send(format!(
            "GET /film.mp4 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: identity;q=1, *;q=0\r\n\
             Range: bytes={first}-\r\n{more}\r\n"
        ));
        let head = wire.answer_to_head();
        let range = format!("bytes {first}-{}/{LENGTH}", LENGTH - 1);
        assert_eq!(
            (head.status, head.header("content-range")),
            (206, Some(&*range))
        );
        assert_eq!(head.header("content-type"), Some("video/mp4"));
        let length = (LENGTH - first).to_string();
        assert_eq!(head.header("content-length"), Some(&*length));
        (wire, head)
    };
    let mut playing = Vec::new();
    for seek in [0, 40, 80, 99, 20] {
        let first = LENGTH / 100 * seek;
        let (mut wire, head) = ask(first, "");
        assert!(wire.take(100_000) == film[first..first + 100_000]);
        // It goes on with the same version.
        let tag = head.header("etag").expect("a tag");
        if !tag.starts_with("W/") {
            ask(first + 100_000, &format!("If-Range: {tag}\r\n"));
        }
        playing.push(wire);
    }
    assert!(
        opened(&path) >= 1,
        "who was cut off would be asked for nothing"
    );
    // Cut off in the middle, all of them.
    drop(playing);
    wait_for("the film to be closed", || opened(&path) == 0);
    let (mut wire, _) = ask(LENGTH / 100 * 95, "");
    let rest = &film[LENGTH / 100 * 95..];
    assert!(wire.take(rest.len()) == rest);
    wait_for("the film to be closed", || opened(&path) == 0);
    // The connection is as good as before.
    wire.send("HEAD /film.mp4 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(wire.answer_to_head().status, 200);
}

/// A new version in its place does not end what is on its way of the old one, which nobody writes into.
#[test]
fn a_download_goes_on_where_its_file_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let film = film();
    fs::write(at("film.mp4"), &film).expect("room on the disk");
    let server = start(Files::new(folder.path()));
    let mut wire = Wire::open(server.addr());
    assert_eq!(wire.send_get("/film.mp4").answer_to_head().status, 200);
    let first = wire.take(100_000);
    fs::write(at("next.mp4"), "another film").expect("room on the disk");
    fs::rename(at("next.mp4"), at("film.mp4")).expect("a file");
    let rest = wire.take(LENGTH - 100_000);
    assert!(first == film[..100_000] && rest == film[100_000..]);
    wait_for("the next film", || {
        wire.send_get("/film.mp4").answer().text() == "another film"
    });
}
