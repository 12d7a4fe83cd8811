//! How does a browser on the developer's machine come to trust what is made here?

use std::env;
use std::path::Path;
use std::time::SystemTime;

use clap::ValueEnum;

use super::Outcome;
use super::stores::{self, Change, Done, Step};
use crate::cli::say;
use crate::net::tls::identity_error::IdentityError;
use crate::net::tls::local_ca::make::{self, certificate_file};
use crate::net::tls::local_ca::{self, LocalCa};

/// Makes a local CA, if there is none, and lets browsers and programs on this machine trust it.
///
/// Certificates that are made here are signed by it from then on, so that https://localhost is green. It signs for names of
/// machines and networks of one's own alone (localhost, .test, .local, .internal, .home.arpa, this machine's name, private
/// addresses), and says so itself. Its key stays in the user's data directory, or the folder in CLOUDGATE_CA.
///
/// What wants root is not done but told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Have nobody trust it any more; the CA itself stays
    #[arg(long)]
    remove: bool,

    /// Tell what would be done, and do none of it
    #[arg(long)]
    dry_run: bool,

    /// One kind of place alone
    #[arg(long, value_enum, value_name = "WHERE")]
    only: Option<Only>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Chromium's and Firefox's own stores
    Browsers,
    /// The system's store, which curl and most other programs read
    System,
}

pub(super) fn run(args: &Args) -> Outcome {
    let folder = local_ca::folder()
        .ok_or("neither HOME nor CLOUDGATE_CA says where the local CA is to lie")?;
    let told = |error: IdentityError| error.to_string();
    let there = match args.remove || args.dry_run {
        true => LocalCa::find(&folder).map_err(told)?,
        false => Some(LocalCa::find_or_make(&folder, SystemTime::now()).map_err(told)?),
    };
    let (name, domains) = match &there {
        Some(authority) => {
            let name = authority.certificate().common_name();
            (
                name.unwrap_or_default().to_owned(),
                authority.domains().to_vec(),
            )
        }
        None if args.remove => {
            return Err(format!("there is no local CA in {}", say::path(&folder)));
        }
        None => (make::name(), make::domains()),
    };
    let certificate = certificate_file(&folder);
    let change = Change {
        certificate: &certificate,
        name: &name,
        remove: args.remove,
    };
    let mut steps = Vec::new();
    if args.only != Some(Only::System)
        && let Some(home) = stores::home()
    {
        steps.extend(stores::browsers(&home, change));
    }
    let browsers = steps.len();
    if args.only != Some(Only::Browsers) {
        steps.push(stores::system(change));
    }
    let mut text = format!(
        "{}, in {}, {} for {}, what is below them, and networks of one's own.\n",
        say::path(Path::new(&name)),
        say::path(&folder),
        if there.is_some() {
            "signs"
        } else {
            "would be made, and sign"
        },
        domains.join(", ")
    );
    if let Some(user) = env::var_os("SUDO_USER") {
        let user = say::path(Path::new(&user));
        text += &format!(
            "\nThis is root's. Without sudo it is {user}'s, whose browsers and servers have use for it.\n"
        );
    }
    let mut failed = false;
    for (index, step) in steps.iter().enumerate() {
        let wants_root = index >= browsers;
        failed |= !tell(&mut text, step, args, change, wants_root);
    }
    text += &ending(args, &certificate);
    match failed {
        false => Ok(text),
        true => Err(text.trim_end().to_owned()),
    }
}

/// Does a step, or tells how it is done; whether that went well.
fn tell(text: &mut String, step: &Step, args: &Args, change: Change<'_>, wants_root: bool) -> bool {
    let place = &step.place;
    let done = if args.remove {
        "no longer in"
    } else {
        "trusted in"
    };
    let (reason, went_well) = match &step.left {
        Some(left) => (format!("left to you, for {left}"), true),
        None if args.dry_run => ("would be done".to_owned(), true),
        None => match stores::perform(step, change) {
            Ok(Done::Done) => {
                *text += &format!("\n{done} {place}\n");
                return true;
            }
            Ok(Done::Absent) => {
                *text += &format!("\nnot in {place}\n");
                return true;
            }
            Err(error) => (format!("not done, {error}"), false),
        },
    };
    *text += &format!("\n{place}: {reason}\n");
    let root = wants_root && !rustix::process::geteuid().is_root();
    for command in &step.commands {
        *text += &format!("  {}\n", stores::shell(command, root));
    }
    went_well
}

/// What comes next.
fn ending(args: &Args, certificate: &Path) -> String {
    if args.remove {
        return "\nBrowsers that run see it when they are started again.\n".to_owned();
    }
    format!(
        "\nBrowsers that run see it when they are started again. Servers that made their own key have it\nsigned anew within seconds. Others take the CA by its file:\n  curl --cacert {0} https://localhost:3000\n  NODE_EXTRA_CA_CERTS={0} node app.js\n",
        say::path(certificate)
    )
}
