//! How is a request spelled in one line?

use std::borrow::Cow;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use crate::message::RequestHead;
use crate::services::calendar::Time;
use crate::services::trace_context::TraceParent;

/// The most bytes of a target, a referer or a user agent that a line holds; what is longer ends in
/// three dots.
const MOST_TEXT: usize = 2048;

/// Query parameters whose values no log should hold, in lower case.
const SECRETS: [&str; 9] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "client_secret",
    "passwd",
    "password",
    "secret",
    "token",
];

/// How an access log spells a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people at a terminal: `12:34:56 GET /path 200 1234 B 0.567 ms 192.0.2.1`, times in UTC.
    Pretty,
    /// A JSON object a line, with `time`, `client`, `user`, `method`, `target`, `status`, `bytes`,
    /// `duration_ms`, `id`, `trace` (the id in a valid `traceparent` of W3C Trace Context), `referer`, `agent` and
    /// `aborted`; what is not known is left out.
    JsonLines,
    /// The combined format of NCSA that web servers have written ever since, and programs that count
    /// visitors read. Behind it stand the seconds that the answer took, the request's id or `-` in
    /// quotes, and `complete` or `aborted`.
    Combined,
}

/// What is known of an answered request.
pub(super) struct Entry<'e> {
    pub(super) head: &'e RequestHead,
    pub(super) client: IpAddr,
    pub(super) user: Option<&'e str>,
    pub(super) id: Option<&'e str>,
    pub(super) began: SystemTime,
    pub(super) duration: Duration,
    pub(super) status: u16,
    pub(super) bytes: Option<u64>,
    pub(super) aborted: bool,
    /// Tells of more query parameters that their values are secrets.
    pub(super) is_secret: &'e dyn Fn(&str) -> bool,
}

impl LogFormat {
    /// Puts the line of a request, with its line break, behind `line`.
    pub(super) fn write(self, line: &mut String, entry: &Entry<'_>) {
        // Writing to a string does not fail.
        let _ = match self {
            LogFormat::Pretty => pretty(line, entry),
            LogFormat::JsonLines => json(line, entry),
            LogFormat::Combined => combined(line, entry),
        };
        line.push('\n');
    }

    /// Says how many lines are missing, where the format has a place for that.
    pub(super) fn note_dropped(self, text: &mut Vec<u8>, count: u64) {
        let note = match self {
            LogFormat::Pretty if count == 1 => "-- 1 line was dropped\n".to_owned(),
            LogFormat::Pretty => format!("-- {count} lines were dropped\n"),
            LogFormat::JsonLines => format!("{{\"dropped\":{count}}}\n"),
            LogFormat::Combined => return,
        };
        text.extend_from_slice(note.as_bytes());
    }
}

fn pretty(line: &mut String, entry: &Entry<'_>) -> std::fmt::Result {
    let time = Time::of(entry.began);
    write!(
        line,
        "{:02}:{:02}:{:02} {} ",
        time.hour, time.minute, time.second, entry.head.method
    )?;
    escape(line, &entry.target());
    write!(line, " {}", entry.status)?;
    if let Some(bytes) = entry.bytes {
        write!(line, " {bytes} B")?;
    }
    let micros = entry.duration.as_micros();
    write!(
        line,
        " {}.{:03} ms {}",
        micros / 1000,
        micros % 1000,
        entry.client
    )?;
    if let Some(user) = entry.user {
        line.push(' ');
        escape(line, user);
    }
    if let Some(id) = entry.id {
        write!(line, " {id}")?;
    }
    if entry.aborted {
        line.push_str(" aborted");
    }
    Ok(())
}

fn combined(line: &mut String, entry: &Entry<'_>) -> std::fmt::Result {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    write!(line, "{} - ", entry.client)?;
    match entry.user {
        // A space would begin the next column.
        Some(user) => escape(line, &user.replace(' ', "_")),
        None => line.push('-'),
    }
    let time = Time::of(entry.began);
    write!(
        line,
        " [{:02}/{}/{}:{:02}:{:02}:{:02} +0000] \"{} ",
        time.day,
        MONTHS[time.month as usize - 1],
        time.year,
        time.hour,
        time.minute,
        time.second,
        entry.head.method
    )?;
    escape(line, &entry.target());
    write!(line, " {}\" {} ", entry.version(), entry.status)?;
    match entry.bytes {
        Some(bytes) => write!(line, "{bytes}")?,
        None => line.push('-'),
    }
    for text in [entry.referer(), entry.agent()] {
        line.push_str(" \"");
        escape(line, text.as_deref().unwrap_or("-"));
        line.push('"');
    }
    let micros = entry.duration.as_micros();
    write!(
        line,
        " {}.{:06} \"{}\" {}",
        micros / 1_000_000,
        micros % 1_000_000,
        entry.id.unwrap_or("-"),
        if entry.aborted { "aborted" } else { "complete" }
    )
}

fn json(line: &mut String, entry: &Entry<'_>) -> std::fmt::Result {
    let time = Time::of(entry.began);
    write!(
        line,
        "{{\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z\",\"client\":\"{}\"",
        time.year,
        time.month,
        time.day,
        time.hour,
        time.minute,
        time.second,
        time.millisecond,
        entry.client
    )?;
    let member = |line: &mut String, name: &str, text: Option<&str>| {
        if let Some(text) = text {
            line.push_str(",\"");
            line.push_str(name);
            line.push_str("\":\"");
            escape_json(line, text);
            line.push('"');
        }
    };
    member(line, "user", entry.user);
    member(line, "method", Some(entry.head.method.as_str()));
    member(line, "target", Some(&entry.target()));
    write!(line, ",\"status\":{}", entry.status)?;
    if let Some(bytes) = entry.bytes {
        write!(line, ",\"bytes\":{bytes}")?;
    }
    let micros = entry.duration.as_micros();
    write!(
        line,
        ",\"duration_ms\":{}.{:03}",
        micros / 1000,
        micros % 1000
    )?;
    member(line, "id", entry.id);
    member(line, "trace", entry.trace().as_deref());
    member(line, "referer", entry.referer().as_deref());
    member(line, "agent", entry.agent().as_deref());
    line.push_str(if entry.aborted {
        ",\"aborted\":true}"
    } else {
        "}"
    });
    Ok(())
}

impl Entry<'_> {
    fn target(&self) -> Cow<'_, str> {
        self.without_secrets(shorten(self.head.target().into()))
    }

    fn referer(&self) -> Option<Cow<'_, str>> {
        Some(self.without_secrets(self.field("referer")?))
    }

    fn agent(&self) -> Option<Cow<'_, str>> {
        self.field("user-agent")
    }

    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        let value = self.head.headers().get_bytes(name)?;
        Some(shorten(String::from_utf8_lossy(value)))
    }

    fn trace(&self) -> Option<String> {
        Some(TraceParent::of(self.head.headers())?.trace_id())
    }

    fn version(&self) -> &'static str {
        match self.head.version() {
            crate::message::Version::Http10 => "HTTP/1.0",
            crate::message::Version::Http11 => "HTTP/1.1",
        }
    }

    /// The same target with `***` for what nobody should read in a log.
    fn without_secrets<'t>(&self, target: Cow<'t, str>) -> Cow<'t, str> {
        let Some((path, query)) = target.split_once('?') else {
            return target;
        };
        let is_secret = |pair: &str| {
            let name = pair.split('=').next().unwrap_or("");
            let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
            SECRETS.iter().any(|known| name.eq_ignore_ascii_case(known)) || (self.is_secret)(&name)
        };
        if !query.split('&').any(is_secret) {
            return target;
        }
        let pairs: Vec<Cow<'_, str>> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, _)) if is_secret(pair) => format!("{name}=***").into(),
                _ => pair.into(),
            })
            .collect();
        format!("{path}?{}", pairs.join("&")).into()
    }
}

/// Cuts what is too long.
fn shorten(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT {
        return text;
    }
    let end = text.floor_char_boundary(MOST_TEXT);
    format!("{}...", &text[..end]).into()
}

/// Adds text that is nothing but printable ASCII without quotes afterwards, whatever it was before.
fn escape(line: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' => line.push_str("\\\""),
            b'\\' => line.push_str("\\\\"),
            0x20..=0x7e => line.push(char::from(byte)),
            _ => {
                let _ = write!(line, "\\x{byte:02X}");
            }
        }
    }
}

/// Adds the inside of a JSON string, without anything that a terminal or a reader of lines would take
/// for a command.
fn escape_json(line: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            // The second two end a line for some readers.
            _ if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') => {
                let _ = write!(line, "\\u{:04x}", u32::from(char));
            }
            _ => line.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Request;
    use std::net::Ipv4Addr;
    use std::time::UNIX_EPOCH;

    fn line(format: LogFormat, request: &Request<'_>, change: fn(&mut Entry<'_>)) -> String {
        line_of(format, &request.shared_head(), change)
    }

    fn line_of(format: LogFormat, head: &RequestHead, change: fn(&mut Entry<'_>)) -> String {
        let mut entry = Entry {
            head,
            client: Ipv4Addr::LOCALHOST.into(),
            user: None,
            id: None,
            began: UNIX_EPOCH + Duration::from_millis(951_786_245_678),
            duration: Duration::from_micros(1_234_567),
            status: 200,
            bytes: Some(12),
            aborted: false,
            is_secret: &|name| name == "mine",
        };
        change(&mut entry);
        let mut line = String::new();
        format.write(&mut line, &entry);
        line
    }

    #[test]
    fn a_request_is_one_line_in_each_format() {
        let request = Request::get("/a?b=c")
            .with_header("User-Agent", "curl/8")
            .with_header("Referer", "http://a/");
        let full = |entry: &mut Entry<'_>| {
            entry.id = Some("id-1");
            entry.user = Some("Ada L");
            entry.aborted = true;
        };
        for (format, change, want) in [
            (
                LogFormat::Pretty,
                (|_| ()) as fn(&mut Entry<'_>),
                "01:04:05 GET /a?b=c 200 12 B 1234.567 ms 127.0.0.1\n",
            ),
            (
                LogFormat::Pretty,
                full,
                "01:04:05 GET /a?b=c 200 12 B 1234.567 ms 127.0.0.1 Ada L id-1 aborted\n",
            ),
            (
                LogFormat::Combined,
                |entry| entry.bytes = None,
                "127.0.0.1 - - [29/Feb/2000:01:04:05 +0000] \"GET /a?b=c HTTP/1.1\" 200 - \"http://a/\" \"curl/8\" 1.234567 \"-\" complete\n",
            ),
            (
                LogFormat::Combined,
                full,
                "127.0.0.1 - Ada_L [29/Feb/2000:01:04:05 +0000] \"GET /a?b=c HTTP/1.1\" 200 12 \"http://a/\" \"curl/8\" 1.234567 \"id-1\" aborted\n",
            ),
            (
                LogFormat::JsonLines,
                |entry| entry.bytes = None,
                "{\"time\":\"2000-02-29T01:04:05.678Z\",\"client\":\"127.0.0.1\",\"method\":\"GET\",\"target\":\"/a?b=c\",\"status\":200,\"duration_ms\":1234.567,\"referer\":\"http://a/\",\"agent\":\"curl/8\"}\n",
            ),
            (
                LogFormat::JsonLines,
                full,
                "{\"time\":\"2000-02-29T01:04:05.678Z\",\"client\":\"127.0.0.1\",\"user\":\"Ada L\",\"method\":\"GET\",\"target\":\"/a?b=c\",\"status\":200,\"bytes\":12,\"duration_ms\":1234.567,\"id\":\"id-1\",\"referer\":\"http://a/\",\"agent\":\"curl/8\",\"aborted\":true}\n",
            ),
        ] {
            assert_eq!(line(format, &request, change), want);
        }
    }

    #[test]
    fn a_line_of_json_names_the_trace() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (parent, want) in [
            (parent, Some("0af7651916cd43dd8448eb211c80319c")),
            (&parent[1..], None),
        ] {
            let request = Request::get("/").with_header("traceparent", parent);
            let line = line(LogFormat::JsonLines, &request, |_| ());
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value.get("trace").and_then(|id| id.as_str()), want);
        }
    }

    #[test]
    fn nothing_that_a_client_sends_breaks_a_line_or_a_column() {
        let request = Request::get("/").with_header("User-Agent", "a\"b\\c\td\u{9b}\u{2028}é");
        let mut head = RequestHead::clone(&request.shared_head());
        // However a target would come in.
        head.target = "/\"\n\r\0\x1b[2J\u{7f}".to_owned();
        for format in [LogFormat::Pretty, LogFormat::Combined, LogFormat::JsonLines] {
            let line = line_of(format, &head, |_| ());
            let text = line.strip_suffix('\n').unwrap();
            assert!(
                !text.contains(|char: char| char.is_control() || char == '\u{2028}'),
                "{text:?}"
            );
            if format == LogFormat::JsonLines {
                let value: serde_json::Value = serde_json::from_str(text).unwrap();
                assert_eq!(value["target"], "/\"\n\r\0\x1b[2J\u{7f}");
                assert_eq!(value["agent"], "a\"b\\c\td\u{9b}\u{2028}é");
            } else {
                assert!(text.contains("/\\\"\\x0A\\x0D\\x00\\x1B[2J\\x7F"), "{text}");
            }
        }
        let line = line_of(LogFormat::Combined, &head, |_| ());
        assert!(
            line.contains("\"a\\\"b\\\\c\\x09d\\xC2\\x9B\\xE2\\x80\\xA8\\xC3\\xA9\""),
            "{line}"
        );
    }

    #[test]
    fn secrets_in_a_query_are_left_out() {
        for (target, want) in [
            ("/a?apiKey=hush", "/a?apiKey=***"),
            ("/a?x=1&TOKEN=hush&y=2", "/a?x=1&TOKEN=***&y=2"),
            ("/a?t%6Fken=hush", "/a?t%6Fken=***"),
            ("/a?mine=hush&mine=hush", "/a?mine=***&mine=***"),
            ("/a?token", "/a?token"),
            ("/a?tokens=1", "/a?tokens=1"),
            ("/token=1?b", "/token=1?b"),
        ] {
            let request = Request::get(target).with_header("Referer", &format!("http://h{target}"));
            let line = line(LogFormat::Combined, &request, |_| ());
            assert!(line.contains(&format!("\"GET {want} HTTP/1.1\"")), "{line}");
            assert!(line.contains(&format!("\"http://h{want}\"")), "{line}");
        }
    }

    #[test]
    fn a_long_text_is_cut_past_its_limit() {
        for (length, cut) in [(MOST_TEXT, false), (MOST_TEXT + 1, true)] {
            let target = format!("/{}", "a".repeat(length - 1));
            let request = Request::get(&target).with_header("User-Agent", &"b".repeat(length));
            let line = line(LogFormat::Combined, &request, |_| ());
            assert!(!line.contains(&"b".repeat(MOST_TEXT + 1)));
            let cuts = line.matches("a... ").count() + line.matches("b...\"").count();
            assert_eq!(cuts, if cut { 2 } else { 0 });
        }
        assert!(shorten("é".repeat(MOST_TEXT).into()).ends_with("é..."));
        assert!(shorten(format!("a{}", "é".repeat(MOST_TEXT)).into()).ends_with("é..."));
    }
}
