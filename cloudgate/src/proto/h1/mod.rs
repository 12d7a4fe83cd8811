//! How does HTTP/1.1 look on the wire?
//!
//! ```text
//!  bytes ─ head::parse_request ─▶ RequestHead ─ framing::of ─▶ Framing ─ decode::Decoder ─▶ body bytes
//!  Response ─ encode::head ─▶ bytes ─ encode::chunk … ─▶ bytes
//! ```

pub mod decode;
pub mod encode;
pub mod framing;
pub mod head;
pub mod response_framing;
pub mod response_head;

pub use decode::Decoder;
pub(crate) use framing::is_host;
pub use framing::{BodyLength, Framing};
pub use head::parse_request;
pub use response_framing::{ResponseEnd, ResponseFraming};
pub use response_head::{ResponseHead, parse_response};
