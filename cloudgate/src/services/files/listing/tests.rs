//! Is the page of a folder right, and harmless whatever the files are called?

use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn file(name: &str, length: u64, seconds: u64) -> Item {
    Item {
        name: name.to_owned(),
        is_folder: false,
        length,
        modified: Some(UNIX_EPOCH + Duration::from_secs(seconds)),
    }
}

fn folder(name: &str) -> Item {
    Item {
        is_folder: true,
        ..file(name, 4096, 0)
    }
}

fn items(shown: Vec<Item>) -> Items {
    Items {
        shown,
        has_more: false,
    }
}

fn names(query: &str, shown: &[Item]) -> String {
    let mut shown = shown.to_vec();
    Sort::of(query).apply(&mut shown);
    let names: Vec<&str> = shown.iter().map(|item| item.name.as_str()).collect();
    names.join(" ")
}

#[test]
fn the_order_is_what_people_expect_and_what_they_ask_for() {
    let shown = [
        file("file10", 1, 30),
        file("File2", 300, 10),
        file("\u{c4}rger", 20, 20),
        folder("z9"),
        file("a", 20, 20),
        folder("Z10"),
        file("file02", 5, 5),
        file("file", 6, 6),
        file("file2a", 7, 7),
    ];
    let by_name = "z9 Z10 a file File2 file02 file2a file10 \u{c4}rger";
    for (query, want) in [
        ("", by_name),
        ("sort=name&order=asc", by_name),
        ("sort=owner&order=up", by_name),
        (
            "order=desc",
            "Z10 z9 \u{c4}rger file10 file2a file02 File2 file a",
        ),
        (
            "sort=size",
            "z9 Z10 file10 file02 file file2a a \u{c4}rger File2",
        ),
        (
            "sort=size&order=desc",
            "z9 Z10 File2 a \u{c4}rger file2a file file02 file10",
        ),
        (
            "sort=date&order=desc",
            "z9 Z10 file10 a \u{c4}rger File2 file2a file file02",
        ),
    ] {
        assert_eq!(names(query, &shown), want, "{query}");
        let mut turned = shown.to_vec();
        turned.reverse();
        assert_eq!(names(query, &turned), want, "{query}");
    }
}

#[test]
fn sizes_have_two_digits_that_count_or_three() {
    for (bytes, want) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10_188, "9.9 KiB"),
        (10_189, "10 KiB"),
        (1_048_063, "1023 KiB"),
        (1_048_064, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (u64::MAX, "16 EiB"),
    ] {
        assert_eq!(human(bytes), want, "{bytes}");
    }
    for (number, want) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(grouped(number), want);
    }
}

#[test]
fn no_name_becomes_markup_or_another_kind_of_link() {
    for (name, href) in [
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("//evil.example", "./%2F%2Fevil.example"),
        ("..", "./.."),
        (
            "\"><script>alert(1)</script>",
            "./%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E",
        ),
        ("a&b='c'?d#e", "./a%26b%3D%27c%27%3Fd%23e"),
        ("caf\u{e9} 100%", "./caf%C3%A9%20100%25"),
        ("a\r\nb", "./a%0D%0Ab"),
        ("-._~", "./-._~"),
    ] {
        let text = page(
            &format!("/{name}/"),
            false,
            items(vec![file(name, 1, 0), folder(name)]),
            Sort::of(""),
        );
        assert!(
            text.contains(&format!(
                "<a href=\"{href}\"><bdi>{}</bdi></a>",
                escape_html(name)
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!("<a href=\"{href}/\"><bdi>")),
            "{text}"
        );
        // Between angle brackets there is only what is written here.
        let tags: Vec<&str> = text
            .split('<')
            .skip(1)
            .map(|tag| tag.split(['>', ' ', '\n']).next().unwrap_or(""))
            .collect();
        for tag in tags {
            let known = "!DOCTYPE html head meta title style body main h1 nav a bdi wbr span table thead tr th tbody td time p";
            assert!(
                known
                    .split(' ')
                    .any(|known| known == tag.trim_start_matches('/')),
                "{tag:?} by {name:?}"
            );
        }
        let links: Vec<&str> = text
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or(""))
            .collect();
        assert!(
            links.iter().all(|link| ["./", "../", "?sort="]
                .iter()
                .any(|start| link.starts_with(start))),
            "{links:?}"
        );
    }
}

#[test]
fn the_page_says_where_it_is_and_how_it_is_sorted() {
    let here = page(
        "/docs/api & more/",
        false,
        items(vec![file("a.txt", 1536, 951_782_400)]),
        Sort::of("sort=size&order=desc"),
    );
    for part in [
        "<title>Index of /docs/api &amp; more/</title>",
        "<a href=\"../../\"><bdi>/</bdi></a>",
        "<a href=\"../\"><bdi>docs</bdi></a>/",
        "<span aria-current=\"page\"><bdi>api &amp; more</bdi>/</span>",
        "<a href=\"../\">..</a>",
        "<th scope=\"col\"><a href=\"?sort=name&amp;order=asc\">Name</a>",
        "aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">Size",
        "<a href=\"?sort=date&amp;order=desc\">",
        "title=\"1,536 bytes\">1.5 KiB<",
        "<time datetime=\"2000-02-29T00:00:00Z\">2000-02-29<span> 00:00</span>",
    ] {
        assert!(here.contains(part), "{part}: {here}");
    }
    let root = page("/", true, Items::default(), Sort::of(""));
    assert!(
        root.contains("<span aria-current=\"page\"><bdi>/</bdi></span>"),
        "{root}"
    );
    assert!(
        !root.contains("href=\"../\"") && root.contains("There is nothing in this folder."),
        "{root}"
    );
    assert!(
        root.contains("aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc\">Name"),
        "{root}"
    );
}

#[test]
fn a_name_cannot_turn_the_direction_of_writing() {
    let text = page(
        "/\u{202e}/",
        false,
        items(vec![file("\u{202e}gpj.exe", 1, 0)]),
        Sort::of(""),
    );
    assert!(
        text.contains("<a href=\"./%E2%80%AEgpj.exe\"><bdi>\u{fffd}gpj.exe</bdi>"),
        "{text}"
    );
    assert!(!text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_folder_with_more_than_is_shown_says_so() {
    let many = |has_more| Items {
        shown: (0..MOST_ITEMS)
            .map(|at| file(&at.to_string(), 0, 0))
            .collect(),
        has_more,
    };
    let whole = page("/", true, many(false), Sort::of(""));
    assert!(!whole.contains("There is more"));
    let part = page("/", true, many(true), Sort::of(""));
    assert!(part.contains("There is more in this folder: 10,000 items of it are shown."));
    // A page that is larger than this would be none.
    assert!(part.len() < 3 << 20, "{}", part.len());
}

#[test]
fn programs_get_json() {
    let mut odd = file("b\"c", 7, 951_782_400);
    odd.modified = None;
    let text = json(
        "/docs/",
        items(vec![odd, file("a", 0, 951_782_400), folder("sub")]),
        Sort::of(""),
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "path": "/docs/",
            "has_more": false,
            "items": [
                { "name": "sub", "type": "folder", "modified": "1970-01-01T00:00:00Z" },
                { "name": "a", "type": "file", "size": 0, "modified": "2000-02-29T00:00:00Z" },
                { "name": "b\"c", "type": "file", "size": 7 },
            ],
        })
    );
}

#[test]
fn the_policy_lets_the_style_in_and_nothing_else() {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, STYLE.as_bytes());
    use base64::Engine;
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    assert!(
        CONTENT_SECURITY_POLICY.contains(&format!("style-src 'sha256-{digest}';")),
        "the style has changed: put sha256-{digest} into CONTENT_SECURITY_POLICY"
    );
    assert!(CONTENT_SECURITY_POLICY.starts_with("default-src 'none'; "));
    assert!(!STYLE.contains("url(") && !STYLE.contains('<') && STYLE.is_ascii());
    assert!(
        page("/", true, Items::default(), Sort::of(""))
            .contains(&format!("<style>{STYLE}</style>"))
    );
}

proptest::proptest! {
    #[test]
    fn the_order_is_one(names in proptest::collection::vec("[aA0-2\u{e4}_]{0,4}", 3)) {
        // Transitive and antisymmetric, or sorting may panic.
        let [a, b, c] = &names[..] else { unreachable!("three") };
        proptest::prop_assert_eq!(by_name(a, b), by_name(b, a).reverse());
        if by_name(a, b) != Ordering::Greater && by_name(b, c) != Ordering::Greater {
            proptest::prop_assert!(by_name(a, c) != Ordering::Greater);
        }
        proptest::prop_assert_eq!(by_name(a, b) == Ordering::Equal, a == b);
    }
}
