//! How do the tests run the generator: in an empty folder, with settings of its own?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// An empty folder to work in, and beside it a home, a place for temporary files and programs.
pub(crate) struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        let root = TempDir::new().unwrap();
        for folder in ["work", "home", "tmp", "bin"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        fs::write(
            root.path().join("home/.gitconfig"),
            "[user]\nname = Ada\nemail = ada@example.org\n",
        )
        .unwrap();
        Sandbox { root }
    }

    /// The folder that the generator runs in.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Puts a shell script before the programs of the machine.
    #[cfg(unix)]
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_create-cloudgate-app"));
        let home = self.root.path().join("home");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs =
            std::iter::once(self.root.path().join("bin")).chain(std::env::split_paths(&path));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("PATH", std::env::join_paths(programs).unwrap())
            .env("HOME", &home)
            .env("CARGO_HOME", &home)
            .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TMPDIR", self.root.path().join("tmp"))
            .env_remove("CARGO");
        for name in [
            "USER",
            "CARGO_NAME",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_NAME",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Answer {
        Answer::new(self.command(arguments).output().unwrap())
    }

    /// Everything below the work folder, repositories left out.
    pub(crate) fn files(&self) -> Vec<String> {
        files_below(&self.work())
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    #[track_caller]
    pub(crate) fn assert_nothing_was_left_behind(&self) {
        assert_eq!(self.files(), Vec::<String>::new());
        self.assert_no_temporary_files();
    }

    #[track_caller]
    pub(crate) fn assert_no_temporary_files(&self) {
        assert_eq!(files_below(&self.path("tmp")), Vec::<String>::new());
    }
}

pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn new(output: Output) -> Answer {
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> Answer {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32, reason: &str) -> Answer {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        assert!(
            self.stderr.contains(reason),
            "{reason:?} is not in: {}",
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// The folders and files below `folder`, sorted, folders with a slash.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry
                .path()
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if entry.file_name() == ".git" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                found.push(format!("{name}/"));
                collect(root, &entry.path(), found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    collect(folder, folder, &mut found);
    found.sort();
    found
}
