//! Which questions are asked?

use crate::harness::options::Named;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Html600,
    Html2k,
    Html4k,
    Png15k,
    File1m,
    Bundle,
    File1g,
    Many,
    One,
    Gzip,
    GzipKept,
    GzipSize,
    NotModified,
}

impl Named for Case {
    const ALL: &'static [Self] = &[
        Self::Html600,
        Self::Html2k,
        Self::Html4k,
        Self::Png15k,
        Self::File1m,
        Self::Bundle,
        Self::File1g,
        Self::Many,
        Self::One,
        Self::Gzip,
        Self::GzipKept,
        Self::GzipSize,
        Self::NotModified,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Html600 => "html600",
            Self::Html2k => "html2k",
            Self::Html4k => "html4k",
            Self::Png15k => "png15k",
            Self::File1m => "file1m",
            Self::Bundle => "bundle1000",
            Self::File1g => "file1g",
            Self::Many => "many10000",
            Self::One => "many1",
            Self::Gzip => "gzip",
            Self::GzipKept => "gzip-kept",
            Self::GzipSize => "gzip-size",
            Self::NotModified => "not-modified",
        }
    }
}

/// How hard both servers try.
pub(crate) const GZIP_LEVEL: u32 = 5;

/// How many pages [`Case::Many`] chooses among.
pub(crate) const PAGES: usize = 10_000;

/// The bundle of a comparison of Go servers that many know.
const BUNDLE: u64 = 452_460;

impl Case {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Html600 => "a page of 600 bytes".to_owned(),
            Self::Html2k => "a page of 2 kB".to_owned(),
            Self::Html4k => "a page of 4 kB".to_owned(),
            Self::Png15k => "a picture of 15 kB".to_owned(),
            Self::File1m => "a file of 1 MiB".to_owned(),
            Self::Bundle => format!("a script of {BUNDLE} bytes, 1,000 connections"),
            Self::File1g => "a file of 1 GiB in the page cache, two connections".to_owned(),
            Self::Many => format!("{PAGES} pages of 1 to 4 kB, asked for at random by a script"),
            Self::One => "one page of 2.5 kB, asked for by the same script".to_owned(),
            Self::Gzip => format!("100 kB of JSON, compressed for each answer at level {GZIP_LEVEL}: by cloudgate from a handler, by nginx from a file"),
            Self::GzipKept => "the same JSON as a file, for a client that takes gzip: cloudgate compresses it, nginx has a `.gz` beside it (`gzip_static`)".to_owned(),
            Self::GzipSize => "a file as long as that `.gz`, as it is".to_owned(),
            Self::NotModified => "the page of 4 kB for a client that has it: 304".to_owned(),
        }
    }

    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Html600 => "/600.html",
            Self::Html2k => "/2k.html",
            Self::Html4k | Self::NotModified => "/4k.html",
            Self::Png15k => "/15k.png",
            Self::File1m => "/1m.bin",
            Self::Bundle => "/bundle.js",
            Self::File1g => "/1g.bin",
            Self::Many => "/many/00000.html",
            Self::One => "/many1/00000.html",
            Self::Gzip => "/fly/data.json",
            Self::GzipKept => "/kept/data.json",
            Self::GzipSize => "/size.bin",
        }
    }

    /// The length of the file where it is a whole pattern or page.
    pub(crate) fn length(self) -> Option<u64> {
        match self {
            Self::Html600 => Some(600),
            Self::Html2k => Some(2_000),
            Self::Html4k | Self::NotModified => Some(4_000),
            Self::Png15k => Some(15_000),
            Self::File1m => Some(1 << 20),
            Self::Bundle => Some(BUNDLE),
            Self::File1g => Some(1 << 30),
            Self::One => Some(2_500),
            Self::Many | Self::Gzip | Self::GzipKept | Self::GzipSize => None,
        }
    }

    pub(crate) fn takes_gzip(self) -> bool {
        matches!(self, Self::Gzip | Self::GzipKept)
    }

    /// Where the case is about their number.
    pub(crate) fn connections(self) -> Option<u32> {
        match self {
            Self::Bundle => Some(1000),
            Self::File1g => Some(2),
            _ => None,
        }
    }
}
