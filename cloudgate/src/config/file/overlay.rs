//! What of the environment and of the command line comes before the file?
//!
//! The variables are those of [`Config`](crate::Config), as far as they mean the same here.

use std::net::IpAddr;

use super::node::{Name, Node, Place, Value};
use super::reader::Reader;

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `--port`
    pub(crate) port: Option<u16>,
    /// `--host`
    pub(crate) host: Option<IpAddr>,
}

/// Variables whose text is the value of a key.
const VALUES: [(&str, &[&str]); 7] = [
    ("PORT", &["server", "port"]),
    ("HOST", &["server", "host"]),
    ("THREADS", &["server", "threads"]),
    ("SSL_PORT", &["server", "ssl", "port"]),
    ("SSL_CLIENT_CA", &["server", "ssl", "clientCa"]),
    ("SSL_HSTS", &["server", "ssl", "hsts"]),
    ("SSL", &["server", "ssl", "enable"]),
];

/// Puts the values of variables over those of the file.
pub(crate) fn environment(
    tree: &mut Node,
    env: &dyn Fn(&str) -> Option<String>,
    reader: &mut Reader<'_>,
) {
    let given = |name: &'static str| {
        let text = env(name)?.trim().to_owned();
        (!text.is_empty()).then(|| Node::outside(Place::Environment(name), text))
    };
    // Without SSL the rest of it would switch on what the file does not have.
    let tls = given("SSL").is_some_and(|node| matches!(switch(&node), Some(true)))
        || matches!(&tree.at("server").at("ssl").value, Value::Map(_))
            && tree.at("server").has("ssl");
    for (name, path) in VALUES {
        let Some(mut node) = given(name) else {
            continue;
        };
        if path[1] == "ssl" && !tls && name != "SSL" {
            continue;
        }
        if name == "SSL" {
            match switch(&node) {
                // Nothing to switch off.
                Some(false) if !tls => continue,
                Some(on) => node = Node::outside(node.place, on.to_string()),
                None => {
                    reader.wrong(&node, format!("{} should be 1 for TLS, or 0", node.kind()));
                    continue;
                }
            }
        }
        tree.put(path, node);
    }
    if !tls {
        return;
    }
    if let Some(certificate) = given("SSL_CERT") {
        let place = certificate.place.clone();
        let mut entries = vec![("certificate", certificate)];
        entries.extend(given("SSL_KEY").map(|key| ("key", key)));
        entries.extend(given("SSL_PASSWORD").map(|password| ("password", password)));
        let entries = entries.into_iter().map(|(name, node)| {
            let name = Name {
                text: name.to_owned(),
                place: node.place.clone(),
            };
            (name, node)
        });
        let section = Node {
            place: place.clone(),
            value: Value::Map(entries.collect()),
        };
        let list = Node {
            place,
            value: Value::List(vec![section]),
        };
        tree.put(&["server", "ssl", "certificates"], list);
    } else if let Some(key) = given("SSL_KEY") {
        reader.wrong(
            &key,
            "SSL_KEY needs SSL_CERT: the file of the certificate of this key",
        );
    }
    if let Some(optional) = given("SSL_CLIENT_OPTIONAL") {
        match switch(&optional) {
            Some(on) => {
                let node = Node::outside(optional.place, on.to_string());
                tree.put(&["server", "ssl", "clientOptional"], node);
            }
            None => reader.wrong(&optional, format!("{} should be 1 or 0", optional.kind())),
        }
    }
    for (name, instead) in [
        ("SSL_NAMES", "`generateKey.keyConfig.names`"),
        ("SSL_REDIRECT", "`redirectFrom`"),
        ("SSL_BACKEND", "a program of your own"),
    ] {
        if let Some(node) = given(name) {
            reader.warn(
                &node,
                format!("is not looked at beside a configuration file: take {instead}"),
            );
        }
    }
}

/// What switches something on or off.
fn switch(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Scalar { text, .. } => super::super::switch(text),
        _ => None,
    }
}

/// Puts what the command line says over all else.
pub(crate) fn flags(tree: &mut Node, flags: &Flags) {
    if let Some(port) = flags.port {
        let node = Node::outside(Place::Flag("--port"), port.to_string());
        tree.put(&["server", "port"], node);
    }
    if let Some(host) = flags.host {
        let node = Node::outside(Place::Flag("--host"), host.to_string());
        tree.put(&["server", "host"], node);
    }
}
