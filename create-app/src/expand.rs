//! How are the placeholders of the template filled in?
//!
//! By cargo-generate, in a child process of this same program. As a library it prints on stderr
//! whatever it is told, takes values from `CARGO_GENERATE_*`, reads the user's settings, wants
//! `$USER`, works in `$TMPDIR` without removing it on a signal, and rewrites odd characters in the
//! path of its working folder. A child with its own environment and folder has none of that.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use cargo_generate::{GenerateArgs, TemplatePath, Vcs};
use tempfile::TempDir;

use crate::dependency::Dependency;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::name::Name;
use crate::say;
use crate::template;

/// The first argument of the child. No path or flag of a user looks like this.
const CHILD: &str = "\u{1}expand";

/// The finished files, in a folder that goes away with this value.
pub(crate) struct Expanded {
    _workshop: TempDir,
    pub(crate) folder: PathBuf,
}

pub(crate) fn expand(
    name: &Name,
    dependency: &Dependency,
    interrupt: &Interrupt,
) -> Result<Expanded, Failure> {
    let workshop = tempfile::Builder::new()
        .prefix("create-cloudgate-app-")
        .tempdir()
        .map_err(|error| Failure::io("make a folder in", &env::temp_dir(), error))?;
    let room = workshop.path();
    let log = room.join("log");
    let child = furnish(room).and_then(|()| {
        let mut command = Command::new(env::current_exe()?);
        for (key, _) in
            env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CARGO_GENERATE"))
        {
            command.env_remove(key);
        }
        command
            .args([CHILD, name.as_str(), &dependency.toml()])
            .current_dir(room)
            .envs(["TMPDIR", "TMP", "TEMP"].map(|key| (key, room.join("tmp"))))
            .env("CARGO_NAME", "nobody")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
    });
    let mut child = child
        .map_err(|error| Failure::could_not(format!("cannot unpack the template: {error}")))?;
    let status = interrupt.wait(&mut child)?;
    interrupt.check()?;
    if !status.success() {
        let said = fs::read_to_string(&log).unwrap_or_default();
        return Err(Failure::could_not(format!(
            "cannot fill in the template: {}",
            said.trim()
        )));
    }
    let folder = room.join("out").join(name.as_str());
    Ok(Expanded {
        _workshop: workshop,
        folder,
    })
}

fn furnish(room: &Path) -> io::Result<()> {
    template::unpack(&room.join("template"))?;
    File::create(room.join("settings.toml"))?;
    fs::create_dir(room.join("tmp"))?;
    fs::create_dir(room.join("out"))
}

/// The work of the child, if this process is one.
pub(crate) fn as_child() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next()? != CHILD {
        return None;
    }
    let name = args.next()?.into_string().ok()?;
    let dependency = args.next()?.into_string().ok()?;
    let filled_in = cargo_generate::generate(GenerateArgs {
        template_path: TemplatePath {
            path: Some("template".to_owned()),
            ..TemplatePath::default()
        },
        name: Some(name),
        define: vec![format!("cloudgate_dependency={dependency}")],
        destination: Some(PathBuf::from("out")),
        config: Some(PathBuf::from("settings.toml")),
        vcs: Some(Vcs::None),
        // The name is final: do not make another one of it.
        force: true,
        silent: true,
        quiet: true,
        no_workspace: true,
        no_fmt: true,
        ..GenerateArgs::default()
    });
    Some(match filled_in {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            say::err(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    })
}
