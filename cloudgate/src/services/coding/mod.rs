//! Which content codings are there?
//!
//! ```text
//!  Accept-Encoding ─ accept::choose ─▶ a coding
//!  a media type ─ compressible::is_compressible ─▶ whether it is worth it
//!  a body ─ encoder::encode ─▶ a shorter one
//! ```

pub(super) mod accept;
pub(crate) mod compressible;
pub(super) mod encoder;

/// A content coding (RFC 9110 section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// All of them, the best for its cost first.
    pub(super) const ALL: &[Coding] = &[Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// What this build can encode, the best for its cost first.
    pub(super) const ENCODABLE: &[Coding] = &[
        #[cfg(feature = "zstd")]
        Coding::Zstd,
        #[cfg(feature = "brotli")]
        Coding::Brotli,
        Coding::Gzip,
    ];

    /// Its names, the usual one first.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Coding::Zstd => &["zstd"],
            Coding::Brotli => &["br"],
            Coding::Gzip => &["gzip", "x-gzip"],
        }
    }

    /// How the name of a file ends that has this coding.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Coding::Zstd => "zst",
            Coding::Brotli => "br",
            Coding::Gzip => "gz",
        }
    }

    /// The name that `Content-Encoding` holds.
    pub(super) fn name(self) -> &'static str {
        self.names()[0]
    }
}
