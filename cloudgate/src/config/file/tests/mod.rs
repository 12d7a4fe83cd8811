//! Is a whole file read, and what is wrong with it told?

mod messages;
mod schema;

use super::{BodyLimit, Flags, GatewayFile, Loaded, MOST_BYTES, Mistakes, node};

/// Reads a file with these variables of the environment.
fn load_with(text: &str, env: &[(&str, &str)], flags: &Flags) -> Result<Loaded, Mistakes> {
    let env = |name: &str| {
        let found = env.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let server = |text: &str| {
        let gateway = crate::Gateway::to([text]);
        gateway.map(drop).map_err(|error| error.to_string())
    };
    GatewayFile::read("config.yml", text, &env, flags, &server)
}

fn load(text: &str) -> Result<Loaded, Mistakes> {
    load_with(text, &[], &Flags::default())
}

/// zolly's two published configurations.
const BASIC: &str = include_str!("zolly-basic.yml");
const AUTO_SSL: &str = include_str!("zolly-auto-ssl.yml");

#[test]
fn zollys_configurations_are_read_as_they_are() {
    let loaded = load(BASIC).unwrap();
    let config = &loaded.config;
    assert_eq!(config.server.port, 3000);
    assert_eq!(config.server.host.to_string(), "::");
    assert_eq!(config.server.body_limit, BodyLimit::Bytes(4 << 20));
    assert!(config.server.cors.as_ref().unwrap().enable);
    assert_eq!(config.server.cors.as_ref().unwrap().origins, ["*"]);
    assert!(!config.server.log.as_ref().unwrap().enable);
    assert_eq!(config.server.ssl, None);
    let services = config.services.iter();
    let services: Vec<_> = services
        .map(|service| {
            (
                &*service.path,
                service.strip_path,
                service.timeout.map(|limit| limit.as_secs()),
                &*service.servers[0].url.0,
            )
        })
        .collect();
    assert_eq!(
        services,
        [
            ("/orders", true, Some(60), "http://localhost:3001"),
            ("/products", true, Some(60), "http://localhost:3002"),
        ]
    );
    assert_eq!(loaded.warnings, [""; 0]);

    let loaded = load(AUTO_SSL).unwrap();
    let ssl = loaded.config.server.ssl.as_ref().unwrap();
    let made = ssl.generate_key.as_ref().unwrap();
    assert!(ssl.enable && made.enable);
    assert_eq!(ssl.port, None);
    assert_eq!(made.key_config.common_name.as_deref(), Some("localhost"));
    assert_eq!(
        made.key_config.file.as_deref(),
        Some("./certs/server.p12".as_ref())
    );
    assert_eq!(made.key_config.password.0, "password");
    assert_eq!(loaded.config.services, load(BASIC).unwrap().config.services);
}

/// Every key once.
const FULL: &str = include_str!("full.yml");

#[test]
fn a_bare_body_limit_is_bytes_and_says_so() {
    let file = |limit: &str| {
        format!("server:\n  bodyLimit: {limit}\nservices: [{{path: /, servers: [\"a:1\"]}}]\n")
    };
    for (limit, want, warned) in [
        ("100", BodyLimit::Bytes(100), true),
        ("0", BodyLimit::Bytes(4 << 20), false),
        ("100B", BodyLimit::Bytes(100), false),
        ("10MB", BodyLimit::Bytes(10_000_000), false),
        ("none", BodyLimit::Unlimited, false),
        ("unlimited", BodyLimit::Unlimited, false),
    ] {
        let loaded = load(&file(limit)).unwrap();
        assert_eq!(loaded.config.server.body_limit, want, "{limit}");
        assert_eq!(!loaded.warnings.is_empty(), warned, "{limit}");
    }
    assert_eq!(
        load(&file("100")).unwrap().warnings,
        [
            "config.yml:2:14: bodyLimit: 100 means 100 bytes; write a unit, such as 100B or 4MiB, to say so"
        ]
    );
}

#[test]
fn the_environment_comes_before_the_file_and_flags_before_both() {
    let file = "server: {port: 1, host: 127.0.0.1, threads: 2}\nservices: [{path: /, servers: [\"a:1\"]}]\n";
    let env = [("PORT", "2"), ("HOST", "::1"), ("THREADS", " ")];
    let flags = Flags {
        port: Some(3),
        host: None,
    };
    let loaded = load_with(file, &env, &flags).unwrap();
    let server = &loaded.config.server;
    assert_eq!((server.port, &*server.host.to_string()), (3, "::1"));
    assert_eq!(server.threads, Some(2));
    let shown = loaded.show_origins();
    for line in [
        "  port: 3  # flag --port\n",
        "  host: \"::1\"  # environment HOST\n",
        "  threads: 2  # config.yml:1\n",
        "  bodyLimit: \"4MiB\"  # default\n",
        "- path: /  # config.yml:2\n",
        "      - url: \"a:1\"  # config.yml:2\n",
    ] {
        assert!(
            shown.contains(line.trim_start_matches("- ")),
            "{line}{shown}"
        );
    }
    // A file without the section gets one.
    let loaded = load_with("services: [{path: /, servers: [\"a:1\"]}]", &env, &flags).unwrap();
    assert_eq!(loaded.config.server.port, 3);
    for (name, value, want) in [
        (
            "PORT",
            "x",
            "environment variable PORT: `x` should be a port, which is a number from 0 to 65535",
        ),
        (
            "THREADS",
            "0",
            "environment variable THREADS: `threads` is a number from 1 to 128, not 0",
        ),
        (
            "SSL",
            "yes",
            "environment variable SSL: `yes` should be 1 for TLS, or 0",
        ),
    ] {
        let error = load_with(BASIC, &[(name, value)], &Flags::default()).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn tls_of_the_environment() {
    let with = |env: &[(&str, &str)]| load_with(BASIC, env, &Flags::default()).unwrap();
    let certificate = [
        ("SSL", "1"),
        ("SSL_CERT", "c.p12"),
        ("SSL_PASSWORD", "x"),
        ("SSL_PORT", "8443"),
    ];
    let ssl = with(&certificate).config.server.ssl.unwrap();
    assert!(ssl.enable);
    assert_eq!(ssl.port, Some(8443));
    assert_eq!(ssl.certificates.len(), 1);
    assert_eq!(ssl.certificates[0].certificate.to_str(), Some("c.p12"));
    // Without SSL the rest stands by, and 0 switches off what the file has.
    assert_eq!(with(&certificate[1..]).config.server.ssl, None);
    let off = load_with(AUTO_SSL, &[("SSL", "0")], &Flags::default()).unwrap();
    assert!(!off.config.server.ssl.unwrap().enable);
    let warnings = with(&[("SSL", "1"), ("SSL_NAMES", "a")]).warnings;
    assert_eq!(
        warnings,
        [
            "environment variable SSL_NAMES: is not looked at beside a configuration file: take `generateKey.keyConfig.names`"
        ]
    );
}

#[test]
fn variables_are_values_and_nothing_more() {
    let file = "services: [{path: \"${P:-/a}\", servers: [\"http://${H}:1\"], name: \"$$x\"}]";
    let loaded = load_with(file, &[("H", "host")], &Flags::default()).unwrap();
    let service = &loaded.config.services[0];
    assert_eq!(
        (&*service.path, &*service.servers[0].url.0),
        ("/a", "http://host:1")
    );
    assert_eq!(service.name.as_deref(), Some("$x"));
    // A text of several lines becomes no keys.
    let env = [("N", "a\nserver: {port: 1}")];
    let loaded = load_with(
        "services: [{path: /, name: \"${N}\", servers: [\"a:1\"]}]",
        &env,
        &Flags::default(),
    )
    .unwrap();
    assert_eq!(loaded.config.server.port, 3000);
    assert_eq!(
        loaded.config.services[0].name.as_deref(),
        Some("a\nserver: {port: 1}")
    );
}

#[test]
fn what_is_shown_is_read_as_the_same_and_secrets_are_not_shown() {
    for file in [BASIC, FULL] {
        let loaded = load(file).unwrap();
        let shown = loaded.show();
        let again = load(&shown).unwrap_or_else(|error| panic!("{error}\n{shown}"));
        assert_eq!(again.show(), shown);
        if file == BASIC {
            assert_eq!(again.config, loaded.config);
        }
    }
    let loaded = load(FULL).unwrap();
    for text in [
        loaded.show(),
        loaded.show_origins(),
        format!("{:?}", loaded.config),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn what_a_file_can_ask_for_is_bounded() {
    let service = "services: [{path: /, servers: [\"a:1\"]}]\n";
    let long = |bytes: usize| format!("{service}#{}", "x".repeat(bytes - service.len() - 1));
    assert!(load(&long(MOST_BYTES)).is_ok());
    let error = load(&long(MOST_BYTES + 1)).unwrap_err().to_string();
    assert!(
        error.contains("the file has more than 1048576 bytes"),
        "{error}"
    );

    // The root and its list are two.
    let deep = |depth: usize| format!("x: {}1{}", "[".repeat(depth), "]".repeat(depth));
    let too_deep = "more than 32 sections and lists in each other";
    let fits = load(&deep(node::MOST_DEPTH - 1)).unwrap_err().to_string();
    assert!(!fits.contains(too_deep), "{fits}");
    let error = load(&deep(node::MOST_DEPTH)).unwrap_err().to_string();
    assert!(error.contains(too_deep), "{error}");

    // Root, key and list are three.
    let wide = |count: usize| format!("x: [{}]", "1,".repeat(count - 3));
    let too_many = "more than 100000 values";
    let fits = load(&wide(node::MOST_NODES)).unwrap_err().to_string();
    assert!(!fits.contains(too_many), "{fits}");
    let error = load(&wide(node::MOST_NODES + 1)).unwrap_err().to_string();
    assert!(error.contains(too_many), "{error}");

    // Each line is ten of the one before.
    let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let error = load(&bomb).unwrap_err().to_string();
    assert!(error.contains(too_many), "{error}");
    // One that holds itself.
    let error = load("a: &a [*a]\n").unwrap_err().to_string();
    assert!(
        error.contains("an alias inside of what it stands for"),
        "{error}"
    );
    // Aliases as such are fine.
    let shared = "services:\n  - {path: /a, servers: &s [\"a:1\"]}\n  - {path: /b, servers: *s}\n";
    assert_eq!(
        load(shared).unwrap().config.services[1].servers[0].url.0,
        "a:1"
    );
}
