//! What did the person ask to be measured, and for how long?

use std::env;
use std::str::FromStr;

/// What can be chosen by name.
pub(crate) trait Named: Copy + 'static {
    const ALL: &'static [Self];
    fn name(self) -> &'static str;
}

/// The names in `BENCH_ONLY` and among the arguments.
pub(crate) fn names(arguments: &[String]) -> Vec<String> {
    let only = env::var("BENCH_ONLY").unwrap_or_default();
    only.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .chain(
            arguments
                .iter()
                .map(String::as_str)
                .filter(|argument| !argument.starts_with('-')),
        )
        .map(str::to_owned)
        .collect()
}

/// Names of cases and of servers may be mixed; naming none of a kind means all of it.
pub(crate) fn choose<C: Named, S: Named>(
    names: &[impl AsRef<str>],
) -> Result<(Vec<C>, Vec<S>), String> {
    let all: Vec<&str> = C::ALL
        .iter()
        .map(|case| case.name())
        .chain(S::ALL.iter().map(|server| server.name()))
        .collect();
    if let Some(name) = names.iter().find(|name| !all.contains(&name.as_ref())) {
        return Err(format!(
            "nothing here is called `{}`; choose among {}",
            name.as_ref(),
            all.join(", ")
        ));
    }
    Ok((named(names), named(names)))
}

fn named<T: Named>(names: &[impl AsRef<str>]) -> Vec<T> {
    let mut chosen = T::ALL.to_vec();
    chosen.retain(|one| names.iter().any(|name| name.as_ref() == one.name()));
    if chosen.is_empty() {
        chosen = T::ALL.to_vec();
    }
    chosen
}

/// The number in the environment variable `name`.
pub(crate) fn number(name: &str, default: u32, least: u32, most: u32) -> Result<u32, String> {
    let Ok(text) = env::var(name) else {
        return Ok(default);
    };
    u32::from_str(&text)
        .ok()
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| format!("{name} is `{text}`; give a number from {least} to {most}"))
}
