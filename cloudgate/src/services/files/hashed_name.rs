//! Does a file's name hold a hash of its content, so that other content would have another name?
//!
//! Build tools name files so, and browsers need never ask for them again. A name that only looks like one
//! would hold visitors to an old file for a year, so in doubt the answer is no. What is missed costs a
//! question with an answer of no body.

/// Folders that build tools write, in which the shorter alphabets count.
const BUILT: [&str; 10] = [
    "assets",
    "static",
    "_astro",
    "_next",
    "_app",
    "_nuxt",
    "build",
    "dist",
    "chunks",
    "immutable",
];

/// What stands between the hash and the ending.
const MARKS: [&str; 6] = [".min", ".chunk", ".bundle", ".module", ".worker", ".async"];

/// The length of a hash of Rollup (Vite) and of esbuild.
const SHORT: usize = 8;

/// Whether the name of the file at this path holds a hash of its content.
pub(super) fn holds_hash(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some((stem, ending)) = split(name) else {
        return false;
    };
    let place = Place::of(folders);
    let mut stem = stem;
    while let Some(rest) = MARKS.iter().find_map(|mark| stem.strip_suffix(mark)) {
        stem = rest;
    }
    if ending == "wasm" {
        // wasm-bindgen's, below trunk's hash.
        stem = stem.strip_suffix("_bg").unwrap_or(stem);
    }
    if place == Place::Generated {
        // Next marks fonts that it has cut down, and those that the page loads at once.
        stem = stem.strip_suffix(".p").unwrap_or(stem);
        stem = stem.strip_suffix("-s").unwrap_or(stem);
    }
    if ends_with_hash(stem, ending, place) {
        return true;
    }
    // Astro writes a second, shorter hash behind that of a picture, of how it was made smaller.
    place == Place::Generated
        && stem.rsplit_once('_').is_some_and(|(stem, second)| {
            (5..=7).contains(&second.len()) && ends_with_hash(stem, ending, place)
        })
}

/// Where a file lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a folder that tools fill, and nobody else. The tools' own servers call all of it immutable.
    Generated,
    /// In a folder of a name that tools use and people too.
    Built,
    Anywhere,
}

impl Place {
    fn of(folders: &str) -> Place {
        let below = |parent: &str, folder: &str| {
            let mut segments = folders.split('/').skip_while(|segment| *segment != parent);
            segments.next().is_some() && segments.next() == Some(folder)
        };
        let mut segments = folders.split('/');
        if segments
            .clone()
            .any(|name| name == "_astro" || name == "_nuxt")
            || below("_app", "immutable")
            || below("_next", "static")
        {
            Place::Generated
        } else if segments.any(|segment| BUILT.contains(&segment)) {
            Place::Built
        } else {
            Place::Anywhere
        }
    }
}

/// A name without its endings, and the one that says what it is: `a.3f9a1c2b.js.map` is JavaScript's.
fn split(name: &str) -> Option<(&str, &str)> {
    let mut name = name;
    while let Some(rest) = [".map", ".gz", ".br", ".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
    {
        name = rest;
    }
    let (stem, ending) = name.rsplit_once('.')?;
    let fits = !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (fits && !stem.is_empty()).then_some((stem, ending))
}

fn ends_with_hash(stem: &str, ending: &str, place: Place) -> bool {
    let (before, last) = match stem.rfind(['.', '-', '_']) {
        Some(at) => (&stem[..at], &stem[at + 1..]),
        None => ("", stem),
    };
    // A name that is nothing else may be anything's number, unless a tool has chosen it.
    let stands_apart = |before: &str| !before.is_empty() || place != Place::Anywhere;
    if stands_apart(before) {
        if is_hex(last) && !ends_with_uuid(stem) {
            return true;
        }
        let is_code = matches!(ending, "js" | "mjs" | "css");
        if (is_code || place != Place::Anywhere) && is_base32(last, before == "chunk" && is_code) {
            return true;
        }
    }
    // The alphabet of base64url has `-` and `_`, so its eight characters are counted and not split off.
    let Some((before, last)) = stem
        .len()
        .checked_sub(SHORT)
        .and_then(|at| stem.split_at_checked(at))
    else {
        return false;
    };
    let apart = before.is_empty() || before.ends_with(['.', '-', '_']);
    apart
        && match place {
            Place::Generated => is_base64url(last, Doubt::Little),
            Place::Built => is_base64url(last, Doubt::Much),
            Place::Anywhere => false,
        }
}

/// Whether it is a hash in hexadecimal. Hashes are whole bytes, and of letters and digits mixed: not a date,
/// not `facade`, `decade1990` or `face2face`. 24 digits are how databases number their records.
fn is_hex(text: &str) -> bool {
    let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let upper = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    (8..=128).contains(&text.len())
        && text.len().is_multiple_of(2)
        && text.len() != 24
        && (text.bytes().all(lower) || text.bytes().all(upper))
        && changes(text, |byte| byte.is_ascii_digit()) >= 2
        && !is_bare_uuid(text)
}

/// Whether it is a hash of esbuild: eight of `A-Z2-7`. Only digits in between tell one from a word in capitals,
/// but nobody calls a file `chunk-DOCUMENT.js`.
fn is_base32(text: &str, is_chunk: bool) -> bool {
    text.len() == SHORT
        && text
            .bytes()
            .all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
        && (is_chunk || changes(text, |byte| byte.is_ascii_digit()) >= 2)
}

/// How likely it is that a name is a word after all.
#[derive(PartialEq)]
enum Doubt {
    Little,
    Much,
}

/// Whether eight characters are a hash in base64url.
fn is_base64url(text: &str, doubt: Doubt) -> bool {
    let has = |class: fn(&u8) -> bool| text.bytes().any(|byte| class(&byte));
    let (upper, lower, digit) = (
        has(u8::is_ascii_uppercase),
        has(u8::is_ascii_lowercase),
        has(u8::is_ascii_digit),
    );
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    {
        return false;
    }
    match doubt {
        Doubt::Little => upper && lower && turns(text) >= 1,
        // `Version2`, `Web2Docs` and `MyApp2Go` are words.
        Doubt::Much => {
            upper
                && lower
                && digit
                && turns(text) >= 3
                && !is_of_words(text)
                && text
                    .trim_end_matches(|sign: char| sign.is_ascii_digit())
                    .bytes()
                    .any(|byte| byte.is_ascii_digit())
        }
    }
}

/// How often the kind of character changes, a small letter behind a capital left out.
fn turns(text: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let pairs = text.as_bytes().windows(2);
    pairs
        .map(|pair| (kind(pair[0]), kind(pair[1])))
        .filter(|(one, other)| one != other && (*one, *other) != (0, 1))
        .count()
}

/// Whether all letters stand in words by capitals, as in `MyApp2Go`: each of two letters and more, with a vowel.
fn is_of_words(text: &str) -> bool {
    let is_word = |word: &str| {
        word.len() >= 2 && word.contains(['a', 'e', 'i', 'o', 'u', 'y', 'A', 'E', 'I', 'O', 'U'])
    };
    let is_acronym =
        |run: &str| run.len() >= 2 && run.bytes().all(|byte| byte.is_ascii_uppercase());
    text.split(|sign: char| !sign.is_ascii_alphabetic())
        .filter(|run| !run.is_empty())
        .all(|run| {
            let mut from = 0;
            let capitals = run.match_indices(|sign: char| sign.is_ascii_uppercase());
            let ends = capitals.map(|(at, _)| at).chain([run.len()]);
            is_acronym(run)
                || ends.filter(|end| *end > 0).all(|end| {
                    let word = &run[from..end];
                    from = end;
                    is_word(word)
                })
        })
}

/// How often a text passes from one kind of character to the other.
fn changes(text: &str, is_one: impl Fn(u8) -> bool) -> usize {
    let pairs = text.as_bytes().windows(2);
    pairs
        .filter(|pair| is_one(pair[0]) != is_one(pair[1]))
        .count()
}

/// Whether it ends with a UUID (RFC 9562 section 4), which numbers a thing and says nothing of its content.
fn ends_with_uuid(stem: &str) -> bool {
    let Some(at) = stem.len().checked_sub(36) else {
        return false;
    };
    stem.bytes()
        .skip(at)
        .enumerate()
        .all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether 32 digits are a UUID of a random number or a time, of the versions in use, without its dashes.
fn is_bare_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 32
        && matches!(bytes[12], b'1' | b'4' | b'7')
        && matches!(bytes[16], b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_build_tools_write() {
        for (tool, names) in [
            // [name]-[hash].js in assets, eight of base64url.
            (
                "Vite and Rollup",
                "assets/index-B9xK2mQz.js assets/index-Cx7fVh4K.css assets/vendor-legacy-D4fG7hJ2.js \
                 assets/logo-C4a2R-8x.svg assets/Roboto_Bold-Bq7_x9Zd.woff2 app/assets/x-DA3b9Qe1.js.map \
                 static/app-f3A9-bQ2.mjs assets/app.Bx3Kq9Lm.js",
            ),
            (
                "webpack",
                "main.3f9a1c2b4d5e6f708192.js js/x.3f9a1c2b.js main.3f9a1c2b.chunk.js \
                 app.3f9a1c2b.js.map vendors~main.0f8e7d6c.bundle.js dist/3f9a1c2b4d5e6f708192.png \
                 css/app.7b4f1a09.min.css js/chunk-vendors.1c9f0a3e.js x.ABCD12EF.js",
            ),
            (
                "esbuild and Angular",
                "main-QV3PZ5UO.js chunk-5XZV2JQW.js chunk-ABCDEFGH.js chunk-INURTSO5.js styles-5IN2RTSO.css \
                 polyfills-B6TNHZQ6.js dist/media/Roboto-Q5XZ2JQW.woff2 main.3f9a1c2b4d5e6f70.js \
                 runtime.0a1b2c3d4e5f6a7b.js.map",
            ),
            (
                "Create React App",
                "static/js/main.3f9a1c2b.js static/js/787.28cb0dcd.chunk.js static/css/main.073c9b0a.css \
                 static/media/logo.6ce24c58023cc2f8fd88fe9d219db6c6.svg",
            ),
            (
                "Next",
                "_next/static/chunks/main-3f9a1c2b4d5e6f70.js _next/static/chunks/app/page-0c8f1a2b3c4d5e6f.js \
                 _next/static/css/0a1b2c3d4e5f6a7b.css _next/static/chunks/a6dad97d9634a72d.js \
                 _next/static/media/c9a5bc6a7c948fb0-s.p.woff2 _next/static/media/4cf2300e9c8272f7-s.woff2",
            ),
            (
                "SvelteKit",
                "_app/immutable/chunks/BnZP6oRL.js _app/immutable/entry/start.CIaV0dKt.js \
                 _app/immutable/nodes/0.DiwrgTda.js _app/immutable/assets/0.B1zXc-9K.css \
                 app/_app/immutable/chunks/index.3a4c2d1f.js",
            ),
            (
                "Astro",
                "_astro/index.DqQ7LS4y.css _astro/hoisted.B1zXc-9K.js _astro/page.V2R8AmkL.js \
                 _astro/houston.DZWsjQGI_Z1vXTTu.webp _astro/photo.CaF3x9Zk_1tGh2Y.avif",
            ),
            (
                "Nuxt",
                "_nuxt/BnZP6oRL.js _nuxt/entry.Cx7fVhK4.css _nuxt/error-404.8bdbaeb8.css _nuxt/DlAUqK2U.js",
            ),
            (
                "Parcel",
                "index.3f9a1c2b.js index.runtime.a1b2c3d4.js logo.0e1f2a3b.webp styles.4c5d6e7f.css",
            ),
            (
                "trunk",
                "app-3f9a1c2b4d5e6f70.js app-3f9a1c2b4d5e6f70_bg.wasm dist/style-a0b1c2d3e4f56789.css",
            ),
            (
                "Django, Rails, Phoenix, Hugo",
                "css/base.27e20196a850.css assets/application-3f9a1c2b.css app-6ce24c58023cc2f8fd88fe9d219db6c6.js \
                 app.3f9a1c2b4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8.css.gz",
            ),
        ] {
            let names = names.split_whitespace();
            let missed: Vec<&str> = names.filter(|name| !holds_hash(name)).collect();
            assert!(missed.is_empty(), "{tool}: {missed:?}");
        }
    }

    #[test]
    fn names_that_only_look_so() {
        for (why, names) in [
            (
                "plain",
                "index.html app.js style.css x.min.css favicon.ico LICENSE .env robots.txt a.b.c.d",
            ),
            (
                "dates and times",
                "report-20240101.pdf IMG_20240101_123456.jpg log.2024-01-02.txt backup-1700000000.tar.gz \
                 20240101ab.pdf photo-20240101.jpg assets/photo-20240101.jpg",
            ),
            (
                "versions",
                "jquery-3.7.1.min.js app-v10.20.30.js lib-1.0.0-beta.2.js bootstrap.5.3.3.css d3.v7.min.js",
            ),
            (
                "numbers of things",
                "a-123e4567-e89b-12d3-a456-426614174000.jpg 018f3a5b-7c2d-7e4f-9a0b-1c2d3e4f5a6b.png \
                 123e4567e89b42d3a456426614174000.jpg x-018f3a5b7c2d7e4f9a0b1c2d3e4f5a6b.png \
                 _nuxt/builds/meta/9f1c2b3a-4d5e-4f60-8a7b-0c1d2e3f4a5b.json 65a1b2c3d4e5f60718293a4b.jpg \
                 user-65a1b2c3d4e5f60718293a4b.jpg isbn-0306406152.pdf 3f9a1c2b.jpg uploads/3f9a1c2b4d5e6f70.png",
            ),
            (
                "words",
                "facade.jpg my-facade.jpg deadbeef.js x-deadbeef.js menu-cafe2024.pdf facade2024.jpg decade1990.jpg \
                 face2face.jpg Version2.pdf assets/Version2.pdf assets/app-Version2.js assets/Web2Docs.pdf \
                 assets/my-MyApp2Go.js assets/to-Chapter1.txt assets/x-iPhone15.png assets/x-A4Poster.pdf \
                 assets/x-Mp3Audio.mp3 x-DOCUMENT.js README-DOCUMENT.css app-VERSION2.js chunk-DOCUMENT.pdf \
                 x-3DMODELS.js IMG-MP4VIDEO.mp4 assets/some-document.js assets/backbone.js static/favicons.png",
            ),
            (
                "too short or mixed",
                "a-3f9a1c2.js a.3f9a1c.js a.3F9a1c2b.js a-3f9a1c2b5.js fee-1a.js",
            ),
            (
                "short alphabets of no build folder",
                "index-B9xK2mQz.js chat/Bx3Kq9Lm.js uploads/x-Bx3Kq9Lm.png",
            ),
            (
                "folders and endings",
                "3f9a1c2b/app.js assets-3f9a1c2b/app.js main.3f9a1c2b x.3f9a1c2b. .3f9a1c2b _app/version.json",
            ),
            (
                "not generated",
                "_app/x-DiwrgTda.js assets/index-DiwrgTda.js immutable/MyWidget.js _nuxt/builds/latest.json",
            ),
        ] {
            let taken: Vec<&str> = names
                .split_whitespace()
                .filter(|name| holds_hash(name))
                .collect();
            assert!(taken.is_empty(), "{why}: {taken:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_has_an_answer(name in "(_astro/|assets/|)\\PC{0,40}(\\.js)?") {
            let _ = holds_hash(&name);
        }
    }
}
