//! What this application is made of: the routes of `api/`, the files of `public/`, and shared state.

cloudgate::modules!("api");

use api::chat::Chat;
use api::tests::full::Visits;
use cloudgate::{App, Config};

fn main() -> cloudgate::Result<()> {
    app().run(Config::from_env()?)
}

fn app() -> App {
    App::gather() // every #[route] of this program
        .state(Visits::default()) // one value that all requests share
        .state(Chat::default()) // the room of chat.html
        .templates("templates") // pages that handlers fill in
        .files("public") // routes win over files
}

#[cfg(test)]
mod tests;
