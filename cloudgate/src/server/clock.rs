//! What does the Date field say, without formatting it for every response?

use std::time::SystemTime;

/// The text of Date, made new at most once a second.
#[derive(Debug)]
pub(crate) struct Date {
    text: [u8; 29],
    /// Until where on the server's clock, in milliseconds, the text holds.
    until: u64,
}

impl Date {
    pub(crate) const fn new() -> Date {
        Date {
            text: [0; 29],
            until: 0,
        }
    }

    /// The date as RFC 9110 section 5.6.7 wants it, not older than a second.
    pub(crate) fn at(&mut self, now: u64) -> &[u8; 29] {
        if now >= self.until {
            let text = httpdate::fmt_http_date(SystemTime::now());
            self.text.copy_from_slice(text.as_bytes());
            self.until = now + 1000;
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_an_imf_fixdate_and_kept_for_a_second() {
        let mut date = Date::new();
        let first = *date.at(5);
        assert!(httpdate::parse_http_date(std::str::from_utf8(&first).unwrap()).is_ok());
        assert!(first.ends_with(b" GMT"));
        assert_eq!(date.until, 1005);
        date.at(1004);
        assert_eq!(date.until, 1005);
        date.at(1005);
        assert_eq!(date.until, 2005);
    }
}
