//! What is the user told when the app is made?

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::args::Args;
use crate::dependency::Dependency;
use crate::git::Repository;
use crate::plan::Plan;
use crate::target::Target;

/// What was made, or would be.
pub(crate) struct Made<'a> {
    args: &'a Args,
    target: &'a Target,
    dependency: Dependency,
    plan: Plan,
    /// `None` in a dry run.
    git: Option<Repository>,
}

const USUAL_PORT: u16 = 3000;

impl<'a> Made<'a> {
    pub(crate) fn planned(
        args: &'a Args,
        target: &'a Target,
        dependency: Dependency,
        plan: Plan,
    ) -> Made<'a> {
        Made {
            args,
            target,
            dependency,
            plan,
            git: None,
        }
    }

    pub(crate) fn finished(
        args: &'a Args,
        target: &'a Target,
        dependency: Dependency,
        plan: Plan,
        git: Repository,
    ) -> Made<'a> {
        Made {
            args,
            target,
            dependency,
            plan,
            git: Some(git),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Args { template, port, .. } = self.args;
        let name = self.target.name.as_str();
        let folder = self.target.folder.display();
        if self.git.is_none() {
            return self.preview();
        }
        let mut text = format!("Created {name} (template: {template}) in {folder}\n\n");
        for command in self.commands() {
            let comment = if command.ends_with("cargo run") {
                format!("# http://localhost:{port}")
            } else {
                String::new()
            };
            text.push_str(format!("  {command:<25} {comment}").trim_end());
            text.push('\n');
        }
        text.push_str(&format!(
            "\nTry:  curl localhost:{port}/api/tests/simple\n\
             Edit: api/tests/simple.rs · public/index.html · templates/page.html\n\
             Docs: {}",
            self.readme().display()
        ));
        for note in self.notes() {
            text.push_str(&format!("\nNote: {note}"));
        }
        text
    }

    fn preview(&self) -> String {
        let Args { template, .. } = self.args;
        let mut text = format!(
            "Would create {} (template: {template}) in {}\n",
            self.target.name.as_str(),
            self.target.folder.display()
        );
        for placement in &self.plan.writes {
            let overwritten = if placement.replaces {
                "   (overwritten)"
            } else {
                ""
            };
            text.push_str(&format!("\n  {}{overwritten}", placement.to.display()));
        }
        for file in &self.plan.kept {
            text.push_str(&format!("\n  {}   (yours is kept)", file.display()));
        }
        text.push_str("\n\nNothing was written.");
        text
    }

    pub(crate) fn json(&self) -> String {
        let written: Vec<String> = self
            .plan
            .writes
            .iter()
            .map(|placement| shown(&placement.to))
            .collect();
        let kept: Vec<String> = self.plan.kept.iter().map(|file| shown(file)).collect();
        let git = match self.git {
            Some(Repository::Committed) => "committed",
            Some(Repository::Started(_)) => "started",
            Some(Repository::None(_)) | None => "none",
        };
        let answer = json!({
            "created": self.git.is_some(),
            "dryRun": self.args.dry_run,
            "name": self.target.name.as_str(),
            "path": self.target.folder.to_string_lossy(),
            "template": self.args.template,
            "cloudgate": self.dependency.json(),
            "git": git,
            "files": written,
            "kept": kept,
            "notes": self.notes(),
            "next": self.commands(),
            "url": format!("http://localhost:{}", self.args.port),
        });
        format!("{answer:#}")
    }

    /// What to type next, in this order.
    fn commands(&self) -> Vec<String> {
        let run = match self.args.port {
            USUAL_PORT => "cargo run".to_owned(),
            port => format!("PORT={port} cargo run"),
        };
        let mut commands = vec![run, "cargo test".to_owned()];
        if !self.target.is_here() {
            commands.insert(0, format!("cd {}", quoted(&self.target.typed)));
        }
        commands
    }

    fn readme(&self) -> PathBuf {
        self.plan
            .writes
            .iter()
            .find(|placement| placement.from == Path::new("README.md"))
            .map_or_else(
                || PathBuf::from("README.md"),
                |placement| placement.to.clone(),
            )
    }

    fn keeps(&self, file: &str) -> bool {
        self.plan.kept.iter().any(|kept| kept == Path::new(file))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.plan.kept.is_empty() {
            let files: Vec<String> = self.plan.kept.iter().map(|file| shown(file)).collect();
            notes.push(format!("kept yours: {}", files.join(", ")));
        }
        if self.keeps(".gitignore") {
            notes.push("your .gitignore needs the line /target/, if it has none".to_owned());
        }
        if self.keeps("Cargo.toml") {
            notes.push(format!(
                "the app needs these lines in your Cargo.toml: cloudgate = {{ {} }}, \
                 serde with \"derive\", serde_json, and a [[bin]] with path = \"main.rs\"",
                self.dependency.toml()
            ));
        }
        match &self.git {
            Some(Repository::Started(reason)) => notes.push(format!(
                "made a git repository without a first commit: {reason}"
            )),
            Some(Repository::None(Some(reason))) => {
                notes.push(format!("made no git repository: {reason}"));
            }
            Some(Repository::Committed | Repository::None(None)) | None => {}
        }
        notes
    }
}

/// Slashes everywhere, so that scripts read the same on each system.
fn shown(file: &Path) -> String {
    file.to_string_lossy().replace('\\', "/")
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain =
        |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c) || (cfg!(windows) && c == '\\');
    let text = if text.starts_with('-') {
        format!("./{text}")
    } else {
        text.into_owned()
    };
    if text.chars().all(plain) {
        text
    } else if cfg!(windows) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("my-app-1")), "my-app-1");
        assert_eq!(quoted(Path::new("my apps/one")), "'my apps/one'");
        assert_eq!(quoted(Path::new("it's/one")), r"'it'\''s/one'");
        assert_eq!(quoted(Path::new("-odd/one")), "./-odd/one");
        assert_eq!(quoted(Path::new("$HOME/one")), "'$HOME/one'");
    }
}
