//! Does `cloudgate cert` make certificates, tell what is in them, and have browsers trust them?

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cloudgate::{App, Identity, Server, Tls};
use cloudgate_suite::{Ended, Program, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cli::command;

/// A folder to work in, with a home of its own.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        fs::create_dir(place.path("home")).expect("a folder");
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Program::spawn(self.command(arguments)).ended()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command(arguments);
        command
            .current_dir(self.0.path())
            .env("HOME", self.path("home"))
            .env("USER", "ada")
            .env_remove("XDG_DATA_HOME")
            .env_remove("CLOUDGATE_CA")
            .env_remove("SSL_PASSWORD");
        command
    }

    /// What it says when all goes well.
    #[track_caller]
    fn said(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(
            (ended.code, ended.errors.as_str()),
            (Some(0), ""),
            "{ended:?}"
        );
        ended.lines.join("\n")
    }

    /// Why it could not.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.lines.is_empty(), "{ended:?}");
        ended.errors
    }

    fn mode(&self, name: &str) -> u32 {
        let data = fs::metadata(self.path(name)).expect("a file");
        data.permissions().mode() & 0o777
    }
}

#[test]
fn a_new_certificate_is_written_for_its_owner_and_not_over_another() {
    let place = Place::new();
    let said = place.said(&["cert", "new", "app.test", "*.app.test", "10.0.0.1"]);
    assert!(
        said.contains("app.test.pem holds a key and a certificate for app.test, *.app.test, 10.0.0.1, signed by itself"),
        "{said}"
    );
    assert!(said.contains("SSL=1 SSL_CERT=app.test.pem"), "{said}");
    assert_eq!(place.mode("app.test.pem"), 0o600);
    let file = place.path("app.test.pem");
    let first = fs::read_to_string(&file).expect("a file");
    let identity = Identity::from_pem_files(&file, &file).expect("an identity");
    assert_eq!(
        identity.certificate().names(),
        ["app.test", "*.app.test", "10.0.0.1"]
    );
    let refused = place.refused(&["cert", "new", "app.test"]);
    assert!(
        refused.contains("app.test.pem is there already; --force"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&file).expect("a file"), first);
    place.said(&["cert", "new", "app.test", "--force", "--days", "3"]);
    let shown = place.said(&["cert", "show", "app.test.pem"]);
    for want in [
        "certificate for   app.test",
        "signed by         itself",
        "(2 days left)",
        "key               ECDSA P-256",
        "private key       there, and the one of the first certificate",
    ] {
        assert!(shown.contains(want), "{want}: {shown}");
    }
    let refused = place.refused(&["cert", "new", "a b"]);
    assert!(refused.contains("\"a b\" is no name"), "{refused}");
    let refused = place.refused(&["cert", "new", "--out", "/proc/no/a.pem"]);
    assert!(refused.contains("/proc/no/a.pem"), "{refused}");
}

#[test]
fn a_pkcs12_file_has_a_password() {
    let place = Place::new();
    let refused = place.refused(&["cert", "new", "a.test", "--out", "a.p12"]);
    assert!(refused.contains("--password-file FILE"), "{refused}");
    fs::write(place.path("password"), "open sesame\nsecond line").expect("a file");
    let with = ["--password-file", "password"];
    place.said(&[&["cert", "new", "a.test", "--out", "a.p12"], &with[..]].concat());
    let shown = place.said(&[&["cert", "show", "a.p12"], &with[..]].concat());
    assert!(shown.contains("certificate for   a.test"), "{shown}");
    let said = place.said(&[&["cert", "new", "a.test", "--out", "my a.p12"], &with[..]].concat());
    assert!(
        said.contains("  SSL_PASSWORD='its password' cloudgate serve --cert 'my a.p12'\n"),
        "{said}"
    );
    let refused = place.refused(&["cert", "show", "a.p12"]);
    assert!(
        refused.contains("the password of a.p12 is another"),
        "{refused}"
    );
    let identity = Identity::from_pkcs12_file(place.path("a.p12"), "open sesame");
    assert_eq!(identity.expect("one").certificate().names(), ["a.test"]);
}

#[test]
fn what_is_shown_tells_what_is_wrong() {
    let place = Place::new();
    place.said(&["cert", "new", "a.test"]);
    place.said(&["cert", "new", "b.test"]);
    let shown = place.said(&["cert", "show", "a.test.pem", "--key", "b.test.pem"]);
    assert!(shown.contains("NOT the one of the first"), "{shown}");
    let text = fs::read_to_string(place.path("a.test.pem")).expect("a file");
    let begin = text.find("-----BEGIN CERT").expect("a certificate");
    fs::write(place.path("only.pem"), &text[begin..]).expect("a file");
    let shown = place.said(&["cert", "show", "only.pem"]);
    assert!(
        shown.contains("private key       not in this file"),
        "{shown}"
    );
    for (what, want) in [
        ("none.pem", "none.pem cannot be read"),
        ("password", "password cannot be read"),
        ("127.0.0.1:1", "127.0.0.1:1: "),
    ] {
        let refused = place.refused(&["cert", "show", what]);
        assert!(refused.contains(want), "{refused}");
    }
}

#[test]
fn the_certificate_of_a_server_is_shown_and_whether_it_is_trusted() {
    let place = Place::new();
    place.said(&["cert", "new", "a.test", "localhost"]);
    let file = place.path("a.test.pem");
    let identity = Identity::from_pem_files(&file, &file).expect("an identity");
    let server = Server::bind_tls("127.0.0.1:0", Tls::new(identity))
        .expect("a port")
        .serve(App::new().get("/", || "hello"))
        .expect("a server");
    let address = server.addr().to_string();
    let shown = place.said(&[
        "cert",
        "show",
        &address,
        "--ca",
        "a.test.pem",
        "--name",
        "a.test",
    ]);
    for want in [
        "certificate for   a.test, localhost",
        "trusted           by a.test.pem",
        "speaks            TLSv1.3 ",
    ] {
        assert!(shown.contains(want), "{want}: {shown}");
    }
    let shown = place.said(&[
        "cert",
        "show",
        &address,
        "--ca",
        "a.test.pem",
        "--name",
        "b.test",
    ]);
    assert!(
        shown.contains("NOT by a.test.pem: ") && shown.contains("b.test"),
        "{shown}"
    );
    let plain = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(App::new().get("/", || "hello")))
        .expect("a server");
    let address = plain.addr().to_string();
    let refused = place.refused(&["cert", "show", &address, "--ca", "a.test.pem"]);
    assert!(
        refused.starts_with(&format!("cloudgate: {address}: ")),
        "{refused}"
    );
}

/// A `certutil` that notes what it was called with.
fn certutil(place: &Place, then: &str) -> std::path::PathBuf {
    let folder = place.path("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let script = format!(
        "#!/bin/sh\nCALLS='{}'\necho \"$@\" >> $CALLS\n{then}\n",
        place.path("calls").display()
    );
    let path = folder.join("certutil");
    // Not written in place: what is open for writing cannot be executed.
    fs::write(folder.join("new"), script).expect("a file");
    fs::set_permissions(folder.join("new"), Permissions::from_mode(0o755)).expect("a file");
    fs::rename(folder.join("new"), &path).expect("a file");
    folder
}

fn calls(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.path("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn browsers_trust_what_the_local_ca_signs() {
    let place = Place::new();
    let folder = certutil(&place, "exit 0");
    let trust = |more: &[&str]| {
        let mut command = place.command(&[&["cert", "trust", "--only", "browsers"], more].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        Program::spawn(command).ended()
    };
    let dry = trust(&["--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(
        dry.lines.iter().any(|line| line.contains("would be done")),
        "{dry:?}"
    );
    assert_eq!(calls(&place), [] as [&str; 0]);
    assert!(
        fs::read_dir(place.path("home"))
            .expect("a folder")
            .next()
            .is_none(),
        "a dry run writes nothing"
    );
    let ca = "home/.local/share/cloudgate/ca";
    let certificate = place.path(&format!("{ca}/ca.pem"));

    assert_eq!(trust(&[]).code, Some(0));
    assert_eq!(
        (place.mode(ca), place.mode(&format!("{ca}/ca-key.pem"))),
        (0o700, 0o600)
    );
    let made = calls(&place);
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(
        made[0].starts_with("-N --empty-password -d sql:"),
        "{made:?}"
    );
    assert!(
        made[1].starts_with("-A -d sql:")
            && made[1].contains("cloudgate local CA ada@")
            && made[1].ends_with(&certificate.display().to_string()),
        "{made:?}"
    );
    // Again, and in another browser.
    for database in [".pki/nssdb", ".mozilla/firefox/x.default"] {
        let folder = place.path("home").join(database);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("cert9.db"), "").expect("a file");
    }
    assert_eq!(trust(&[]).code, Some(0));
    assert_eq!(calls(&place).len(), 4);

    let said = place.said(&["cert", "new", "app.test"]);
    assert!(said.contains("signed by the local CA"), "{said}");
    let shown = place.said(&["cert", "show", "app.test.pem"]);
    assert!(
        shown.contains("(the local CA)") && shown.contains("no host: it signs for others"),
        "{shown}"
    );
    // By its key, and not by its name: another of that name is not meant.
    fs::rename(place.path(ca), place.path("old")).expect("a folder");
    certutil(&place, "exit 1");
    assert_eq!(trust(&[]).code, Some(1));
    let shown = place.said(&["cert", "show", "app.test.pem"]);
    assert!(
        shown.contains("CN=cloudgate local CA ada@") && !shown.contains("(the local CA)"),
        "{shown}"
    );
    fs::remove_dir_all(place.path(ca)).expect("a folder");
    fs::rename(place.path("old"), place.path(ca)).expect("a folder");
    certutil(&place, "exit 0");
    fs::write(place.path("calls"), "\n".repeat(4)).expect("a file");
    let refused = place.refused(&["cert", "new", "example.com"]);
    assert!(
        refused.contains("does not sign for example.com"),
        "{refused}"
    );
    place.said(&["cert", "new", "example.com", "--self-signed"]);

    // As many as have its name, for it may have been made anew.
    certutil(
        &place,
        "test $(wc -l < $CALLS) -gt 6 || exit 0; echo could not find certificate named 'x' >&2; exit 255",
    );
    let removed = trust(&["--remove"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let text = removed.lines.join("\n");
    assert!(
        text.contains("no longer in the browser's store")
            && text.contains("not in the browser's store"),
        "{text}"
    );
    let removals = calls(&place).split_off(4);
    assert_eq!(removals.len(), 4, "{removals:?}");
    assert!(
        removals.iter().all(|call| call.starts_with("-D -d sql:")),
        "{removals:?}"
    );
    // What fails is done by hand, and is no success, be it that nobody trusts it any more.
    certutil(&place, "echo a password is wanted >&2; exit 255");
    for (arguments, command) in [
        (&[][..], "  certutil -A -d sql:"),
        (&["--remove"], "  certutil -D -d sql:"),
    ] {
        let failed = trust(arguments);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(
            failed
                .errors
                .contains("not done, certutil says: a password is wanted")
                && failed.errors.contains(command),
            "{failed:?}"
        );
    }
}

#[test]
fn without_certutil_the_commands_are_told() {
    let place = Place::new();
    let mut command = place.command(&["cert", "trust", "--only", "browsers"]);
    command.env("PATH", place.path("nothing"));
    let ended = Program::spawn(command).ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended.lines.join("\n");
    assert!(
        text.contains("libnss3-tools") && text.contains("  certutil -A -d sql:"),
        "{text}"
    );
    let text = place.said(&["cert", "trust", "--only", "system", "--dry-run"]);
    assert!(text.contains("cloudgate-local-ca.crt"), "{text}");
}

#[test]
fn serve_speaks_tls_by_a_key_that_it_makes_and_does_not_serve() {
    let place = Place::new();
    fs::write(place.path("index.html"), "page").expect("a file");
    let mut program = Program::spawn(place.command(&["serve", "--tls", "--port", "0", "--quiet"]));
    program.line();
    let line = program.line();
    let address = line
        .trim()
        .strip_prefix("https://")
        .expect("an address")
        .to_owned();
    let key = Path::new(".cloudgate/generated.pem");
    assert_eq!(place.mode(".cloudgate/generated.pem"), 0o600);
    let shown = place.said(&["cert", "show", &address, "--ca", ".cloudgate/generated.pem"]);
    assert!(
        shown.contains("trusted           by .cloudgate/generated.pem"),
        "{shown}"
    );
    // What it has made is not among what it serves.
    let target = format!("/{}", key.display());
    let secret = tls_get(&address, &place.path(".cloudgate/generated.pem"), &target);
    assert!(secret.starts_with("HTTP/1.1 404"), "{secret}");
    let page = tls_get(&address, &place.path(".cloudgate/generated.pem"), "/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.ends_with("page"),
        "{page}"
    );
    // It takes the CA that is made while it runs.
    let mut trust = place.command(&["cert", "trust", "--only", "browsers"]);
    trust.env("PATH", place.path("nothing"));
    assert_eq!(Program::spawn(trust).ended().code, Some(0));
    let ca = "home/.local/share/cloudgate/ca/ca.pem";
    wait_for("the CA to sign", || {
        place
            .said(&["cert", "show", &address, "--ca", ca])
            .contains(&format!("trusted           by {ca}"))
    });
    let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), Signal::TERM).expect("a process that runs");
    assert_eq!(program.ended().code, Some(0));
    wait_for("the key to stay", || {
        place.path(".cloudgate/generated.pem").exists()
    });
}

/// The whole answer of a server whose certificate is in this file.
fn tls_get(address: &str, certificate: &Path, target: &str) -> String {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use cloudgate_suite::{open_tls, trusting};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let own = CertificateDer::from_pem_file(certificate).expect("a certificate");
    let address = address.parse().expect("an address");
    let mut tls = open_tls(address, &Arc::new(trusting([own]))).expect("a connection");
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    tls.write_all(request.as_bytes()).expect("a connection");
    let mut answer = String::new();
    tls.read_to_string(&mut answer).expect("an answer");
    answer
}
