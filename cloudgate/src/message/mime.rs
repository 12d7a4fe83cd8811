//! Which media type does a file name stand for?

use std::path::Path;

/// Types where the table of `mime_guess` is older than today's usage.
const OVERRIDES: &[(&str, &str)] = &[
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    ("ico", "image/x-icon"),
    ("map", "application/json"),
    ("md", "text/markdown"),
    ("webmanifest", "application/manifest+json"),
    ("avif", "image/avif"),
    ("jxl", "image/jxl"),
    ("wasm", "application/wasm"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
];

/// The Content-Type for a file of this name: with `charset=utf-8` for text, and
/// `application/octet-stream` for what is unknown.
///
/// ```
/// assert_eq!(cloudgate::mime::content_type("a/index.html".as_ref()), "text/html; charset=utf-8");
/// assert_eq!(cloudgate::mime::content_type("logo.png".as_ref()), "image/png");
/// assert_eq!(cloudgate::mime::content_type("LICENSE".as_ref()), "application/octet-stream");
/// ```
pub fn content_type(path: &Path) -> String {
    let extension = path
        .extension()
        .and_then(|text| text.to_str())
        .unwrap_or("")
        .to_ascii_lowercase();
    let essence = OVERRIDES
        .iter()
        .find(|(known, _)| *known == extension)
        .map(|(_, essence)| (*essence).to_owned())
        .or_else(|| {
            mime_guess::from_ext(&extension)
                .first_raw()
                .map(str::to_owned)
        })
        .unwrap_or_else(|| "application/octet-stream".to_owned());
    if essence.starts_with("text/")
        || essence == "application/manifest+json"
        || essence == "image/svg+xml"
    {
        essence + "; charset=utf-8"
    } else {
        essence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_types_are_known_and_text_names_its_charset() {
        for (name, want) in [
            ("a.html", "text/html; charset=utf-8"),
            ("A.HTM", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml; charset=utf-8"),
            ("a.wasm", "application/wasm"),
            ("a.woff2", "font/woff2"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.mp4", "video/mp4"),
            ("a.pdf", "application/pdf"),
            ("a.tar.gz", "application/gzip"),
            ("a.unknown", "application/octet-stream"),
            ("a", "application/octet-stream"),
        ] {
            assert_eq!(content_type(Path::new(name)), want, "{name}");
        }
    }
}
