//! How does a small, real application look with cloudgate?
//!
//! A to-do list with accounts, attachments and live updates. `README.md` beside this file is the tour.
//!
//! ```text
//! cargo run --example todo        # http://127.0.0.1:3000
//! ```

mod accounts;
mod attachments;
mod items;
mod live;
mod page;
mod passwords;
mod same_origin;
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use cloudgate::{
    AccessLog, App, Compression, Config, CookieKey, MultipartLimits, RateLimit, SecurityHeaders,
};

use live::Hub;
use store::Store;

/// The folder of this example, wherever it is started from.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/todo");

fn main() -> cloudgate::Result<()> {
    let data =
        std::env::var_os("TODO_DATA").map_or_else(|| Path::new(HERE).join("data"), PathBuf::from);
    let key = match std::env::var_os("COOKIE_KEY") {
        Some(_) => CookieKey::from_env("COOKIE_KEY")?,
        None => CookieKey::generate()?, // everyone signs in again after a restart
    };
    app(&data, key)?.run(Config::from_env()?)
}

/// The application. It keeps everything in the folder `data`.
fn app(data: &Path, key: CookieKey) -> cloudgate::Result<App> {
    // Guessing passwords is slow, and so is filling the disk with accounts.
    let attempts = RateLimit::per_minute(20).named("attempts");
    Ok(App::gather() // every #[route] of this program
        .state(Store::open(data)?)
        .state(Hub::default())
        .state(key)
        .state(MultipartLimits::new().parts(4).folder(data)) // where large uploads wait
        .wrap(AccessLog::new()) // the first one sees a request first
        .wrap(SecurityHeaders::new())
        .wrap(Compression::new())
        .wrap(same_origin::check)
        .wrap_at("/sign-in", attempts.clone()) // a clone counts with the other
        .wrap_at("/sign-up", attempts)
        .wrap_at("/api", accounts::require_user)
        .files(Path::new(HERE).join("public"))) // routes win over files
}
