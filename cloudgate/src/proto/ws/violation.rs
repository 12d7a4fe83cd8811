//! Which rule of the protocol did the other end break, and with which code is that closed?

use std::fmt;

/// Close codes (RFC 6455 section 7.4.1).
pub mod code {
    /// The purpose is fulfilled.
    pub const NORMAL: u16 = 1000;
    /// The server stops, or the page is left.
    pub const GOING_AWAY: u16 = 1001;
    /// A rule of the protocol was broken.
    pub const PROTOCOL: u16 = 1002;
    /// Stands for a close without a code; never sent.
    pub const NONE: u16 = 1005;
    /// Stands for a connection that ended without a close; never sent.
    pub const ABNORMAL: u16 = 1006;
    /// The bytes are not what the message's type says.
    pub const INVALID_DATA: u16 = 1007;
    /// A message breaks a rule of the application.
    pub const POLICY: u16 = 1008;
    /// A message is too large.
    pub const TOO_LARGE: u16 = 1009;
    /// The server has failed.
    pub const INTERNAL: u16 = 1011;
    /// The server has too much to do (the registry of IANA).
    pub const TRY_AGAIN_LATER: u16 = 1013;

    /// Whether a close frame may hold `code` (RFC 6455 section 7.4, and the registry of IANA for 1012 to 1014).
    pub fn may_be_sent(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

/// The rule that the other end broke. Nothing of what it sent is kept in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// RSV1 where it means nothing, or RSV2 or RSV3 (section 5.2).
    ReservedBit,
    /// An opcode that nobody has given a meaning (section 5.2).
    ReservedOpcode,
    /// A control frame without FIN (section 5.5).
    FragmentedControl,
    /// A control frame of more than 125 bytes (section 5.5).
    LongControl,
    /// A client's frame without a mask (section 5.1).
    Unmasked,
    /// A server's frame with a mask (section 5.1).
    Masked,
    /// A length in more bytes than it takes (section 5.2).
    LengthNotMinimal,
    /// A length of 2^63 or more (section 5.2).
    LengthTooLarge,
    /// A continuation where no message has begun (section 5.4).
    NothingToContinue,
    /// A message that begins inside another (section 5.4).
    UnfinishedMessage,
    /// A close frame of one byte (section 5.5.1).
    HalfCloseCode,
    /// A close code that may not be sent (section 7.4).
    InvalidCloseCode,
    /// Text, or the reason of a close, that is not UTF-8 (section 8.1).
    InvalidUtf8,
    /// A compressed message that does not inflate (RFC 7692 section 7.2.2).
    InvalidDeflate,
    /// A frame larger than the limit.
    FrameTooLarge,
    /// A message larger than the limit.
    MessageTooLarge,
}

impl Violation {
    /// The code to close with (RFC 6455 section 7.4.1).
    pub fn close_code(self) -> u16 {
        match self {
            // RFC 7692 names no code for bytes that do not inflate; they are not what the message says it is.
            Violation::InvalidUtf8 | Violation::InvalidDeflate => code::INVALID_DATA,
            Violation::FrameTooLarge | Violation::MessageTooLarge => code::TOO_LARGE,
            _ => code::PROTOCOL,
        }
    }

    /// What was wrong, in words that fit into a close frame.
    pub fn reason(self) -> &'static str {
        match self {
            Violation::ReservedBit => "a reserved bit is set",
            Violation::ReservedOpcode => "the opcode is reserved",
            Violation::FragmentedControl => "a control frame is fragmented",
            Violation::LongControl => "a control frame is longer than 125 bytes",
            Violation::Unmasked => "a client's frame is not masked",
            Violation::Masked => "a server's frame is masked",
            Violation::LengthNotMinimal => "a length takes more bytes than it needs",
            Violation::LengthTooLarge => "a length has its highest bit set",
            Violation::NothingToContinue => "there is no message to continue",
            Violation::UnfinishedMessage => "a message begins inside another",
            Violation::HalfCloseCode => "the close code has one byte",
            Violation::InvalidCloseCode => "the close code may not be sent",
            Violation::InvalidUtf8 => "the text is not UTF-8",
            Violation::InvalidDeflate => "the compressed message is malformed",
            Violation::FrameTooLarge => "the frame is too large",
            Violation::MessageTooLarge => "the message is too large",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Violation {}
