//! How many echoes does a server send in a second, and how long does one take?

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::{Case, ECHOED, path};
use crate::frames::{self, Frame};
use crate::harness::child::Running;
use crate::load::{self, Group, STUCK};
use crate::rounds::{Shares, Usage};

/// Sockets of the echo cases.
pub(crate) const SOCKETS: usize = 64;

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_us: f64,
    pub(crate) peak_bytes: f64,
    pub(crate) foreign: f64,
}

const WARM_UP: Duration = Duration::from_secs(1);

/// What the threads are told by the one that measures.
const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const STOPPED: u8 = 2;

pub(crate) fn measure(running: &Running, case: Case, seconds: u32) -> Result<Sample, String> {
    let dealt = load::open(running.port, path::ECHO, SOCKETS, case.compressed())?;
    let phase = AtomicU8::new(WARMING);
    let (
        outcome,
        Shares {
            server, foreign, ..
        },
        seconds,
    ) = thread::scope(|scope| {
        let threads: Vec<_> = dealt
            .into_iter()
            .map(|sockets| {
                scope.spawn(|| Sender::of(Group::of(sockets)?, case.in_flight()).turn(&phase))
            })
            .collect();
        thread::sleep(WARM_UP);
        let before = Usage::now(running);
        let began = Instant::now();
        phase.store(COUNTING, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(u64::from(seconds)));
        phase.store(STOPPED, Ordering::Relaxed);
        let took = began.elapsed().as_secs_f64();
        let shares = before.until_now(running);
        let total = threads
            .into_iter()
            .try_fold(Counts::none(), |total, thread| {
                let counts = thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread of the client has panicked".to_owned()));
                Ok::<_, String>(total.and(&counts?))
            });
        (total, shares, took)
    });
    let counts = outcome?;
    if counts.messages == 0 {
        return Err("void: not one message came back".to_owned());
    }
    Ok(Sample {
        per_second: counts.messages as f64 / seconds,
        p50_ms: counts.percentile(0.50),
        p99_ms: counts.percentile(0.99),
        cpu_us: server.as_secs_f64() * 1e6 / counts.messages as f64,
        peak_bytes: running.tree.peak_memory() as f64,
        foreign,
    })
}

/// One thread of the client.
struct Sender {
    group: Group,
    /// For each socket when its messages on the way were sent, and how many at a time: echoes come in their order.
    sent: Vec<VecDeque<(Instant, usize)>>,
    /// As many frames as are on the way at most.
    frames: Vec<u8>,
    /// The length of one.
    one: usize,
    counts: Counts,
}

impl Sender {
    fn of(group: Group, in_flight: usize) -> Self {
        let frame = frames::masked(frames::TEXT, ECHOED.as_bytes());
        Self {
            sent: vec![VecDeque::new(); group.sockets().len()],
            group,
            one: frame.len(),
            frames: frame.repeat(in_flight),
            counts: Counts::none(),
        }
    }

    fn turn(mut self, phase: &AtomicU8) -> Result<Counts, String> {
        let in_flight = self.frames.len() / self.one;
        for (socket, sent) in self.group.sockets().iter().zip(&mut self.sent) {
            sent.push_back((Instant::now(), in_flight));
            socket.send(&self.frames)?;
        }
        let mut last = Instant::now();
        loop {
            let ready = self.group.wait()?;
            let now = phase.load(Ordering::Relaxed);
            if now == STOPPED {
                return Ok(self.counts);
            }
            if ready > 0 {
                last = Instant::now();
            } else if last.elapsed() > STUCK {
                return Err(format!("sent nothing for {} s", STUCK.as_secs()));
            }
            for number in 0..ready {
                self.socket(self.group.ready(number), now == COUNTING)?;
            }
        }
    }

    /// Takes the echoes that a socket has, and sends as many messages again.
    fn socket(&mut self, place: usize, counting: bool) -> Result<(), String> {
        let mut came = 0;
        let socket = self.group.receive(place, |frame| {
            came += 1;
            right(frame)
        })?;
        if came == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let sent = &mut self.sent[place];
        let mut left = came;
        while left > 0 {
            let (when, count) = sent
                .front_mut()
                .ok_or("sent more messages than it was sent")?;
            let taken = left.min(*count);
            left -= taken;
            *count -= taken;
            if counting {
                self.counts.add(now.duration_since(*when), taken);
            }
            if *count == 0 {
                sent.pop_front();
            }
        }
        sent.push_back((now, came));
        socket.send(&self.frames[..came * self.one])
    }
}

fn right(frame: Frame<'_>) -> Result<(), String> {
    if frame.opcode == frames::TEXT && !frame.compressed && frame.payload == ECHOED.as_bytes() {
        Ok(())
    } else {
        Err("sent back something else than it was sent".to_owned())
    }
}

/// How many messages took how long.
pub(crate) struct Counts {
    messages: u64,
    /// By microseconds; the last is for all that took longer.
    times: Vec<u32>,
}

const MOST_MICROS: usize = 200_000;

impl Counts {
    pub(crate) fn none() -> Self {
        Self {
            messages: 0,
            times: vec![0; MOST_MICROS + 1],
        }
    }

    pub(crate) fn add(&mut self, time: Duration, count: usize) {
        let micros = usize::try_from(time.as_micros()).unwrap_or(usize::MAX);
        self.times[micros.min(MOST_MICROS)] += count as u32;
        self.messages += count as u64;
    }

    fn and(mut self, other: &Self) -> Self {
        self.messages += other.messages;
        for (own, others) in self.times.iter_mut().zip(&other.times) {
            *own += others;
        }
        self
    }

    /// In milliseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.messages as f64 * share).ceil() as u64;
        let mut seen = 0;
        let micros = self.times.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        });
        micros.unwrap_or(MOST_MICROS) as f64 / 1000.0
    }
}
