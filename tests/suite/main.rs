//! Does the library do over a real port what its users rely on?

#![allow(
    clippy::needless_pass_by_value,
    reason = "a handler takes its arguments by value"
)]

mod admin;
mod answers;
mod capacity;
mod cli;
mod cli_cert;
mod cli_compress;
mod cli_gateway;
mod cli_serve;
mod cookies;
mod events;
mod extract;
mod files;
mod films;
mod forms;
mod gateway;
mod gateway_bodies;
mod gateway_faults;
mod gateway_program;
mod gateway_servers;
mod hub;
mod listeners;
mod load;
mod middleware;
#[cfg(feature = "native-tls")]
#[allow(
    clippy::duplicate_mod,
    reason = "the same tests, by another library of TLS"
)]
#[path = "tls.rs"]
mod native_tls;
mod origin;
mod parking;
mod program;
mod replies;
mod route_options;
mod routes;
mod shared;
mod shutdown;
mod spooled;
mod streams;
mod templates;
mod test_client;
mod test_socket;
mod time_limit;
mod timeouts;
mod tls;
mod tls_aborts;
mod tls_identities;
mod tls_reload;
mod torture;
mod traversal;
mod uploads;
mod websocket;
mod workers;

use cloudgate::App;

/// Every `#[route]` of this binary, with the states that they take.
fn app() -> App {
    App::gather()
        .api_keys([route_options::KEY])
        .state(load::Hits::default())
        .state(load::Gate::default())
        .state(events::Kept::default())
        .state(cookies::key())
        .state(extract::Word("shared"))
        .state(workers::Held::default())
}
