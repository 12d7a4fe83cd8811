//! Does the new app become a git repository?
//!
//! Yes, with a first commit of the files just written, unless git is missing or the folder belongs
//! to a repository already. Whatever git says no to is a note: the app is there all the same.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::interrupt::Interrupt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Repository,
    Nothing,
}

pub(crate) enum Repository {
    Committed,
    /// A repository without a commit, and git's reason.
    Started(String),
    /// No repository; the reason, if it is worth a word.
    None(Option<String>),
}

/// Tells `made` of the folder `.git` before it is filled.
pub(crate) fn start(
    folder: &Path,
    files: &[&Path],
    wish: Wish,
    interrupt: &Interrupt,
    made: impl FnOnce(PathBuf),
) -> Result<Repository, Failure> {
    if wish == Wish::Nothing {
        return Ok(Repository::None(None));
    }
    let git = |arguments: &[&str]| git(folder, arguments, &[], interrupt);
    match git(&["rev-parse", "--is-inside-work-tree"])? {
        Answer::Missing => return Ok(Repository::None(Some("git is not installed".to_owned()))),
        Answer::Yes => {
            return Ok(Repository::None(Some(
                "the folder is inside a git repository".to_owned(),
            )));
        }
        Answer::No(_) if folder.join(".git").exists() => {
            return Ok(Repository::None(Some("there is a .git already".to_owned())));
        }
        Answer::No(_) => {}
    }
    made(folder.join(".git"));
    // Not `init -b main`: git before 2.28 does not know it.
    for arguments in [
        &["init", "-q"][..],
        &["symbolic-ref", "HEAD", "refs/heads/main"],
    ] {
        if let Answer::No(reason) = git(arguments)? {
            return Ok(Repository::None(Some(reason)));
        }
    }
    if let Answer::No(reason) = self::git(folder, &["add", "-f", "--"], files, interrupt)? {
        return Ok(Repository::Started(reason));
    }
    // With useConfigOnly git makes up no author: without user.name there is no commit.
    let commit = [
        "-c",
        "user.useConfigOnly=true",
        "commit",
        "-q",
        "--no-verify",
        "--no-gpg-sign",
        "-m",
        "Start from create-cloudgate-app",
    ];
    Ok(match git(&commit)? {
        Answer::Yes => Repository::Committed,
        Answer::Missing => Repository::Started("git is gone".to_owned()),
        Answer::No(reason) => Repository::Started(reason),
    })
}

enum Answer {
    Yes,
    No(String),
    Missing,
}

fn git(
    folder: &Path,
    arguments: &[&str],
    files: &[&Path],
    interrupt: &Interrupt,
) -> Result<Answer, Failure> {
    let mut command = Command::new("git");
    // Set when the generator runs in a hook of another repository.
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
    ] {
        command.env_remove(variable);
    }
    let child = command
        .args(arguments)
        .args(files)
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Answer::Missing),
        Err(error) => return Ok(Answer::No(error.to_string())),
    };
    if interrupt.wait(&mut child)?.success() {
        return Ok(Answer::Yes);
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    let reason = said
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("git failed");
    Ok(Answer::No(reason.to_owned()))
}
