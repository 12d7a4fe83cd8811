//! Is a keyword a name for a file?

pub(crate) fn text() -> String {
    format!("type {}", super::shared())
}

#[cloudgate::route("/api/type")]
fn page() -> String {
    text()
}
