//! Does a run make what is missing, and leave alone what is not?

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Parser;
use tempfile::TempDir;

use super::encode::tests::decode;
use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs it, quietly.
#[track_caller]
fn run(folder: &Path, options: &str) {
    let mut line = vec!["compress", folder.to_str().unwrap(), "--quiet"];
    line.extend(options.split_whitespace());
    let args = Line::parse_from(line).args;
    assert_eq!(compress(&args, &AtomicBool::new(false)), ExitCode::SUCCESS);
}

fn text(length: usize) -> Vec<u8> {
    "All work and no play makes Jack a dull boy.\n"
        .bytes()
        .cycle()
        .take(length)
        .collect()
}

/// Bytes that no coder makes fewer.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(step).collect()
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The files below a folder, in order, with the time of their last change and their inode.
fn listing(folder: &Path) -> Vec<(String, SystemTime, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, metadata.modified().unwrap(), metadata.ino()));
            }
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    listing(folder).into_iter().map(|(name, ..)| name).collect()
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn siblings_decode_to_their_file_and_are_like_it() {
    let folder = folder();
    let files = [
        "index.html",
        "a/b/app.js",
        "a/data.json",
        "a/logo.svg",
        ".well-known/security.txt",
    ];
    for (at, name) in files.iter().enumerate() {
        write(folder.path(), name, text(5000 + 40_000 * at));
    }
    let first = folder.path().join(files[0]);
    fs::set_permissions(&first, fs::Permissions::from_mode(0o640)).unwrap();
    age(&first, 1000);
    run(folder.path(), "");
    assert_eq!(names(folder.path()).len(), files.len() * 4);
    for name in files {
        let file = folder.path().join(name);
        let (plain, want) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap());
        for coding in Coding::ALL {
            let sibling = sibling::path(&file, coding);
            assert_eq!(
                decode(coding, &fs::read(&sibling).unwrap()),
                plain,
                "{name} {coding:?}"
            );
            let is = fs::metadata(&sibling).unwrap();
            assert_eq!(
                (is.modified().unwrap(), is.mode(), is.uid(), is.gid()),
                (
                    want.modified().unwrap(),
                    want.mode(),
                    want.uid(),
                    want.gid()
                )
            );
        }
    }
}

#[test]
fn a_second_run_changes_nothing_and_force_makes_all_again() {
    let folder = folder();
    write(folder.path(), "a.css", text(3000));
    run(folder.path(), "");
    let before = listing(folder.path());
    assert_eq!(before.len(), 4);
    run(folder.path(), "");
    assert_eq!(listing(folder.path()), before);
    run(folder.path(), "--force");
    for (is, was) in listing(folder.path()).iter().zip(&before) {
        assert_eq!((&is.0, is.2 == was.2), (&was.0, was.0 == "a.css"));
    }
}

#[test]
fn an_old_sibling_is_made_again() {
    let folder = folder();
    write(folder.path(), "a.css", text(3000));
    run(folder.path(), "--no-zstd");
    write(folder.path(), "a.css", text(9000));
    age(&folder.path().join("a.css.br"), 10);
    age(&folder.path().join("a.css.gz"), 10);
    run(folder.path(), "--no-zstd");
    for coding in [Coding::Brotli, Coding::Gzip] {
        let sibling = sibling::path(&folder.path().join("a.css"), coding);
        assert_eq!(decode(coding, &fs::read(sibling).unwrap()), text(9000));
    }
    assert_eq!(names(folder.path()), ["a.css", "a.css.br", "a.css.gz"]);
}

#[test]
fn what_does_not_become_smaller_has_no_sibling_and_loses_an_old_one() {
    let folder = folder();
    write(folder.path(), "a.js", text(3000));
    run(folder.path(), "");
    assert_eq!(names(folder.path()).len(), 4);
    write(folder.path(), "a.js", noise(3000));
    for name in ["a.js.br", "a.js.zst", "a.js.gz"] {
        age(&folder.path().join(name), 10);
    }
    run(folder.path(), "");
    assert_eq!(names(folder.path()), ["a.js"]);
}

#[test]
fn two_of_a_hundred_is_enough_and_less_is_not() {
    let folder = folder();
    // What repeats is nearly nothing, so the share that does not is what is left.
    for (name, repeated) in [("less.js", 1_500), ("more.js", 3_000)] {
        let bytes = [noise(100_000 - repeated), vec![b'x'; repeated]].concat();
        write(folder.path(), name, bytes);
    }
    run(folder.path(), "");
    assert_eq!(
        names(folder.path()),
        [
            "less.js",
            "more.js",
            "more.js.br",
            "more.js.gz",
            "more.js.zst"
        ]
    );
}

#[test]
fn other_files_are_left_alone() {
    let folder = folder();
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "secret.js", text(3000));
    for name in [
        "a.png",
        "a.zip",
        "a.woff2",
        "noext",
        ".hidden.js",
        ".git/a.js",
        "a.js.gz",
        "b.svg.br",
        "c.json.zst",
    ] {
        write(folder.path(), name, text(3000));
    }
    symlink(
        elsewhere.path().join("secret.js"),
        folder.path().join("link.js"),
    )
    .unwrap();
    symlink(elsewhere.path(), folder.path().join("links")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("fifo.js"), 0o600.into()).unwrap();
    let before = listing(folder.path());
    run(folder.path(), "--force");
    assert_eq!(listing(folder.path()), before);
    assert_eq!(names(elsewhere.path()), ["secret.js"]);
}

#[test]
fn the_smallest_size_counts_and_an_old_sibling_of_less_goes() {
    let folder = folder();
    write(folder.path(), "a.js", text(1024));
    write(folder.path(), "b.js", text(1023));
    run(folder.path(), "--no-brotli --no-zstd");
    assert_eq!(names(folder.path()), ["a.js", "a.js.gz", "b.js"]);
    run(folder.path(), "--no-brotli --no-zstd --min-size 1023");
    assert_eq!(names(folder.path()), ["a.js", "a.js.gz", "b.js", "b.js.gz"]);
    write(folder.path(), "b.js", text(500));
    age(&folder.path().join("b.js.gz"), 10);
    run(folder.path(), "--no-brotli --no-zstd");
    assert_eq!(names(folder.path()), ["a.js", "a.js.gz", "b.js"]);
}

#[test]
fn many_jobs_make_the_same_as_one() {
    let (one, many) = (folder(), folder());
    for folder in [&one, &many] {
        for number in 0..20 {
            write(
                folder.path(),
                &format!("{number}.js"),
                text(2000 + 100 * number),
            );
        }
    }
    run(one.path(), "--jobs 1 --level 1");
    run(many.path(), "--jobs 8 --level 1");
    assert_eq!(names(one.path()).len(), 80);
    assert_eq!(names(one.path()), names(many.path()));
    for name in names(one.path()) {
        assert_eq!(
            fs::read(one.path().join(&name)).unwrap(),
            fs::read(many.path().join(&name)).unwrap()
        );
    }
}

#[test]
fn a_file_that_changes_meanwhile_gets_no_sibling() {
    let folder = folder();
    write(folder.path(), "a.js", text(3000));
    let path = folder.path().join("a.js");
    for coding in Coding::ALL {
        let error = sibling::make(&path, coding, 1, |file| {
            write(folder.path(), "a.js", noise(3000));
            file
        });
        assert!(
            error.unwrap_err().to_string().contains("changed"),
            "{coding:?}"
        );
    }
    assert_eq!(names(folder.path()), ["a.js"]);
}
