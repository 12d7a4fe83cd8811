//! Which of a client's file names can become the name of a file here?

/// The longest name in bytes that common file systems take.
const LONGEST: usize = 255;

/// Names that Windows takes for a device, with any ending (`nul.txt` is one too).
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// The last component of a client's path, if it is harmless as a name in a folder.
pub(super) fn safe(filename: &str) -> Option<&str> {
    // Old browsers send whole paths, of their system's kind.
    let name = filename.rsplit(['/', '\\']).next().unwrap_or("");
    let harmless = !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with('.')
        // Windows drops dots and spaces at the end, and so makes another name of it.
        && !name.ends_with(['.', ' '])
        && !name.starts_with(' ')
        // `C:name` and `name:stream` mean something on Windows.
        && !name.contains(|character: char| character.is_control() || character == ':')
        && !is_device(name);
    harmless.then_some(name)
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or("").trim_end();
    let numbered = || {
        let mut characters = stem.chars();
        let last = characters.next_back();
        let port = characters.as_str();
        (port.eq_ignore_ascii_case("COM") || port.eq_ignore_ascii_case("LPT"))
            && last.is_some_and(|digit| digit.is_ascii_digit() || "¹²³".contains(digit))
    };
    DEVICES
        .iter()
        .any(|device| stem.eq_ignore_ascii_case(device))
        || numbered()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_names_are_given() {
        for (filename, want) in [
            ("photo.jpg", Some("photo.jpg")),
            ("a..b é 猫.tar.gz", Some("a..b é 猫.tar.gz")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\dir\\photo.jpg", Some("photo.jpg")),
            ("a/b\\c/d", Some("d")),
            ("\\\\server\\share\\x", Some("x")),
            ("console.txt", Some("console.txt")),
            ("COM10", Some("COM10")),
            ("", None),
            ("dir/", None),
            (".", None),
            ("..", None),
            ("a/..", None),
            (".bashrc", None),
            ("x\0.txt", None),
            ("a\nb", None),
            ("a\u{7f}", None),
            ("a\u{85}", None),
            ("C:x", None),
            ("x.txt:stream", None),
            ("x.", None),
            ("x ", None),
            (" x", None),
            ("con", None),
            ("dir/Nul.tar.gz", None),
            ("aux .txt", None),
            ("lpt1", None),
            ("COM¹.log", None),
            ("CONOUT$", None),
        ] {
            assert_eq!(safe(filename), want, "{filename:?}");
        }
        assert!(safe(&"n".repeat(255)).is_some());
        assert!(safe(&"n".repeat(256)).is_none());
        assert!(safe(&format!("{}/n", "d".repeat(10_000))).is_some());
    }
}
