//! On which machine, with which programs and settings, was this measured?

use std::process::Command;
use std::{fs, thread};

use crate::options::Options;
use crate::{load, nginx};

pub(crate) fn describe(options: &Options) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let missing = || "none".to_owned();
    let nginx = nginx::version_output("-v")
        .map_or_else(missing, |text| text.replace("nginx version: ", ""));
    let mut text = format!(
        "Machine: {}, {cores} cores, Linux {}; {nginx}; {}; {}.\n",
        processor(),
        fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim(),
        load::version().unwrap_or_else(missing),
        compiler(),
    );
    let pipeline = if options.pipeline > 1 {
        format!(", {} requests pipelined", options.pipeline)
    } else {
        String::new()
    };
    text.push_str(&format!(
        "Load: wrk, 2 threads, {} connections{pipeline}, {} rounds of {} s, on the same machine over loopback.\n",
        options.connections, options.rounds, options.seconds
    ));
    if cfg!(debug_assertions) {
        text.push_str("This is a build with debug assertions: its figures mean nothing.\n");
    }
    text
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
