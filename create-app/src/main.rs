//! What does `create-cloudgate-app` do, from the command line to the exit code?

mod args;
mod ask;
mod dependency;
mod expand;
mod failure;
mod git;
mod interrupt;
mod name;
mod next_steps;
mod plan;
mod run;
mod say;
mod stamp;
mod target;
mod template;

use std::process::ExitCode;

use args::Args;
use clap::Parser;
use dependency::Dependency;
use failure::Failure;
use interrupt::Interrupt;
use next_steps::Made;
use plan::Plan;
use target::Target;

fn main() -> ExitCode {
    if let Some(code) = expand::as_child() {
        return code;
    }
    let args = Args::parse();
    match answer(&args) {
        Ok(code) => code,
        Err(failure) => {
            say::failure(&failure, args.json);
            failure.exit_code()
        }
    }
}

fn answer(args: &Args) -> Result<ExitCode, Failure> {
    if args.list_templates {
        say::out(&template::list(args.json));
        return Ok(ExitCode::SUCCESS);
    }
    let target = choose_target(args)?;
    let made = make(args, &target)?;
    if args.json {
        say::out(&made.json());
    } else if !args.quiet {
        say::out(&made.text());
    }
    if args.run {
        return run::start(&target.folder, args.port);
    }
    Ok(ExitCode::SUCCESS)
}

fn choose_target(args: &Args) -> Result<Target, Failure> {
    match &args.target {
        Some(path) => Target::resolve(path),
        None if args.yes => Target::resolve(ask::DEFAULT_NAME.as_ref()),
        None if ask::possible() => ask::target(),
        None => Err(Failure::usage("the name of the new app is missing")
            .with_advice("create-cloudgate-app my-app-1")),
    }
}

fn make<'a>(args: &'a Args, target: &'a Target) -> Result<Made<'a>, Failure> {
    let dependency = Dependency::choose(args.path_dep.as_deref())?;
    let plan = Plan::new(target, &template::files(), args.mode())?;
    if args.dry_run {
        return Ok(Made::planned(args, target, dependency, plan));
    }
    let interrupt = Interrupt::listen()?;
    let expanded = expand::expand(&target.name, &dependency, &interrupt)?;
    let git = stamp::stamp(&expanded, target, &plan, args.git(), &interrupt)?;
    Ok(Made::finished(args, target, dependency, plan, git))
}
