//! Who has closed, and what may still be sent (RFC 6455 section 7)?

use super::Role;
use super::violation::{Violation, code};

/// The closing handshake as one side sees it.
///
/// Each side sends one close frame. The one that comes first is answered, with its own code; nothing is sent
/// behind one's own, and nothing is read behind the other's. Then the server ends the connection.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    role: Role,
    sent: Option<u16>,
    received: Option<u16>,
    failed: bool,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Messages go both ways.
    Talk,
    /// The other end has closed: send a close frame with this code, or an empty one.
    Answer(Option<u16>),
    /// Read on, for a limited time, until the other end has closed as well.
    AwaitClose,
    /// Both have closed and the server ends the connection: wait for that, for a limited time.
    AwaitEnd,
    /// End the connection, once all is written.
    End,
}

impl Closing {
    /// Neither side has closed.
    pub fn new(role: Role) -> Closing {
        Closing {
            role,
            sent: None,
            received: None,
            failed: false,
        }
    }

    /// Whether messages, pings and pongs may be sent: not once a side has closed (section 5.5.1).
    pub fn may_talk(&self) -> bool {
        self.sent.is_none() && self.received.is_none() && !self.failed
    }

    /// Notes that a close frame is sent; says whether it may be, which is so once.
    #[must_use]
    pub fn send(&mut self, code: Option<u16>) -> bool {
        let first = self.sent.is_none();
        if first {
            self.sent = Some(code.unwrap_or(code::NONE));
        }
        first
    }

    /// Notes that a close frame has come.
    pub fn receive(&mut self, code: Option<u16>) {
        self.received.get_or_insert(code.unwrap_or(code::NONE));
    }

    /// Notes that the other end broke a rule; gives the code to close with, unless a close was sent already
    /// (section 7.1.7). Nothing is awaited from an end that breaks rules.
    #[must_use]
    pub fn fail(&mut self, violation: Violation) -> Option<u16> {
        self.failed = true;
        let code = violation.close_code();
        self.send(Some(code)).then_some(code)
    }

    /// What is to be done next.
    pub fn next(&self) -> Next {
        match (self.sent, self.received) {
            _ if self.failed => Next::End,
            (None, None) => Next::Talk,
            (None, Some(code::NONE)) => Next::Answer(None),
            (None, Some(code)) => Next::Answer(Some(code)),
            (Some(_), None) => Next::AwaitClose,
            // Section 7.1.1: the side that ends first keeps the connection in TIME_WAIT, so the server does
            // it, which can reuse its port at once.
            (Some(_), Some(_)) => match self.role {
                Role::Server => Next::End,
                Role::Client => Next::AwaitEnd,
            },
        }
    }

    /// Whether both sides have closed by the rules.
    #[cfg(test)]
    pub fn is_clean(&self) -> bool {
        self.sent.is_some() && self.received.is_some() && !self.failed
    }

    /// The code that the application is told (section 7.1.5): the one that came, 1005 for a close without
    /// one, 1006 where none came.
    pub fn code(&self) -> u16 {
        self.received.unwrap_or(code::ABNORMAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_closes_first() {
        let mut closing = Closing::new(Role::Server);
        assert_eq!((closing.next(), closing.code()), (Next::Talk, 1006));
        assert!(closing.may_talk());
        assert!(closing.send(Some(code::GOING_AWAY)));
        assert!(!closing.may_talk());
        assert_eq!(closing.next(), Next::AwaitClose);
        assert!(!closing.is_clean());
        closing.receive(Some(code::GOING_AWAY));
        assert_eq!((closing.next(), closing.code()), (Next::End, 1001));
        assert!(closing.is_clean());
        assert!(!closing.send(Some(code::NORMAL)), "one close frame a side");
    }

    #[test]
    fn the_other_end_closes_first() {
        for (role, end) in [(Role::Server, Next::End), (Role::Client, Next::AwaitEnd)] {
            for (code, seen) in [(Some(4001), 4001), (None, code::NONE)] {
                let mut closing = Closing::new(role);
                closing.receive(code);
                assert!(!closing.may_talk());
                assert_eq!(closing.next(), Next::Answer(code));
                assert!(closing.send(code));
                assert_eq!((closing.next(), closing.code()), (end, seen));
                assert!(closing.is_clean());
            }
        }
    }

    #[test]
    fn both_close_at_once() {
        let mut closing = Closing::new(Role::Server);
        assert!(closing.send(Some(code::NORMAL)));
        closing.receive(Some(4000));
        closing.receive(Some(4001));
        assert_eq!((closing.next(), closing.code()), (Next::End, 4000));
    }

    #[test]
    fn a_broken_rule_is_told_once_and_nothing_is_awaited() {
        let mut closing = Closing::new(Role::Client);
        assert_eq!(closing.fail(Violation::InvalidUtf8), Some(1007));
        assert_eq!(closing.fail(Violation::Masked), None);
        assert_eq!((closing.next(), closing.code()), (Next::End, 1006));
        assert!(!closing.is_clean() && !closing.may_talk());

        let mut closing = Closing::new(Role::Server);
        assert!(closing.send(None));
        assert_eq!(closing.fail(Violation::Unmasked), None);
        assert_eq!(closing.next(), Next::End);
    }
}
