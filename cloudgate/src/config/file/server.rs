//! What can be set about the gateway's own listeners?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use super::guards::{CompressSection, CorsSection};
use super::node::Node;
use super::reader::Reader;
use super::section::{choice, section};
use super::values::{BodyLimit, Secret};
use crate::message::network::Network;

section! {
    /// Where the gateway listens, and how clients are treated.
    ServerSection called "`server`" {
        /// The TCP port; 0 takes any free one.
        port: u16 = 3000,
        /// The address to listen on; `::` and `0.0.0.0` are all of the machine's.
        host: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        /// Worker threads, 1 to 128; without it one a core.
        threads: Option<usize>,
        /// The most connections at once; past it a new one gets 503. Without it, it is reckoned from the limits of the process.
        max_connections: Option<usize>,
        /// The largest request body. A number without a unit is bytes, `0` is 4 MiB, `none` is no limit.
        body_limit: BodyLimit = BodyLimit::ZOLLYS,
        /// How long requests under way may go on after a signal to stop.
        shutdown_timeout: Duration = Duration::from_secs(10),
        /// For how long `/readyz` of the admin listener fails before the gateway stops listening.
        shutdown_delay: Duration = Duration::ZERO,
        /// Networks of proxies in front, whose `X-Forwarded-For` and `Forwarded` are believed.
        trusted_proxies: Vec<Network>,
        /// Proxies in front that begin each connection with the PROXY protocol.
        proxy_protocol: Option<ProxyProtocolSection>,
        /// Which pages of other origins may ask. A service's own takes the place of it.
        cors: Option<CorsSection>,
        /// A line for each request.
        log: Option<LogSection>,
        /// Compresses answers. A service's own takes the place of it.
        compress: Option<CompressSection>,
        /// TLS, in place of plain HTTP or beside it.
        ssl: Option<SslSection>,
        /// How long clients may take.
        timeouts: ServerTimeouts,
    }
    check check_server
}

section! {
    /// Proxies that speak the PROXY protocol, version 1 or 2.
    ProxyProtocolSection called "`proxyProtocol`" {
        /// The networks that they are in. Who is in none of them must not send such a header.
        from: Vec<Network>,
        /// Whether all who connect by a Unix socket are such proxies.
        unix_sockets: bool = false,
    }
}

section! {
    /// The access log.
    LogSection called "`log`" {
        /// Whether there is one.
        enable: bool = true,
        /// What a line looks like; `auto` is `text` on a terminal and `json` elsewhere.
        format: LogStyle = LogStyle::Auto,
        /// The file that lines go to; without it standard output.
        file: Option<PathBuf>,
    }
}

choice! {
    /// What a line of the access log looks like.
    LogStyle {
        /// Text on a terminal, JSON elsewhere.
        Auto = "auto",
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
        /// As nginx and Apache call it.
        Combined = "combined",
    }
}

section! {
    /// TLS of the gateway's own port.
    SslSection called "`ssl`" {
        /// Whether it is served.
        enable: bool = true,
        /// The TCP port of TLS; without it `server.port` speaks TLS.
        port: Option<u16>,
        /// Makes a key with a certificate that it signs itself.
        generate_key: Option<GenerateKeySection>,
        /// A PKCS#12 file with certificate and key.
        key: Option<KeySection>,
        /// Certificates; the one for the name that a client asks for is shown, else the first.
        certificates: Vec<CertificateSection>,
        /// File of those who sign certificates of clients, in PEM form: who has none does not get in.
        client_ca: Option<PathBuf>,
        /// Lets clients in that show no certificate.
        client_optional: bool = false,
        /// A port of plain HTTP, whose clients are sent to TLS.
        redirect_from: Option<u16>,
        /// For how long browsers shall come by TLS alone (`Strict-Transport-Security`).
        hsts: Option<Duration>,
    }
    check check_ssl
}

section! {
    /// A key that the gateway makes.
    GenerateKeySection called "`generateKey`" {
        /// Whether one is made.
        enable: bool = true,
        /// What it is for and where it lies.
        key_config: KeyConfigSection,
    }
}

section! {
    /// What a key that is made is for, and where it lies.
    KeyConfigSection called "`keyConfig`" {
        /// The name that it is for.
        common_name: Option<String>,
        /// More names and addresses that it is for.
        names: Vec<String>,
        /// The file that holds it: PKCS#12 where it ends with `.p12` or `.pfx`, else PEM.
        file: Option<PathBuf>,
        /// The password of the PKCS#12 file.
        password: Secret = Secret::default(),
    }
}

section! {
    /// A PKCS#12 file.
    KeySection called "`key`" {
        /// The file that holds both.
        file: PathBuf,
        /// The password of that file.
        password: Secret = Secret::default(),
    }
}

section! {
    /// A certificate and its key.
    CertificateSection called "a certificate" {
        /// The file of the certificate with its chain: PEM, or PKCS#12 if it ends with `.p12` or `.pfx`.
        certificate: PathBuf,
        /// The file of its key in PEM form; without it that of the certificate.
        key: Option<PathBuf>,
        /// The password of a PKCS#12 file.
        password: Secret = Secret::default(),
    }
}

section! {
    /// How long a client may take; `none` turns a limit off.
    ServerTimeouts called "`timeouts` of `server`" {
        /// For a TLS handshake and a whole request head, from its first byte.
        head: Option<Duration> = Some(Duration::from_secs(10)),
        /// For the next request on a kept-alive connection.
        idle: Option<Duration> = Some(Duration::from_secs(75)),
        /// How far a body may fall behind `minRate` before it is cut off.
        grace: Option<Duration> = Some(Duration::from_secs(10)),
        /// Bytes a second that a body must bring, and that a reader of an answer must take; 0 for no such limit.
        min_rate: u32 = 240,
        /// How long an answer may make no progress at all.
        stall: Option<Duration> = Some(Duration::from_secs(30)),
    }
}

section! {
    /// The listener for health, readiness and metrics.
    AdminSection called "`admin`" {
        /// Whether there is one.
        enable: bool = true,
        /// The address to listen on.
        host: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST),
        /// The TCP port; 0 takes any free one.
        port: u16 = 9180,
        /// Allows a `host` that others than this machine can reach.
        allow_public: bool = false,
    }
    check check_admin
}

impl AdminSection {
    /// What it is where nothing is said of it.
    pub(crate) fn usual() -> Option<AdminSection> {
        <AdminSection as super::section::Setting>::unset()
    }
}

/// The most worker threads.
const MOST_THREADS: usize = 128;

fn check_server(server: &ServerSection, node: &Node, reader: &mut Reader<'_>) {
    if let Some(threads) = server.threads
        && !(1..=MOST_THREADS).contains(&threads)
    {
        let wanted = format!("`threads` is a number from 1 to {MOST_THREADS}, not {threads}");
        reader.wrong(node.at("threads"), wanted);
    }
    if server.max_connections == Some(0) {
        let wanted =
            "`maxConnections: 0` would let nobody in: leave it out for no limit of its own";
        reader.wrong(node.at("maxConnections"), wanted);
    }
    if let Some(ssl) = &server.ssl
        && ssl.enable
    {
        let https = ssl.port.unwrap_or(server.port);
        if ssl.redirect_from == Some(https) && https != 0 {
            let wanted =
                format!("port {https} speaks TLS already: plain HTTP needs a port of its own");
            reader.wrong(node.at("ssl").at("redirectFrom"), wanted);
        }
    }
    if let Some(proxies) = &server.proxy_protocol
        && proxies.from.is_empty()
        && !proxies.unix_sockets
    {
        let wanted = "`proxyProtocol` needs `from`: the networks that the proxies are in";
        reader.wrong(node.at("proxyProtocol"), wanted);
    }
}

fn check_ssl(ssl: &SslSection, node: &Node, reader: &mut Reader<'_>) {
    let made = ssl.generate_key.as_ref().is_some_and(|made| made.enable);
    if made && ssl.key.is_some() {
        let wanted = "`generateKey` and `key` exclude each other: leave one out, or write `enable: false` in `generateKey`";
        reader.wrong(node.at_key("key"), wanted);
    }
    if made && !ssl.certificates.is_empty() {
        let wanted = "`generateKey` and `certificates` exclude each other: leave one out, or write `enable: false` in `generateKey`";
        reader.wrong(node.at_key("certificates"), wanted);
    }
    if ssl.client_optional && ssl.client_ca.is_none() {
        let wanted =
            "`clientOptional` needs `clientCa`: the file of those who sign certificates of clients";
        reader.wrong(node.at_key("clientOptional"), wanted);
    }
}

fn check_admin(admin: &AdminSection, node: &Node, reader: &mut Reader<'_>) {
    if admin.enable && !admin.allow_public && !admin.host.is_loopback() {
        let wanted = format!(
            "`admin` at {} would show metrics to others: take 127.0.0.1, or write `allowPublic: true`",
            admin.host
        );
        reader.wrong(node.at("host"), wanted);
    }
}
