//! What happens to a folder that is there already, and to what lies in it?

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::{Answer, Sandbox};

#[test]
fn an_empty_folder_is_filled() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work().join("my-app-1")).unwrap();
    sandbox.run(&["my-app-1"]).succeeds();
    assert!(sandbox.work().join("my-app-1/main.rs").is_file());
    assert!(sandbox.work().join("my-app-1/.git").is_dir());
    sandbox.assert_no_temporary_files();
}

#[test]
fn the_current_folder_is_filled_and_needs_no_cd() {
    let sandbox = Sandbox::new();
    let here = sandbox.work().join("my-app-1");
    fs::create_dir_all(here.join("inner")).unwrap();
    fs::remove_dir(here.join("inner")).unwrap();
    let answer =
        Answer::new(sandbox.command(&["."]).current_dir(&here).output().unwrap()).succeeds();
    assert!(!answer.stdout.contains("cd "), "{}", answer.stdout);
    assert!(
        answer.stdout.starts_with("Created my-app-1 "),
        "{}",
        answer.stdout
    );
    assert!(here.join("main.rs").is_file());
}

#[test]
fn a_fresh_repository_is_filled_and_its_files_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1/README.md", "mine");
    sandbox.write("my-app-1/LICENSE-MIT", "mine");
    sandbox.write("my-app-1/.gitignore", "mine");
    sandbox.write("my-app-1/.github/workflows/ci.yml", "mine");
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(sandbox.work().join("my-app-1"))
        .status()
        .unwrap();
    assert!(made.success());
    let answer = sandbox.run(&["my-app-1", "--json"]).succeeds().json();
    assert_eq!(answer["kept"], json!([".gitignore", "README.md"]));
    assert_eq!(answer["git"], "none");
    for file in [
        "README.md",
        "LICENSE-MIT",
        ".gitignore",
        ".github/workflows/ci.yml",
    ] {
        assert_eq!(sandbox.read(&format!("my-app-1/{file}")), "mine", "{file}");
    }
    assert!(
        sandbox
            .read("my-app-1/README.cloudgate.md")
            .starts_with("# my-app-1")
    );
    assert!(sandbox.work().join("my-app-1/main.rs").is_file());
}

#[test]
fn a_full_folder_is_refused_with_what_it_holds() {
    let sandbox = Sandbox::new();
    for number in 0..12 {
        sandbox.write(&format!("my-app-1/file{number:02}"), "");
    }
    sandbox.write("my-app-1/Code/lib.rs", "");
    let before = sandbox.files();
    let said = sandbox
        .run(&["my-app-1", "--yes"])
        .fails(1, "is not empty, it holds")
        .stderr;
    assert!(said.contains("\n  Code/\n  file00\n"), "{said}");
    assert!(said.contains("\n  … and 3 more"), "{said}");
    assert!(
        said.contains("create-cloudgate-app my-app-1 --merge"),
        "{said}"
    );
    assert_eq!(sandbox.files(), before);
}

#[test]
fn merge_writes_only_what_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1/main.rs", "mine");
    sandbox.write("my-app-1/README.md", "mine");
    sandbox.write("my-app-1/notes.txt", "mine");
    let text = sandbox.run(&["my-app-1", "--merge"]).succeeds().stdout;
    assert!(
        text.contains("Note: kept yours: README.md, main.rs"),
        "{text}"
    );
    for file in ["main.rs", "README.md", "notes.txt"] {
        assert_eq!(sandbox.read(&format!("my-app-1/{file}")), "mine");
    }
    assert!(sandbox.read("my-app-1/Cargo.toml").contains("my-app-1"));
    assert!(!sandbox.work().join("my-app-1/README.cloudgate.md").exists());
}

#[test]
fn merge_says_what_a_kept_manifest_needs() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1/Cargo.toml", "[package]\nname = \"mine\"\n");
    let text = sandbox.run(&["my-app-1", "--merge"]).succeeds().stdout;
    assert!(
        text.contains("needs these lines in your Cargo.toml: cloudgate = { path = "),
        "{text}"
    );
}

#[test]
fn force_overwrites_files_of_the_same_name_and_no_others() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1/main.rs", "mine");
    sandbox.write("my-app-1/api/other.rs", "mine");
    let preview = sandbox
        .run(&["my-app-1", "--force", "--dry-run"])
        .succeeds()
        .stdout;
    assert!(
        preview.contains("\n  main.rs   (overwritten)\n"),
        "{preview}"
    );
    assert_eq!(sandbox.read("my-app-1/main.rs"), "mine");

    sandbox.run(&["my-app-1", "--force"]).succeeds();
    assert!(sandbox.read("my-app-1/main.rs").contains("fn main()"));
    assert_eq!(sandbox.read("my-app-1/api/other.rs"), "mine");
    let strays: Vec<String> = sandbox
        .files()
        .into_iter()
        .filter(|name| name.contains("create-cloudgate-app"))
        .collect();
    assert_eq!(strays, Vec::<String>::new());
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused_before_anything_is_written() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.work().join("my-app-1/main.rs")).unwrap();
    sandbox.write("my-app-1/public", "mine");
    let before = sandbox.files();
    sandbox
        .run(&["my-app-1", "--force"])
        .fails(1, "main.rs is a folder, and the app needs a file");
    sandbox
        .run(&["my-app-1", "--merge"])
        .fails(1, "public is a file, and the app needs a folder");
    assert_eq!(sandbox.files(), before);
}

#[test]
#[cfg(unix)]
fn links_do_not_lead_out_of_the_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("outside/index.html", "theirs");
    fs::create_dir(sandbox.work().join("my-app-1")).unwrap();
    std::os::unix::fs::symlink("../outside", sandbox.work().join("my-app-1/public")).unwrap();
    for flag in ["--force", "--merge"] {
        sandbox
            .run(&["my-app-1", flag])
            .fails(1, "public is a symbolic link");
    }
    fs::remove_file(sandbox.work().join("my-app-1/public")).unwrap();
    std::os::unix::fs::symlink(
        "../outside/index.html",
        sandbox.work().join("my-app-1/main.rs"),
    )
    .unwrap();
    sandbox
        .run(&["my-app-1", "--force"])
        .fails(1, "main.rs is a symbolic link");
    sandbox.run(&["my-app-1", "--merge"]).succeeds();
    assert_eq!(sandbox.read("outside/index.html"), "theirs");
}
