//! How long after it is published has the last of many sockets a message?

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::{Case, PUBLISHED, path};
use crate::frames::{self, Frame};
use crate::harness::child::Running;
use crate::harness::table::median;
use crate::load::{self, Group, STUCK};
use crate::rounds::{Shares, Usage};
use crate::socket::Socket;

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Of the publishes: the median, the shortest and the longest.
    pub(crate) median_ms: f64,
    pub(crate) least_ms: f64,
    pub(crate) most_ms: f64,
    /// The server's and the client's processor time for each receiver of a message.
    pub(crate) cpu_us: f64,
    pub(crate) client_us: f64,
    /// The length of a frame as it came.
    pub(crate) wire_bytes: f64,
    pub(crate) peak_bytes: f64,
    pub(crate) foreign: f64,
}

pub(crate) struct Plan {
    pub(crate) subscribers: usize,
    pub(crate) publishes: u32,
    /// How long all rest between one publish and the next.
    pub(crate) pause: Duration,
}

/// Publishes that are not counted.
const WARM_UP: u32 = 3;

pub(crate) fn measure(running: &Running, case: Case, plan: &Plan) -> Result<Sample, String> {
    let dealt = load::open(
        running.port,
        path::ROOM,
        plan.subscribers,
        case.compressed(),
    )?;
    let publisher = Socket::open(running.port, path::PUBLISH, case.compressed())?;
    let published = AtomicU32::new(0);
    let done = AtomicBool::new(false);
    let (report, reports) = mpsc::channel();
    let threads = dealt.len();
    thread::scope(|scope| {
        for sockets in dealt {
            let (report, published, done) = (report.clone(), &published, &done);
            scope.spawn(move || {
                let outcome = Group::of(sockets)
                    .and_then(|group| Subscribers::of(group, case).turn(published, done, &report));
                if let Err(reason) = outcome {
                    // The other end is gone only where the measuring is over.
                    let _ = report.send(Err(reason));
                }
            });
        }
        let outcome = publish_all(running, plan, &publisher, &published, &reports, threads);
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// What a thread says when all its sockets have a message: when that was, and the length of the frame.
type Report = Result<(Instant, usize), String>;

fn publish_all(
    running: &Running,
    plan: &Plan,
    publisher: &Socket,
    published: &AtomicU32,
    reports: &Receiver<Report>,
    threads: usize,
) -> Result<Sample, String> {
    let frame = frames::masked(frames::TEXT, PUBLISHED.as_bytes());
    let mut wire_bytes = 0;
    let mut publish = || -> Result<f64, String> {
        thread::sleep(plan.pause);
        published.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        publisher
            .stream()
            .write_all(&frame)
            .map_err(|error| format!("does not take a message: {error}"))?;
        let mut last = began;
        for _ in 0..threads {
            let (when, bytes) = reports
                .recv_timeout(STUCK)
                .map_err(|_| format!("not all had the message after {} s", STUCK.as_secs()))??;
            last = last.max(when);
            wire_bytes = bytes;
        }
        Ok((last - began).as_secs_f64() * 1000.0)
    };
    for _ in 0..WARM_UP {
        publish()?;
    }
    let before = Usage::now(running);
    let times = (0..plan.publishes)
        .map(|_| publish())
        .collect::<Result<Vec<f64>, String>>()?;
    let Shares {
        server,
        client,
        foreign,
    } = before.until_now(running);
    let received = f64::from(plan.publishes) * plan.subscribers as f64;
    Ok(Sample {
        least_ms: times.iter().copied().fold(f64::INFINITY, f64::min),
        most_ms: times.iter().copied().fold(0.0, f64::max),
        median_ms: median(times).unwrap_or(f64::NAN),
        cpu_us: server.as_secs_f64() * 1e6 / received,
        client_us: client.as_secs_f64() * 1e6 / received,
        wire_bytes: wire_bytes as f64,
        peak_bytes: running.tree.peak_memory() as f64,
        foreign,
    })
}

/// One thread of the client.
struct Subscribers {
    group: Group,
    case: Case,
    /// How many messages each socket has had.
    had: Vec<u32>,
}

impl Subscribers {
    fn of(group: Group, case: Case) -> Self {
        Self {
            had: vec![0; group.sockets().len()],
            group,
            case,
        }
    }

    fn turn(
        mut self,
        published: &AtomicU32,
        done: &AtomicBool,
        report: &Sender<Report>,
    ) -> Result<(), String> {
        let (mut all, mut reported) = (0, 0);
        let mut wire_bytes = 0;
        while !done.load(Ordering::Relaxed) {
            for number in 0..self.group.wait()? {
                let place = self.group.ready(number);
                let had = &mut self.had[place];
                let case = self.case;
                self.group.receive(place, |frame| {
                    wire_bytes = right(frame, case)?;
                    *had += 1;
                    all += 1;
                    if *had > published.load(Ordering::SeqCst) {
                        return Err("sent a message twice".to_owned());
                    }
                    Ok(())
                })?;
            }
            // No socket has more than were published, so with this sum each has every one.
            let due = u64::from(published.load(Ordering::SeqCst)) * self.had.len() as u64;
            if all == due && reported < all {
                reported = all;
                let _ = report.send(Ok((Instant::now(), wire_bytes)));
            }
        }
        Ok(())
    }
}

/// Checks as much as can be seen without inflating, and gives back the length of the frame.
fn right(frame: Frame<'_>, case: Case) -> Result<usize, String> {
    let right = frame.opcode == frames::TEXT
        && if case.compressed() {
            frame.compressed
        } else {
            !frame.compressed && frame.payload == PUBLISHED.as_bytes()
        };
    if right {
        Ok(frames::head(frame.opcode, frame.payload.len(), 0).len() + frame.payload.len())
    } else {
        Err("sent something else than was published".to_owned())
    }
}
