//! Is a whole file read, and what is wrong with it told?

mod messages;

use super::{Flags, GatewayFile, Loaded, Mistakes};

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
    assert_eq!(config.server.body_limit, super::BodyLimit::Bytes(4 << 20));
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
