//! How is a server run as a process of its own that cannot outlive the benchmark?
//!
//! A child ends when its standard input does. The parent holds the other end of that pipe, so an end of the parent by panic,
//! Ctrl-C or kill ends the children too. Children stand in process groups of their own: Ctrl-C reaches the parent only, and
//! what has to be tidied up still gets done. A program that is not ours (nginx, wrk) runs below a child called `guard`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::limit;
use super::measure::Tree;

/// A started server; dropping it ends it.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    pub(crate) port: u16,
    pub(crate) tree: Tree,
}

impl Running {
    /// Starts this program again in the role given and waits until it has named its port.
    pub(crate) fn start(role: &str, arguments: &[String], dir: &Path) -> Result<Self, String> {
        let log = dir.join(format!("{role}.log"));
        let mut child = again(role, arguments)?
            .current_dir(dir)
            .stdout(Stdio::piped())
            .stderr(log_file(&log)?)
            .spawn()
            .map_err(|error| format!("does not start: {error}"))?;
        let stdin = child.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            // An unreadable line is an empty one, which the next statement reports.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let tree = Tree::from(child.id());
        let mut running = Self {
            child,
            stdin,
            port: 0,
            tree,
        };
        running.port = line
            .trim()
            .parse()
            .map_err(|_| format!("ended before it named its port{}", said(&log)))?;
        Ok(running)
    }

    /// Starts a foreign server below a guard and waits until it accepts on `port`.
    pub(crate) fn start_guarded(program: &[String], port: u16, dir: &Path) -> Result<Self, String> {
        let log = dir.join("guard.log");
        let mut child = again("guard", program)?
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(log_file(&log)?)
            .spawn()
            .map_err(|error| format!("does not start: {error}"))?;
        let stdin = child.stdin.take();
        let tree = Tree::below(child.id());
        let mut running = Self {
            child,
            stdin,
            port,
            tree,
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline || !matches!(running.child.try_wait(), Ok(None)) {
                return Err(format!("does not listen{}", said(&log)));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stdin = None;
        if !ended_within(&mut self.child, Duration::from_secs(3)) {
            // It may have ended meanwhile; there is nobody to tell.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a foreign program to its end below a guard and returns what it wrote to standard output and standard error.
pub(crate) fn run_guarded(program: &[String]) -> Result<String, String> {
    run_to_end("guard", program)
}

/// Runs this program again in the role given, to its end, and returns what it wrote to standard output and standard error.
pub(crate) fn run_to_end(role: &str, arguments: &[String]) -> Result<String, String> {
    let told = |error: io::Error| format!("{role} {arguments:?} does not run: {error}");
    let mut child = again(role, arguments)?
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    // `wait_with_output` would close it, and so end the guard.
    let _stdin = child.stdin.take();
    let output = child.wait_with_output().map_err(told)?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// A child whose one job is to remove a folder when the benchmark ends.
pub(crate) struct Sweeper {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Sweeper {
    pub(crate) const PREFIX: &str = "cloudgate-bench-";

    pub(crate) fn watch(dir: &Path) -> Result<Self, String> {
        let mut child = again("sweep", &[dir.display().to_string()])?
            .spawn()
            .map_err(|error| format!("cannot start a child: {error}"))?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

fn again(role: &str, arguments: &[String]) -> Result<Command, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot tell where this program is: {error}"))?;
    let mut command = Command::new(program);
    command
        .arg(format!("--child={role}"))
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::piped());
    Ok(command)
}

fn log_file(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn said(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default()
}

fn ended_within(child: &mut Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// What a child can be started as: the name, and what it does with its arguments, to the end of the process.
pub(crate) type Role = (&'static str, fn(&[String]) -> Result<(), String>);

/// The roles that every benchmark has.
const SHARED: [Role; 3] = [("guard", guard), ("sweep", sweep), ("limit", limit::serve)];

/// The child's side.
pub(crate) fn play(role: &str, arguments: &[String], own: &[Role]) -> Result<(), String> {
    let (_, serve) = SHARED
        .iter()
        .chain(own)
        .find(|(name, _)| *name == role)
        .ok_or_else(|| {
            format!(
                "there is no child called `{role}`; this argument is for the benchmark's own use"
            )
        })?;
    serve(arguments)
}

/// The child's side: names the port on the first line of standard output, and ends the process when the parent is gone.
pub(crate) fn announce(port: u16) -> Result<(), String> {
    thread::spawn(|| {
        wait_for_parent();
        std::process::exit(0);
    });
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{port}")
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("cannot name the port: {error}"))
}

fn wait_for_parent() {
    // Nobody writes: the read returns when the parent drops its end, and an error means the same.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

fn guard(program: &[String]) -> Result<(), String> {
    let [name, arguments @ ..] = program else {
        return Err("guard: nothing to run".to_owned());
    };
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    let (alive, parent) = mpsc::channel::<()>();
    thread::spawn(move || {
        wait_for_parent();
        drop(alive);
    });
    loop {
        if let Err(RecvTimeoutError::Disconnected) = parent.recv_timeout(Duration::from_millis(20))
        {
            return end_tree(&mut child, name);
        }
        if let Some(status) = child
            .try_wait()
            .map_err(|error| format!("{name}: {error}"))?
        {
            return if status.success() {
                Ok(())
            } else {
                Err(format!("{name} ended with {status}"))
            };
        }
    }
}

/// A killed nginx master would leave its workers behind, so it is asked first.
fn end_tree(child: &mut Child, name: &str) -> Result<(), String> {
    let tree = Tree::from(child.id());
    signal(child.id(), Signal::TERM);
    if ended_within(child, Duration::from_secs(1)) {
        return Ok(());
    }
    for id in tree.ids() {
        signal(id, Signal::KILL);
    }
    child
        .wait()
        .map(drop)
        .map_err(|error| format!("{name}: {error}"))
}

fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // A process that has ended meanwhile is what was wanted.
        let _ = kill_process(pid, signal);
    }
}

fn sweep(arguments: &[String]) -> Result<(), String> {
    let [dir] = arguments else {
        return Err("sweep: one folder, please".to_owned());
    };
    let dir = PathBuf::from(dir);
    if !dir
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(Sweeper::PREFIX))
    {
        return Err(format!(
            "sweep: {} is not a folder of this benchmark",
            dir.display()
        ));
    }
    wait_for_parent();
    // A server that is still ending may write into it once more.
    for _ in 0..50 {
        if fs::remove_dir_all(&dir).is_ok() || !dir.exists() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
