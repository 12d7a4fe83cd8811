//! Which media type does a file name stand for?
//!
//! Names of IANA's registry and of the WHATWG's standards where they have one, else what programs agree on.

use std::path::Path;

/// What nothing is known of.
const UNKNOWN: &str = "application/octet-stream";

/// The most bytes of an ending in the table.
const LONGEST: usize = 12;

/// The Content-Type for a file of this name: with `charset=utf-8` for text, and
/// `application/octet-stream` for what is unknown.
///
/// ```
/// assert_eq!(cloudgate::mime::content_type("a/index.html".as_ref()), "text/html; charset=utf-8");
/// assert_eq!(cloudgate::mime::content_type("logo.png".as_ref()), "image/png");
/// assert_eq!(cloudgate::mime::content_type("LICENSE".as_ref()), "application/octet-stream");
/// ```
///
/// JSON has no charset (RFC 8259 section 11), and XML, to which SVG belongs, says its own in its first
/// line, which a charset here would overrule (RFC 7303 section 3). `.ts` is a piece of a film (MPEG-2 TS), as
/// players of HLS expect it: no browser runs TypeScript. `.svgz` is SVG that has been through gzip already:
/// send it with `Content-Encoding: gzip`.
pub fn content_type(path: &Path) -> String {
    let Some(ending) = path.extension().and_then(|text| text.to_str()) else {
        return named(path).unwrap_or(UNKNOWN).to_owned();
    };
    // On the stack, for there is an answer to a name often and a use of the lower case once.
    let mut lower = [0; LONGEST];
    let known = lower.get_mut(..ending.len()).and_then(|lower| {
        lower.copy_from_slice(ending.as_bytes());
        lower.make_ascii_lowercase();
        std::str::from_utf8(lower).ok().and_then(known)
    });
    if let Some(known) = known {
        return known.to_owned();
    }
    match mime_guess::from_ext(ending).first_raw() {
        Some(guess) if guess.starts_with("text/") && !is_xml(guess) => {
            format!("{guess}; charset=utf-8")
        }
        guess => guess.unwrap_or(UNKNOWN).to_owned(),
    }
}

fn is_xml(essence: &str) -> bool {
    essence == "text/xml" || essence.ends_with("+xml")
}

/// Files that have to have this name, which has no ending, and this type.
fn named(path: &Path) -> Option<&'static str> {
    // Apple's phones read it to learn which app opens which link.
    (path.file_name()? == "apple-app-site-association").then_some("application/json")
}

/// The type that files with this ending, in lower case, have. `mime_guess` knows a thousand more, but of what
/// web sites hold it is too old in part, and wrong in some.
fn known(ending: &str) -> Option<&'static str> {
    Some(match ending {
        // Pages and what they are made of.
        "html" | "htm" => "text/html; charset=utf-8",
        "xhtml" | "xht" => "application/xhtml+xml",
        "css" => "text/css; charset=utf-8",
        // RFC 9239: the types of `application` that it had are obsolete.
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "json" | "map" | "topojson" | "har" => "application/json",
        "webmanifest" => "application/manifest+json",
        "importmap" => "application/importmap+json",
        "jsonld" => "application/ld+json",
        "geojson" => "application/geo+json",
        "wasm" => "application/wasm",
        "wgsl" => "text/wgsl; charset=utf-8",

        // Text. Source code that no browser runs is there to be read.
        "txt" | "text" | "log" | "ini" | "conf" | "cfg" | "jsx" | "tsx" | "vue" | "svelte"
        | "scss" | "sass" | "less" | "glsl" | "go" | "rb" | "patch" | "diff" | "rst" | "adoc" => {
            "text/plain; charset=utf-8"
        }
        "md" | "markdown" | "mdx" => "text/markdown; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "tsv" => "text/tab-separated-values; charset=utf-8",
        "ics" | "ifb" => "text/calendar; charset=utf-8",
        "vcf" | "vcard" => "text/vcard; charset=utf-8",
        "vtt" => "text/vtt; charset=utf-8",
        "srt" => "application/x-subrip",
        "rtf" => "application/rtf",

        // Data.
        "xml" | "xsd" | "xsl" => "application/xml",
        "xslt" => "application/xslt+xml",
        "dtd" => "application/xml-dtd",
        "wsdl" => "application/wsdl+xml",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "rdf" | "owl" => "application/rdf+xml",
        "ttl" => "text/turtle; charset=utf-8",
        "gpx" => "application/gpx+xml",
        "kml" => "application/vnd.google-earth.kml+xml",
        "ttml" => "application/ttml+xml",
        // RFC 9512.
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "ndjson" | "jsonl" => "application/x-ndjson",
        "graphql" | "gql" => "application/graphql",
        "sql" => "application/sql",
        "sh" => "application/x-sh",
        "parquet" => "application/vnd.apache.parquet",
        "arrow" => "application/vnd.apache.arrow.file",
        "arrows" => "application/vnd.apache.arrow.stream",
        "sqlite" | "sqlite3" => "application/vnd.sqlite3",

        // Pictures. `image/x-icon` is the WHATWG's name (MIME Sniffing, section 6.1).
        "svg" | "svgz" => "image/svg+xml",
        "ico" | "cur" => "image/x-icon",
        "png" => "image/png",
        "apng" => "image/apng",
        "jpg" | "jpeg" | "jpe" | "jfif" | "pjpeg" | "pjp" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" | "avifs" => "image/avif",
        "jxl" => "image/jxl",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "bmp" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "jp2" => "image/jp2",
        "psd" => "image/vnd.adobe.photoshop",
        "ktx2" => "image/ktx2",

        // RFC 8081.
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "ttc" => "font/collection",
        "eot" => "application/vnd.ms-fontobject",

        // Sound and films.
        "mp3" => "audio/mpeg",
        "m4a" | "m4b" => "audio/mp4",
        "aac" => "audio/aac",
        // RFC 7845 section 9: Opus in Ogg.
        "ogg" | "oga" | "opus" | "spx" => "audio/ogg",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "weba" => "audio/webm",
        "mka" => "audio/matroska",
        "mid" | "midi" => "audio/midi",
        "mp4" | "m4v" | "mp4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "ogx" => "application/ogg",
        "mov" | "qt" => "video/quicktime",
        // RFC 9559.
        "mkv" => "video/matroska",
        "mpg" | "mpeg" => "video/mpeg",
        "ts" | "m2ts" | "mts" => "video/mp2t",
        "m4s" => "video/iso.segment",
        // RFC 8216 section 4.
        "m3u8" => "application/vnd.apple.mpegurl",
        "m3u" => "audio/mpegurl",
        "mpd" => "application/dash+xml",

        // Models.
        "gltf" => "model/gltf+json",
        "glb" => "model/gltf-binary",
        "obj" => "model/obj",
        "mtl" => "model/mtl",
        "stl" => "model/stl",
        "3mf" => "model/3mf",
        "usdz" => "model/vnd.usdz+zip",

        // Archives and programs. Brotli alone has no type.
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "7z" => "application/x-7z-compressed",
        "tar" => "application/x-tar",
        "bz2" => "application/x-bzip2",
        "xz" => "application/x-xz",
        "rar" => "application/vnd.rar",
        "jar" | "war" => "application/java-archive",
        "apk" => "application/vnd.android.package-archive",
        "deb" => "application/vnd.debian.binary-package",
        "rpm" => "application/x-rpm",
        "dmg" => "application/x-apple-diskimage",
        "iso" => "application/vnd.efi.iso",
        "exe" | "dll" => "application/vnd.microsoft.portable-executable",
        // What phones open by the type alone.
        "pkpass" => "application/vnd.apple.pkpass",
        "mobileconfig" => "application/x-apple-aspen-config",

        // Documents.
        "pdf" => "application/pdf",
        "epub" => "application/epub+zip",
        "doc" => "application/msword",
        "xls" => "application/vnd.ms-excel",
        "ppt" => "application/vnd.ms-powerpoint",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "odp" => "application/vnd.oasis.opendocument.presentation",
        "odg" => "application/vnd.oasis.opendocument.graphics",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("a.html A.HTM a.b.html", "text/html; charset=utf-8"),
        ("a.xhtml", "application/xhtml+xml"),
        ("a.css", "text/css; charset=utf-8"),
        (
            "a.js a.mjs a.cjs a.min.JS",
            "text/javascript; charset=utf-8",
        ),
        // RFC 8259 section 11: no charset.
        ("a.json a.js.map", "application/json"),
        ("a.webmanifest", "application/manifest+json"),
        ("a.jsonld", "application/ld+json"),
        ("a.geojson", "application/geo+json"),
        ("a.wasm", "application/wasm"),
        ("a.txt a.log", "text/plain; charset=utf-8"),
        ("a.md", "text/markdown; charset=utf-8"),
        ("a.csv", "text/csv; charset=utf-8"),
        ("a.ics", "text/calendar; charset=utf-8"),
        ("a.vcf", "text/vcard; charset=utf-8"),
        ("a.vtt", "text/vtt; charset=utf-8"),
        ("a.tsx a.jsx", "text/plain; charset=utf-8"),
        ("a.rs", "text/x-rust; charset=utf-8"),
        // What is XML names its encoding itself.
        ("a.xml a.xsd", "application/xml"),
        ("a.svg a.svgz", "image/svg+xml"),
        ("a.rss", "application/rss+xml"),
        ("a.atom", "application/atom+xml"),
        ("a.yaml a.yml", "application/yaml"),
        ("a.toml", "application/toml"),
        ("a.parquet", "application/vnd.apache.parquet"),
        ("favicon.ico", "image/x-icon"),
        ("a.png", "image/png"),
        ("a.apng", "image/apng"),
        ("a.jpg a.jpeg a.jfif", "image/jpeg"),
        ("a.gif", "image/gif"),
        ("a.webp", "image/webp"),
        ("a.avif", "image/avif"),
        ("a.jxl", "image/jxl"),
        ("a.heic", "image/heic"),
        ("a.woff", "font/woff"),
        ("a.woff2", "font/woff2"),
        ("a.ttf", "font/ttf"),
        ("a.otf", "font/otf"),
        ("a.ttc", "font/collection"),
        ("a.eot", "application/vnd.ms-fontobject"),
        ("a.mp3", "audio/mpeg"),
        ("a.m4a", "audio/mp4"),
        ("a.aac", "audio/aac"),
        ("a.ogg a.opus", "audio/ogg"),
        ("a.wav", "audio/wav"),
        ("a.flac", "audio/flac"),
        ("a.weba", "audio/webm"),
        ("a.mp4 a.m4v", "video/mp4"),
        ("a.webm", "video/webm"),
        ("a.ogv", "video/ogg"),
        ("a.mov", "video/quicktime"),
        ("a.mkv", "video/matroska"),
        ("a.m3u8", "application/vnd.apple.mpegurl"),
        ("a.mpd", "application/dash+xml"),
        ("a.ts", "video/mp2t"),
        ("a.m4s", "video/iso.segment"),
        ("a.gltf", "model/gltf+json"),
        ("a.glb", "model/gltf-binary"),
        ("a.obj", "model/obj"),
        ("a.usdz", "model/vnd.usdz+zip"),
        ("a.pdf", "application/pdf"),
        ("a.epub", "application/epub+zip"),
        ("a.zip", "application/zip"),
        ("a.tar.gz a.tgz", "application/gzip"),
        ("a.zst", "application/zstd"),
        ("a.7z", "application/x-7z-compressed"),
        ("a.tar", "application/x-tar"),
        ("a.rpm", "application/x-rpm"),
        ("a.doc", "application/msword"),
        (
            "a.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (
            "a.xlsx",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (
            "a.pptx",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ),
        ("a.odt", "application/vnd.oasis.opendocument.text"),
        (".well-known/apple-app-site-association", "application/json"),
        (
            "a.unknown a a.br .htaccess a. a.caf\u{e9} a.longer-than-any-ending",
            "application/octet-stream",
        ),
    ];

    #[test]
    fn what_sites_hold_has_the_type_of_today() {
        for (names, want) in FILES {
            for name in names.split(' ') {
                assert_eq!(content_type(Path::new(name)), *want, "{name}");
            }
        }
    }

    /// Every ending of the table here, and every other one of up to three letters and digits.
    fn endings() -> Vec<String> {
        let source = include_str!("mime.rs");
        let table = source
            .split_once("fn known(")
            .and_then(|(_, rest)| rest.split_once("#[cfg(test)]"))
            .map(|(table, _)| table)
            .unwrap();
        let mut endings: Vec<String> = table
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|text| !text.contains('/'))
            .map(str::to_owned)
            .collect();
        assert!(endings.len() > 150, "{endings:?}");
        let signs = || ('a'..='z').chain('0'..='9');
        for first in signs() {
            for second in signs() {
                endings.push(format!("{first}{second}"));
                endings.extend(signs().map(|third| format!("{first}{second}{third}")));
            }
        }
        endings
    }

    #[test]
    fn text_names_its_charset_and_nothing_else_does() {
        for ending in endings() {
            let found = content_type(Path::new(&format!("a.{ending}")));
            let essence = found.split(';').next().unwrap();
            let text = essence.starts_with("text/") && essence != "text/xml";
            assert_eq!(
                found.ends_with("; charset=utf-8"),
                text,
                "{ending}: {found}"
            );
            // RFC 9239.
            assert!(
                text || !(essence.contains("javascript") || essence.contains("ecmascript")),
                "{ending}: {found}"
            );
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-_".contains(&byte);
            assert!(essence.bytes().all(plain), "{ending}: {found}");
        }
    }

    #[test]
    fn the_longest_ending_of_the_table_is_found_in_capitals_too() {
        assert_eq!("mobileconfig".len(), LONGEST);
        assert_eq!(
            content_type(Path::new("a.MOBILECONFIG")),
            "application/x-apple-aspen-config"
        );
        assert!(
            endings()
                .iter()
                .all(|ending| { ending.len() <= LONGEST || known(ending).is_none() })
        );
    }
}
