//! Which names may an app have?
//!
//! The name becomes the package, the program and, with `_` for `-`, a Rust path: so it follows
//! cargo's rules, and the few of our own that keep such an app from building.

/// The name of the new package: lower case, words joined by `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

/// Which rule a name breaks, and a name near it that breaks none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadName {
    pub(crate) rule: String,
    pub(crate) suggestion: String,
}

const LONGEST: usize = 64;

impl Name {
    /// Takes the name as typed: `MyApp` and `my_app` make the package `my-app`.
    pub(crate) fn new(typed: &str) -> Result<Name, BadName> {
        match broken_rule(typed) {
            None => Ok(Name(kebab(typed))),
            Some(rule) => Err(BadName {
                rule,
                suggestion: suggest(typed),
            }),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn broken_rule(typed: &str) -> Option<String> {
    if typed.is_empty() {
        return Some("a name needs at least one letter".to_owned());
    }
    if typed.len() > LONGEST {
        return Some(format!(
            "a name may have {LONGEST} characters at most, this one has {}",
            typed.chars().count()
        ));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if let Some(wrong) = typed.chars().find(|c| !allowed(*c)) {
        return Some(format!(
            "a name may hold letters a to z, digits, - and _ only, not {wrong:?}"
        ));
    }
    if !typed.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("a name must start with a letter".to_owned());
    }
    reserved(&kebab(typed)).map(|why| format!("the name is taken by {why}"))
}

/// What a name in kebab case already means to Rust, cargo, the app or Windows.
fn reserved(name: &str) -> Option<&'static str> {
    const KEYWORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
        "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
        "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
        "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type",
        "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    ];
    match name {
        "test" | "core" | "std" | "alloc" | "proc-macro" => Some("a library that comes with Rust"),
        "build" | "deps" | "examples" | "incremental" => Some("a folder that cargo makes"),
        "cloudgate" | "cloudgate-macros" => Some("cloudgate itself"),
        "serde" | "serde-json" => Some("a library that the app uses"),
        "con" | "prn" | "aux" | "nul" => Some("a device of Windows"),
        _ if is_numbered_device(name) => Some("a device of Windows"),
        _ if KEYWORDS.contains(&name) => Some("a keyword of Rust"),
        _ => None,
    }
}

fn is_numbered_device(name: &str) -> bool {
    ["com", "lpt"]
        .iter()
        .filter_map(|device| name.strip_prefix(device))
        .any(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
}

fn kebab(typed: &str) -> String {
    let mut name = String::with_capacity(typed.len() + 4);
    let mut after_small = false;
    for c in typed.chars() {
        if c == '_' {
            name.push('-');
        } else {
            if c.is_ascii_uppercase() && after_small {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    name
}

/// The nearest good name.
fn suggest(typed: &str) -> String {
    let words: Vec<String> = typed
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(kebab)
        .collect();
    let mut name = words.join("-");
    name.truncate(LONGEST - "-app".len());
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "my-app".to_owned()
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("app-{name}")
    } else if reserved(name).is_some() {
        format!("{name}-app")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(typed: &str, package: &str) {
        assert_eq!(Name::new(typed), Ok(Name(package.to_owned())));
    }

    #[track_caller]
    fn bad(typed: &str, rule: &str, suggestion: &str) {
        let error = Name::new(typed).expect_err("the name breaks a rule");
        assert!(error.rule.contains(rule), "{typed:?}: {}", error.rule);
        assert_eq!(error.suggestion, suggestion);
        assert!(
            Name::new(&error.suggestion).is_ok(),
            "the suggestion for {typed:?} is no good name"
        );
    }

    #[test]
    fn good_names_become_packages_in_kebab_case() {
        good("my-app-1", "my-app-1");
        good("a", "a");
        good("my_app", "my-app");
        good("MyApp", "my-app");
        good("shop2Go", "shop2-go");
        good("HTTPServer", "httpserver");
        good("testing", "testing");
        good("company", "company");
        good(&"a".repeat(64), &"a".repeat(64));
    }

    #[test]
    fn bad_names_are_told_the_rule_and_a_way_out() {
        bad("", "at least one letter", "my-app");
        bad("My App!", "not ' '", "my-app");
        bad("1app", "start with a letter", "app-1app");
        bad("-app", "start with a letter", "app");
        bad("_", "start with a letter", "my-app");
        bad("café", "not 'é'", "caf");
        bad("应用", "not '应'", "my-app");
        bad("my.app", "not '.'", "my-app");
        bad("a\nb", "not '\\n'", "a-b");
        bad("{{x}}", "not '{'", "x");
        bad(&"a".repeat(65), "64 characters", &"a".repeat(60));
    }

    #[test]
    fn reserved_names_are_refused() {
        bad("test", "comes with Rust", "test-app");
        bad("Core", "comes with Rust", "core-app");
        bad("proc_macro", "comes with Rust", "proc-macro-app");
        bad("fn", "keyword", "fn-app");
        bad("Self", "keyword", "self-app");
        bad("deps", "cargo", "deps-app");
        bad("cloudgate", "cloudgate itself", "cloudgate-app");
        bad("serde_json", "the app uses", "serde-json-app");
        bad("NUL", "Windows", "nul-app");
        bad("com1", "Windows", "com1-app");
    }
}
