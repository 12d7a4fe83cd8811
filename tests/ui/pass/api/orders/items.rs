//! Does a module further down see what both folders share?

#[cloudgate::route("/api/orders/items")]
fn items() -> String {
    format!("items of {}, {}", super::shared(), super::super::shared())
}
