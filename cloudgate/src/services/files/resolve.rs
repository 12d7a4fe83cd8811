//! Which request paths may name a file at all?

use std::borrow::Cow;

use http::StatusCode;

use crate::message::query::decode_segment;

/// The most bytes of a relative path; no file system takes longer ones.
const MOST_BYTES: usize = 4096;

/// A relative path that cannot lead out of its folder, whatever the file system makes of it.
///
/// Also refused, on every system, is what another system could misread: `\`, `:`, a trailing dot
/// or space, and the device names of Windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SafePath<'r> {
    path: Cow<'r, str>,
    folder: bool,
}

/// Whether names that begin with a dot are shown. `.well-known` (RFC 8615) always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DotNames {
    Hidden,
    Shown,
}

/// Why a path names no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It tries to leave the folder, or holds what no name may hold.
    Malformed,
    /// It names something that is not shown.
    Hidden,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Refusal::Malformed => StatusCode::BAD_REQUEST,
            Refusal::Hidden => StatusCode::NOT_FOUND,
        }
    }
}

impl<'r> SafePath<'r> {
    /// Reads the path of a request: split at `/` first, then each segment decoded.
    pub(super) fn of(path: &'r str, dot_names: DotNames) -> Result<SafePath<'r>, Refusal> {
        let rest = path.strip_prefix('/').ok_or(Refusal::Malformed)?;
        let folder = rest.is_empty() || rest.ends_with('/');
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut safe = Cow::Borrowed(rest);
        if path.len() > 1 {
            let encoded = rest.contains('%');
            if encoded {
                safe = Cow::Owned(String::with_capacity(rest.len()));
            }
            for segment in rest.split('/') {
                let name = if encoded {
                    decode_segment(segment).ok_or(Refusal::Malformed)?
                } else {
                    Cow::Borrowed(segment)
                };
                check_name(&name, dot_names)?;
                if let Cow::Owned(safe) = &mut safe {
                    if !safe.is_empty() {
                        safe.push('/');
                    }
                    safe.push_str(&name);
                }
            }
        }
        if safe.len() > MOST_BYTES {
            return Err(Refusal::Hidden);
        }
        Ok(SafePath { path: safe, folder })
    }

    /// Whether it ends with a slash, or is the root: it names a folder.
    pub(super) fn names_folder(&self) -> bool {
        self.folder
    }

    /// The path without slashes around it; empty for the root.
    pub(super) fn as_str(&self) -> &str {
        &self.path
    }

    /// The path of a file in this folder.
    pub(super) fn join(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.path)
        }
    }
}

/// Whether a name of the folder may be named by a request at all.
pub(super) fn is_shown(name: &str, dot_names: DotNames) -> bool {
    check_name(name, dot_names).is_ok()
}

fn check_name(name: &str, dot_names: DotNames) -> Result<(), Refusal> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(Refusal::Malformed);
    }
    if name
        .chars()
        .any(|character| matches!(character, '/' | '\\' | ':') || character.is_control())
    {
        return Err(Refusal::Malformed);
    }
    if name.ends_with(['.', ' ']) || is_device(name) {
        return Err(Refusal::Hidden);
    }
    if dot_names == DotNames::Hidden && name.starts_with('.') && name != ".well-known" {
        return Err(Refusal::Hidden);
    }
    Ok(())
}

/// Whether Windows takes the name, with any ending, for a device.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let fits = |device: &str| stem.eq_ignore_ascii_case(device);
    if ["CON", "PRN", "AUX", "NUL"].into_iter().any(fits) {
        return true;
    }
    let bytes = stem.as_bytes();
    bytes.len() == 4
        && (bytes[..3].eq_ignore_ascii_case(b"COM") || bytes[..3].eq_ignore_ascii_case(b"LPT"))
        && matches!(bytes[3], b'1'..=b'9')
}

#[cfg(test)]
mod tests {
    use super::*;
    use Refusal::*;

    #[track_caller]
    fn check(path: &str, want: Result<(&str, bool), Refusal>) {
        let got = SafePath::of(path, DotNames::Hidden).map(|safe| (safe.path, safe.folder));
        let want = want.map(|(path, folder)| (Cow::from(path), folder));
        assert_eq!(got, want, "{path}");
    }

    #[test]
    fn ordinary_paths() {
        check("/", Ok(("", true)));
        check("/a", Ok(("a", false)));
        check("/a/b.txt", Ok(("a/b.txt", false)));
        check("/a/", Ok(("a", true)));
        check("/a%20b/caf%C3%A9", Ok(("a b/caf\u{e9}", false)));
        check("/.well-known/acme", Ok((".well-known/acme", false)));
        check("/a..b", Ok(("a..b", false)));
        check("/console.txt", Ok(("console.txt", false)));
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        for path in [
            "/..",
            "/../a",
            "/a/../../b",
            "/./a",
            "/a/.",
            "//a",
            "/a//b",
            "//",
            "/..%2Fa",
            "/%2e%2e/a",
            "/a%2f..%2fb",
            "/..%5Ca",
            "/a\\b",
            "/a%00",
            "/a%0A",
            "/C:/a",
            "/a%3Astream",
            "/%ff",
            "/%c0%ae%c0%ae/a",
            "*",
            "",
        ] {
            check(path, Err(Malformed));
        }
    }

    #[test]
    fn what_is_not_shown_is_as_if_it_were_not_there() {
        for path in [
            "/.git/config",
            "/.env",
            "/a/.htaccess",
            "/...",
            "/a.",
            "/a%20",
            "/CON",
            "/con.txt",
            "/a/nul",
            "/Com1.log",
            "/lpt9",
        ] {
            check(path, Err(Hidden));
        }
        check("/com0", Ok(("com0", false)));
        let long = |length: usize| {
            SafePath::of(&format!("/{}", "a".repeat(length)), DotNames::Hidden).map(|_| ())
        };
        assert_eq!(long(MOST_BYTES), Ok(()));
        assert_eq!(long(MOST_BYTES + 1), Err(Hidden));
    }

    #[test]
    fn dot_names_can_be_shown_but_lead_nowhere_else() {
        let shown = |path| SafePath::of(path, DotNames::Shown).map(|safe| safe.path);
        assert_eq!(shown("/.git/config"), Ok(".git/config".into()));
        assert_eq!(shown("/..."), Err(Hidden));
        for path in ["/..", "/.", "/a/../b", "/%2e%2e/a"] {
            assert_eq!(shown(path), Err(Malformed), "{path}");
        }
    }
}
