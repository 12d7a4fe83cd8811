//! How does a folder without an index look to people, and to programs?

use std::cmp::Ordering;
use std::fmt::Write;
use std::time::SystemTime;

use serde_json::json;

use crate::message::html::escape_html;
use crate::message::query;
use crate::services::calendar::Time;

/// The most items that a folder is shown with.
pub(super) const MOST_ITEMS: usize = 10_000;

/// What the page may do: show its own style. No script, no picture, no form, whatever a file is called.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; \
     style-src 'sha256-PMzaPrIEVN4nG6bqut53bIdUQx6H2C5yE4GR41qOV5Q='; base-uri 'none'; form-action 'none'";

/// A file or folder in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) is_folder: bool,
    /// In bytes; of a folder it says nothing.
    pub(super) length: u64,
    pub(super) modified: Option<SystemTime>,
}

/// What is shown of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Items {
    /// In any order.
    pub(super) shown: Vec<Item>,
    /// Whether the folder holds more than is shown.
    pub(super) has_more: bool,
}

/// In which order a client wants the items; folders come first in any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    by: By,
    order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Name,
    Size,
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

impl Sort {
    /// Reads `sort=name|size|date&order=asc|desc` of a query; what is absent or something else is by name,
    /// ascending.
    pub(super) fn of(query: &str) -> Sort {
        let mut sort = Sort {
            by: By::Name,
            order: Order::Ascending,
        };
        for (name, value) in query::pairs(query.as_bytes()) {
            match (&*name, &*value) {
                ("sort", "name") => sort.by = By::Name,
                ("sort", "size") => sort.by = By::Size,
                ("sort", "date") => sort.by = By::Date,
                ("order", "asc") => sort.order = Order::Ascending,
                ("order", "desc") => sort.order = Order::Descending,
                _ => {}
            }
        }
        sort
    }

    fn apply(self, items: &mut [Item]) {
        items.sort_by(|one, other| {
            let by = match self.by {
                By::Name => by_name(&one.name, &other.name),
                By::Size if one.is_folder => Ordering::Equal,
                By::Size => one.length.cmp(&other.length),
                By::Date => one.modified.cmp(&other.modified),
            };
            let by = match self.order {
                Order::Ascending => by,
                Order::Descending => by.reverse(),
            };
            (other.is_folder.cmp(&one.is_folder))
                .then(by)
                .then_with(|| by_name(&one.name, &other.name))
        });
    }
}

/// As people would: `file2` before `File10`, capitals or not.
fn by_name(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) else {
            let by_rest = left.len().cmp(&right.len());
            // Names that differ in case, or in zeros before a number, have an order all the same.
            return by_rest.then_with(|| one.cmp(other));
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, behind) = number(left);
            let (second_number, second_behind) = self::number(right);
            let by_number = number.len().cmp(&second_number.len());
            let by_number = by_number.then_with(|| number.cmp(second_number));
            if by_number != Ordering::Equal {
                return by_number;
            }
            (left, right) = (behind, second_behind);
        } else {
            let by_letter = first.to_lowercase().cmp(second.to_lowercase());
            if by_letter != Ordering::Equal {
                return by_letter;
            }
            (left, right) = (&left[first.len_utf8()..], &right[second.len_utf8()..]);
        }
    }
}

/// The digits that a text begins with, without zeros in front, and what stands behind them.
fn number(text: &str) -> (&str, &str) {
    let end = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, behind) = text.split_at(end);
    (digits.trim_start_matches('0'), behind)
}

/// The page of a folder. Its path is decoded and as people know it, with slashes around it; at the root
/// there is no way up.
pub(super) fn page(path: &str, at_root: bool, items: Items, sort: Sort) -> String {
    let mut shown = items.shown;
    sort.apply(&mut shown);
    let title = shown_as(path);
    let mut page = String::with_capacity(STYLE.len() + 1024 + shown.len() * 256);
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Index of {title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n<table>\n<thead><tr>",
        breadcrumbs(path)
    );
    for (by, class, title) in [
        (By::Name, "", "Name"),
        (By::Size, " class=\"size\"", "Size"),
        (By::Date, " class=\"date\"", "Changed (UTC)"),
    ] {
        heading(&mut page, sort, by, class, title);
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if !at_root {
        page.push_str(
            "<tr class=\"up\"><td><a href=\"../\">..</a></td><td class=\"size\"></td><td class=\"date\"></td></tr>\n",
        );
    }
    for item in &shown {
        row(&mut page, item);
    }
    page.push_str("</tbody>\n</table>\n");
    if items.has_more {
        let _ = writeln!(
            page,
            "<p>There is more in this folder: {} items of it are shown.</p>",
            grouped(shown.len() as u64)
        );
    } else if shown.is_empty() {
        page.push_str("<p>There is nothing in this folder.</p>\n");
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The folders that lead here, each a link but the last.
fn breadcrumbs(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let mut text = String::from("<nav aria-label=\"Folders\">");
    for (depth, name) in ["/"].iter().chain(&segments).enumerate() {
        let slash = if depth == 0 { "" } else { "/" };
        let up = segments.len() - depth;
        let name = shown_as(name);
        let _ = if up == 0 {
            write!(
                text,
                "<span aria-current=\"page\"><bdi>{name}</bdi>{slash}</span>"
            )
        } else {
            write!(
                text,
                "<a href=\"{}\"><bdi>{name}</bdi></a>{slash}<wbr>",
                "../".repeat(up)
            )
        };
    }
    text + "</nav>"
}

fn heading(page: &mut String, sort: Sort, by: By, class: &str, title: &str) {
    let name = match by {
        By::Name => "name",
        By::Size => "size",
        By::Date => "date",
    };
    // A second click turns the order; the first one asks for what is most wanted: the large, the latest.
    let next = match (sort.by == by, sort.order, by) {
        (true, Order::Ascending, _) | (false, _, By::Size | By::Date) => "desc",
        (true, Order::Descending, _) | (false, _, By::Name) => "asc",
    };
    let (state, arrow) = match (sort.by == by, sort.order) {
        (false, _) => ("", ""),
        (true, Order::Ascending) => (" aria-sort=\"ascending\"", " \u{2191}"),
        (true, Order::Descending) => (" aria-sort=\"descending\"", " \u{2193}"),
    };
    let _ = write!(
        page,
        "<th scope=\"col\"{class}{state}><a href=\"?sort={name}&amp;order={next}\">{title}{arrow}</a></th>"
    );
}

fn row(page: &mut String, item: &Item) {
    let name = shown_as(&item.name);
    let (class, slash) = if item.is_folder {
        (" class=\"folder\"", "/")
    } else {
        ("", "")
    };
    let _ = write!(
        page,
        "<tr{class}><td><a href=\"{}\"><bdi>{name}</bdi>{slash}</a></td><td class=\"size\"",
        href(item)
    );
    if item.is_folder {
        page.push_str("></td>");
    } else {
        let _ = write!(
            page,
            " title=\"{} bytes\">{}</td>",
            grouped(item.length),
            human(item.length)
        );
    }
    page.push_str("<td class=\"date\">");
    if let Some(time) = item.modified.map(Time::of) {
        let _ = write!(
            page,
            "<time datetime=\"{}\">{:04}-{:02}-{:02}<span> {:02}:{:02}</span></time>",
            iso(&time),
            time.year,
            time.month,
            time.day,
            time.hour,
            time.minute
        );
    }
    page.push_str("</td></tr>\n");
}

/// A name as text of the page. Characters that turn the direction of writing are made visible: with one of
/// them `gpj.exe` would read `exe.jpg`.
fn shown_as(name: &str) -> String {
    let turns = |sign: char| matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    escape_html(&name.replace(turns, "\u{fffd}"))
}

/// A reference to an item of this folder. With `./` in front no name can pass for a host, a scheme or a
/// path, and but for letters, digits and `-._~` everything is encoded, so nothing ends the attribute.
fn href(item: &Item) -> String {
    let mut href = String::with_capacity(item.name.len() + 8);
    href.push_str("./");
    for byte in item.name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            href.push(byte as char);
        } else {
            let _ = write!(href, "%{byte:02X}");
        }
    }
    if item.is_folder {
        href.push('/');
    }
    href
}

/// `1.5 KiB`: two digits that count, or three.
fn human(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        // What would be written as 1024 is one of the next unit.
        if !unit.is_empty() && value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    // What would be written as 10.0 is 10.
    if value < 9.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn iso(time: &Time) -> String {
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year, time.month, time.day, time.hour, time.minute, time.second
    )
}

/// The folder for programs: an object with `path`, `has_more` and `items`, each with `name`, `type` (`file` or
/// `folder`), of a file `size` in bytes, and `modified` where it is known.
pub(super) fn json(path: &str, items: Items, sort: Sort) -> String {
    let mut shown = items.shown;
    sort.apply(&mut shown);
    let shown: Vec<serde_json::Value> = shown
        .into_iter()
        .map(|item| {
            let kind = if item.is_folder { "folder" } else { "file" };
            let mut value = json!({ "name": item.name, "type": kind });
            if !item.is_folder {
                value["size"] = item.length.into();
            }
            if let Some(modified) = item.modified {
                value["modified"] = iso(&Time::of(modified)).into();
            }
            value
        })
        .collect();
    json!({ "path": path, "has_more": items.has_more, "items": shown }).to_string()
}

/// One style for light and dark, desks and phones. [`CONTENT_SECURITY_POLICY`] holds its hash.
const STYLE: &str = include_str!("listing.css");

#[cfg(test)]
mod tests;
