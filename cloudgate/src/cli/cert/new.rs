//! How does a person get a certificate for development?

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Outcome, password, stores};
use crate::cli::say;
use crate::net::tls::identity::is_pkcs12;
use crate::net::tls::identity_error::IdentityError;
use crate::net::tls::issue::{OWN_NAMES, issue, lock, machine, names, write_secret};
use crate::net::tls::local_ca::{self, LocalCa};
use crate::net::tls::pkcs12;

/// Makes a key and a certificate for it, for development.
///
/// It is signed by the local CA, if there is one (`cloudgate cert trust` makes it), so that browsers on this machine trust
/// it; otherwise by itself.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Hosts, *.hosts and IP addresses that it is for (default: localhost, 127.0.0.1, ::1 and this machine's name)
    names: Vec<String>,

    /// The file for both; one that ends with .p12 or .pfx is written in PKCS#12 form (default: NAME.pem)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// A file whose first line is the password of a PKCS#12 file; - reads it from standard input (default: SSL_PASSWORD)
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// For how many days it is good. Browsers take no more than 397 from most authorities
    #[arg(long, value_name = "N", default_value_t = 397, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,

    /// Have it sign itself, also where there is a local CA
    #[arg(long)]
    self_signed: bool,

    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let now = SystemTime::now();
    let wanted = if args.names.is_empty() {
        names(OWN_NAMES)
    } else {
        names(args.names.iter().map(String::as_str))
    };
    let mut names = wanted.map_err(|error| error.to_string())?;
    let authority = match args.self_signed {
        true => None,
        false => authority(&names, now)?,
    };
    if args.names.is_empty() {
        // Which may have changed since there is an authority, and then it does not sign for it.
        let machine = machine().filter(|machine| !names.contains(machine));
        names.extend(machine.filter(|machine| {
            let authority = authority.as_ref();
            authority.is_none_or(|authority| authority.may_sign(machine, now))
        }));
    }
    let valid = Duration::from_secs(u64::from(args.days) * 86_400);
    let issued =
        issue(&names, now, valid, authority.as_ref()).map_err(|error| error.to_string())?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("{}.pem", names[0].replace(['*', ':'], "_"))),
    };
    let bytes = if is_pkcs12(&out) {
        let password = password(args.password_file.as_deref())?;
        if password.is_empty() {
            return Err(
                "a PKCS#12 file has a password: name a file with it, --password-file FILE"
                    .to_owned(),
            );
        }
        let key = issued.material.key.secret_der();
        pkcs12::write(&issued.material.chain, key, &names[0], &password)
            .map_err(|error| error.to_string())?
    } else {
        issued.pem.into_bytes()
    };
    let told = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!(
                "{} is there already; --force writes over it",
                say::path(&out)
            )
        }
        _ => IdentityError::Unwritable {
            path: out.clone(),
            source,
        }
        .to_string(),
    };
    let _lock = lock(&out).map_err(told)?;
    write_secret(&out, &bytes, args.force).map_err(told)?;
    let file = say::path(&out);
    let by = match &authority {
        Some(_) => "signed by the local CA, which browsers here trust after `cloudgate cert trust`",
        None => "signed by itself: browsers ask before they trust it",
    };
    let word = out.display().to_string();
    let word = match word.starts_with('-') {
        true => format!("./{word}"),
        false => word,
    };
    let argument = stores::shell(&[word], false);
    let password = match is_pkcs12(&out) {
        true => "SSL_PASSWORD='its password' ",
        false => "",
    };
    Ok(format!(
        "{file} holds a key and a certificate for {}, {by}.\n\n  {password}cloudgate serve --cert {argument}\n  {password}SSL=1 SSL_CERT={argument} cargo run\n",
        names.join(", ")
    ))
}

/// Who signs for these names.
fn authority(names: &[String], now: SystemTime) -> Result<Option<LocalCa>, String> {
    let Some(folder) = local_ca::folder() else {
        return Ok(None);
    };
    let Some(authority) = LocalCa::find(&folder).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    if !authority.lasts(now) {
        return Err("the local CA is at its end, and signs no more: `cloudgate cert trust` makes another, --self-signed a certificate without it".to_owned());
    }
    match names.iter().find(|name| !authority.may_sign(name, now)) {
        None => Ok(Some(authority)),
        Some(name) => Err(format!(
            "the local CA does not sign for {name}: it is for {}, what is below them, and networks of one's own; --self-signed makes a certificate without it",
            authority.domains().join(", ")
        )),
    }
}
