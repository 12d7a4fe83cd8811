//! Which server is asked?

use std::sync::atomic::{AtomicU64, Ordering};

use super::health;
use super::server::Server;
use crate::message::Request;

/// How requests are shared out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Balance {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest requests for its weight.
    LeastConnections,
    /// The less busy of two that are drawn.
    TwoChoices,
    /// The same one for the same key.
    Hash(HashKey),
}

/// What a client is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HashKey {
    Address,
    /// The value of a field; a request without it goes by its address.
    Header(String),
    /// The value of a cookie; a request without it goes by its address.
    Cookie(String),
}

/// The longest row of turns that weights make.
const LONGEST_ROW: usize = 4096;

/// Chooses among servers.
#[derive(Debug)]
pub(crate) struct Picker {
    balance: Balance,
    /// Whose turn it is, one after the other.
    row: Box<[u16]>,
    turn: AtomicU64,
    slow_start: u64,
}

impl Picker {
    pub(crate) fn new(balance: Balance, weights: &[u32], slow_start: u64) -> Picker {
        Picker {
            balance,
            row: row(weights),
            turn: AtomicU64::new(0),
            slow_start,
        }
    }

    /// The server for a request, none of those that were `tried`; `None` where there is no other.
    pub(crate) fn pick(
        &self,
        servers: &[Server],
        request: &Request<'_>,
        tried: &[usize],
    ) -> Option<usize> {
        if servers.len() == 1 {
            return tried.is_empty().then_some(0);
        }
        let now = health::now();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let well = |index: usize| {
            let server = &servers[index];
            !tried.contains(&index) && server.health.is_well(now) && self.is_in(server, turn, now)
        };
        let any = |index: usize| !tried.contains(&index);
        self.choose(servers, request, turn, &well)
            .or_else(|| {
                let slow = |index: usize| any(index) && servers[index].health.is_well(now);
                self.choose(servers, request, turn, &slow)
            })
            // Nobody is well, as far as is known.
            .or_else(|| self.choose(servers, request, turn, &any))
    }

    /// Whether a server that has come back lately gets this one.
    fn is_in(&self, server: &Server, turn: u64, now: u64) -> bool {
        let share = server.health.share(self.slow_start, now);
        share >= 1000 || mix(turn) % 1000 < share
    }

    fn choose(
        &self,
        servers: &[Server],
        request: &Request<'_>,
        turn: u64,
        fits: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let load = |index: usize| {
            let server = &servers[index];
            server.active() as u64 * 1_000 / u64::from(server.weight)
        };
        let from_turn = || {
            let length = self.row.len();
            let begin = (turn % length as u64) as usize;
            (0..length).map(move |step| usize::from(self.row[(begin + step) % length]))
        };
        match &self.balance {
            Balance::RoundRobin => from_turn().find(|&index| fits(index)),
            Balance::LeastConnections => from_turn()
                .filter(|&index| fits(index))
                .min_by_key(|&index| load(index)),
            Balance::TwoChoices => {
                let count = servers.len() as u64;
                let first = (mix(turn) % count) as usize;
                let step = 1 + (mix(turn ^ 0x5555) % (count - 1)) as usize;
                let second = (first + step) % servers.len();
                let best = [first, second]
                    .into_iter()
                    .filter(|&index| fits(index))
                    .min_by_key(|&index| load(index));
                best.or_else(|| from_turn().find(|&index| fits(index)))
            }
            Balance::Hash(key) => {
                let key = hash(key, request);
                (0..servers.len())
                    .filter(|&index| fits(index))
                    .max_by(|&a, &b| score(key, &servers[a]).total_cmp(&score(key, &servers[b])))
            }
        }
    }
}

/// Turns by weight, those of one server as far apart as can be.
fn row(weights: &[u32]) -> Box<[u16]> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let total: usize = weights
        .iter()
        .map(|weight| (weight / divisor) as usize)
        .sum();
    let mut credit = vec![0_i64; weights.len()];
    let total = total.clamp(1, LONGEST_ROW);
    let sum: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
    (0..total)
        .map(|_| {
            for (credit, &weight) in credit.iter_mut().zip(weights) {
                *credit += i64::from(weight);
            }
            // The first of the greatest.
            let best = (0..credit.len())
                .rev()
                .max_by_key(|&index| credit[index])
                .unwrap_or_default();
            credit[best] -= sum;
            best as u16
        })
        .collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How well a server suits a key, by its weight (rendezvous hashing): when one goes, only its keys go elsewhere.
fn score(key: u64, server: &Server) -> f64 {
    let mixed = mix(key ^ server.key);
    // Between 0 and 1, neither of them.
    let unit = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -f64::from(server.weight) / unit.ln()
}

fn hash(key: &HashKey, request: &Request<'_>) -> u64 {
    let text = match key {
        HashKey::Address => None,
        HashKey::Header(name) => request.headers().get_bytes(name),
        HashKey::Cookie(name) => cookie(request, name),
    };
    match text {
        Some(text) => key_of(text),
        None => key_of(request.client().to_string().as_bytes()),
    }
}

fn cookie<'r>(request: &'r Request<'_>, wanted: &str) -> Option<&'r [u8]> {
    request
        .headers()
        .get_all("cookie")
        .flat_map(|value| value.split(|&byte| byte == b';'))
        .find_map(|pair| {
            let pair = pair.trim_ascii();
            let value = pair.strip_prefix(wanted.as_bytes())?;
            value.strip_prefix(b"=")
        })
}

/// A number for a text, the same in every program.
pub(crate) fn key_of(text: &[u8]) -> u64 {
    // FNV-1a, whose bits are spread afterwards.
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(hash)
}

/// Spreads the bits of a number (the finalizer of splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_by_weight_and_do_not_come_in_bursts() {
        assert_eq!(*row(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(*row(&[7, 7]), [0, 1]);
        assert_eq!(*row(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
        let long = row(&[4_000_000, 3_999_999]);
        assert_eq!(long.len(), LONGEST_ROW);
    }
}
