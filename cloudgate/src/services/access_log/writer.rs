//! How do lines reach their file without holding a request up?
//!
//! Who has a line puts it behind the others in memory and goes on. One thread takes what is there,
//! writes it at once, and looks again a moment later: a busy server pays neither a system call nor a
//! wake-up a line. There is a limit to how much waits; past it lines are dropped, and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::format::LogFormat;
use crate::net::home;

/// The most bytes of lines that wait, however few they are.
const MOST_BYTES: usize = 8 << 20;

/// How long the thread lets lines gather after it has written some.
const GATHER: Duration = Duration::from_millis(20);

/// How long the end of a log waits for its last lines.
const END_WAIT: Duration = Duration::from_secs(2);

/// How much memory for lines is kept from one time to the next, in bytes.
const KEPT: usize = 256 << 10;

/// Where lines go.
pub(super) enum Target {
    Stdout,
    File(File),
    Writer(Box<dyn Write + Send>),
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out: &mut dyn Write = match self {
            Target::Stdout => {
                // Locked for the whole batch, so that nobody's output stands inside of a line.
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                return out.flush();
            }
            Target::File(file) => file,
            Target::Writer(out) => out,
        };
        out.write_all(bytes)?;
        out.flush()
    }
}

/// The lines that wait, and the thread that writes them. The last owner ends it.
pub(super) struct Writer {
    queue: Arc<Queue>,
    path: Option<PathBuf>,
    /// Why the file could not be opened: said at start.
    problem: Option<io::Error>,
}

struct Queue {
    state: Mutex<State>,
    /// For the thread: there is something to do.
    work: Condvar,
    /// For who waits until lines are written.
    done: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    count: usize,
    /// Lines that were dropped and not spoken of yet.
    unsaid: u64,
    /// Lines that were dropped since the beginning.
    dropped: u64,
    /// How many lines came in, and how many are written or lost.
    queued: u64,
    settled: u64,
    /// Where lines go, until the thread has it.
    target: Option<Target>,
    /// The file that lines go to from now on.
    replacement: Option<File>,
    replacing: bool,
    running: bool,
    /// Whether the thread sleeps until it is woken.
    idle: bool,
    /// Whether somebody waits, or the queue gets full: no more gathering.
    urgent: bool,
    ended: bool,
}

/// What the thread does next.
struct Batch {
    lines: u64,
    unsaid: u64,
    replacement: Option<File>,
}

/// The logs of this process, for its end.
static LOGS: Mutex<Vec<Weak<Queue>>> = Mutex::new(Vec::new());

/// Waits until the lines of all access logs are written; for the end of a program.
pub(crate) fn flush_all() {
    let logs: Vec<_> = {
        let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().filter_map(Weak::upgrade).collect()
    };
    let deadline = Instant::now() + END_WAIT;
    for queue in logs {
        queue.wait_written(deadline);
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

impl Writer {
    pub(super) fn new(target: Target) -> Writer {
        Writer {
            queue: Arc::new(Queue {
                state: Mutex::new(State {
                    target: Some(target),
                    ..State::default()
                }),
                work: Condvar::new(),
                done: Condvar::new(),
            }),
            path: None,
            problem: None,
        }
    }

    /// Writes to the end of this file, which is made if need be.
    pub(super) fn to_file(path: &Path) -> Writer {
        let (target, problem) = match open(path) {
            Ok(file) => (Target::File(file), None),
            Err(error) => (Target::Writer(Box::new(io::sink())), Some(error)),
        };
        let mut writer = Writer::new(target);
        writer.path = Some(path.to_owned());
        writer.problem = problem;
        writer
    }

    /// The file that could not be opened, and why.
    pub(super) fn problem(&self) -> Option<(&Path, &io::Error)> {
        Some((self.path.as_deref()?, self.problem.as_ref()?))
    }

    /// Starts the thread, unless it runs.
    pub(super) fn start(&self, format: LogFormat) -> io::Result<()> {
        self.queue.start(&mut self.queue.lock(), format)
    }

    /// Puts a line, with its line break, behind the others; it is dropped where `most` wait already.
    pub(super) fn push(&self, line: &[u8], most: usize, format: LogFormat) {
        let mut state = self.queue.lock();
        if state.count >= most
            || state.lines.len() + line.len() > MOST_BYTES
            || self.queue.start(&mut state, format).is_err()
        {
            state.unsaid += 1;
            state.dropped += 1;
            return;
        }
        state.lines.extend_from_slice(line);
        state.count += 1;
        state.queued += 1;
        let gets_full = state.count >= most.div_ceil(2) && !state.urgent;
        state.urgent |= gets_full;
        if std::mem::take(&mut state.idle) || gets_full {
            drop(state);
            self.queue.work.notify_one();
        }
    }

    /// How many lines were dropped, or could not be written.
    pub(super) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }

    /// Waits until what was pushed is written, or too much time has passed; says whether it is.
    pub(super) fn flush(&self) -> bool {
        let queue = Arc::clone(&self.queue);
        home::blocking(move || queue.wait_written(Instant::now() + END_WAIT))
    }

    /// Opens the file of this path again, and writes to that.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let Some(path) = self.path.clone() else {
            return Ok(());
        };
        let file = home::blocking(move || open(&path))?;
        let mut state = self.queue.lock();
        if state.running {
            state.replacement = Some(file);
            state.replacing = true;
        } else {
            state.target = Some(Target::File(file));
        }
        drop(state);
        self.flush();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().ended = true;
        self.queue.work.notify_one();
        // A worker has others to serve; the thread writes what is left all the same.
        if home::current().is_none() {
            self.queue.wait_written(Instant::now() + END_WAIT);
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Queue>, state: &mut State, format: LogFormat) -> io::Result<()> {
        if state.running {
            return Ok(());
        }
        let queue = Arc::clone(self);
        std::thread::Builder::new()
            .name("access log".to_owned())
            .spawn(move || queue.run(format))?;
        state.running = true;
        let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|log| log.strong_count() > 0);
        logs.push(Arc::downgrade(self));
        Ok(())
    }

    fn wait_written(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        let goal = state.queued;
        state.urgent = true;
        state.idle = false;
        self.work.notify_one();
        while state.running && (state.settled < goal || state.replacing) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .done
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    /// The thread: writes until the log has ended.
    fn run(&self, format: LogFormat) {
        let Some(mut target) = self.lock().target.take() else {
            return;
        };
        let mut text = Vec::new();
        let mut failing = false;
        while let Some(batch) = self.take(&mut text) {
            if let Some(file) = batch.replacement {
                target = Target::File(file);
            }
            if batch.unsaid > 0 {
                format.note_dropped(&mut text, batch.unsaid);
            }
            let written = match target.write(&text) {
                _ if text.is_empty() => Ok(()),
                written => written,
            };
            text.clear();
            text.shrink_to(KEPT);
            match &written {
                Err(error) if !failing => log::error!(
                    "the access log cannot be written: {error}; its lines are lost until it can"
                ),
                Ok(()) if batch.unsaid > 0 => log::warn!(
                    "{} lines of the access log were dropped: it could not keep up, or not be written",
                    batch.unsaid
                ),
                _ => {}
            }
            failing = written.is_err();
            let mut state = self.lock();
            if failing {
                state.unsaid += batch.lines + batch.unsaid;
                state.dropped += batch.lines;
            }
            state.settled += batch.lines;
            state.replacing = state.replacement.is_some();
            self.done.notify_all();
        }
        self.lock().running = false;
        self.done.notify_all();
    }

    /// Waits for something to do, and takes it; `None` is the end.
    fn take(&self, text: &mut Vec<u8>) -> Option<Batch> {
        let mut state = self.lock();
        if state.settled > 0 {
            state = self
                .work
                .wait_timeout_while(state, GATHER, |state| !state.urgent && !state.ended)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        while state.lines.is_empty() && state.replacement.is_none() {
            if state.ended {
                return None;
            }
            state.idle = true;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        state.urgent = false;
        std::mem::swap(text, &mut state.lines);
        Some(Batch {
            lines: std::mem::take(&mut state.count) as u64,
            unsaid: std::mem::take(&mut state.unsaid),
            replacement: state.replacement.take(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const FORMAT: LogFormat = LogFormat::Pretty;

    /// Writes only as it is allowed to, and says when it is asked to.
    struct Gate {
        asked: Sender<()>,
        allowed: Receiver<io::Result<()>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // The test may have ended.
            let _ = self.asked.send(());
            self.allowed.recv().unwrap_or(Ok(()))?;
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A writer with a gate in front of what it writes to.
    struct Gated {
        writer: Writer,
        asks: Receiver<()>,
        allow: Sender<io::Result<()>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    fn gate() -> Gated {
        let (asked, asks) = channel();
        let (allow, allowed) = channel();
        let written = Arc::default();
        let gate = Gate {
            asked,
            allowed,
            written: Arc::clone(&written),
        };
        Gated {
            writer: Writer::new(Target::Writer(Box::new(gate))),
            asks,
            allow,
            written,
        }
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_full_queue_drops_lines_and_says_how_many() {
        let Gated {
            writer,
            asks,
            allow,
            written,
        } = gate();
        writer.push(b"first\n", 3, FORMAT);
        asks.recv().unwrap();
        // The thread is busy with the first one: three more fit, and no fourth.
        for line in ["a\n", "b\n", "c\n"] {
            writer.push(line.as_bytes(), 3, FORMAT);
        }
        assert_eq!(writer.dropped(), 0);
        writer.push(b"d\n", 3, FORMAT);
        writer.push(b"e\n", 3, FORMAT);
        assert_eq!(writer.dropped(), 2);
        drop(allow);
        assert!(writer.flush());
        assert_eq!(text(&written), "first\na\nb\nc\n-- 2 lines were dropped\n");
    }

    #[test]
    fn bytes_that_wait_have_a_limit_too() {
        let Gated {
            writer,
            asks,
            allow,
            ..
        } = gate();
        writer.push(b"first\n", usize::MAX, FORMAT);
        asks.recv().unwrap();
        writer.push(&vec![b'a'; MOST_BYTES - 1], usize::MAX, FORMAT);
        writer.push(b"\n", usize::MAX, FORMAT);
        assert_eq!(writer.dropped(), 0);
        writer.push(b"\n", usize::MAX, FORMAT);
        assert_eq!(writer.dropped(), 1);
        drop(allow);
        assert!(writer.flush());
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_the_next_ones_are_tried() {
        let Gated {
            writer,
            allow,
            written,
            ..
        } = gate();
        allow.send(Err(io::Error::other("disk full"))).unwrap();
        writer.push(b"a\n", 9, FORMAT);
        assert!(writer.flush());
        assert_eq!((writer.dropped(), &*text(&written)), (1, ""));
        drop(allow);
        writer.push(b"b\n", 9, FORMAT);
        assert!(writer.flush());
        assert_eq!(text(&written), "b\n-- 1 line was dropped\n");
    }

    #[test]
    fn the_last_owner_waits_for_the_last_line() {
        let Gated {
            writer,
            allow,
            written,
            ..
        } = gate();
        drop(allow);
        writer.push(b"a\n", 9, FORMAT);
        writer.push(b"b\n", 9, FORMAT);
        drop(writer);
        assert_eq!(text(&written), "a\nb\n");
    }

    #[test]
    fn a_file_is_appended_to_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "before\n").unwrap();
        let writer = Writer::to_file(&path);
        writer.push(b"a\n", 9, FORMAT);
        assert!(writer.flush());
        let moved = folder.path().join("access.log.1");
        std::fs::rename(&path, &moved).unwrap();
        writer.push(b"b\n", 9, FORMAT);
        assert!(writer.flush());
        writer.reopen().unwrap();
        writer.push(b"c\n", 9, FORMAT);
        drop(writer);
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "before\na\nb\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "c\n");
    }

    #[test]
    fn a_file_is_opened_again_also_before_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let writer = Writer::to_file(&path);
        std::fs::remove_file(&path).unwrap();
        writer.reopen().unwrap();
        writer.push(b"a\n", 9, FORMAT);
        flush_all();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_a_problem_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("access.log");
        let writer = Writer::to_file(&path);
        let (shown, error) = writer.problem().unwrap();
        assert_eq!((shown, error.kind()), (&*path, io::ErrorKind::NotFound));
        assert!(writer.reopen().is_err());
    }
}
