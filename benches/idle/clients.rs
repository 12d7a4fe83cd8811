//! How does one process hold many connections and check every answer?
//!
//! The parent writes `open` or `ask` on a line; the child says how many answers came, and in how many
//! microseconds. It ends when its standard input does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::TARGET;
use crate::cases::SIMPLE_BODY;

/// Connections come from this many addresses, for each has no more than some 28,000 ports.
const ADDRESSES: usize = 4;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The parent's side.
pub(crate) struct Clients {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    count: u32,
}

impl Clients {
    pub(crate) fn start(port: u16, count: u32) -> Result<Clients, String> {
        let told = |error: io::Error| format!("the client does not start: {error}");
        let program = std::env::current_exe().map_err(told)?;
        let mut child = Command::new(program)
            .arg("--child=clients")
            .args([port.to_string(), count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = stdout.ok_or("the client has no output")?;
        Ok(Clients {
            child,
            stdin,
            answers: BufReader::new(stdout),
            count,
        })
    }

    /// Opens all connections, one after the other, with one answer on each.
    pub(crate) fn open(&mut self) -> Result<Duration, String> {
        self.command("open")
    }

    /// Asks on all connections at once; how long it took until the last answer was read.
    pub(crate) fn ask(&mut self) -> Result<Duration, String> {
        self.command("ask")
    }

    fn command(&mut self, command: &str) -> Result<Duration, String> {
        let told = |error: io::Error| format!("the client is gone: {error}");
        let stdin = self.stdin.as_mut().ok_or("the client is gone")?;
        writeln!(stdin, "{command}").map_err(told)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(told)?;
        let parsed = line.trim().split_once(' ');
        match parsed.map(|(count, micros)| (count.parse::<u32>(), micros.parse())) {
            Some((Ok(count), Ok(micros))) if self.count == count => {
                Ok(Duration::from_micros(micros))
            }
            _ => Err(format!("not all were answered: {}", line.trim())),
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// The child's side.
pub(crate) fn play(arguments: &[String]) -> Result<(), String> {
    play_over(arguments, Ok)
}

/// The child's side, with what is to be spoken over each connection.
pub(crate) fn play_over<S: Read + Write>(
    arguments: &[String],
    speak: impl Fn(TcpStream) -> io::Result<S>,
) -> Result<(), String> {
    let numbers = match arguments {
        [port, count] => port.parse().ok().zip(count.parse().ok()),
        _ => None,
    };
    let (port, count): (u16, usize) = numbers.ok_or("clients: a port and a count, please")?;
    let mut streams = Vec::with_capacity(count);
    for command in io::stdin().lock().lines().map_while(Result::ok) {
        let began = Instant::now();
        let outcome = match command.as_str() {
            "open" => open(&mut streams, port, count, &speak),
            _ => ask(&mut streams),
        };
        match outcome {
            Ok(answers) => println!("{answers} {}", began.elapsed().as_micros()),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}

fn open<S: Read + Write>(
    streams: &mut Vec<S>,
    port: u16,
    count: usize,
    speak: impl Fn(TcpStream) -> io::Result<S>,
) -> io::Result<usize> {
    for number in 0..count {
        let stream = connect_from(1 + (number % ADDRESSES) as u8, port)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut stream = speak(stream)?;
        request(&mut stream)?;
        answer(&mut stream)?;
        streams.push(stream);
    }
    Ok(streams.len())
}

fn ask(streams: &mut [impl Read + Write]) -> io::Result<usize> {
    for stream in &mut *streams {
        request(stream)?;
    }
    let mut answers = 0;
    for stream in streams {
        answer(stream)?;
        answers += 1;
    }
    Ok(answers)
}

/// A connection from 127.0.0.`last` to 127.0.0.1.
fn connect_from(last: u8, port: u16) -> io::Result<TcpStream> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let address =
        |last, port| SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), port));
    bind(&socket, &address(last, 0))?;
    connect(&socket, &address(1, port))?;
    Ok(TcpStream::from(socket))
}

fn request(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(format!("GET {TARGET} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

/// Reads one answer, which must be 200 with the body that everybody gets.
fn answer(stream: &mut impl Read) -> io::Result<()> {
    let (mut buffer, mut filled) = ([0; 1000], 0);
    loop {
        let count = stream.read(&mut buffer[filled..])?;
        filled += count;
        let text = &buffer[..filled];
        if text.ends_with(SIMPLE_BODY.as_bytes()) && text.starts_with(b"HTTP/1.1 200 ") {
            return Ok(());
        }
        if count == 0 {
            return Err(io::Error::other("a connection ended without its answer"));
        }
    }
}
