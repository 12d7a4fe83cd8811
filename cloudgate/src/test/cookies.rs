//! Which cookies does a client keep, and which does it send (RFC 6265 section 5)?
//!
//! The list of public suffixes is not known here: a test is no place for other people's cookies.

use std::time::{Duration, SystemTime};

use super::target::Target;

#[derive(Clone, Debug, Default)]
pub(super) struct Jar(Vec<Cookie>);

#[derive(Clone, Debug)]
struct Cookie {
    name: String,
    value: String,
    /// In lower case, without a dot in front.
    domain: String,
    /// Whether it is for this host alone, and not for those below it.
    host_only: bool,
    path: String,
    secure: bool,
    /// `None` for as long as the client lives.
    expires: Option<SystemTime>,
}

impl Jar {
    /// Takes in a Set-Cookie field of an answer from `target`.
    pub(super) fn store(&mut self, field: &str, target: &Target, now: SystemTime) {
        let Some(cookie) = Cookie::parse(field, target, now) else {
            return;
        };
        let same = |other: &Cookie| {
            (&other.name, &other.domain, &other.path)
                == (&cookie.name, &cookie.domain, &cookie.path)
        };
        let gone = cookie.expires.is_some_and(|expires| expires <= now);
        match self.0.iter().position(same) {
            Some(at) if gone => drop(self.0.remove(at)),
            Some(at) => self.0[at] = cookie,
            None if gone => {}
            None => self.0.push(cookie),
        }
    }

    /// Sets a cookie for a whole host, without any limits.
    pub(super) fn set(&mut self, name: &str, value: &str, target: &Target) {
        self.store(
            &format!("{name}={value}; Path=/"),
            target,
            SystemTime::UNIX_EPOCH,
        );
    }

    /// The value of the Cookie field for a request; `None` without cookies.
    pub(super) fn field(&self, target: &Target, now: SystemTime) -> Option<String> {
        let mut fitting: Vec<&Cookie> = self.fitting(target, now).collect();
        // Longer paths first; the sort keeps the order of those that are as long.
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> = fitting
            .iter()
            .map(|cookie| match &*cookie.name {
                "" => cookie.value.clone(),
                name => format!("{name}={}", cookie.value),
            })
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// The value of a cookie that is kept for a host, whatever its path.
    pub(super) fn value(&self, name: &str, target: &Target, now: SystemTime) -> Option<&str> {
        self.0
            .iter()
            .filter(|cookie| cookie.is_for_host(target.host()) && cookie.lives_at(now))
            .find(|cookie| cookie.name == name)
            .map(|cookie| &*cookie.value)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn fitting<'j>(&'j self, target: &Target, now: SystemTime) -> impl Iterator<Item = &'j Cookie> {
        // A browser takes this machine for safe, or secure cookies could not be tried out on it.
        let safe = target.secure || is_this_machine(target.host());
        self.0.iter().filter(move |cookie| {
            cookie.is_for_host(target.host())
                && path_fits(&cookie.path, target.path())
                && (safe || !cookie.secure)
                && cookie.lives_at(now)
        })
    }
}

impl Cookie {
    /// RFC 6265 sections 5.2 and 5.3.
    fn parse(field: &str, target: &Target, now: SystemTime) -> Option<Cookie> {
        let mut parts = field.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return None;
        }
        let host = target.host().to_ascii_lowercase();
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: host.clone(),
            host_only: true,
            path: default_path(target.path()).to_owned(),
            secure: false,
            expires: None,
        };
        let mut max_age = None;
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match &*attribute.trim().to_ascii_lowercase() {
                "secure" => cookie.secure = true,
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "path" => cookie.path = default_path(target.path()).to_owned(),
                "domain" if !value.is_empty() => {
                    let domain = value.strip_prefix('.').unwrap_or(value);
                    cookie.domain = domain.to_ascii_lowercase();
                    cookie.host_only = false;
                }
                "expires" => {
                    cookie.expires = httpdate::parse_http_date(value).ok().or(cookie.expires);
                }
                "max-age" => max_age = expiry(value, now).or(max_age),
                _ => {}
            }
        }
        // Max-Age counts more than Expires (section 5.3).
        if let Some(max_age) = max_age {
            cookie.expires = max_age;
        }
        cookie.is_for_host(&host).then_some(cookie)
    }

    fn is_for_host(&self, host: &str) -> bool {
        let below = |host: &str| {
            // An address has no names below it.
            !self.host_only
                && host.parse::<std::net::IpAddr>().is_err()
                && host
                    .strip_suffix(&*self.domain)
                    .is_some_and(|rest| rest.ends_with('.'))
        };
        host == self.domain || below(host)
    }

    fn lives_at(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

/// When a Max-Age is over: `Some(None)` for never, `None` for what is no number.
fn expiry(value: &str, now: SystemTime) -> Option<Option<SystemTime>> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if digits.len() != value.len() {
        return Some(Some(SystemTime::UNIX_EPOCH));
    }
    let seconds = value.parse().unwrap_or(u64::MAX);
    Some(now.checked_add(Duration::from_secs(seconds)))
}

/// RFC 6265 section 5.1.4.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

fn path_fits(cookie: &str, path: &str) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "[::1]"
        || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(target: &str) -> Target {
        let base = Target {
            secure: false,
            authority: "localhost".to_owned(),
            path_and_query: "/".to_owned(),
        };
        base.resolve(target).unwrap()
    }

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn later(seconds: u64) -> SystemTime {
        NOW + Duration::from_secs(seconds)
    }

    #[track_caller]
    fn check(fields: &[&str], from: &str, to: &str, when: SystemTime, want: Option<&str>) {
        let mut jar = Jar::default();
        for field in fields {
            jar.store(field, &at(from), NOW);
        }
        assert_eq!(jar.field(&at(to), when).as_deref(), want, "{fields:?} {to}");
    }

    #[test]
    fn a_cookie_goes_where_its_host_and_path_say() {
        const CASES: &[(&str, &str, &str, bool)] = &[
            ("a=b", "/", "/x", true),
            ("a=b", "/x/y", "/x", true),
            ("a=b", "/x/y", "/x/z/w", true),
            ("a=b", "/x/y", "/xy", false),
            ("a=b", "/x/y", "/", false),
            ("a=b; Path=/x", "/", "/x/y", true),
            ("a=b; Path=/x/", "/", "/x", false),
            ("a=b; path=x", "/", "/y", true),
            ("a=b", "http://a.example/", "http://b.a.example/", false),
            (
                "a=b; Domain=a.example",
                "http://a.example/",
                "http://b.a.example/",
                true,
            ),
            (
                "a=b; Domain=.A.example",
                "http://b.a.example/",
                "http://a.example/",
                true,
            ),
            (
                "a=b; Domain=a.example",
                "http://b.a.example/",
                "http://ba.example/",
                false,
            ),
            (
                "a=b; Domain=other.example",
                "http://a.example/",
                "http://other.example/",
                false,
            ),
            (
                "a=b; Domain=b.a.example",
                "http://a.example/",
                "http://b.a.example/",
                false,
            ),
            (
                "a=b; Secure",
                "https://a.example/",
                "https://a.example/",
                true,
            ),
            (
                "a=b; Secure",
                "https://a.example/",
                "http://a.example/",
                false,
            ),
            ("a=b; Secure; HttpOnly; SameSite=Lax", "/", "/", true),
            ("a=b", "http://a.example:1/", "http://a.example:2/", true),
            ("no pair", "/", "/", false),
            ("=b", "/", "/", false),
        ];
        for &(field, from, to, want) in CASES {
            check(&[field], from, to, NOW, want.then_some("a=b"));
        }
    }

    #[test]
    fn a_cookie_ends_when_its_time_is_up() {
        let date = "Expires=Thu, 01 Jan 1970 00:00:10 GMT";
        for (attributes, when, want) in [
            ("Max-Age=10", 9, true),
            ("Max-Age=10", 10, false),
            ("Max-Age=0", 0, false),
            ("Max-Age=-5", 0, false),
            ("Max-Age=99999999999999999999", 1_000_000, true),
            ("Max-Age=x", 1_000_000, true),
            (date, 9, true),
            (date, 10, false),
            ("Expires=whenever", 1_000_000, true),
            (&*format!("{date}; Max-Age=20"), 15, true),
            (&*format!("Max-Age=5; {date}"), 7, false),
        ] {
            let field = format!("a=b; {attributes}");
            check(&[&field], "/", "/", later(when), want.then_some("a=b"));
        }
    }

    #[test]
    fn a_later_cookie_replaces_or_removes_the_same_one() {
        check(&["a=b", "a=c"], "/", "/", NOW, Some("a=c"));
        check(&["a=b", "a=; Max-Age=0"], "/", "/", NOW, None);
        check(&["a=b", "a=c; Path=/x"], "/", "/x", NOW, Some("a=c; a=b"));
        check(&["a=b", "c=d"], "/", "/", NOW, Some("a=b; c=d"));
    }
}
