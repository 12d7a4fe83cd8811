//! How does foreign text become part of an HTML page?

/// The text with `& < > " '` written as character references, so that it cannot become markup.
///
/// ```
/// assert_eq!(cloudgate::escape_html("<b title='x'>&"), "&lt;b title=&#39;x&#39;&gt;&amp;");
/// ```
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
