//! What is a socket to write next?

use bytes::Bytes;

use crate::message::Pace;

/// What is to be written next.
#[derive(Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    at: usize,
    /// A large frame behind it, how much of that is written, and what goes behind that.
    pub(super) large: Option<(Bytes, usize)>,
    behind: Vec<u8>,
    /// What it costs the outbox.
    pub(super) cost: usize,
    /// The time that the peer still has, once it was waited for.
    pub(super) pace: Option<Pace>,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len() && self.large.is_none()
    }

    pub(super) fn len(&self) -> usize {
        let large = self
            .large
            .as_ref()
            .map_or(0, |(bytes, at)| bytes.len() - at);
        self.bytes.len() - self.at + large + self.behind.len()
    }

    /// Where more goes.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        if self.large.is_some() {
            &mut self.behind
        } else {
            &mut self.bytes
        }
    }

    /// What is to be written next; empty where there is nothing.
    pub(super) fn piece(&self) -> &[u8] {
        match &self.large {
            Some((bytes, at)) if self.at == self.bytes.len() => &bytes[*at..],
            _ => &self.bytes[self.at..],
        }
    }

    pub(super) fn written(&mut self, count: usize) {
        if self.at < self.bytes.len() {
            self.at += count;
        } else if let Some((bytes, at)) = &mut self.large {
            *at += count;
            if *at == bytes.len() {
                self.large = None;
                std::mem::swap(&mut self.bytes, &mut self.behind);
                self.behind.clear();
                self.at = 0;
                return;
            }
        }
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}
