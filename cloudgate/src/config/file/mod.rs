//! What does the configuration file of the gateway say?
//!
//! ```text
//!  text ─ node ─▶ tree with places ─ overlay: environment, flags ─▶ reader, by the tables of section! ─▶ GatewayFile
//!                                                                      │
//!                                                describe: JSON Schema, reference page · show: YAML again
//! ```
//!
//! zolly's keys mean what they mean there. All that is wrong with a file is told at once, each with its place.

mod describe;
mod guards;
mod mistake;
mod node;
mod overlay;
mod reader;
mod routes;
mod section;
mod server;
mod service;
mod service_values;
mod show;
mod units;
mod values;
mod variables;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

// What turns the file into services names them.
#[allow(unused_imports, reason = "plain data for whoever assembles a gateway")]
pub(crate) use guards::{
    ApiKeySection, BanSection, BasicAuthSection, CompressSection, CorsSection, HeaderEdits,
    RateLimitSection,
};
pub(crate) use mistake::Mistakes;
pub(crate) use node::MOST_BYTES;
pub(crate) use overlay::Flags;
#[allow(unused_imports, reason = "plain data for whoever assembles a gateway")]
pub(crate) use server::{
    AdminSection, CertificateSection, GenerateKeySection, KeyConfigSection, KeySection, LogSection,
    LogStyle, ProxyProtocolSection, ServerSection, ServerTimeouts, SslSection,
};
#[allow(unused_imports, reason = "plain data for whoever assembles a gateway")]
pub(crate) use service::{
    ActiveSection, Balance, CircuitBreakerSection, HealthSection, PassiveSection, RetriesSection,
    ServiceSection, ServiceTimeouts, UpstreamTlsSection,
};
#[allow(unused_imports, reason = "plain data for whoever assembles a gateway")]
pub(crate) use service_values::{ClientKey, Fields, HostField, StatusRange, Upstream, Url, Users};
pub(crate) use values::BodyLimit;

use mistake::Mistake;
use node::{Node, Place};
use reader::Reader;
use section::{Setting, section};

section! {
    /// All keys of the file.
    GatewayFile called "the file" {
        /// Where the gateway listens, and how clients are treated.
        server: ServerSection,
        /// The listener for health, readiness and metrics.
        admin: AdminSection,
        /// Routes and the servers behind them; the longest path that fits is taken.
        services: Vec<ServiceSection>,
    }
    check routes::check
}

/// A configuration, and where its values came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) config: GatewayFile,
    /// What works and may not be what was meant, each as a line.
    pub(crate) warnings: Vec<String>,
    origins: BTreeMap<String, Place>,
    file: String,
}

impl GatewayFile {
    /// Reads a configuration from its text. `file` is its name for messages, `env` looks a variable of the environment up,
    /// and `server` says what is wrong with a text that should name a server.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(crate) fn read(
        file: &str,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
        flags: &Flags,
        server: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Loaded, Mistakes> {
        // A mark at the beginning is what some editors write.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader::new(server);
        let mut mistakes: Vec<Mistake> = Vec::new();
        let tree = node::parse(text, env, &mut mistakes);
        let config = tree.and_then(|mut tree: Node| {
            overlay::environment(&mut tree, env, &mut reader);
            overlay::flags(&mut tree, flags);
            GatewayFile::read_node(&tree, &mut reader)
        });
        mistakes.append(&mut reader.mistakes);
        let warnings = reader.warnings.iter();
        let warnings = warnings.map(|(place, reason)| format!("{}: {reason}", place.shown(file)));
        match config {
            Some(config) if mistakes.is_empty() => Ok(Loaded {
                config,
                warnings: warnings.collect(),
                origins: reader.origins,
                file: file.to_owned(),
            }),
            _ => Err(Mistakes::new(file, text, mistakes)),
        }
    }

    fn read_node(node: &Node, reader: &mut Reader<'_>) -> Option<GatewayFile> {
        <GatewayFile as Setting>::read(node, reader)
    }

    /// The JSON Schema of the file, for editors.
    pub(crate) fn schema() -> String {
        let schema = describe::schema(&GatewayFile::form());
        format!("{schema:#}\n")
    }

    /// The tables of the reference page, in Markdown.
    pub(crate) fn reference() -> String {
        describe::reference(&GatewayFile::form())
    }
}

impl Loaded {
    /// The whole configuration as YAML, with its defaults, and without its secrets.
    pub(crate) fn show(&self) -> String {
        self.config.shown().yaml(&|_| None)
    }

    /// The same, with a comment behind each value that says where it came from.
    pub(crate) fn show_origins(&self) -> String {
        self.config.shown().yaml(&|path| Some(self.origin(path)))
    }

    /// Where the value at a path such as `services[0].path` came from.
    fn origin(&self, path: &str) -> String {
        if let Some(place) = self.origins.get(path) {
            return place.origin(&self.file);
        }
        // A value of a list is where the list is.
        match path.strip_suffix(']').and_then(|path| path.rfind('[')) {
            Some(at) => self.origin(&path[..at]),
            None => "default".to_owned(),
        }
    }
}

impl Place {
    /// The place in front of a message.
    fn shown(&self, file: &str) -> String {
        match self {
            Place::File { line, column, .. } => format!("{file}:{line}:{column}"),
            Place::Environment(name) => format!("environment variable {name}"),
            Place::Flag(name) => (*name).to_owned(),
        }
    }

    /// Where a value came from.
    fn origin(&self, file: &str) -> String {
        match self {
            Place::File { line, .. } => format!("{file}:{line}"),
            Place::Environment(name) => format!("environment {name}"),
            Place::Flag(name) => format!("flag {name}"),
        }
    }
}
