//! Does `cloudgate compress` leave a folder as it should, however it ends?

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;

use cloudgate_suite::{Program, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cli::{command, ended};

/// A folder with files of these names and lengths.
fn folder(files: &[(&str, usize)]) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, length) in files {
        let lines =
            (0_u32..).flat_map(|n| format!("{n} {}\n", n.wrapping_mul(2_654_435_761)).into_bytes());
        let bytes: Vec<u8> = lines.take(*length).collect();
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let name = folder.path().display().to_string();
    (folder, name)
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    names.sort();
    names
}

fn signal(program: &Program, signal: Signal) {
    let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), signal).expect("a process that runs");
}

#[test]
fn it_makes_siblings_and_says_so_in_a_table() {
    let (kept, folder) = folder(&[("a.js", 4000), ("b.css", 4000), ("c.js", 10)]);
    let made = ended(&["compress", &folder]);
    assert_eq!((made.code, made.errors.as_str()), (Some(0), ""));
    assert_eq!(
        names(kept.path()),
        [
            "a.js",
            "a.js.br",
            "a.js.gz",
            "a.js.zst",
            "b.css",
            "b.css.br",
            "b.css.gz",
            "b.css.zst",
            "c.js"
        ]
    );
    let first = &made.lines[0];
    assert!(
        first.starts_with("2 files · 8.0 kB · 1 too small · 0 failed · "),
        "{first}"
    );
    for (line, coding) in made.lines[2..].iter().zip(["brotli", "zstd", "gzip"]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..6], [coding, "2", "0", "0", "8.0", "kB"], "{line}");
    }
    let mut plain = Vec::new();
    let file = File::open(kept.path().join("a.js.gz")).expect("a sibling");
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut plain)
        .expect("gzip");
    assert_eq!(plain, fs::read(kept.path().join("a.js")).expect("a file"));

    let again = ended(&["compress", &folder, "--dry-run"]);
    assert_eq!((again.code, again.lines.len()), (Some(0), 0), "{again:?}");
    let quiet = ended(&["compress", &folder, "--quiet", "--force"]);
    assert_eq!(
        (quiet.code, quiet.lines.len(), quiet.errors.as_str()),
        (Some(0), 0, "")
    );
}

#[test]
fn what_fails_is_named_and_the_others_are_done() {
    let (kept, folder) = folder(&[("a.js", 4000), ("b.js", 4000)]);
    fs::create_dir(kept.path().join("a.js.br")).expect("a folder");
    let made = ended(&["compress", &folder]);
    assert_eq!(made.code, Some(1));
    assert_eq!(
        made.errors,
        format!("cloudgate: {folder}/a.js.br: is there already and is no regular file\n")
    );
    assert_eq!(
        names(kept.path()),
        [
            "a.js", "a.js.br", "a.js.gz", "a.js.zst", "b.js", "b.js.br", "b.js.gz", "b.js.zst"
        ]
    );

    let missing = ended(&["compress", "no/such/folder"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing
            .errors
            .starts_with("cloudgate: the folder no/such/folder cannot be read: ")
    );
}

#[test]
fn a_disk_that_is_full_leaves_neither_half_a_sibling_nor_another_file() {
    let (kept, folder) = folder(&[("large.js", 400_000), ("small.js", 2000)]);
    // A limit to the size of files stands for the disk; without the signal that goes with it, writing fails.
    let mut limited = Command::new("sh");
    let program = command(&[]).get_program().to_owned();
    limited
        .args([
            "-c",
            r#"trap "" XFSZ; ulimit -f 8; exec "$0" compress "$1""#,
        ])
        .arg(program)
        .arg(&folder);
    let made = Program::spawn(limited).ended();
    assert_eq!(made.code, Some(1), "{made:?}");
    assert_eq!(made.errors.lines().count(), 3, "{made:?}");
    for line in made.errors.lines() {
        assert!(
            line.starts_with(&format!("cloudgate: {folder}/large.js: File too large")),
            "{line}"
        );
    }
    assert_eq!(
        names(kept.path()),
        [
            "large.js",
            "small.js",
            "small.js.br",
            "small.js.gz",
            "small.js.zst"
        ]
    );
}

/// A run at this level that is at work on a file that takes long.
fn at_work(level: &str) -> (TempDir, String, Program) {
    let (kept, folder) = folder(&[("large.js", 16 << 20)]);
    let arguments = [
        "compress",
        &folder,
        "--no-gzip",
        "--no-zstd",
        "--level",
        level,
    ];
    let program = Program::spawn(command(&arguments));
    wait_for("a temporary file", || names(kept.path()).len() == 2);
    (kept, folder, program)
}

#[test]
fn who_interrupts_it_finds_what_was_there_before() {
    // At the best level a debug build needs seconds from one look at the flag to the next.
    let (kept, _, program) = at_work("7");
    signal(&program, Signal::INT);
    let ended = program.ended();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(
        ended.errors.starts_with("cloudgate: interrupted"),
        "{ended:?}"
    );
    assert_eq!(names(kept.path()), ["large.js"]);
}

#[test]
fn who_kills_it_finds_no_half_sibling_and_the_next_run_cleans_up() {
    let (kept, folder, program) = at_work("9");
    // As long as that one runs, another leaves its file alone.
    let other = ended(&["compress", &folder, "--min-size", "100000000"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert_eq!(names(kept.path()).len(), 2);
    signal(&program, Signal::KILL);
    assert_eq!(program.ended().code, None);
    let left = names(kept.path());
    assert_eq!(left.len(), 2);
    assert!(
        left[0].starts_with(".cloudgate-") && left[0].ends_with(".tmp"),
        "{left:?}"
    );
    assert_eq!(left[1], "large.js");
    let next = ended(&["compress", &folder, "--min-size", "100000000"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(names(kept.path()), ["large.js"]);
}
