//! Does a client get the form of a file that it wants, and never an old one?

use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::super::load::{What, form};
use super::super::*;
use super::{ask, field, set_modified};
use crate::disk::{Key, Load};
use crate::services::coding::Coding;

const TEXT: &str = "let words = ['again', 'again', 'again'];\n";

/// A folder with a script of 4 KiB and whatever lies beside it.
fn site(beside: &[(&str, &str)]) -> (tempfile::TempDir, Files) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("app.js"), TEXT.repeat(100)).unwrap();
    fs::write(at("photo.png"), vec![7; 4096]).unwrap();
    fs::write(at("small.js"), "1").unwrap();
    fs::write(at("noise.bin"), vec![0; 4096]).unwrap();
    for (name, text) in beside {
        fs::write(at(name), text).unwrap();
    }
    let files = Files::new(folder.path());
    (folder, files)
}

fn unzipped(response: Response) -> String {
    let bytes = response.bytes();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[test]
fn text_is_compressed_once_for_who_wants_it() {
    let (_folder, files) = site(&[]);
    let plain = ask(&files, "/app.js", &[]);
    assert_eq!(field(&plain, "content-encoding"), None);
    assert_eq!(field(&plain, "vary"), Some("Accept-Encoding"));
    let coded = ask(&files, "/app.js", &[("Accept-Encoding", "gzip")]);
    assert_eq!(field(&coded, "content-encoding"), Some("gzip"));
    assert_eq!(field(&coded, "vary"), Some("Accept-Encoding"));
    assert_eq!(
        field(&coded, "content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_ne!(field(&coded, "etag"), field(&plain, "etag"));
    assert!(field(&coded, "etag").unwrap().starts_with('"'));
    assert!(coded.body().length().unwrap() < 400);
    let tag = field(&coded, "etag").unwrap().to_owned();
    assert_eq!(unzipped(coded), TEXT.repeat(100));

    let again = [("Accept-Encoding", "gzip"), ("If-None-Match", &*tag)];
    let again = ask(&files, "/app.js", &again);
    assert_eq!(again.status(), 304);
    assert_eq!(field(&again, "vary"), Some("Accept-Encoding"));
    // The tag is of the coded form: who wants the plain one has something else.
    assert_eq!(
        ask(&files, "/app.js", &[("If-None-Match", &*tag)]).status(),
        200
    );
}

#[test]
fn what_is_small_compressed_already_or_refused_goes_out_as_it_is() {
    let (_folder, files) = site(&[]);
    for (path, wanted) in [
        ("/small.js", "gzip"),
        ("/photo.png", "gzip"),
        ("/noise.bin", "gzip"),
        ("/app.js", "identity"),
        ("/app.js", "gzip;q=0"),
        ("/app.js", "deflate, compress"),
        ("/app.js", "gzip;q=0.3, identity;q=0.5"),
    ] {
        let response = ask(&files, path, &[("Accept-Encoding", wanted)]);
        assert_eq!(
            field(&response, "content-encoding"),
            None,
            "{path} {wanted}"
        );
        assert_eq!(response.status(), 200);
    }
    let (_folder, files) = site(&[]);
    let files = files.compress(false);
    let response = ask(&files, "/app.js", &[("Accept-Encoding", "gzip")]);
    assert_eq!(field(&response, "content-encoding"), None);
}

#[test]
fn the_limits_of_what_is_compressed() {
    let (folder, files) = site(&[]);
    for (length, coded) in [
        (1023, false),
        (1024, true),
        (1 << 20, true),
        ((1 << 20) + 1, false),
    ] {
        let name = format!("{length}.txt");
        fs::write(folder.path().join(&name), vec![b'x'; length]).unwrap();
        let response = ask(&files, &format!("/{name}"), &[("Accept-Encoding", "gzip")]);
        let encoding = field(&response, "content-encoding");
        assert_eq!(encoding.is_some(), coded, "{length}");
    }
}

#[test]
fn what_lies_beside_a_file_is_taken_by_weight_and_then_by_how_good_it_is() {
    let beside = [
        ("app.js.br", "brotli"),
        ("app.js.zst", "zstandard"),
        ("app.js.gz", "gzipped"),
    ];
    let (_folder, files) = site(&beside);
    for (wanted, coding, text) in [
        ("gzip, deflate, br, zstd", "zstd", "zstandard"),
        ("gzip, deflate, br", "br", "brotli"),
        ("gzip", "gzip", "gzipped"),
        ("x-gzip", "gzip", "gzipped"),
        ("gzip;q=1.0, br;q=0.9", "gzip", "gzipped"),
        ("*", "zstd", "zstandard"),
        ("*;q=0.5, zstd;q=0", "br", "brotli"),
        ("br;q=0.001", "br", "brotli"),
    ] {
        let response = ask(&files, "/app.js", &[("Accept-Encoding", wanted)]);
        assert_eq!(
            field(&response, "content-encoding"),
            Some(coding),
            "{wanted}"
        );
        assert_eq!(
            field(&response, "content-type"),
            Some("text/javascript; charset=utf-8")
        );
        assert_eq!(response.text(), text);
    }
    // By its own name it is a file like any other.
    let response = ask(&files, "/app.js.gz", &[("Accept-Encoding", "gzip")]);
    assert_eq!(field(&response, "content-encoding"), None);
    assert_eq!(field(&response, "content-type"), Some("application/gzip"));
}

#[test]
fn what_lies_beside_a_file_and_is_older_or_empty_or_no_file_is_not_taken() {
    let (folder, files) = site(&[("app.js.br", "old"), ("app.js.zst", "")]);
    fs::create_dir(folder.path().join("app.js.gz")).unwrap();
    let now = SystemTime::now();
    set_modified(
        &folder.path().join("app.js.br"),
        now - Duration::from_secs(9),
    );
    set_modified(&folder.path().join("app.js"), now - Duration::from_secs(8));
    let wanted = [("Accept-Encoding", "br, zstd, gzip;q=0.5")];
    let response = ask(&files, "/app.js", &wanted);
    assert!(!matches!(
        &*response.text(),
        "old" | "" // neither of the two, whatever this build can encode itself
    ));
    // Of the same second is new enough: tools that keep the time of the file do so.
    set_modified(
        &folder.path().join("app.js.br"),
        now - Duration::from_secs(8),
    );
    let files = Files::new(folder.path());
    let response = ask(&files, "/app.js", &[("Accept-Encoding", "br")]);
    assert_eq!(response.text(), "old");
}

#[test]
fn a_link_beside_a_file_that_leads_out_is_not_taken() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let (folder, files) = site(&[]);
    let link = folder.path().join("app.js.br");
    std::os::unix::fs::symlink(outside.path().join("secret"), link).unwrap();
    let response = ask(&files, "/app.js", &[("Accept-Encoding", "br")]);
    assert_ne!(response.text(), "secret");
}

#[test]
fn parts_are_of_the_form_that_is_sent() {
    let (_folder, files) = site(&[("app.js.gz", "0123456789")]);
    let part = [("Accept-Encoding", "gzip"), ("Range", "bytes=2-4")];
    let response = ask(&files, "/app.js", &part);
    assert_eq!(response.status(), 206);
    assert_eq!(field(&response, "content-encoding"), Some("gzip"));
    assert_eq!(field(&response, "content-range"), Some("bytes 2-4/10"));
    assert_eq!(response.text(), "234");
    let response = ask(&files, "/app.js", &[("Range", "bytes=0-2")]);
    assert_eq!(response.text(), "let");
}

#[cfg(all(feature = "brotli", feature = "zstd"))]
#[test]
fn each_coding_of_this_build_decodes_to_the_file() {
    let (_folder, files) = site(&[]);
    for coding in ["zstd", "br"] {
        let response = ask(&files, "/app.js", &[("Accept-Encoding", coding)]);
        assert_eq!(field(&response, "content-encoding"), Some(coding));
        let bytes = response.bytes();
        let mut text = String::new();
        match coding {
            "zstd" => zstd::stream::read::Decoder::new(&bytes[..])
                .unwrap()
                .read_to_string(&mut text),
            _ => brotli::Decompressor::new(&bytes[..], 4096).read_to_string(&mut text),
        }
        .unwrap();
        assert_eq!(text, TEXT.repeat(100));
    }
}

#[test]
fn a_picture_that_is_compressed_by_its_name_says_so_and_is_not_compressed_again() {
    let (folder, files) = site(&[]);
    fs::write(folder.path().join("a.svgz"), vec![b'x'; 5000]).unwrap();
    for wanted in ["", "gzip", "br", "identity"] {
        let response = ask(&files, "/a.svgz", &[("Accept-Encoding", wanted)]);
        assert_eq!(field(&response, "content-type"), Some("image/svg+xml"));
        assert_eq!(field(&response, "content-encoding"), Some("gzip"));
        assert_eq!(field(&response, "vary"), None);
        assert_eq!(response.bytes().len(), 5000);
    }
}

#[test]
fn what_is_kept_in_memory_cannot_change_on_its_way() {
    let (folder, _files) = site(&[]);
    let path = folder.path().join("a.bin");
    for length in [64 << 10, (64 << 10) + 1, 1 << 20] {
        fs::write(&path, vec![b'a'; length]).unwrap();
        let response = ask(&Files::new(folder.path()), "/a.bin", &[]);
        fs::write(&path, vec![b'b'; length]).unwrap();
        assert_eq!(response.bytes(), vec![b'a'; length], "{length}");
    }
}

#[test]
fn a_file_that_comes_and_goes_is_no_error_and_not_taken_for_missing_afterwards() {
    let (folder, _) = site(&[]);
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::rename(at("app.js"), at("sub/app.js")).unwrap();
    std::thread::sleep(Duration::from_millis(25));
    let root = Root::open(folder.path(), Links::Beneath).unwrap();
    let loader = Arc::new(Loader {
        sources: vec![Source::Folder(root)],
        rules: Rules::new(),
    });
    let keys = [None, Some(Coding::Gzip)].map(|coding| Key {
        name: "sub/app.js",
        form: form(coding),
    });
    let over = AtomicBool::new(false);
    let mut loaded = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fs::rename(at("sub"), at("away")).unwrap();
                fs::rename(at("away"), at("sub")).unwrap();
            }
        });
        for _ in 0..3000 {
            loaded.extend(keys.map(|key| (key, loader.load(key))));
        }
        over.store(true, Ordering::Relaxed);
    });
    for (key, known) in loaded {
        let known = known.unwrap();
        // The file is the same as before it went.
        let is_file = matches!(known.what, What::File(_));
        let is_kept = loader.cost(&known) < u64::MAX && loader.is_current(key, &known);
        assert_eq!(is_kept, is_file);
    }
}
