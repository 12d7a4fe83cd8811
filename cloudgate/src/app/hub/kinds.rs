//! In which ways do the sockets of a hub compress?

use std::cmp::Reverse;

use crate::app::websocket::Compresses;

/// For how many ways to compress a message is prepared.
pub(super) const KINDS: usize = 4;

/// Each way, with how many sockets there are of it: those that have left are not compressed for, and a few with odd ways
/// keep none of the many out.
#[derive(Default)]
pub(super) struct Kinds(Vec<(Compresses, usize)>);

impl Kinds {
    pub(super) fn enter(&mut self, how: Compresses) {
        match self.0.iter_mut().find(|(known, _)| *known == how) {
            Some((_, count)) => *count += 1,
            None => self.0.push((how, 1)),
        }
    }

    pub(super) fn leave(&mut self, how: Compresses) {
        if let Some(place) = self.0.iter().position(|(known, _)| *known == how) {
            self.0[place].1 -= 1;
            if self.0[place].1 == 0 {
                self.0.swap_remove(place);
            }
        }
    }

    /// The most frequent ones.
    pub(super) fn frequent(&self) -> Vec<Compresses> {
        let mut all = self.0.clone();
        all.sort_by_key(|&(_, count)| Reverse(count));
        all.into_iter().take(KINDS).map(|(how, _)| how).collect()
    }
}
