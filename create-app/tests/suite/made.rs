//! What does a new app consist of, and what is said about it?

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::{Answer, Sandbox, files_below};

const FILES: [&str; 22] = [
    ".dockerignore",
    ".editorconfig",
    ".gitignore",
    "Cargo.toml",
    "Dockerfile",
    "README.md",
    "api/chat.rs",
    "api/tests/full.rs",
    "api/tests/simple.rs",
    "api/tests/template.rs",
    "build.rs",
    "main.rs",
    "public/chat.html",
    "public/cloudgate128.png",
    "public/css/chat.css",
    "public/css/style.css",
    "public/favicon.svg",
    "public/index.html",
    "public/js/app.js",
    "public/js/chat.js",
    "templates/page.html",
    "tests.rs",
];

fn only_files(all: Vec<String>) -> Vec<String> {
    all.into_iter()
        .filter(|name| !name.ends_with('/'))
        .collect()
}

#[test]
fn all_files_are_there_and_no_placeholder_is_left() {
    let sandbox = Sandbox::new();
    sandbox.run(&["my-app-1"]).succeeds();
    let app = sandbox.work().join("my-app-1");
    assert_eq!(only_files(files_below(&app)), FILES);
    for file in FILES {
        let content = fs::read(app.join(file)).unwrap();
        let text = String::from_utf8_lossy(&content);
        assert!(
            // What the app's own templates hold is theirs.
            file.starts_with("templates/") || !text.contains("{{") && !text.contains("{%"),
            "{file} holds a placeholder"
        );
    }
    assert!(
        sandbox
            .read("my-app-1/Cargo.toml")
            .contains("name = \"my-app-1\"")
    );
    assert!(
        sandbox
            .read("my-app-1/public/index.html")
            .contains("<h1>my-app-1</h1>")
    );
    let picture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../template/public/cloudgate128.png"
    );
    assert_eq!(
        fs::read(app.join("public/cloudgate128.png")).unwrap(),
        fs::read(picture).unwrap()
    );
    assert_eq!(
        fs::read_dir(sandbox.work()).unwrap().count(),
        1,
        "only the app was made"
    );
    sandbox.assert_no_temporary_files();
}

#[test]
fn the_next_steps_name_only_what_exists() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["my-app-1"]).succeeds().stdout;
    let folder = sandbox.work().join("my-app-1");
    assert_eq!(
        text,
        format!(
            "Created my-app-1 (template: full) in {}\n\n  \
               cd my-app-1\n  \
               cargo run                 # http://localhost:3000\n  \
               cargo test\n\n\
             Try:  curl localhost:3000/api/tests/simple\n\
             Edit: api/tests/simple.rs · public/index.html · templates/page.html\n\
             Docs: README.md\n",
            folder.display()
        )
    );
    for file in [
        "api/tests/simple.rs",
        "public/index.html",
        "templates/page.html",
        "README.md",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_port_shows_in_the_commands() {
    let sandbox = Sandbox::new();
    let text = sandbox
        .run(&["my-app-1", "--port", "4000"])
        .succeeds()
        .stdout;
    assert!(
        text.contains("  PORT=4000 cargo run       # http://localhost:4000\n"),
        "{text}"
    );
    assert!(text.contains("curl localhost:4000/api"), "{text}");
}

#[test]
fn a_path_is_quoted_and_missing_folders_are_made() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["some apps/deep/MyApp"]).succeeds().stdout;
    assert!(text.contains("\n  cd 'some apps/deep/MyApp'\n"), "{text}");
    assert!(
        sandbox
            .read("some apps/deep/MyApp/Cargo.toml")
            .contains("name = \"my-app\"")
    );
}

#[test]
fn odd_characters_in_the_path_do_no_harm() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work().join("{{ what? }} : it's")).unwrap();
    sandbox.run(&["{{ what? }} : it's/app1"]).succeeds();
    assert!(
        sandbox
            .work()
            .join("{{ what? }} : it's/app1/main.rs")
            .is_file()
    );
}

#[test]
fn parent_folders_in_a_path_lead_only_where_they_say() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.work().join("a/b")).unwrap();
    let mut command = sandbox.command(&["../../x1"]);
    Answer::new(
        command
            .current_dir(sandbox.work().join("a/b"))
            .output()
            .unwrap(),
    )
    .succeeds();
    let top: Vec<String> = sandbox
        .files()
        .into_iter()
        .filter(|name| !name.starts_with("x1/"))
        .collect();
    assert_eq!(top, ["a/", "a/b/"]);
    assert!(sandbox.work().join("x1/main.rs").is_file());
}

#[test]
fn quiet_says_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["my-app-1", "-q"]).succeeds().stdout, "");
}

#[test]
fn yes_takes_the_default_name() {
    let sandbox = Sandbox::new();
    sandbox.run(&["--yes"]).succeeds();
    assert!(sandbox.work().join("my-app-1/main.rs").is_file());
}

#[test]
fn json_tells_all_of_it() {
    let sandbox = Sandbox::new();
    let answer = sandbox.run(&["my-app-1", "--json"]).succeeds().json();
    assert_eq!(answer["created"], true);
    assert_eq!(answer["name"], "my-app-1");
    assert_eq!(answer["template"], "full");
    assert_eq!(
        answer["path"],
        sandbox.work().join("my-app-1").to_str().unwrap()
    );
    assert_eq!(answer["git"], "committed");
    assert_eq!(answer["files"], json!(FILES));
    assert_eq!(
        answer["next"],
        json!(["cd my-app-1", "cargo run", "cargo test"])
    );
}

#[test]
fn a_dry_run_lists_the_files_and_writes_nothing() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["my-app-1", "--dry-run"]).succeeds().stdout;
    for file in FILES {
        assert!(text.contains(&format!("\n  {file}\n")), "{file}: {text}");
    }
    let answer = sandbox
        .run(&["deep/my-app-1", "--dry-run", "--json"])
        .succeeds()
        .json();
    assert_eq!(
        (&answer["created"], &answer["dryRun"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(answer["files"], json!(FILES));
    sandbox.assert_nothing_was_left_behind();
}

#[test]
fn the_templates_are_listed() {
    let sandbox = Sandbox::new();
    assert!(
        sandbox
            .run(&["--list-templates"])
            .succeeds()
            .stdout
            .starts_with("full ")
    );
    assert_eq!(
        sandbox
            .run(&["--list-templates", "--json"])
            .succeeds()
            .json()[0]["name"],
        "full"
    );
}

#[test]
fn from_a_checkout_the_app_depends_on_the_checkout() {
    let sandbox = Sandbox::new();
    sandbox.run(&["my-app-1"]).succeeds();
    let checkout = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../cloudgate")).unwrap();
    let line = format!("cloudgate = {{ path = \"{}\" }}", checkout.display());
    assert!(sandbox.read("my-app-1/Cargo.toml").contains(&line));
}

#[test]
fn another_folder_of_cloudgate_can_be_named() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "my \"fork\"/cloudgate/Cargo.toml",
        "[package]\nname = \"cloudgate\"\n",
    );
    sandbox
        .run(&["one", "--path-dep", "my \"fork\""])
        .succeeds();
    let folder = sandbox.work().join("my \"fork\"/cloudgate");
    let escaped = folder.to_str().unwrap().replace('"', "\\\"");
    let manifest = sandbox.read("one/Cargo.toml");
    assert!(
        manifest.contains(&format!("cloudgate = {{ path = \"{escaped}\" }}")),
        "{manifest}"
    );
}

#[test]
fn settings_for_cargo_generate_change_nothing() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("home/cargo-generate.toml"), "this is not TOML").unwrap();
    let mut command = sandbox.command(&["my-app-1"]);
    command
        .env("CARGO_GENERATE_TEMPLATE_VALUES_FILE", "/nowhere")
        .env("CARGO_GENERATE_VALUE_PROJECT_NAME", "other")
        .env(
            "CARGO_GENERATE_VALUE_CLOUDGATE_DEPENDENCY",
            "path = \"/other\"",
        );
    Answer::new(command.output().unwrap()).succeeds();
    let manifest = sandbox.read("my-app-1/Cargo.toml");
    assert!(
        !manifest.contains("\"other") && !manifest.contains("/other"),
        "{manifest}"
    );
}

#[test]
fn the_app_becomes_a_repository_with_a_first_commit() {
    let sandbox = Sandbox::new();
    sandbox.run(&["my-app-1"]).succeeds();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(sandbox.work().join("my-app-1"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(git(&["log", "--format=%an"]), "Ada\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["ls-files"]).lines().collect::<Vec<_>>(), FILES);
}

#[test]
fn no_git_means_no_repository() {
    let sandbox = Sandbox::new();
    sandbox.run(&["my-app-1", "--no-git"]).succeeds();
    assert!(!sandbox.work().join("my-app-1/.git").exists());
}

#[test]
fn inside_a_repository_no_other_one_is_made() {
    let sandbox = Sandbox::new();
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(sandbox.work())
        .status()
        .unwrap();
    assert!(made.success());
    let text = sandbox.run(&["my-app-1"]).succeeds().stdout;
    assert!(
        text.contains("Note: made no git repository: the folder is inside a git repository"),
        "{text}"
    );
    assert!(!sandbox.work().join("my-app-1/.git").exists());
}

#[test]
fn without_an_author_the_repository_has_no_commit_and_the_app_is_made() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("home/.gitconfig"), "").unwrap();
    let mut command = sandbox.command(&["my-app-1"]);
    for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", "EMAIL"] {
        command.env_remove(name);
    }
    let answer = Answer::new(command.output().unwrap()).succeeds();
    assert!(
        answer
            .stdout
            .contains("made a git repository without a first commit"),
        "{}",
        answer.stdout
    );
    assert!(sandbox.work().join("my-app-1/.git").is_dir());
}

#[test]
#[cfg(unix)]
fn run_starts_cargo_in_the_new_folder_and_ends_as_it_ends() {
    let sandbox = Sandbox::new();
    let cargo = sandbox.program("cargo", "echo \"cargo $* on $PORT in $(pwd)\"; exit 7");
    let mut command = sandbox.command(&["my-app-1", "--run", "--port", "4000"]);
    let answer = Answer::new(command.env("CARGO", cargo).output().unwrap());
    assert_eq!(answer.code, 7);
    let last = format!(
        "cargo run on 4000 in {}\n",
        sandbox.work().join("my-app-1").display()
    );
    assert!(answer.stdout.ends_with(&last), "{}", answer.stdout);
    assert!(
        answer
            .stderr
            .starts_with("Running `PORT=4000 cargo run` in "),
        "{}",
        answer.stderr
    );
}

#[test]
fn the_app_stands_alone_inside_another_workspace() {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", "[workspace]\nresolver = \"3\"\n");
    sandbox.run(&["my-app-1"]).succeeds();
    let read = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(sandbox.work().join("my-app-1"))
        .output()
        .unwrap();
    let answer = Answer::new(read).succeeds().json();
    assert_eq!(answer["packages"][0]["name"], "my-app-1");
    assert_eq!(
        sandbox.read("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\n"
    );
}
