//! Which contents has a file had, and from when to when?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use aws_lc_rs::digest;

/// A content by its hash, or that there is no file.
pub type State = Option<[u8; 32]>;

pub fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

/// What a file was in a time: from when it may have been so to when it may have been so at the latest.
struct Span {
    state: State,
    from: Instant,
    to: Option<Instant>,
}

/// A time in which the bytes of a file are written in place, so that it may be a bit of both.
struct Mix {
    from: Instant,
    to: Option<Instant>,
}

#[derive(Default)]
struct Book {
    spans: HashMap<String, Vec<Span>>,
    mixes: HashMap<String, Vec<Mix>>,
    /// Contents by hash, of those that the server has still a reason to send.
    contents: HashMap<[u8; 32], Arc<Vec<u8>>>,
}

/// Notes what the writer does, and answers for the readers. All times are those of one clock.
#[derive(Default)]
pub struct Ledger(Mutex<Book>);

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().expect("nobody panics with the ledger")
    }

    /// From now on these files may be found so, and then only so: `change` makes it true.
    pub fn change(&self, states: &[(String, Option<Arc<Vec<u8>>>)], change: impl FnOnce()) {
        let hashed: Vec<_> = states
            .iter()
            .map(|(name, bytes)| (name, bytes.as_ref().map(|bytes| (hash(bytes), bytes))))
            .collect();
        let from = Instant::now();
        {
            let mut book = self.book();
            for (name, state) in &hashed {
                if let Some((hash, bytes)) = state {
                    book.contents.insert(*hash, Arc::clone(bytes));
                }
                let spans = book.spans.entry((*name).clone()).or_default();
                spans.push(Span {
                    state: state.map(|(hash, _)| hash),
                    from,
                    to: None,
                });
            }
        }
        change();
        let to = Instant::now();
        let mut book = self.book();
        for (name, _) in &hashed {
            let spans = book.spans.get_mut(*name).expect("it was noted");
            let last = spans.len() - 1;
            for span in &mut spans[..last] {
                span.to.get_or_insert(to);
            }
        }
    }

    /// As [`Ledger::change`], by writing into the file.
    pub fn change_in_place(&self, name: &str, bytes: &Arc<Vec<u8>>, change: impl FnOnce()) {
        let from = Instant::now();
        let mix = Mix { from, to: None };
        self.book()
            .mixes
            .entry(name.to_owned())
            .or_default()
            .push(mix);
        self.change(&[(name.to_owned(), Some(Arc::clone(bytes)))], change);
        let to = Some(Instant::now());
        if let Some(mix) = self
            .book()
            .mixes
            .get_mut(name)
            .and_then(|mixes| mixes.last_mut())
        {
            mix.to = to;
        }
    }

    /// Whether the file was so at some moment of this time.
    pub fn was(&self, name: &str, state: State, since: Instant, until: Instant) -> bool {
        let book = self.book();
        let spans = book.spans.get(name);
        spans.is_some_and(|spans| {
            spans.iter().rev().any(|span| {
                span.state == state && span.from <= until && span.to.is_none_or(|to| to >= since)
            })
        })
    }

    /// Whether the file was ever so.
    pub fn was_ever(&self, name: &str, state: State) -> bool {
        let book = self.book();
        let spans = book.spans.get(name);
        spans.is_some_and(|spans| spans.iter().any(|span| span.state == state))
    }

    /// Whether `fits` says so of a content that the file had at some moment of this time.
    pub fn any(
        &self,
        name: &str,
        since: Instant,
        until: Instant,
        fits: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let contents: Vec<Arc<Vec<u8>>> = {
            let book = self.book();
            let spans = book.spans.get(name).into_iter().flatten();
            spans
                .filter(|span| span.from <= until && span.to.is_none_or(|to| to >= since))
                .filter_map(|span| book.contents.get(&span.state?).cloned())
                .collect()
        };
        contents.iter().any(|bytes| fits(bytes))
    }

    /// Whether the file was written into in this time, by a write that took so long.
    pub fn was_mixed(&self, name: &str, since: Instant, until: Instant, took: Duration) -> bool {
        let book = self.book();
        book.mixes.get(name).is_some_and(|mixes| {
            mixes
                .iter()
                .filter(|mix| mix.from <= until && mix.to.is_none_or(|to| to >= since))
                .any(|mix| mix.to.is_none_or(|to| to - mix.from >= took))
        })
    }

    /// The content that the file had last.
    pub fn last(&self, name: &str) -> Option<Arc<Vec<u8>>> {
        let book = self.book();
        let state = book.spans.get(name)?.last()?.state?;
        book.contents.get(&state).cloned()
    }

    /// Forgets the bytes, not the hashes, of what no file has had for a while.
    pub fn tidy(&self, now: Instant) {
        let mut book = self.book();
        let recent = |span: &Span| {
            span.to
                .is_none_or(|to| now.duration_since(to) < Duration::from_secs(5))
        };
        let used: std::collections::HashSet<[u8; 32]> = book
            .spans
            .values()
            .flatten()
            .filter(|span| recent(span))
            .filter_map(|span| span.state)
            .collect();
        book.contents.retain(|hash, _| used.contains(hash));
    }
}
