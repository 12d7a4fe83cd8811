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
pub mod response_head;

pub use decode::Decoder;
pub use framing::{BodyLength, Framing};
pub use head::parse_request;
pub use response_head::parse_response;
