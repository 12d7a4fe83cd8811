//! Which name was meant by one that does not exist?

/// The methods that a route can have.
pub(crate) const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// What is wrong with a name that is no method of a route.
pub(crate) fn refusal(name: &str) -> String {
    match name.to_ascii_uppercase().as_str() {
        "TRACE" => {
            "TRACE cannot be a route: its answer repeats the request, and so shows its cookies and credentials to scripts".to_owned()
        }
        "CONNECT" => "CONNECT cannot be a route: it names a host and a port, not a path that a pattern could match".to_owned(),
        upper => match nearest(upper) {
            Some(method) => format!("unknown method `{name}`: did you mean {method}?"),
            None => format!("unknown method `{name}`: the methods are GET, POST, PUT, PATCH, DELETE, HEAD and OPTIONS"),
        },
    }
}

/// The method that was probably meant.
pub(crate) fn nearest(upper: &str) -> Option<&'static str> {
    likeliest(upper, &METHODS)
}

/// Which of these names was probably meant: the same up to two letters, or cut short.
pub(crate) fn likeliest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let cut_short = known
        .iter()
        .find(|known| name.len() >= 3 && known.starts_with(name));
    cut_short.copied().or_else(|| {
        known
            .iter()
            .map(|known| (distance(name, known), *known))
            .filter(|(distance, known)| *distance <= 2 && *distance < known.len() - 1)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, known)| known)
    })
}

/// Levenshtein: how many letters are to be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other_letter) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other_letter);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
