//! How does a test play the client of one connection, without threads and without waiting?
//!
//! The connection runs on the test's own thread. Whenever it waits, the client does the next step of
//! its script: sends, reads, ends, or moves the clocks. So nothing depends on who is faster.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::message::{Body, Deadline, Duplex, Request, Response, Service};
use crate::net::deadline::Clock;
use crate::proto::pipe::Pipe;
use crate::server::conn::{Close, Connection, Surroundings};
use crate::server::settings::{Rules, Settings};

/// What the client does when the server waits.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Advance(u64),
    /// Reads this many bytes although the client has stopped reading.
    Take(usize),
    StopReading,
    /// Ends the client's side and reads on.
    End,
    /// The server is told to stop.
    StopServer,
    /// Something happens that neither side does.
    Happen(Happening),
}

#[derive(Clone)]
struct Happening(Arc<dyn Fn()>);

impl std::fmt::Debug for Happening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Happening")
    }
}

/// A connection to be: its rules, what answers, and the client's script.
pub(super) struct Case {
    settings: Settings,
    service: Box<dyn Service>,
    steps: VecDeque<Step>,
    capacity: usize,
    active: usize,
    kept: usize,
    restless: Duration,
}

/// How the connection went.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Why it ended, as [`Close`] names it; `open` if it still waited at the end of the script.
    pub(super) end: String,
    pub(super) received: Vec<u8>,
    /// How often it let others have a turn.
    pub(super) turns: u32,
    /// Whether it ended its side and read on before it closed.
    pub(super) lingered: bool,
    /// How often it was parked: put aside as a value, without a coroutine.
    pub(super) parked: u32,
    /// Where the clock stood at the end.
    pub(super) ended_at: u64,
}

impl Case {
    /// A client that does nothing, of a server with the default settings.
    pub(super) fn new(service: impl Service) -> Case {
        Case {
            settings: Settings::default(),
            service: Box::new(service),
            steps: VecDeque::new(),
            capacity: 4 << 20,
            active: 1,
            kept: 0,
            // The files of tests are new, all of them.
            restless: Duration::ZERO,
        }
    }

    /// How long a file that has changed is sent with care.
    pub(super) fn restless(mut self, span: Duration) -> Case {
        self.restless = span;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Case {
        change(&mut self.settings);
        self
    }

    /// How many bytes the pipe holds in each direction.
    pub(super) fn capacity(mut self, bytes: usize) -> Case {
        self.capacity = bytes;
        self
    }

    /// How many connections of the server have a coroutine.
    pub(super) fn beside(mut self, active: usize) -> Case {
        self.active = active;
        self
    }

    /// How many connections keep their coroutine, of one that may.
    pub(super) fn kept(mut self, kept: usize) -> Case {
        self.kept = kept;
        self
    }

    pub(super) fn send(self, bytes: impl AsRef<[u8]>) -> Case {
        self.step(Step::Send(bytes.as_ref().to_vec()))
    }

    pub(super) fn send_each_byte(self, bytes: &[u8]) -> Case {
        bytes.iter().fold(self, |case, byte| case.send([*byte]))
    }

    pub(super) fn advance(self, milliseconds: u64) -> Case {
        self.step(Step::Advance(milliseconds))
    }

    pub(super) fn take(self, bytes: usize) -> Case {
        self.step(Step::Take(bytes))
    }

    pub(super) fn stop_reading(self) -> Case {
        self.step(Step::StopReading)
    }

    pub(super) fn end(self) -> Case {
        self.step(Step::End)
    }

    pub(super) fn stop_server(self) -> Case {
        self.step(Step::StopServer)
    }

    pub(super) fn happen(self, what: impl Fn() + 'static) -> Case {
        self.step(Step::Happen(Happening(Arc::new(what))))
    }

    fn step(mut self, step: Step) -> Case {
        self.steps.push_back(step);
        self
    }

    pub(super) fn run(self) -> Outcome {
        let around = Surroundings {
            service: self.service,
            rules: Rules {
                restless: self.restless,
                ..Rules::new(&self.settings)
            },
            clock: Arc::new(Clock::new()),
            stopping: AtomicBool::new(false),
            active: AtomicUsize::new(self.active),
            kept: AtomicUsize::new(self.kept),
            most_kept: 1,
        };
        let (server, client) = Pipe::pair(self.capacity);
        let script = RefCell::new(Script {
            server,
            client,
            around: &around,
            steps: self.steps,
            received: Vec::new(),
            reading: true,
            ran_out: false,
            turns: 0,
            lingered: false,
        });
        let peer = "192.0.2.7:4711".parse().unwrap();
        let (mut served, mut parked) = (0, 0);
        let close = loop {
            let mut connection = Connection::resume(Wire(&script), peer, None, 0, served);
            match connection.serve(&around) {
                Close::Quiet(until) => {
                    parked += 1;
                    served = connection.served();
                    if let Some(close) = script.borrow_mut().park(until) {
                        break close;
                    }
                }
                close => break close,
            }
        };
        let mut script = script.into_inner();
        // What comes once the script has run out is an answer to the failed wait.
        if !script.ran_out {
            script.read_all();
        }
        let end = match close {
            _ if script.ran_out => "open".to_owned(),
            Close::Failed(error) => format!("Failed({:?})", error.kind()),
            Close::BodyFailed(_) => "BodyFailed".to_owned(),
            other => format!("{other:?}"),
        };
        Outcome {
            end,
            received: script.received,
            turns: script.turns,
            lingered: script.lingered,
            parked,
            ended_at: around.clock.now(),
        }
    }
}

/// The server's end of the pipe, as its connection has it.
struct Wire<'s, 'a>(&'s RefCell<Script<'a>>);

struct Script<'a> {
    server: Pipe,
    client: Pipe,
    around: &'a Surroundings,
    steps: VecDeque<Step>,
    received: Vec<u8>,
    reading: bool,
    ran_out: bool,
    turns: u32,
    lingered: bool,
}

impl Script<'_> {
    /// Takes what the server has sent; says how much that was.
    fn read_all(&mut self) -> usize {
        self.read_up_to(usize::MAX)
    }

    fn read_up_to(&mut self, most: usize) -> usize {
        let before = self.received.len();
        let mut piece = vec![0; 64 << 10];
        while self.received.len() - before < most {
            let room = piece.len().min(most - (self.received.len() - before));
            match self.client.read(&mut piece[..room]) {
                Ok(0) | Err(_) => break,
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
            }
        }
        self.received.len() - before
    }

    /// What is done with a connection that is put aside: the script goes on until there is something
    /// to read. Says how the connection ended if it did.
    fn park(&mut self, until: Deadline) -> Option<Close> {
        loop {
            if until.has_passed(self.around.clock.now()) {
                return Some(Close::Idle);
            }
            let Some(step) = self.steps.pop_front() else {
                self.ran_out = true;
                return Some(Close::Idle);
            };
            let wakes = matches!(step, Step::Send(_) | Step::End);
            self.act(step);
            if self.around.stopping.load(Ordering::Relaxed) {
                return Some(Close::Stopping);
            }
            if wakes {
                return None;
            }
        }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Send(bytes) => {
                let sent = self.client.write(&bytes).unwrap_or(0);
                if sent < bytes.len() {
                    // There is no room now: the rest goes when the server has read.
                    self.steps.push_front(Step::Send(bytes[sent..].to_vec()));
                }
            }
            Step::Advance(milliseconds) => {
                self.client.advance(milliseconds);
                self.around.clock.set(self.client.now());
            }
            Step::Take(most) => {
                self.read_up_to(most);
            }
            Step::StopReading => self.reading = false,
            Step::End => self.client.close_write().unwrap(),
            Step::Happen(Happening(what)) => what(),
            Step::StopServer => self.around.stopping.store(true, Ordering::Relaxed),
        }
    }
}

impl Duplex for Wire<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().server.read(buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().server.write(bytes)
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        let mut script = self.0.borrow_mut();
        if until.has_passed(script.around.clock.now()) {
            return Err(ErrorKind::TimedOut.into());
        }
        if script.reading && !script.ran_out && script.read_all() > 0 {
            return Ok(());
        }
        let Some(step) = script.steps.pop_front() else {
            script.ran_out |= !script.lingered;
            return Err(ErrorKind::NotConnected.into());
        };
        script.act(step);
        if until.has_passed(script.around.clock.now()) {
            Err(ErrorKind::TimedOut.into())
        } else {
            Ok(())
        }
    }

    fn yield_turn(&mut self) {
        self.0.borrow_mut().turns += 1;
    }

    fn close_write(&mut self) -> io::Result<()> {
        let mut script = self.0.borrow_mut();
        script.lingered = true;
        script.server.close_write()
    }
}

impl Outcome {
    /// What was received, without the Date lines, each of which must be there.
    pub(super) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.received);
        let mut kept = String::new();
        for line in text.split_inclusive("\r\n") {
            let date = line.strip_prefix("Date: ").map(str::trim_end);
            match date {
                Some(date) => assert!(httpdate::parse_http_date(date).is_ok(), "{date}"),
                None => kept.push_str(line),
            }
        }
        kept
    }

    /// The answers and the end in one line: `200 hello, 404 close; Finished`. Bodies of errors are
    /// left out.
    pub(super) fn brief(&self) -> String {
        let mut rest = &self.received[..];
        let mut brief = String::new();
        while !rest.is_empty() {
            if !brief.is_empty() {
                brief.push_str(", ");
            }
            let answer = Answer::take(&mut rest);
            write!(brief, "{}", answer.status).unwrap();
            for connection in &answer.connection {
                write!(brief, " {connection}").unwrap();
            }
            let body = String::from_utf8_lossy(&answer.body);
            if answer.status < 400 && !body.is_empty() {
                write!(brief, " {body}").unwrap();
            }
            if !answer.whole {
                brief.push_str(" cut");
            }
        }
        format!("{brief}; {}", self.end)
    }
}

/// One answer as a client takes it apart; none of them may be to HEAD.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) connection: Vec<String>,
    pub(super) body: Vec<u8>,
    pub(super) whole: bool,
}

impl Answer {
    /// Takes the first answer off `input`.
    #[track_caller]
    pub(super) fn take(input: &mut &[u8]) -> Answer {
        let end = memchr::memmem::find(input, b"\r\n\r\n").expect("the end of a head") + 4;
        let head = std::str::from_utf8(&input[..end]).unwrap();
        let line = head.strip_prefix("HTTP/1.1 ").expect("a status line");
        let status = line[..3].parse().unwrap();
        let values = |wanted: &str| {
            head.lines()
                .filter_map(|line| line.split_once(": "))
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.to_owned())
                .collect::<Vec<_>>()
        };
        let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
        assert!(lengths.len() + codings.len() <= 1, "{head}");
        let mut answer = Answer {
            status,
            connection: values("connection"),
            body: Vec::new(),
            whole: true,
        };
        *input = &input[end..];
        if status < 200 || status == 204 || status == 304 {
            return answer;
        }
        if let Some(length) = lengths.first() {
            let length = length.parse::<usize>().unwrap();
            answer.whole = input.len() >= length;
            let taken;
            (taken, *input) = input.split_at(length.min(input.len()));
            answer.body = taken.to_vec();
        } else if codings.is_empty() {
            answer.body = std::mem::take(input).to_vec();
        } else {
            answer.take_chunks(input);
        }
        answer
    }

    fn take_chunks(&mut self, input: &mut &[u8]) {
        loop {
            let Some(end) = memchr::memmem::find(input, b"\r\n") else {
                self.whole = false;
                return;
            };
            let size = std::str::from_utf8(&input[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let data = &input[end + 2..];
            assert_eq!(&data[size..size + 2], b"\r\n", "the end of a chunk");
            self.body.extend_from_slice(&data[..size]);
            *input = &data[size + 2..];
            if size == 0 {
                return;
            }
        }
    }
}

/// What answers in most tests: `/echo` gives the body back, anything else its own path.
pub(super) fn echo(request: &mut Request<'_>) -> Response {
    if request.path() != "/echo" {
        return Response::text_plain(request.path().to_owned());
    }
    match request.body().read_all() {
        Ok(body) => Response::text_plain(Body::Bytes(body)),
        Err(error) => Response::error(error.status()),
    }
}

/// Runs `input` whole, byte by byte, and split in two at every place: the client must see `want`
/// each time, as [`Outcome::brief`] puts it.
#[track_caller]
pub(super) fn check(input: impl AsRef<[u8]>, want: &str) {
    check_with(|case| case, input.as_ref(), want);
}

/// As [`check`], with other settings.
#[track_caller]
pub(super) fn check_with(settings: impl Fn(Case) -> Case, input: &[u8], want: &str) {
    let case = || settings(Case::new(echo));
    let shown = input[..input.len().min(200)].escape_ascii();
    assert_eq!(case().send(input).run().brief(), want, "{shown}");
    let slow = case().send_each_byte(input).run().brief();
    assert_eq!(slow, want, "byte by byte: {shown}");
    for at in 1..input.len() {
        let split = case().send(&input[..at]).send(&input[at..]).run();
        assert_eq!(split.brief(), want, "split at {at}: {shown}");
    }
}
