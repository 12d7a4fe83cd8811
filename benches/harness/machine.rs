//! On which machine, with which programs and settings, was this measured?

use std::process::Command;
use std::{fs, thread};

use super::{load, nginx};

/// `load` says with how many connections and for how long.
pub(crate) fn describe(load: &str) -> String {
    let missing = || "none".to_owned();
    let nginx = nginx::version_output("-v")
        .map_or_else(missing, |text| text.replace("nginx version: ", ""));
    let wrk = load::version().unwrap_or_else(missing);
    let mut text = of_programs(&format!("{nginx}; {wrk}"));
    text.push_str(&format!(
        "Load: wrk, {load}, on the same machine over loopback.\n"
    ));
    text
}

/// The line about the machine; `programs` says which others take part, with their versions.
pub(crate) fn of_programs(programs: &str) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "Machine: {}, {cores} cores, Linux {} with {} for TCP; {programs}; {}.\n",
        processor(),
        setting("kernel/osrelease"),
        // It counts: bbr sends in portions by a timer, over loopback too.
        setting("net/ipv4/tcp_congestion_control"),
        compiler(),
    );
    if cfg!(debug_assertions) {
        text.push_str("This is a build with debug assertions: its figures mean nothing.\n");
    }
    text
}

fn setting(name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/{name}"));
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'));
    model.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, name)| name.trim().to_owned(),
    )
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("-V").output();
    output.map_or_else(
        |_| "rustc unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
