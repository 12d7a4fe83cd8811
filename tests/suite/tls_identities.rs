//! Who is a server by TLS, to whom, and from when on?

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cloudgate::{
    App, ClientCa, ClientCertificate, FromRequest, Identity, Rejection, Request, Running, Server,
    Tls,
};
use cloudgate_suite::{LIMIT, wait_for};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme,
    StreamOwned,
};

/// A certificate and its key.
struct Made {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Made {
    fn new(params: &CertificateParams, issuer: Option<&Issuer<'_, KeyPair>>) -> Made {
        let key = KeyPair::generate().expect("a key");
        let made = match issuer {
            Some(issuer) => params.signed_by(&key, issuer),
            None => params.self_signed(&key),
        };
        let made = made.expect("a certificate");
        Made {
            certificate: made.pem(),
            key: key.serialize_pem(),
            der: made.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    fn of(names: &[&str]) -> Made {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Made::new(&CertificateParams::new(names).expect("names"), None)
    }

    fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).expect("an identity")
    }

    fn write(&self, folder: &Path) {
        fs::write(folder.join("cert.pem"), &self.certificate).expect("a file");
        fs::write(folder.join("key.pem"), &self.key).expect("a file");
    }
}

/// Who signs for clients.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "clients' CA");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA")
}

fn client(authority: &CertifiedIssuer<'static, KeyPair>, name: &str, serial: u8) -> Made {
    let mut params = CertificateParams::new([]).expect("names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.serial_number = Some(SerialNumber::from_slice(&[serial]));
    Made::new(&params, Some(authority))
}

/// Takes whatever certificate the server shows, for the tests look at that themselves.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Clients without a certificate, or with one.
fn config(shown: Option<&Made>) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody));
    Arc::new(match shown {
        None => builder.with_no_client_auth(),
        Some(made) => {
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.key_der.clone()));
            builder
                .with_client_auth_cert(vec![made.der.clone()], key)
                .expect("a pair")
        }
    })
}

type Connection = StreamOwned<ClientConnection, TcpStream>;

fn open(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Connection {
    let stream = TcpStream::connect_timeout(&address, LIMIT).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a connection");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
    StreamOwned::new(session, stream)
}

/// The status and the body of an answer; an error of TLS where there is none.
fn get(connection: &mut Connection, target: &str) -> Result<(u16, String), String> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut answer = Vec::new();
    let mut byte = [0];
    connection
        .write_all(request.as_bytes())
        .map_err(|error| error.to_string())?;
    while !answer.ends_with(b"\r\n\r\n") {
        connection
            .read_exact(&mut byte)
            .map_err(|error| error.to_string())?;
        answer.push(byte[0]);
    }
    let head = String::from_utf8(answer).expect("a head");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    connection.read_exact(&mut body).expect("a body");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    let body = String::from_utf8(body).expect("text");
    Ok((status.expect("a status"), body))
}

fn app() -> App {
    App::new()
        .get("/me", |request: &mut Request<'_>| {
            let ClientCertificate(me) = ClientCertificate::from_request(request)?;
            let name = me.common_name().unwrap_or_default();
            Ok::<_, Rejection>(format!("{name} {}", me.serial()))
        })
        .get("/tls", |request: &mut Request<'_>| {
            let secure = request.is_secure();
            let name = request.tls().and_then(|tls| tls.server_name());
            format!("{secure} {}", name.unwrap_or("-"))
        })
}

fn start(tls: impl Into<Tls>) -> Running {
    Server::bind_tls("127.0.0.1:0", tls)
        .expect("a port")
        .serve(app())
        .expect("a server")
}

/// The certificate that a client sees who asks for this name.
fn shown(server: &Running, name: &str) -> CertificateDer<'static> {
    let mut connection = open(server.addr(), &config(None), name);
    assert_eq!(get(&mut connection, "/tls").expect("an answer").0, 200);
    let chain = connection.conn.peer_certificates().expect("a certificate");
    chain[0].clone()
}

#[test]
fn a_client_sees_the_certificate_of_the_name_that_it_asks_for() {
    let first = Made::of(&["a.example", "b.example"]);
    let second = Made::of(&["c.example", "*.d.example"]);
    let third = Made::of(&["something.else"]);
    let tls = Tls::new(first.identity())
        .identity(second.identity())
        .name("E.example", third.identity())
        .name("*.e.example", third.identity())
        .name("b.example", third.identity());
    let server = start(tls);
    for (name, want) in [
        ("a.example", &first),
        ("c.example", &second),
        ("x.d.example", &second),
        ("x.y.d.example", &first),
        ("d.example", &first),
        ("e.example", &third),
        ("x.e.example", &third),
        // What was said counts more than what is written in a certificate.
        ("b.example", &third),
        ("unknown.example", &first),
        ("127.0.0.1", &first),
    ] {
        assert_eq!(shown(&server, name), want.der, "{name}");
    }
    let mut connection = open(server.addr(), &config(None), "x.d.example");
    assert_eq!(
        get(&mut connection, "/tls"),
        Ok((200, "true x.d.example".to_owned()))
    );
    let places: Vec<_> = server
        .certificates()
        .iter()
        .map(|status| status.certificate.names()[0].clone())
        .collect();
    assert_eq!(places[..2], ["a.example", "c.example"]);
}

#[test]
fn a_name_that_is_none_is_an_error_at_the_port() {
    let made = Made::of(&["a.example"]);
    for (name, want) in [
        ("10.0.0.1", "clients do not name IP addresses"),
        ("a*.example", "a * stands for the whole first label"),
        ("https://a.example", "a host is wanted"),
    ] {
        let tls = Tls::new(made.identity()).name(name, made.identity());
        let error = Server::bind_tls("127.0.0.1:0", tls).expect_err(name);
        let error = error.to_string();
        assert!(
            error.starts_with("TLS cannot start: ") && error.contains(want),
            "{error}"
        );
    }
}

#[test]
fn clients_say_by_a_certificate_who_they_are() {
    let ours = authority();
    let alice = client(&ours, "alice", 0x2a);
    let stranger = client(&authority(), "alice", 0x2a);
    let made = Made::of(&["a.example"]);
    let clients = ClientCa::from_pem(ours.pem().as_bytes()).expect("a CA");
    for optional in [false, true] {
        let clients = match optional {
            true => clients.clone().optional(),
            false => clients.clone(),
        };
        let server = start(Tls::new(made.identity()).client_ca(clients));
        let ask = |config: &Arc<ClientConfig>| {
            let mut connection = open(server.addr(), config, "a.example");
            let answer = get(&mut connection, "/me");
            (answer, connection.conn.handshake_kind())
        };
        let known = config(Some(&alice));
        let want = Ok((200, "alice 2a".to_owned()));
        assert_eq!(ask(&known), (want.clone(), Some(HandshakeKind::Full)));
        // Who comes back is still known.
        assert_eq!(ask(&known), (want, Some(HandshakeKind::Resumed)));
        let error = ask(&config(Some(&stranger))).0.expect_err("a stranger");
        assert!(
            error.contains("UnknownCA") || error.contains("DecryptError"),
            "{error}"
        );
        let answer = ask(&config(None)).0;
        if optional {
            let (status, body) = answer.expect("an answer");
            assert_eq!(status, 403);
            assert!(body.contains("a certificate is wanted"), "{body}");
        } else {
            let error = answer.expect_err("nobody");
            assert!(error.contains("CertificateRequired"), "{error}");
        }
    }
}

/// A list of those whose certificates are not good any more.
fn revocations(authority: &CertifiedIssuer<'static, KeyPair>, revoked: &[u8]) -> String {
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2025, 1, 1),
        next_update: date_time_ymd(2125, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: revoked
            .iter()
            .map(|serial| RevokedCertParams {
                serial_number: SerialNumber::from_slice(&[*serial]),
                revocation_time: date_time_ymd(2025, 1, 1),
                reason_code: None,
                invalidity_date: None,
            })
            .collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params
        .signed_by(authority)
        .expect("a list")
        .pem()
        .expect("a list")
}

#[test]
fn who_is_on_the_list_does_not_get_in_once_it_was_read() {
    let ours = authority();
    let (alice, bob) = (client(&ours, "alice", 1), client(&ours, "bob", 2));
    let folder = tempfile::tempdir().expect("a folder");
    let (ca, list) = (folder.path().join("ca.pem"), folder.path().join("list.pem"));
    fs::write(&ca, ours.pem()).expect("a file");
    fs::write(&list, revocations(&ours, &[2])).expect("a file");
    let clients = ClientCa::from_pem_file(&ca)
        .and_then(|clients| clients.revoked_in(&list))
        .expect("a CA and its list");
    let made = Made::of(&["a.example"]);
    let server = start(Tls::new(made.identity()).client_ca(clients));
    let (alice, bob) = (config(Some(&alice)), config(Some(&bob)));
    let ask =
        |config: &Arc<ClientConfig>| get(&mut open(server.addr(), config, "a.example"), "/me");
    assert_eq!(ask(&alice), Ok((200, "alice 1".to_owned())));
    let error = ask(&bob).expect_err("revoked");
    assert!(error.contains("CertificateRevoked"), "{error}");
    fs::write(&list, revocations(&ours, &[1])).expect("a file");
    server.reload_tls().expect("a list");
    assert_eq!(ask(&bob), Ok((200, "bob 2".to_owned())));
    // Not by the session of before either.
    let error = ask(&alice).expect_err("revoked");
    assert!(error.contains("CertificateRevoked"), "{error}");
}

#[test]
fn a_new_certificate_is_taken_and_a_bad_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let first = Made::of(&["a.example"]);
    first.write(path);
    let pair = (path.join("cert.pem"), path.join("key.pem"));
    let identity = Identity::from_pem_files(&pair.0, &pair.1).expect("an identity");
    let server = start(&identity);
    let config = config(None);
    let mut before = open(server.addr(), &config, "a.example");
    assert_eq!(get(&mut before, "/tls").expect("an answer").0, 200);
    assert_eq!(shown(&server, "a.example"), first.der);

    // Half of a pair, which stays like that.
    let second = Made::of(&["a.example"]);
    fs::write(&pair.0, &second.certificate).expect("a file");
    let problem = || server.certificates()[0].problem.clone();
    wait_for("the mistake to be told", || problem().is_some());
    assert!(
        problem()
            .expect("one")
            .contains("is not the one of the certificate")
    );
    assert_eq!(shown(&server, "a.example"), first.der);
    // The other half.
    fs::write(&pair.1, &second.key).expect("a file");
    wait_for("the new one to be shown", || {
        shown(&server, "a.example") == second.der
    });
    assert_eq!(problem(), None);
    assert_eq!(server.certificates()[0].certificate.der(), &second.der[..]);

    // At once, where that is asked for; and as a link that is changed, as containers have it.
    let third = Made::of(&["a.example"]);
    fs::create_dir(path.join("new")).expect("a folder");
    third.write(&path.join("new"));
    for name in ["cert.pem", "key.pem"] {
        let link = path.join("link");
        std::os::unix::fs::symlink(path.join("new").join(name), &link).expect("a link");
        fs::rename(&link, path.join(name)).expect("a link");
    }
    server.reload_tls().expect("a pair");
    assert_eq!(shown(&server, "a.example"), third.der);

    // Gone altogether.
    fs::remove_dir_all(path.join("new")).expect("a folder");
    let error = server.reload_tls().expect_err("nothing").to_string();
    assert!(error.contains("cert.pem cannot be read"), "{error}");
    assert_eq!(shown(&server, "a.example"), third.der);
    // Who was there all the time goes on, and comes back.
    assert_eq!(get(&mut before, "/tls").expect("an answer").0, 200);
    assert_eq!(
        before
            .conn
            .peer_certificates()
            .map(|chain| chain[0].clone()),
        Some(first.der)
    );
    let mut again = open(server.addr(), &config, "a.example");
    assert_eq!(get(&mut again, "/tls").expect("an answer").0, 200);
    assert_eq!(again.conn.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[test]
fn a_certificate_that_has_expired_or_is_not_valid_yet_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (from, until, want) in [
        (2020, 2021, "has expired"),
        (2120, 2121, "is not valid before"),
    ] {
        let mut params = CertificateParams::new(["a.example".to_owned()]).expect("names");
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        Made::new(&params, None).write(path);
        let error = Identity::from_pem_files(path.join("cert.pem"), path.join("key.pem"))
            .expect_err(want)
            .to_string();
        assert!(
            error.contains("cert.pem (a.example) ") && error.contains(want),
            "{error}"
        );
    }
    let made = Made::of(&["remaining.example"]).identity();
    let server = start(made.clone());
    let remaining = server.certificates()[0].remaining();
    let until = made.certificate().valid_until();
    let really = until.duration_since(SystemTime::now()).expect("the future");
    assert!(remaining >= really && remaining - really < Duration::from_secs(60));
    let metrics = cloudgate::metrics();
    let until = until.duration_since(std::time::UNIX_EPOCH).expect("a time");
    let labels = "{name=\"remaining.example\",place=\"the certificate\"}";
    for want in [
        format!(
            "cloudgate_certificate_expiry_timestamp_seconds{labels} {}\n",
            until.as_secs()
        ),
        format!("cloudgate_certificate_problem{labels} 0\n"),
    ] {
        assert!(metrics.contains(&want), "{metrics}");
    }
}

#[test]
fn a_client_that_can_agree_on_nothing_hears_an_alert() {
    let server = start(Made::of(&["a.example"]).identity());
    let mut only_h2 = (*config(None)).clone();
    only_h2.alpn_protocols = vec![b"h2".to_vec()];
    let mut connection = open(server.addr(), &Arc::new(only_h2), "a.example");
    let error = get(&mut connection, "/tls").expect_err("no protocol");
    assert!(error.contains("NoApplicationProtocol"), "{error}");
}
