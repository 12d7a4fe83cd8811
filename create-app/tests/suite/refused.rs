//! What is refused, with which exit code, and is nothing written then?

use std::fs;

use crate::support::Sandbox;

#[track_caller]
fn refuses(arguments: &[&str], code: i32, reason: &str) {
    let sandbox = Sandbox::new();
    let answer = sandbox.run(arguments).fails(code, reason);
    assert_eq!(answer.stdout, "");
    sandbox.assert_nothing_was_left_behind();
}

#[test]
fn a_bad_name_is_told_the_rule_and_a_good_one() {
    refuses(
        &["My App!"],
        2,
        "\"My App!\" is no name for an app: a name may hold letters a to z, digits, - and _ only",
    );
    refuses(&["My App!"], 2, "try: create-cloudgate-app my-app");
    refuses(
        &["apps here/1st"],
        2,
        "try: create-cloudgate-app 'apps here/app-1st'",
    );
    refuses(
        &["test"],
        2,
        "the name is taken by a library that comes with Rust",
    );
    refuses(&["cloudgate"], 2, "try: create-cloudgate-app cloudgate-app");
    refuses(&[""], 2, "a value is required");
    refuses(&["/"], 2, "root of the disk");
}

#[test]
fn yes_does_not_rename() {
    refuses(&["My App!", "--yes"], 2, "is no name for an app");
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    refuses(&[], 2, "the name of the new app is missing");
}

#[test]
fn the_name_of_the_current_folder_must_be_a_good_one() {
    let sandbox = Sandbox::new();
    let folder = sandbox.work().join("My Folder");
    fs::create_dir(&folder).unwrap();
    let output = sandbox
        .command(&["."])
        .current_dir(folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("\"My Folder\" is no name")
            && said.contains("create-cloudgate-app my-folder"),
        "{said}"
    );
}

#[test]
fn an_unknown_template_is_named_with_the_nearest_one() {
    refuses(
        &["my-app-1", "--template", "ful"],
        2,
        "a similar value exists: 'full'",
    );
    refuses(
        &["my-app-1", "--template", "nothing"],
        2,
        "[possible values: full]",
    );
}

#[test]
fn flags_that_contradict_each_other() {
    refuses(
        &["my-app-1", "--force", "--merge"],
        2,
        "cannot be used with",
    );
    refuses(
        &["my-app-1", "--run", "--dry-run"],
        2,
        "cannot be used with",
    );
    refuses(&["my-app-1", "--port", "0"], 2, "--port");
}

#[test]
fn a_path_dependency_must_be_cloudgate() {
    refuses(
        &["my-app-1", "--path-dep", "."],
        2,
        "holds no Cargo.toml of the package cloudgate",
    );
}

#[test]
fn a_file_in_the_place_of_the_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1", "mine");
    for flag in ["--yes", "--force", "--merge"] {
        sandbox
            .run(&["my-app-1", flag])
            .fails(1, "is a file; remove it or choose another name");
    }
    assert_eq!(sandbox.read("my-app-1"), "mine");
}

#[test]
#[cfg(unix)]
fn a_link_in_the_place_of_the_folder() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", sandbox.work().join("my-app-1")).unwrap();
    std::os::unix::fs::symlink("nowhere", sandbox.work().join("my-app-2")).unwrap();
    for name in ["my-app-1", "my-app-1/", "my-app-2"] {
        sandbox
            .run(&[name, "--force"])
            .fails(1, "is a symbolic link");
    }
    assert_eq!(sandbox.files(), ["elsewhere/", "my-app-1", "my-app-2"]);
}

#[test]
fn json_carries_the_reason_too() {
    let sandbox = Sandbox::new();
    let answer = sandbox
        .run(&["1st", "--json"])
        .fails(2, "must start with a letter")
        .json();
    assert_eq!(answer["created"], false);
    assert_eq!(answer["try"], "create-cloudgate-app app-1st");
}
