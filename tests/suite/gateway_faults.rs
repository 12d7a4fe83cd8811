//! Which requests are lost when servers behind a gateway are killed, hang, reset and dawdle at random?
//!
//! Each request has a number, and the servers keep a ledger of what they did to it. One server is always well, so that
//! every request can be answered that may be made again; a loss that the ledger does not explain fails the test.
//! `TORTURE_SECONDS=30 cargo test --release --test suite gateway_faults -- --nocapture` does it for longer and prints
//! what it has counted; `TORTURE_SEED` has it draw other numbers.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cloudgate::{App, Gateway};
use cloudgate_suite::{LIMIT, Talk, Upstream, response, start, wait_for};

use crate::torture::random::Random;

/// How many servers there are; the first is always well.
const SERVERS: usize = 4;

/// How many clients ask at the same time.
const CLIENTS: u64 = 12;

/// How long the gateway waits for an answer: long, for a busy machine, and no longer than a test may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a server did to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Answered,
    /// Answered in pieces.
    Dawdled,
    /// The connection ended before a byte of an answer, by its end or by a reset.
    Cut,
    /// The same within the head of the answer.
    CutInHead,
    /// The same within its body.
    CutInBody,
    /// No answer for as long as the client stays.
    Hung,
}

/// What happened, by whom it is known.
#[derive(Default)]
struct Ledger {
    fates: Mutex<HashMap<u64, Vec<Fate>>>,
    /// Connections that a server ended without having read a request from them to its end: each can take one with it.
    blind_ends: AtomicUsize,
    /// From when until when servers were killed.
    kills: Mutex<Vec<(Instant, Instant)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    fn note(&self, number: u64, fate: Fate) {
        lock(&self.fates).entry(number).or_default().push(fate);
    }

    fn of(&self, number: u64) -> Vec<Fate> {
        lock(&self.fates).get(&number).cloned().unwrap_or_default()
    }

    fn killed_meanwhile(&self, asked: &Asked) -> bool {
        lock(&self.kills)
            .iter()
            .any(|(from, to)| *to >= asked.began && *from <= asked.ended)
    }
}

/// One server, with how many of a thousand requests it treats badly.
struct Sick {
    number: u64,
    per_mille: AtomicU64,
    seed: u64,
    ledger: Arc<Ledger>,
}

fn answer_of(number: u64) -> Vec<u8> {
    // Some of them do not fit into one buffer.
    let length = if number.is_multiple_of(16) {
        100_000
    } else {
        20
    };
    let mut body = format!("{number}:").into_bytes();
    body.resize(length, b'x');
    body
}

impl Sick {
    fn talk(&self, mut talk: Talk) {
        let mut random = Random::new(self.seed ^ (self.number << 32) ^ talk.number() as u64);
        let bad = |random: &mut Random| random.below(1000) < self.per_mille.load(Ordering::Relaxed);
        if bad(&mut random) && random.below(4) == 0 {
            self.ledger.blind_ends.fetch_add(1, Ordering::SeqCst);
            return if random.below(2) == 0 {
                talk.reset();
            } else {
                drop(talk);
            };
        }
        loop {
            let Some(asked) = talk.request() else {
                // The gateway went, or this server is being killed.
                return;
            };
            let number = asked.target()[1..].parse().expect("a number");
            let whole = response("200 OK", "", answer_of(number));
            let kind = if bad(&mut random) {
                random.below(60)
            } else {
                99
            };
            let (fate, sent) = match kind {
                0 => (Fate::Hung, 0),
                1..=20 => (Fate::Cut, 0),
                21..=27 => (Fate::CutInHead, 10),
                28..=35 => (Fate::CutInBody, whole.len() - 3),
                36..=47 => (Fate::Dawdled, whole.len()),
                _ => (Fate::Answered, whole.len()),
            };
            self.ledger.note(number, fate);
            match fate {
                Fate::Dawdled => {
                    for piece in whole.chunks(whole.len() / 3 + 1) {
                        thread::sleep(Duration::from_millis(2));
                        if !talk.send(piece) {
                            return;
                        }
                    }
                }
                Fate::Hung => {
                    talk.is_left();
                    return;
                }
                _ => {
                    if !talk.send(&whole[..sent]) {
                        return;
                    }
                }
            }
            if (48..60).contains(&kind) {
                // It goes without a word of it; not by a reset, which takes what is on its way of the answer.
                self.ledger.blind_ends.fetch_add(1, Ordering::SeqCst);
                return drop(talk);
            }
            if !matches!(fate, Fate::Answered | Fate::Dawdled) {
                return if random.below(2) == 0 {
                    talk.reset();
                } else {
                    drop(talk);
                };
            }
        }
    }

    fn run(self: &Arc<Self>, listener: TcpListener) -> Upstream {
        let sick = Arc::clone(self);
        Upstream::on(listener, move |talk| sick.talk(talk))
    }
}

/// What a client saw of one request.
#[derive(Debug)]
struct Asked {
    number: u64,
    post: bool,
    began: Instant,
    ended: Instant,
    /// `None` where the connection ended within the answer.
    status: Option<u16>,
}

/// A client's connection, as long as there is one.
struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    /// Asks, and checks that an answer of 200 is the one to this request.
    fn ask(&mut self, number: u64, post: bool, body: usize) -> Asked {
        let began = Instant::now();
        let status = self.exchange(number, post, body);
        if status.is_none() {
            self.stream = None;
        }
        Asked {
            number,
            post,
            began,
            ended: Instant::now(),
            status,
        }
    }

    fn exchange(&mut self, number: u64, post: bool, body: usize) -> Option<u16> {
        if self.stream.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, LIMIT).expect("a connection");
            stream.set_nodelay(true).expect("a connection");
            stream.set_read_timeout(Some(LIMIT)).expect("a connection");
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        let mut request = if post {
            format!("POST /{number} HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n")
        } else {
            format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n")
        }
        .into_bytes();
        if post {
            request.resize(request.len() + body, b'b');
        }
        // Where it breaks, an answer may be there all the same.
        let _ = stream.write_all(&request);
        let mut got = Vec::new();
        let mut piece = vec![0; 64 << 10];
        let (end, head) = loop {
            if let Some(at) = got.windows(4).position(|part| part == b"\r\n\r\n") {
                break (at + 4, String::from_utf8_lossy(&got[..at]).into_owned());
            }
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(count) => got.extend_from_slice(&piece[..count]),
            }
        };
        let field = |name: &str| {
            head.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_ascii_lowercase())
        };
        let length: usize = field("content-length")?.parse().expect("a length");
        while got.len() < end + length {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(count) => got.extend_from_slice(&piece[..count]),
            }
        }
        let status = head[9..12].parse().expect("a status");
        assert_eq!(got.len(), end + length, "more than one answer");
        if status == 200 {
            assert!(
                got[end..] == answer_of(number),
                "the answer to another request"
            );
        }
        if field("connection").as_deref() == Some("close") {
            self.stream = None;
        }
        Some(status)
    }
}

/// Why no correct gateway could save this request, if so. `None` means that one could.
fn excuse(ledger: &Ledger, asked: &Asked) -> Option<&'static str> {
    let fates = ledger.of(asked.number);
    let last = fates.last().copied();
    match (asked.status, last) {
        (Some(504), Some(Fate::Hung)) => Some("hung"),
        (Some(502), Some(Fate::CutInHead)) => Some("cut within the answer's head"),
        (None, Some(Fate::CutInBody)) => Some("cut within the answer's body"),
        // A reset can take what is on its way.
        (Some(502), Some(Fate::CutInBody)) if asked.post => Some("cut within the answer's body"),
        // What had begun when the server was killed.
        (_, Some(Fate::Answered | Fate::Dawdled)) if ledger.killed_meanwhile(asked) => {
            Some("killed while it answered")
        }
        (Some(502), Some(Fate::Cut)) if asked.post => Some("cut, and must not be made twice"),
        (Some(502), None | Some(Fate::Hung)) if asked.post && ledger.killed_meanwhile(asked) => {
            Some("killed while it had what must not be made twice")
        }
        // Counted against the connections that were ended so.
        (Some(502), None) if asked.post => Some("sent into a connection that was being ended"),
        _ => None,
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a long run is counted")]
fn only_what_nobody_could_save_is_lost_while_servers_fail() {
    let number_in = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds: u64 = number_in("TORTURE_SECONDS").unwrap_or(2);
    let seed: u64 = number_in("TORTURE_SEED").unwrap_or(7);
    let ledger = Arc::new(Ledger::default());
    let sick: Vec<Arc<Sick>> = (0..SERVERS as u64)
        .map(|number| {
            Arc::new(Sick {
                number,
                per_mille: AtomicU64::new(0),
                seed,
                ledger: Arc::clone(&ledger),
            })
        })
        .collect();
    let mut servers: Vec<Option<Upstream>> = sick
        .iter()
        .map(|sick| Some(sick.run(TcpListener::bind("127.0.0.1:0").expect("a free port"))))
        .collect();
    let addresses: Vec<SocketAddr> = servers.iter().flatten().map(Upstream::address).collect();
    let urls: Vec<String> = servers.iter().flatten().map(Upstream::url).collect();
    let gateway = Gateway::to(urls.iter().map(String::as_str))
        .expect("URLs")
        .timeout(PATIENCE)
        // Whatever may be tried again is, wherever that is possible at all.
        .retries(SERVERS, 1000)
        .leave_out(3, Duration::from_secs(1), Duration::from_millis(50));
    let gate = start(App::new().mount("/", gateway));
    let address = gate.addr();

    let stop = AtomicBool::new(false);
    let numbers = AtomicU64::new(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut kills = 0;
    let asked: Vec<Asked> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (stop, numbers) = (&stop, &numbers);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ (client << 48));
                    let mut client = Client {
                        address,
                        stream: None,
                    };
                    let mut asked = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let post = random.below(3) == 0;
                        let body = if random.below(20) == 0 { 100_000 } else { 20 };
                        let number = numbers.fetch_add(1, Ordering::Relaxed);
                        asked.push(client.ask(number, post, body));
                    }
                    asked
                })
            })
            .collect();
        let mut random = Random::new(seed);
        while Instant::now() < end {
            for sick in &sick[1..] {
                let per_mille = [0, 20, 100, 400, 1000][random.below(5) as usize];
                sick.per_mille.store(per_mille, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(20 + random.below(60)));
            let victim = 1 + random.below(SERVERS as u64 - 1) as usize;
            let from = Instant::now();
            // It counts from before it happens: whoever is asked meanwhile may look.
            let place = {
                let mut kills = lock(&ledger.kills);
                kills.push((from, from + LIMIT));
                kills.len() - 1
            };
            servers[victim] = None;
            // Sometimes nobody is at the door for a while.
            thread::sleep(Duration::from_millis(random.below(30)));
            let mut listener = None;
            wait_for("the port to be free", || {
                listener = TcpListener::bind(addresses[victim]).ok();
                listener.is_some()
            });
            servers[victim] = listener.map(|listener| sick[victim].run(listener));
            lock(&ledger.kills)[place].1 = Instant::now();
            kills += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let asked = clients.into_iter().map(|client| client.join());
        asked.flat_map(|asked| asked.expect("a client")).collect()
    });

    let mut excuses: HashMap<&str, usize> = HashMap::new();
    let mut lost = Vec::new();
    for asked in asked.iter().filter(|asked| asked.status != Some(200)) {
        match excuse(&ledger, asked) {
            Some(excuse) => *excuses.entry(excuse).or_default() += 1,
            None => lost.push((asked, ledger.of(asked.number))),
        }
    }
    let mut fates: HashMap<Fate, usize> = HashMap::new();
    for fate in lock(&ledger.fates).values().flatten() {
        *fates.entry(*fate).or_default() += 1;
    }
    let blind_ends = ledger.blind_ends.load(Ordering::SeqCst);
    println!(
        "{} requests, {kills} servers killed, {blind_ends} connections ended unread, what servers did: {fates:?}, lost: {excuses:?}",
        asked.len()
    );
    assert!(
        lost.is_empty(),
        "{} lost: {:?}",
        lost.len(),
        &lost[..lost.len().min(5)]
    );
    // What must not be made twice was not.
    let twice = asked
        .iter()
        .filter(|asked| asked.post && ledger.of(asked.number).len() > 1)
        .count();
    assert_eq!(twice, 0, "requests that must not be made twice were");
    let unseen = excuses
        .get("sent into a connection that was being ended")
        .copied()
        .unwrap_or_default();
    assert!(unseen <= blind_ends, "{unseen} of {blind_ends}");
    // There was something to save.
    for fate in [Fate::Answered, Fate::Cut, Fate::CutInBody, Fate::Dawdled] {
        assert!(fates.contains_key(&fate), "no server has {fate:?}");
    }
    assert!(kills > 0);
}
