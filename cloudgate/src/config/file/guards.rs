//! Who may ask a service, how often, and in what form answers go out?

use std::time::Duration;

use super::node::Node;
use super::reader::Reader;
use super::section::section;
use super::service_values::{ClientKey, Fields, Users};
use super::values::{Secret, Size};

section! {
    /// Which pages of other origins may ask (CORS).
    CorsSection called "`cors`" {
        /// Whether they may at all.
        enable: bool = true,
        /// Their origins, such as `https://app.example.com`; `*` is all.
        origins: Vec<String> = vec!["*".to_owned()],
        /// The methods that they may use; without it GET, HEAD, POST, PUT, PATCH and DELETE.
        methods: Vec<http::Method>,
        /// The fields that they may send; without it those that they ask for.
        headers: Vec<String>,
        /// The fields of answers that they may read.
        expose: Vec<String>,
        /// Whether cookies and the like may come with it.
        credentials: bool = false,
        /// For how long a browser may remember the answer.
        max_age: Option<Duration>,
    }
    check check_cors
}

section! {
    /// Compresses answers.
    CompressSection called "`compress`" {
        /// Whether it is done.
        enable: bool = true,
        /// The smallest answer that is worth it.
        min_size: Size = Size(1024),
    }
}

section! {
    /// How often one client may ask; past it, it gets 429.
    RateLimitSection called "`rateLimit`" {
        /// How many requests within the time of `per`.
        requests: u64,
        /// The time for them.
        per: Duration = Duration::from_secs(60),
        /// How many may come at once; without it as many as `requests`.
        burst: Option<u64>,
        /// What tells one client from another: `address` or `header: NAME`.
        by: ClientKey = ClientKey::Address,
        /// Turns away for a while who was refused too often.
        ban_after: Option<BanSection>,
    }
    check check_rate
}

section! {
    /// A ban of those who do not stop asking.
    BanSection called "`banAfter`" {
        /// After how many refusals.
        refusals: u32,
        /// Within what time.
        within: Duration = Duration::from_secs(60),
        /// For how long; `for` in the file.
        r#for: Duration = Duration::from_secs(600),
    }
}

section! {
    /// Asks for an API key.
    ApiKeySection called "`apiKey`" {
        /// The keys that are taken.
        keys: Vec<Secret>,
        /// The field that holds it; without any of these three, `X-API-Key`.
        header: Option<String>,
        /// Whether it comes as `Authorization: Bearer`.
        bearer: bool = false,
        /// The parameter of the query that holds it.
        query: Option<String>,
    }
    check check_api_key
}

section! {
    /// Asks for a name and a password (HTTP Basic).
    BasicAuthSection called "`basicAuth`" {
        /// What the browser shows when it asks.
        realm: String = "gateway".to_owned(),
        /// Names and their passwords.
        users: Users,
    }
    check check_basic
}

section! {
    /// Changes to the fields of a message: first `remove`, then `set`, then `add`.
    HeaderEdits called "the changes to header fields" {
        /// Fields and their values, in place of those of their name.
        set: Fields,
        /// Fields beside those of their name.
        add: Fields,
        /// Names of fields that are taken out.
        remove: Vec<String>,
    }
    check check_edits
}

fn check_cors(cors: &CorsSection, node: &Node, reader: &mut Reader<'_>) {
    if cors.credentials && cors.origins.iter().any(|origin| origin == "*") {
        let wanted =
            "`credentials` do not go with the origin `*`: list the `origins` that may send them";
        reader.wrong(node.at_key("credentials"), wanted);
    }
    for (key, names) in [("headers", &cors.headers), ("expose", &cors.expose)] {
        reader.field_names(node.at(key), names);
    }
}

fn check_rate(rate: &RateLimitSection, node: &Node, reader: &mut Reader<'_>) {
    if rate.requests == 0 {
        reader.wrong(
            node.at("requests"),
            "a limit of 0 requests would refuse everybody: write at least 1",
        );
    }
    if rate.per.is_zero() {
        reader.wrong(
            node.at("per"),
            "`per` cannot be 0: write a time such as 1s or 1m",
        );
    }
    if matches!(rate.by, ClientKey::Cookie(_)) {
        let wanted = "clients are told apart by `address` or `header: NAME`: whoever wants to leaves a cookie out";
        reader.wrong(node.at("by"), wanted);
    }
}

fn check_api_key(auth: &ApiKeySection, node: &Node, reader: &mut Reader<'_>) {
    if node.lacks("keys") {
        reader.wrong(
            node.at("keys"),
            "`keys` is empty, so nobody could get in: list at least one key",
        );
    }
    if auth.keys.iter().any(|key| key.0.is_empty()) {
        reader.wrong(node.at("keys"), "an empty key would let everybody in");
    }
    if let Some(name) = &auth.header {
        reader.field_names(node.at("header"), std::slice::from_ref(name));
    }
    let ways = [auth.header.is_some(), auth.bearer, auth.query.is_some()];
    if ways.iter().filter(|given| **given).count() > 1 {
        reader.wrong(
            node,
            "a key comes by one way: leave all but one of `header`, `bearer` and `query` out",
        );
    }
}

fn check_basic(_: &BasicAuthSection, node: &Node, reader: &mut Reader<'_>) {
    if node.lacks("users") {
        reader.wrong(
            node.at("users"),
            "`users` is empty, so nobody could get in: list at least one name with its password",
        );
    }
}

fn check_edits(edits: &HeaderEdits, node: &Node, reader: &mut Reader<'_>) {
    reader.field_names(node.at("remove"), &edits.remove);
}
