//! How fast are the five cases of the original's benchmark, beside nginx, may_minihttp and the least that any server can do?
//!
//! ```text
//! cargo bench --bench seeds                     # five cases, four servers, three rounds: about seven minutes
//! cargo bench --bench seeds -- simple nginx     # only these cases and servers (BENCH_ONLY=simple,nginx does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 BENCH_CONNECTIONS=256 BENCH_PIPELINE=16 cargo bench --bench seeds
//! ```
//!
//! Every server is a process of its own: this program starts itself again with `--child=…`, and nginx below such a child.
//! The load is wrk's, over loopback; processor time and memory come from `/proc`, so it runs on Linux only.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it, so that `cargo bench > table.md` holds the table alone.

#[path = "../harness/mod.rs"]
mod harness;

mod app;
mod cases;
mod floor;
mod nginx;
mod options;
mod rounds;
mod selfcheck;
mod servers;
mod site;
mod table;

use std::process::ExitCode;

use harness::{ask, child, limit, load, machine, measure};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments
        .first()
        .and_then(|first| first.strip_prefix("--child="))
    {
        Some(role) => child::play(role, &arguments[1..]),
        None if arguments.iter().any(|argument| argument == "--bench") => bench(&arguments),
        None => {
            selfcheck::run();
            println!(
                "seeds: the harness reads its own samples rightly; `cargo bench --bench seeds` measures"
            );
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("seeds: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let options = options::Options::read(arguments)?;
    let site = site::Site::lay_out()?;
    let rows = rounds::run(&options, &site)?;
    println!("{}", machine::describe(&options));
    println!("{}", table::render(&rows, &site));
    Ok(())
}
