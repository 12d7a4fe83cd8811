//! Which text does `${VAR:-default}` stand for?

/// Puts the values of variables in: `${VAR}`, `${VAR:-default}` where it is not set or empty, and `$$` for a dollar.
///
/// What a variable holds is a text and nothing more: it cannot become a key, a list or a section.
///
/// # Errors
/// What is wrong, with the variable's name.
pub(crate) fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(behind) = behind.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let Some(inside) = behind.strip_prefix('{') else {
            out.push('$');
            rest = behind;
            continue;
        };
        let Some(end) = inside.find('}') else {
            return Err("`${` has no `}`; a dollar sign is written `$$`".to_owned());
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(fine) {
            return Err(format!(
                "`${{{name}}}` names no environment variable: write letters, digits and `_`, such as ${{PORT:-3000}}"
            ));
        }
        match (variable(name), default) {
            (Some(value), None) => out.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
            (_, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!(
                    "environment variable {name} is not set: set it, or give a default as in ${{{name}:-value}}"
                ));
            }
        }
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in() {
        let variable = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("${A}".to_owned()),
            _ => None,
        };
        for (text, want) in [
            ("", Ok("")),
            ("x${A}y${A}", Ok("x1y1")),
            ("${B:-2}", Ok("2")),
            ("${B:-}", Ok("")),
            ("${A:-2}", Ok("1")),
            ("${EMPTY}", Ok("")),
            ("${EMPTY:-3}", Ok("3")),
            ("$$", Ok("$")),
            ("$${A}", Ok("${A}")),
            ("$A $", Ok("$A $")),
            // What a variable holds is not looked at again.
            ("${DOLLAR}", Ok("${A}")),
            (
                "${B}",
                Err(
                    "environment variable B is not set: set it, or give a default as in ${B:-value}",
                ),
            ),
            ("${B", Err("`${` has no `}`; a dollar sign is written `$$`")),
            (
                "${}",
                Err(
                    "`${}` names no environment variable: write letters, digits and `_`, such as ${PORT:-3000}",
                ),
            ),
            (
                "${a b}",
                Err(
                    "`${a b}` names no environment variable: write letters, digits and `_`, such as ${PORT:-3000}",
                ),
            ),
        ] {
            let got = expand(text, &variable);
            assert_eq!(got.as_deref().map_err(|error| &**error), want, "{text}");
        }
    }
}
