//! How is a form with files written (RFC 7578)?

use std::fmt::Write;

/// A form with fields and files, for [`Ask::multipart`](super::Ask::multipart).
#[derive(Clone, Debug, Default)]
pub struct Form {
    parts: Vec<(String, Vec<u8>)>,
}

impl Form {
    /// Adds a field.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Form {
        let head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
        self.parts.push((head, value.as_bytes().to_vec()));
        self
    }

    /// Adds a file: the name of the field, that of the file, its media type and what it holds.
    #[must_use]
    pub fn file(
        mut self,
        name: &str,
        filename: &str,
        media_type: &str,
        content: impl Into<Vec<u8>>,
    ) -> Form {
        let head = format!(
            "Content-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\nContent-Type: {media_type}",
            quoted(name),
            quoted(filename)
        );
        self.parts.push((head, content.into()));
        self
    }

    /// The boundary and the body.
    pub(super) fn encode(&self) -> (String, Vec<u8>) {
        let boundary = self.boundary();
        let mut body = Vec::new();
        for (head, content) in &self.parts {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (boundary, body)
    }

    /// One that stands in none of the parts.
    fn boundary(&self) -> String {
        let mut number = 0;
        loop {
            let boundary = format!("cloudgate-{number}");
            let stands_in = |(_, content): &(String, Vec<u8>)| {
                memchr::memmem::find(content, boundary.as_bytes()).is_some()
            };
            if !self.parts.iter().any(stands_in) {
                return boundary;
            }
            number += 1;
        }
    }
}

/// As browsers write names: quotes and line breaks percent-encoded.
fn quoted(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        match character {
            '"' | '\r' | '\n' => {
                let _ = write!(text, "%{:02X}", character as u32);
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_stands_in_no_part() {
        let form = Form::default()
            .text("a\"b", "cloudgate-0\r\n--cloudgate-1")
            .file("f", "a.txt", "text/plain", "x");
        let (boundary, body) = form.encode();
        assert_eq!(boundary, "cloudgate-2");
        assert_eq!(
            String::from_utf8(body).unwrap(),
            "--cloudgate-2\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\ncloudgate-0\r\n--cloudgate-1\r\n\
             --cloudgate-2\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n\
             --cloudgate-2--\r\n"
        );
    }
}
