//! How does a configuration become services?

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use crate::app::App;
use crate::app::client::ForwardedBy;
use crate::config::file::{
    ActiveSection, Balance, BodyLimit, ClientKey, CompressSection, CorsSection, GatewayFile,
    HeaderEdits, HostField, LogSection, LogStyle, RateLimitSection, ServerSection, ServiceSection,
    SslSection, UpstreamTlsSection,
};
use crate::message::host::HostPattern;
use crate::message::{Layer, Network};
use crate::net::tls::client::TlsClient;
use crate::net::tls::identity::Identity;
use crate::services::access_log::{AccessLog, LogFormat};
use crate::services::auth::{ApiKeyAuth, BasicAuth};
use crate::services::compress::Compression;
use crate::services::cors::Cors;
use crate::services::gateway::Gateway;
use crate::services::gateway::plain::{
    Active, Address, Balance as Choice, BreakerSettings, Edits, HashKey, HostField as Host, Member,
    Passive, Settings, Times,
};
use crate::services::gateway::table::{self, Entry, Rule, Table};
use crate::services::https_only::HttpsOnly;
use crate::services::ip_filter::IpFilter;
use crate::services::limits::RateLimit;
use crate::services::request_id::RequestIds;

/// What is served by a configuration, and what of it the next one can take over.
pub(super) struct Built {
    pub(super) app: App,
    pub(super) kept: Kept,
}

/// Services and what they were made of.
#[derive(Default)]
pub(super) struct Kept {
    services: Vec<(Recipe, Arc<Entry>)>,
    log: Option<(LogSection, AccessLog)>,
}

/// All that decides what a service is.
#[derive(Clone, Debug, PartialEq)]
struct Recipe {
    service: ServiceSection,
    cors: Option<CorsSection>,
    compress: Option<CompressSection>,
    body_limit: BodyLimit,
}

/// Makes what a configuration says, and keeps of `last` what is the same: its connections, what is known of its servers,
/// and whom it has counted.
///
/// # Errors
/// What cannot work although it is written as it should be, such as a certificate that cannot be read.
pub(super) fn build(config: &GatewayFile, last: &Kept) -> Result<Built, String> {
    let server = &config.server;
    let mut kept = Kept::default();
    for service in &config.services {
        let recipe = Recipe {
            service: service.clone(),
            cors: service.cors.clone().or_else(|| server.cors.clone()),
            compress: service.compress.clone().or_else(|| server.compress.clone()),
            body_limit: service.body_limit.unwrap_or(server.body_limit),
        };
        let same = last.services.iter().find(|(other, _)| *other == recipe);
        let entry = match same {
            Some((_, entry)) => Arc::clone(entry),
            None => Arc::new(
                entry(&recipe)
                    .map_err(|error| format!("the service {}: {error}", name(service)))?,
            ),
        };
        kept.services.push((recipe, entry));
    }
    let entries = kept.services.iter().map(|(_, entry)| Arc::clone(entry));
    let outside = cors(server.cors.as_ref())?.map(Layer::new);
    let table = Table::new(entries, outside.into_iter().collect());
    let mut app = App::new();
    if !server.trusted_proxies.is_empty() {
        let networks: Vec<String> = server
            .trusted_proxies
            .iter()
            .map(ToString::to_string)
            .collect();
        let networks = networks.iter().map(String::as_str);
        app = app.trust_proxies(ForwardedBy::XForwardedFor, networks);
    }
    let said = server.log.clone().unwrap_or(LogSection {
        enable: true,
        format: LogStyle::Auto,
        file: None,
    });
    if said.enable {
        let log = match &last.log {
            Some((same, log)) if *same == said => log.clone(),
            _ => access_log(&said),
        };
        app = app.wrap(log.clone());
        kept.log = Some((said, log));
    }
    app = app.wrap(RequestIds::new());
    if let Some(only) = server.ssl.as_ref().and_then(|ssl| https_only(server, ssl)) {
        app = app.wrap(only);
    }
    Ok(Built {
        app: app.mount("/", table),
        kept,
    })
}

/// What a service goes by.
pub(super) fn name(service: &ServiceSection) -> &str {
    service.name.as_deref().unwrap_or(&service.path)
}

fn access_log(said: &LogSection) -> AccessLog {
    let log = match &said.file {
        Some(path) => AccessLog::file(path),
        None => AccessLog::new(),
    };
    let for_people = said.file.is_none() && std::io::stdout().is_terminal();
    log.format(match said.format {
        LogStyle::Auto if for_people => LogFormat::Pretty,
        LogStyle::Auto | LogStyle::Json => LogFormat::JsonLines,
        LogStyle::Text => LogFormat::Pretty,
        LogStyle::Combined => LogFormat::Combined,
    })
}

fn https_only(server: &ServerSection, ssl: &SslSection) -> Option<HttpsOnly> {
    if !ssl.enable || (ssl.redirect_from.is_none() && ssl.hsts.is_none()) {
        return None;
    }
    let only = HttpsOnly::new().port(ssl.port.unwrap_or(server.port));
    Some(match ssl.hsts {
        Some(age) => only.hsts(age),
        None => only,
    })
}

fn entry(recipe: &Recipe) -> Result<Entry, String> {
    let service = &recipe.service;
    let parse = |host: &String| {
        HostPattern::parse(host).map_err(|error| format!("{host:?} is no host: {error}"))
    };
    let rule = Rule {
        hosts: service.hosts.iter().map(parse).collect::<Result<_, _>>()?,
        path: table::path(&service.path)?,
        exact: service.exact,
        methods: service.methods.clone(),
        fields: service.headers.0.clone(),
    };
    let mut members = Vec::new();
    for server in &service.servers {
        members.push(Member {
            address: server
                .url
                .0
                .parse::<Address>()
                .map_err(|error| error.to_string())?,
            weight: server.weight,
            most: server.max_connections,
        });
    }
    Ok(Entry {
        rule,
        layers: layers(recipe)?,
        service: Arc::new(Gateway::with(members, settings(recipe)?)),
    })
}

/// What goes in front of a service, in this order: who may ask a page's question, who may ask at all, how often, and with
/// which key.
fn layers(recipe: &Recipe) -> Result<Vec<Layer>, String> {
    let service = &recipe.service;
    let mut layers: Vec<Layer> = cors(recipe.cors.as_ref())?
        .map(Layer::new)
        .into_iter()
        .collect();
    if !service.allow.is_empty() || !service.deny.is_empty() {
        let filter = service
            .allow
            .iter()
            .fold(IpFilter::new(), |filter, network: &Network| {
                filter.allow(*network)
            });
        let filter = service
            .deny
            .iter()
            .fold(filter, |filter, network| filter.deny(*network));
        layers.push(Layer::new(filter));
    }
    if let Some(said) = &service.rate_limit {
        layers.push(Layer::new(rate_limit(said, name(service))));
    }
    if let Some(said) = &service.api_key {
        let auth = ApiKeyAuth::new(said.keys.iter().map(|key| key.0.as_str()));
        layers.push(Layer::new(match (&said.header, &said.query) {
            _ if said.bearer => auth.bearer("gateway"),
            (Some(name), _) => auth.header(name),
            (None, Some(name)) => auth.query(name),
            (None, None) => auth,
        }));
    }
    if let Some(said) = &service.basic_auth {
        let auth = said
            .users
            .0
            .iter()
            .fold(BasicAuth::new(&said.realm), |auth, (name, password)| {
                auth.user(name, &password.0)
            });
        layers.push(Layer::new(auth));
    }
    if let Some(said) = recipe.compress.as_ref().filter(|said| said.enable) {
        layers.push(Layer::new(Compression::new().minimum(said.min_size.0)));
    }
    Ok(layers)
}

fn cors(said: Option<&CorsSection>) -> Result<Option<Cors>, String> {
    let Some(said) = said.filter(|said| said.enable) else {
        return Ok(None);
    };
    let mut cors = Cors::new()
        .origins(said.origins.iter().map(String::as_str))
        .expose(said.expose.iter().map(String::as_str));
    if !said.methods.is_empty() {
        cors = cors.methods(said.methods.iter().cloned());
    }
    if !said.headers.is_empty() {
        cors = cors.headers(said.headers.iter().map(String::as_str));
    }
    if said.credentials {
        cors = cors.credentials();
    }
    if let Some(age) = said.max_age {
        cors = cors.max_age(age);
    }
    Ok(Some(cors))
}

fn rate_limit(said: &RateLimitSection, name: &str) -> RateLimit {
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut limit = RateLimit::per(count(said.requests), said.per).named(name);
    if let Some(burst) = said.burst {
        limit = limit.burst(count(burst));
    }
    if let ClientKey::Header(name) = &said.by {
        limit = limit.by_header(name);
    }
    match &said.ban_after {
        Some(ban) => limit.ban_after(ban.refusals, ban.within, ban.r#for),
        None => limit,
    }
}

fn settings(recipe: &Recipe) -> Result<Settings, String> {
    let service = &recipe.service;
    let zero = std::time::Duration::ZERO;
    Ok(Settings {
        name: name(service).to_owned(),
        strip_path: service.strip_path,
        host: match &service.host {
            HostField::Upstream => Host::Server,
            HostField::Keep => Host::Keep,
            HostField::Named(name) => Host::Named(name.clone()),
        },
        request_fields: edits(&service.request_headers)?,
        response_fields: edits(&service.response_headers)?,
        body_limit: Some(match recipe.body_limit {
            BodyLimit::Bytes(bytes) => bytes,
            BodyLimit::Unlimited => u64::MAX,
        }),
        upgrades: service.upgrade,
        times: Times {
            connect: service.timeouts.connect,
            first_byte: service.timeouts.first_byte.unwrap_or(zero),
            idle: service.timeouts.idle,
            total: service.timeout.unwrap_or(zero),
            pool: service.timeouts.pool,
            queue: service.queue_timeout,
            ..Times::default()
        },
        balance: match (service.balance, &service.hash_by) {
            (Balance::LeastConnections, _) => Choice::LeastConnections,
            (Balance::TwoChoices, _) => Choice::TwoChoices,
            (Balance::Hash, Some(ClientKey::Header(name))) => {
                Choice::Hash(HashKey::Header(name.clone()))
            }
            (Balance::Hash, Some(ClientKey::Cookie(name))) => {
                Choice::Hash(HashKey::Cookie(name.clone()))
            }
            (Balance::Hash, _) => Choice::Hash(HashKey::Address),
            (Balance::RoundRobin, _) => Choice::RoundRobin,
        },
        tls: tls(&service.tls)?,
        attempts: service.retries.attempts,
        retry_percent: service.retries.budget,
        most_requests: service.max_connections.unwrap_or_default(),
        queue: service.queue,
        passive: Passive {
            failures: service.health.passive.failures,
            within: service.health.passive.within,
            out: service.health.passive.out,
        },
        active: service.health.active.as_ref().map(active),
        breaker: service
            .circuit_breaker
            .as_ref()
            .map(|said| BreakerSettings {
                percent: said.error_rate,
                requests: said.min_requests,
                window: said.window,
                open: said.open,
            }),
        slow_start: service.slow_start,
    })
}

fn active(said: &ActiveSection) -> Active {
    Active {
        path: said.path.clone(),
        interval: said.interval,
        timeout: said.timeout,
        rise: said.rise,
        fall: said.fall,
        statuses: (said.status.first, said.status.last),
    }
}

fn edits(said: &HeaderEdits) -> Result<Edits, String> {
    let mut edits = Edits::default();
    for name in &said.remove {
        edits.remove(name)?;
    }
    for (name, value) in &said.set.0 {
        edits.set(name, value)?;
    }
    for (name, value) in &said.add.0 {
        edits.add(name, value)?;
    }
    Ok(edits)
}

fn tls(said: &UpstreamTlsSection) -> Result<TlsClient, String> {
    let mut tls = TlsClient::new();
    if let Some(ca) = &said.ca {
        tls = tls.trust_file(ca).map_err(|error| error.to_string())?;
    }
    if let Some(certificate) = &said.certificate {
        let key: &Path = said.key.as_deref().unwrap_or(certificate);
        let identity =
            Identity::from_pem_files(certificate, key).map_err(|error| error.to_string())?;
        tls = tls.identity(identity);
    }
    if let Some(name) = &said.server_name {
        tls = tls.server_name(name);
    }
    Ok(match said.insecure_skip_verify {
        true => tls.dangerously_trust_anybody(),
        false => tls,
    })
}
