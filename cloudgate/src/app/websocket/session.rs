//! What does a socket keep while it is parked?

use std::sync::Arc;

use super::error::SocketError;
use super::message::Compresses;
use super::outbox::{Outbox, SocketSender};
use super::output::Output;
use super::socket::CloseFrame;
use super::upgrade::Rules;
use crate::message::{Deadline, Host};
use crate::proto::ws::Role;
use crate::proto::ws::close::Closing;
use crate::proto::ws::decode::Decoder;
use crate::proto::ws::encode::Encoder;
use crate::proto::ws::extension::Agreed;
use crate::proto::ws::violation::code;

/// What a socket keeps while it is parked.
pub(super) struct Session {
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) closing: Closing,
    pub(super) outbox: Arc<Outbox>,
    pub(super) rules: Arc<Rules>,
    pub(super) protocol: Option<String>,
    pub(super) out: Output,
    /// When something came last, and how many pings went out since.
    pub(super) heard: u64,
    pub(super) misses: u64,
    /// When the last message came or went.
    pub(super) message_at: u64,
    /// How many messages of others were seen in the outbox.
    pub(super) seen: u64,
    /// Until when a close is waited for.
    pub(super) close_by: Deadline,
    pub(super) closed: Option<CloseFrame>,
    pub(super) failed: Option<SocketError>,
}

impl Session {
    pub(super) fn new(
        host: &dyn Host,
        rules: &Arc<Rules>,
        agreed: Option<Agreed>,
        protocol: Option<String>,
    ) -> Session {
        let compresses = agreed.map(|agreed| Compresses {
            coding: agreed.sends(Role::Server),
            how: rules.compressing(),
        });
        let encoder = match compresses {
            Some(how) => Encoder::server().compress(how.coding, how.how),
            None => Encoder::server(),
        };
        let inflate = agreed.map(|agreed| agreed.receives(Role::Server));
        let now = host.now();
        Session {
            decoder: Decoder::new(Role::Server, rules.limits, inflate),
            encoder,
            closing: Closing::new(Role::Server),
            outbox: Outbox::new(
                Arc::clone(host.tie()),
                compresses,
                rules.outbox,
                rules.slow_receiver,
            ),
            rules: Arc::clone(rules),
            protocol,
            out: Output::default(),
            heard: now,
            misses: 0,
            message_at: now,
            seen: 0,
            close_by: Deadline::NEVER,
            closed: None,
            failed: None,
        }
    }

    /// When something is to be done although nothing comes.
    pub(super) fn due(&self) -> Deadline {
        if !self.closing.may_talk() {
            return self.close_by;
        }
        self.next_ping().min(self.idle_at())
    }

    /// When the next ping is to be sent, unless something comes.
    pub(super) fn next_ping(&self) -> Deadline {
        let silence = self.rules.heartbeat.saturating_mul(self.misses + 1);
        Deadline::after(self.heard, silence)
    }

    /// When the socket is closed, unless a message comes or goes.
    pub(super) fn idle_at(&self) -> Deadline {
        Deadline::after(self.message_at, self.rules.idle)
    }

    /// Lets go of the connection if there is nothing to write: from then on others may write to it, until
    /// [`Outbox::resume`].
    pub(super) fn rest(&self) -> bool {
        self.out.is_empty() && self.closing.may_talk() && self.outbox.rest()
    }

    /// What reaches the socket from elsewhere.
    pub(super) fn sender(&self) -> SocketSender {
        SocketSender(Arc::clone(&self.outbox))
    }

    /// How the socket has ended.
    pub(super) fn close_frame(&self) -> CloseFrame {
        self.closed.clone().unwrap_or_else(|| CloseFrame {
            code: code::ABNORMAL,
            reason: String::new(),
        })
    }

    /// Whether [`Session::shrink`] gives much back.
    pub(super) fn can_shrink(&self) -> bool {
        self.decoder.can_shrink() || self.encoder.can_shrink()
    }

    /// Gives back what is not needed while nothing comes.
    pub(super) fn shrink(&mut self) {
        self.decoder.shrink();
        self.encoder.shrink();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.outbox.end();
    }
}
