//! What do all modules of `api::orders` share?

// `super` is `api`, as it would be without a folder beside this file.
use super::r#type;

pub(crate) fn shared() -> &'static str {
    "orders"
}

#[cloudgate::route("/api/orders")]
fn orders() -> String {
    format!("{} of {}", shared(), r#type::text())
}
