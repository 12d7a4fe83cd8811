//! What becomes of a message that is sent to a socket from elsewhere?

/// What becomes of a message for a peer that reads too slowly, once all that waits for it reaches the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowReceiver {
    /// The socket is closed with 1013, and what waits is dropped: who comes back asks for what it has missed.
    #[default]
    Close,
    /// The new message is dropped.
    DropNewest,
    /// What has waited longest is dropped, as far as need be.
    DropOldest,
    /// Of the messages of one topic only the newest is kept: for prices and positions, of which each makes those before
    /// it worthless. Where that is not enough the new message is dropped. What was sent to the socket itself is of one
    /// topic.
    Coalesce,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a dropped message is told here alone"]
pub enum Delivery {
    /// The system has it; it is on its way.
    Sent,
    /// It waits until the peer has read what was sent before, or until the socket's coroutine has a turn.
    Queued,
    /// It will not be sent.
    Dropped(Dropped),
}

/// Why a message will not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dropped {
    /// The socket is closed, or about to.
    Closed,
    /// The peer reads too slowly, and [`SlowReceiver`] says so.
    Slow,
    /// It is larger than all that may wait.
    TooLarge,
}

/// How many messages to a socket, or of a hub, were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Came when the limit was reached ([`SlowReceiver::DropNewest`], or [`SlowReceiver::Coalesce`] where it was not
    /// enough).
    pub newest: u64,
    /// Waited longest when another came ([`SlowReceiver::DropOldest`]).
    pub oldest: u64,
    /// Were replaced by a later one of their topic ([`SlowReceiver::Coalesce`]).
    pub coalesced: u64,
    /// Waited when the socket was closed because its peer reads too slowly ([`SlowReceiver::Close`]), and the one
    /// that made it so.
    pub closed_slow: u64,
    /// Were larger than all that may wait.
    pub too_large: u64,
    /// Came for a closed socket, or waited when it was lost.
    pub closed: u64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.parts().iter().sum()
    }

    fn parts(&self) -> [u64; 6] {
        [
            self.newest,
            self.oldest,
            self.coalesced,
            self.closed_slow,
            self.too_large,
            self.closed,
        ]
    }

    fn of(parts: [u64; 6]) -> Losses {
        let [newest, oldest, coalesced, closed_slow, too_large, closed] = parts;
        Losses {
            newest,
            oldest,
            coalesced,
            closed_slow,
            too_large,
            closed,
        }
    }

    /// What came up since `before`.
    pub(super) fn since(&self, before: &Losses) -> Losses {
        let (now, before) = (self.parts(), before.parts());
        Losses::of(std::array::from_fn(|at| now[at] - before[at]))
    }

    /// Both together.
    pub(in crate::app) fn and(&self, other: &Losses) -> Losses {
        let (one, other) = (self.parts(), other.parts());
        Losses::of(std::array::from_fn(|at| one[at] + other[at]))
    }
}
