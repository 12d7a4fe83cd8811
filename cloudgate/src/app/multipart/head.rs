//! What do the header fields of one part say (RFC 7578 section 4)?

use memchr::memmem;

/// What the head of a part says about the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartHead {
    pub(crate) name: String,
    /// The client's file name; `None` for an ordinary field.
    pub(crate) filename: Option<String>,
    pub(crate) content_type: String,
}

/// The rule that a head breaks, and where in the head, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadFault {
    pub(super) at: usize,
    pub(super) reason: &'static str,
}

/// The boundary that a Content-Type names: 1 to 70 characters (RFC 2046 section 5.1.1).
pub(crate) fn boundary_of(content_type: &str) -> Option<String> {
    let mut found = None;
    parameters(content_type, |name, text| {
        if found.is_none() && name.eq_ignore_ascii_case("boundary") {
            found = Some(text);
        }
        Ok(())
    })
    .ok()?;
    let fits = |boundary: &String| {
        (1..=70).contains(&boundary.len())
            && boundary.bytes().all(|byte| (0x20..0x7f).contains(&byte))
    };
    found.filter(fits)
}

impl PartHead {
    /// Reads the lines of a head, without the blank line that ends it. `dash_boundary` may begin none.
    pub(super) fn parse(head: &[u8], dash_boundary: &[u8]) -> Result<PartHead, HeadFault> {
        let mut disposition = None;
        let mut content_type = None;
        let mut at = 0;
        while at < head.len() {
            let length = memmem::find(&head[at..], b"\r\n").unwrap_or(head.len() - at);
            let line = &head[at..at + length];
            let fault = |reason| HeadFault { at, reason };
            if !line.is_empty() {
                if line.starts_with(dash_boundary) {
                    return Err(fault("a boundary inside of the head of a part"));
                }
                let (name, value) = field(line).map_err(fault)?;
                let (slot, twice) = if name.eq_ignore_ascii_case("content-disposition") {
                    (&mut disposition, "a part with two Content-Disposition")
                } else if name.eq_ignore_ascii_case("content-type") {
                    (&mut content_type, "a part with two Content-Type")
                } else {
                    // RFC 7578 section 4.8: other fields must be ignored.
                    at += length + 2;
                    continue;
                };
                // Which of two counts is read in different ways, which helps to hide one of them.
                if slot.replace((at, value)).is_some() {
                    return Err(fault(twice));
                }
            }
            at += length + 2;
        }
        let (at, value) = disposition.ok_or(HeadFault {
            at: 0,
            reason: "a part without Content-Disposition: form-data; name=\"...\"",
        })?;
        let (name, filename) = named(&value).map_err(|reason| HeadFault { at, reason })?;
        Ok(PartHead {
            name,
            filename,
            content_type: content_type.map_or_else(|| "text/plain".to_owned(), |(_, value)| value),
        })
    }
}

/// Name and value of one line. Names and file names in other encodings than UTF-8 are not refused:
/// old browsers send them.
fn field(line: &[u8]) -> Result<(&str, String), &'static str> {
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err("a NUL, or a CR or LF alone, in the head of a part");
    }
    let colon = memchr::memchr(b':', line)
        .ok_or("a line without a colon in the head of a part; an empty line must end the head")?;
    let name = std::str::from_utf8(&line[..colon])
        .ok()
        .filter(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte))
        })
        .ok_or("a field name that is none in the head of a part")?;
    let value = String::from_utf8_lossy(&line[colon + 1..]);
    Ok((name, value.trim().to_owned()))
}

/// Name and file name of a Content-Disposition (RFC 7578 section 4.2). A `filename*` is passed over,
/// for the RFC forbids it in forms.
fn named(value: &str) -> Result<(String, Option<String>), &'static str> {
    let kind = value.split(';').next().unwrap_or("").trim();
    if !kind.eq_ignore_ascii_case("form-data") {
        return Err("a Content-Disposition other than form-data");
    }
    let (mut name, mut filename) = (None, None);
    parameters(value, |key, text| {
        let (slot, twice) = if key.eq_ignore_ascii_case("name") {
            (&mut name, "a part with two names")
        } else if key.eq_ignore_ascii_case("filename") {
            (&mut filename, "a part with two file names")
        } else {
            return Ok(());
        };
        slot.replace(text).map_or(Ok(()), |_| Err(twice))
    })?;
    Ok((name.ok_or("a part without a name")?, filename))
}

/// Calls `each` with the parameters behind `;`, quoted or not.
fn parameters(
    value: &str,
    mut each: impl FnMut(&str, String) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let Some((_, mut rest)) = value.split_once(';') else {
        return Ok(());
    };
    while !rest.trim().is_empty() {
        let (name, behind) = rest
            .split_once('=')
            .ok_or("a parameter without a value, such as name=\"...\"")?;
        let behind = behind.trim_start();
        let (text, after) = match behind.strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or("a quote that is not closed")?,
            None => {
                let end = behind.find(';').unwrap_or(behind.len());
                (behind[..end].trim_end().to_owned(), &behind[end..])
            }
        };
        each(name.trim(), text)?;
        let after = after.trim_start();
        rest = match after.strip_prefix(';') {
            Some(next) => next,
            None if after.is_empty() => "",
            None => return Err("text behind a closing quote"),
        };
    }
    Ok(())
}

/// The text up to the closing quote, and what is behind it. Browsers write `"` in names as `%22`
/// (RFC 7578 section 2), others as `\"`.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text.replace("%22", "\""), &quoted[at + 1..])),
            // Old browsers send Windows paths with bare backslashes: only quotes and backslashes are escaped.
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => {
                text.extend(characters.next().map(|(_, next)| next));
            }
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(disposition: &str, want: Result<(&str, Option<&str>), &str>) {
        let head = format!("\r\nContent-Disposition: {disposition}");
        let got = PartHead::parse(head.as_bytes(), b"--x");
        let got = got
            .as_ref()
            .map(|head| (&*head.name, head.filename.as_deref()));
        assert_eq!(got.map_err(|fault| fault.reason), want, "{disposition}");
    }

    #[test]
    fn names_are_found_in_any_place_and_quoting() {
        check("form-data; name=a", Ok(("a", None)));
        check("FORM-DATA;Name=\"a\";", Ok(("a", None)));
        check("form-data; x=\"y;name=z\"; name=b", Ok(("b", None)));
        check("form-data; filename=f ; name=\"\"", Ok(("", Some("f"))));
        check(r#"form-data; name="x\"y\\""#, Ok((r#"x"y\"#, None)));
        check(r#"form-data; name="C:\dir\f""#, Ok((r"C:\dir\f", None)));
        check(
            r#"form-data; name="a%22b"; filename=a%22b"#,
            Ok(("a\"b", Some("a%22b"))),
        );
        // RFC 7578 section 4.2 forbids `filename*`.
        check("form-data; name=a; filename*=UTF-8''x", Ok(("a", None)));
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        check(
            "attachment; name=a",
            Err("a Content-Disposition other than form-data"),
        );
        check("form-data", Err("a part without a name"));
        check("form-data; name=a; NAME=b", Err("a part with two names"));
        check(
            "form-data; name=a; filename=b; filename=c",
            Err("a part with two file names"),
        );
        check("form-data; name=\"a", Err("a quote that is not closed"));
        check(
            "form-data; name=\"a\" b",
            Err("text behind a closing quote"),
        );
        check(
            "form-data; name",
            Err("a parameter without a value, such as name=\"...\""),
        );
        for (line, want) in [
            (
                "no colon",
                "a line without a colon in the head of a part; an empty line must end the head",
            ),
            (
                " X: folded",
                "a field name that is none in the head of a part",
            ),
            ("X : y", "a field name that is none in the head of a part"),
            (
                "X: a\0",
                "a NUL, or a CR or LF alone, in the head of a part",
            ),
            (
                "X: a\nY: b",
                "a NUL, or a CR or LF alone, in the head of a part",
            ),
            ("--x: y", "a boundary inside of the head of a part"),
            (
                "content-disposition: form-data; name=b",
                "a part with two Content-Disposition",
            ),
        ] {
            let head = format!("\r\nContent-Disposition: form-data; name=a\r\n{line}");
            let at = head.rfind(line).unwrap();
            let want = Err(HeadFault { at, reason: want });
            assert_eq!(PartHead::parse(head.as_bytes(), b"--x"), want, "{line:?}");
        }
    }

    #[test]
    fn boundaries_have_1_to_70_printable_characters() {
        let boundary = |text: &str| boundary_of(&format!("multipart/form-data; boundary={text}"));
        assert_eq!(
            boundary("\"a b;c\"; charset=utf-8").as_deref(),
            Some("a b;c")
        );
        assert!(boundary(&"b".repeat(70)).is_some());
        assert!(boundary(&"b".repeat(71)).is_none());
        assert!(boundary("").is_none() && boundary("\"a\tb\"").is_none());
        assert!(boundary_of("multipart/form-data").is_none());
    }
}
