//! Do targets and queries keep their meaning when they are normalised and written again?

use cloudgate::__fuzz;

/// A normal form is its own normal form and has the same segments; pairs, written again, are the
/// same pairs.
pub fn query(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        target(text);
    }
    pairs(input);
}

fn target(text: &str) {
    let Some((normal, question)) = __fuzz::target(text) else {
        return;
    };
    assert!(normal.len() <= text.len());
    assert!(normal == "*" || normal.starts_with('/'));
    assert!(
        normal
            .bytes()
            .all(|byte| (0x21..0x7f).contains(&byte) && byte != b'#')
    );
    assert_eq!(question, normal.find('?'));
    assert_eq!(__fuzz::target(&normal), Some((normal.clone(), question)));
    let path = |text: &str| text.split('?').next().unwrap_or_default().to_owned();
    let query = |text: &str| text.split_once('?').map(|(_, query)| query.to_owned());
    assert_eq!(query(text), query(&normal), "a query is left as it is");
    let segments = |text: &str| -> Vec<_> { path(text).split('/').map(__fuzz::segment).collect() };
    assert_eq!(
        segments(text),
        segments(&normal),
        "the segments mean the same"
    );
}

fn pairs(input: &[u8]) {
    let pairs = __fuzz::pairs(input);
    let most = input.iter().filter(|&&byte| byte == b'&').count() + 1;
    assert!(pairs.len() <= most);
    let text: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    assert_eq!(__fuzz::pairs(text.join("&").as_bytes()), pairs);
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            b' ' => "+".to_owned(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
