//! How much may a peer send before it is refused?

/// Limits on what a peer can make the parser keep. Past one of them the request is refused.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request target (default 8 KiB); past it 414.
    pub target: usize,
    /// Bytes of a whole head: request line and fields (default 64 KiB); past it 431.
    pub head: usize,
    /// Number of header fields (default 100); past it 431.
    pub fields: usize,
    /// Bytes of all chunk extensions of one body (default 16 KiB); past it 400.
    pub chunk_extensions: usize,
    /// Bytes of the trailer section of one body (default 16 KiB); past it 431.
    pub trailers: usize,
}

impl Limits {
    /// The defaults as a constant.
    pub const DEFAULT: Limits = Limits {
        target: 8 << 10,
        head: 64 << 10,
        fields: 100,
        chunk_extensions: 16 << 10,
        trailers: 16 << 10,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
