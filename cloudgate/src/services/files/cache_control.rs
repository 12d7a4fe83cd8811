//! How long may a browser use a file without asking again?

use glob::{MatchOptions, Pattern};

use super::directives;
use super::hashed_name::holds_hash;

/// A file whose name changes with its content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Ask each time; by the ETag a file that is the same is not sent again.
const ASK: &str = "no-cache";

/// The value of `Cache-Control` (RFC 9111 section 5.2) for each file of a folder.
///
/// ```
/// use cloudgate::CacheControl;
///
/// let rules = CacheControl::new()
///     .media_type("image/*", "public, max-age=3600")
///     .path("*.pdf", "public, max-age=86400")
///     .path("assets/**", "public, max-age=31536000, immutable");
/// ```
///
/// A rule wins over those before it, and over what it begins with ([`CacheControl::new`],
/// [`CacheControl::by_type`] or [`CacheControl::none`]). A pattern or a value that cannot work is an error at
/// start.
#[derive(Clone, Debug)]
pub struct CacheControl {
    preset: Preset,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug)]
enum Preset {
    Hashes,
    Types,
    Nothing,
}

#[derive(Clone, Debug)]
struct Rule {
    what: What,
    /// As it was written.
    text: String,
    value: String,
}

#[derive(Clone, Debug)]
enum What {
    /// The whole path, or the name in any folder.
    Path(Pattern),
    Name(Pattern),
    /// Two halves of a type; `None` is any.
    MediaType(Option<String>, Option<String>),
    /// Why it is nothing of these.
    Mistake {
        method: &'static str,
        reason: String,
    },
}

impl Default for CacheControl {
    fn default() -> CacheControl {
        CacheControl::new()
    }
}

impl CacheControl {
    /// A year for names that hold a hash of the content (`public, max-age=31536000, immutable`), and
    /// `no-cache` for everything else: browsers keep it, and ask each time whether it is still the same.
    ///
    /// Names with a hash are those that build tools write, such as `main.3f9a1c2b.js`, `main-QV3PZ5UO.js`, and
    /// `assets/index-B9xK2mQz.js` in a folder of such tools. In doubt a name holds none, so some of them are
    /// asked for again; where a folder has no others, say so:
    /// `.path("assets/**", "public, max-age=31536000, immutable")`. A page is never kept without asking,
    /// whatever its name.
    pub const fn new() -> CacheControl {
        CacheControl::of(Preset::Hashes)
    }

    /// Fixed times by type: 5 seconds for pages, a week for images, fonts, CSS, JavaScript, text, JSON and
    /// XML, a day for office documents, PDF, ZIP, sound and films, 30 seconds for the rest.
    ///
    /// A file that changes within its time stays as it was for those who have seen it.
    pub const fn by_type() -> CacheControl {
        CacheControl::of(Preset::Types)
    }

    /// No `Cache-Control` at all but by rules: caches then guess from the date of the file (RFC 9111
    /// section 4.2.2).
    pub const fn none() -> CacheControl {
        CacheControl::of(Preset::Nothing)
    }

    const fn of(preset: Preset) -> CacheControl {
        CacheControl {
            preset,
            rules: Vec::new(),
        }
    }

    /// Sets the value for files by a pattern. One with a slash is held against the whole path in the
    /// folder, one without against the name in any folder.
    ///
    /// `*` is any part of a name, `?` one character, `[abc]` one of these, `**` between slashes or at the end
    /// any number of folders.
    ///
    /// ```
    /// use cloudgate::CacheControl;
    /// let rules = CacheControl::new()
    ///     .path("*.pdf", "public, max-age=86400")            // a/b.pdf and b.pdf
    ///     .path("fonts/**", "public, max-age=604800")        // fonts/a.woff2, fonts/b/c.woff2
    ///     .path("**/lang/*.json", "public, max-age=60");     // lang/de.json, app/lang/fr.json
    /// ```
    #[must_use]
    pub fn path(self, pattern: &str, value: &str) -> CacheControl {
        let what = path_rule(pattern).unwrap_or_else(|reason| What::Mistake {
            method: "path",
            reason,
        });
        self.rule(what, pattern, value)
    }

    /// Sets the value for files of a media type, such as `text/css` or `image/*`.
    #[must_use]
    pub fn media_type(self, media_type: &str, value: &str) -> CacheControl {
        let what = media_type_rule(media_type).unwrap_or_else(|reason| What::Mistake {
            method: "media_type",
            reason,
        });
        self.rule(what, media_type, value)
    }

    fn rule(mut self, what: What, text: &str, value: &str) -> CacheControl {
        self.rules.push(Rule {
            what,
            text: text.to_owned(),
            value: value.trim_ascii().to_owned(),
        });
        self
    }

    /// The value for the file with this path in the folder, without a slash in front, and of this type,
    /// parameters of which do not count.
    pub(super) fn value_for(&self, name: &str, media_type: &str) -> Option<&str> {
        let essence = media_type.split(';').next().unwrap_or("").trim_ascii();
        let mut rules = self.rules.iter().rev();
        if let Some(rule) = rules.find(|rule| rule.what.fits(name, essence)) {
            return Some(&rule.value);
        }
        match self.preset {
            Preset::Hashes if !is_page(essence) && holds_hash(name) => Some(FOR_EVER),
            Preset::Hashes => Some(ASK),
            Preset::Types => Some(by_type(essence)),
            Preset::Nothing => None,
        }
    }

    /// Says which rule cannot work, why, and what to write.
    pub(super) fn check(&self) -> Result<(), String> {
        for Rule { what, text, value } in &self.rules {
            let (method, reason) = match what {
                What::Mistake { method, reason } => (*method, Err(reason.clone())),
                What::MediaType(..) => ("media_type", directives::check(value)),
                What::Path(_) | What::Name(_) => ("path", directives::check(value)),
            };
            reason.map_err(|reason| {
                format!(
                    "the rule CacheControl::{method}({text:?}, {value:?}) cannot work: {reason}"
                )
            })?;
        }
        Ok(())
    }
}

impl What {
    fn fits(&self, path: &str, essence: &str) -> bool {
        // `*` ends at a slash, and may begin with a dot: hidden files are not served anyhow.
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        match self {
            What::Path(pattern) => pattern.matches_with(path, options),
            What::Name(pattern) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                pattern.matches_with(name, options)
            }
            What::MediaType(kind, name) => {
                let fits = |wanted: &Option<String>, part: &str| {
                    wanted
                        .as_ref()
                        .is_none_or(|wanted| wanted.eq_ignore_ascii_case(part))
                };
                essence
                    .split_once('/')
                    .is_some_and(|halves| fits(kind, halves.0) && fits(name, halves.1))
            }
            What::Mistake { .. } => false,
        }
    }
}

fn path_rule(pattern: &str) -> Result<What, String> {
    let below = pattern.strip_prefix('/').unwrap_or(pattern);
    if below.is_empty() || below.ends_with('/') {
        return Err(format!(
            "it names a folder and no file - write {:?} for all that is in it",
            format!("{below}**")
        ));
    }
    if below.contains('{') {
        return Err(
            "{a,b} is no pattern here - write a rule for each, or [{] for the brace itself"
                .to_owned(),
        );
    }
    if below
        .split('/')
        .any(|segment| matches!(segment, "" | "." | ".."))
    {
        return Err(
            "no file has such a path - write it from the folder on, such as \"assets/app.js\""
                .to_owned(),
        );
    }
    let compiled = Pattern::new(below).map_err(|error| {
        format!(
            "the pattern is malformed at its character {}: {} - ** stands alone between slashes (\"assets/**\", \
             \"**/*.css\"), and a bracket itself is [[]",
            error.pos + 1 + pattern.len() - below.len(),
            error.msg
        )
    })?;
    Ok(if pattern.contains('/') {
        What::Path(compiled)
    } else {
        What::Name(compiled)
    })
}

fn media_type_rule(media_type: &str) -> Result<What, String> {
    let half = |text: &str| -> Option<Option<String>> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        match text {
            "*" => Some(None),
            _ if !text.is_empty() && text.bytes().all(plain) => Some(Some(text.to_owned())),
            _ => None,
        }
    };
    media_type
        .split_once('/')
        .and_then(|(kind, name)| Some((half(kind)?, half(name)?)))
        .filter(|(kind, name)| kind.is_some() || name.is_none())
        .map(|(kind, name)| What::MediaType(kind, name))
        .ok_or_else(|| {
            "it is no media type - write one without parameters, such as \"text/css\", \"image/*\" or \"*/*\"".to_owned()
        })
}

fn is_page(essence: &str) -> bool {
    matches!(essence, "text/html" | "application/xhtml+xml")
}

/// The table of [`CacheControl::by_type`].
fn by_type(essence: &str) -> &'static str {
    const WEEK: &str = "public, max-age=604800";
    const DAY: &str = "public, max-age=86400";
    if is_page(essence) {
        return "public, max-age=5";
    }
    match essence.split_once('/') {
        Some(("image" | "font", _)) => WEEK,
        Some(("text", "css" | "javascript" | "plain" | "xml")) => WEEK,
        Some(("application", "json" | "xml" | "vnd.ms-fontobject")) => WEEK,
        Some(("audio" | "video", _)) => DAY,
        Some(("application", name)) => {
            let office = [
                "msword",
                "vnd.ms-excel",
                "vnd.ms-powerpoint",
                "vnd.openxmlformats-officedocument.",
                "vnd.oasis.opendocument.",
            ];
            if matches!(name, "pdf" | "zip" | "rtf")
                || office.iter().any(|start| name.starts_with(start))
            {
                DAY
            } else {
                "public, max-age=30"
            }
        }
        _ => "public, max-age=30",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::mime;

    #[track_caller]
    fn check(rules: &CacheControl, name: &str, want: Option<&str>) {
        let media_type = mime::content_type(name.as_ref());
        assert_eq!(rules.value_for(name, &media_type), want, "{name}");
    }

    #[test]
    fn hashed_names_are_kept_for_ever_and_the_rest_is_asked_for() {
        for (name, want) in [
            ("assets/index-B9xK2mQz.js", FOR_EVER),
            ("main.3f9a1c2b.chunk.js", FOR_EVER),
            ("app.3f9a1c2b.js.map", FOR_EVER),
            ("index.html", ASK),
            ("app.js", ASK),
            ("LICENSE", ASK),
            // A page is what leads to the new names.
            ("index.3f9a1c2b.html", ASK),
            ("_app/immutable/x.3f9a1c2b.xhtml", ASK),
        ] {
            check(&CacheControl::new(), name, Some(want));
            check(&CacheControl::default(), name, Some(want));
            check(&CacheControl::none(), name, None);
        }
    }

    #[test]
    fn times_by_type() {
        for (seconds, names) in [
            (5, "index.html a.htm a.xhtml"),
            (
                604_800,
                "a.png a.svg a.ico a.avif a.woff2 a.ttf a.eot a.css a.js a.mjs a.txt a.json a.xml",
            ),
            (
                86_400,
                "a.doc a.docx a.xlsx a.pptx a.odt a.rtf a.pdf a.zip a.mp3 a.ogg a.mp4 a.webm",
            ),
            (
                30,
                "a a.bin a.wasm a.csv a.md a.rss a.webmanifest a.3f9a1c2b.wasm",
            ),
        ] {
            let want = format!("public, max-age={seconds}");
            for name in names.split(' ') {
                check(&CacheControl::by_type(), name, Some(&want));
            }
        }
    }

    #[test]
    fn patterns_are_held_against_the_path_or_the_name() {
        for (pattern, fitting, others) in [
            (
                "assets/**",
                "assets/a.js assets/b/c.css",
                "a.js assets x/assets/a.js assetsb/a.js",
            ),
            ("/assets/**", "assets/a.js", "x/assets/a.js"),
            (
                "*.pdf",
                "a.pdf b/c/a.pdf .well-known/a.pdf",
                "a.pdf.txt a.PDF pdf",
            ),
            ("a?.js", "ab.js x/ac.js", "a.js abc.js a/.js"),
            ("/robots.txt", "robots.txt", "x/robots.txt"),
            (
                "robots.txt",
                "robots.txt x/robots.txt",
                "robots.txt/x xrobots.txt",
            ),
            ("img/*.png", "img/a.png", "img/x/a.png a.png"),
            (
                "**/lang/*.json",
                "lang/de.json a/lang/de.json a/b/lang/de.json",
                "lang/x/de.json de.json",
            ),
            ("a/**/z.js", "a/z.js a/b/z.js a/b/c/z.js", "z.js b/z.js"),
            ("v[0-9]/*", "v1/a.js", "v10/a.js va/a.js"),
            ("**", "a a/b a/b/c.js", ""),
        ] {
            let rules = CacheControl::none().path(pattern, "no-store");
            assert_eq!(rules.check(), Ok(()), "{pattern}");
            for name in fitting.split_whitespace() {
                check(&rules, name, Some("no-store"));
            }
            for name in others.split_whitespace() {
                check(&rules, name, None);
            }
        }
    }

    #[test]
    fn the_last_rule_that_fits_wins() {
        let rules = CacheControl::new()
            .media_type("image/*", "max-age=1")
            .path("img/**", "max-age=2")
            .media_type("image/PNG", " max-age=3 ")
            .path("img/old/*", "no-store");
        assert_eq!(rules.check(), Ok(()));
        for (name, want) in [
            ("a.gif", "max-age=1"),
            ("img/a.gif", "max-age=2"),
            ("img/a.css", "max-age=2"),
            ("img/a.png", "max-age=3"),
            ("img/old/a.png", "no-store"),
            ("a.css", ASK),
            ("a.3f9a1c2b.css", FOR_EVER),
            ("a.3f9a1c2b.gif", "max-age=1"),
        ] {
            check(&rules, name, Some(want));
        }
        let all = CacheControl::none()
            .media_type("*/*", "no-cache")
            .media_type("text/html", "no-store");
        check(&all, "a.html", Some("no-store"));
        check(&all, "a", Some("no-cache"));
        assert_eq!(all.value_for("a", "nonsense"), None);
    }

    #[test]
    fn a_rule_that_cannot_work_is_named_with_what_to_write() {
        for (rules, want) in [
            (
                CacheControl::new().path("assets/**", "max-age:600"),
                "CacheControl::path(\"assets/**\", \"max-age:600\") cannot work: \"max-age:600\" is no directive - write \"max-age=600\"",
            ),
            (
                CacheControl::none().media_type("text/css", "public, maxage=5"),
                "CacheControl::media_type(\"text/css\", \"public, maxage=5\")",
            ),
            (
                CacheControl::new().path("a**", "no-cache"),
                "between slashes",
            ),
            (
                CacheControl::new().path("/a**", "no-cache"),
                "at its character 2",
            ),
            (
                CacheControl::new().path("a/***", "no-cache"),
                "malformed at its character 5",
            ),
            (
                CacheControl::new().path("[a", "no-cache"),
                "malformed at its character 1",
            ),
            (
                CacheControl::new().path("*.{js,css}", "no-cache"),
                "a rule for each",
            ),
            (CacheControl::new().path("", "no-cache"), "\"**\""),
            (
                CacheControl::new().path("assets/", "no-cache"),
                "\"assets/**\"",
            ),
            (
                CacheControl::new().path("./a.js", "no-cache"),
                "from the folder on",
            ),
            (
                CacheControl::new().path("a//b", "no-cache"),
                "from the folder on",
            ),
            (
                CacheControl::new().path("../a", "no-cache"),
                "from the folder on",
            ),
            (
                CacheControl::new().media_type("image", "no-cache"),
                "\"image/*\"",
            ),
            (
                CacheControl::new().media_type("*/png", "no-cache"),
                "\"image/*\"",
            ),
            (
                CacheControl::new().media_type("image/p*", "no-cache"),
                "\"image/*\"",
            ),
            (
                CacheControl::new().media_type("text/html; charset=utf-8", "no-cache"),
                "without parameters",
            ),
            (
                CacheControl::new().media_type("text/", "no-cache"),
                "no media type",
            ),
            (
                CacheControl::new()
                    .path("*", "no-cache")
                    .path("*", "a\nb")
                    .path("*", "no-store"),
                "on one line",
            ),
        ] {
            let error = rules.check().unwrap_err();
            assert!(error.contains(want), "{error}");
            assert!(error.starts_with("the rule CacheControl::"), "{error}");
        }
    }
}
