//! Of which media types is it likely that a coding makes them shorter?

/// Whether what is of this type - in lower case, without parameters - is usually not compressed already.
///
/// Archives are left alone even where they are not (`.tar`): who loads one wants the file as it is, and the
/// rest of it where the connection broke. So are sound and raw pictures, of which a coder for text takes little.
pub(crate) fn is_compressible(essence: &str) -> bool {
    let Some((kind, name)) = essence.split_once('/') else {
        return false;
    };
    let suffixed = |suffix| name.ends_with(suffix);
    if ["+json", "+xml", "+yaml"].into_iter().any(suffixed) {
        return true;
    }
    match kind {
        // A stream of events would hold a coder's memory for as long as it is open.
        "text" => name != "event-stream",
        "application" => matches!(
            name,
            "json"
                | "json5"
                | "x-ndjson"
                | "javascript"
                | "x-javascript"
                | "ecmascript"
                | "xml"
                | "xml-dtd"
                | "yaml"
                | "toml"
                | "graphql"
                | "sql"
                | "n-triples"
                | "n-quads"
                | "trig"
                | "rtf"
                | "postscript"
                | "wasm"
                | "vnd.apple.mpegurl"
                | "vnd.ms-fontobject"
                | "x-font-ttf"
                | "x-font-otf"
                | "x-httpd-php"
                | "x-latex"
                | "x-perl"
                | "x-sh"
                | "x-sql"
                | "x-subrip"
                | "x-tex"
        ),
        "audio" => matches!(name, "mpegurl" | "x-mpegurl"),
        "image" => matches!(name, "bmp" | "x-icon" | "vnd.microsoft.icon"),
        // Not WOFF and WOFF2, which are compressed.
        "font" => matches!(name, "ttf" | "otf" | "collection" | "sfnt"),
        // Corners and faces; also where Meshopt has been over them, which leaves the rest to a coding.
        "model" => matches!(name, "gltf-binary" | "obj" | "mtl" | "stl" | "step"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::mime;

    fn of_file(name: &str) -> bool {
        let content_type = mime::content_type(name.as_ref());
        is_compressible(content_type.split(';').next().unwrap())
    }

    #[test]
    fn files_that_are_text_or_plain_tables_are_compressible() {
        for ending in "html xhtml css js mjs json map webmanifest importmap jsonld geojson ndjson wasm wgsl \
            txt md csv tsv ics vcf vtt srt rtf xml xsl xslt dtd rss atom rdf ttl gpx kml yaml toml graphql sql sh \
            svg ico bmp ttf otf ttc eot gltf glb obj mtl stl m3u8 mpd php py rs tex"
            .split_whitespace()
        {
            assert!(of_file(&format!("a.{ending}")), "{ending}");
        }
        for other in [
            "application/openapi+yaml",
            "application/problem+json",
            "text/x-anything",
        ] {
            assert!(is_compressible(other), "{other}");
        }
    }

    #[test]
    fn what_is_compressed_already_is_not() {
        for ending in "png apng jpg gif webp avif jxl heic tiff woff woff2 mp3 m4a aac ogg opus wav flac weba mp4 \
            webm ogv mov mkv ts m4s pdf epub zip gz zst 7z tar bz2 xz rar jar apk deb docx xlsx pptx odt parquet \
            sqlite 3mf usdz iso exe bin unknown"
            .split_whitespace()
        {
            assert!(!of_file(&format!("a.{ending}")), "{ending}");
        }
        for other in ["text/event-stream", "multipart/byteranges", "text", "", "/"] {
            assert!(!is_compressible(other), "{other}");
        }
    }
}
