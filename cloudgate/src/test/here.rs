//! How is a service asked without a connection?

use std::any::Any;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use http::{Method, StatusCode};

use super::{Answer, Collected, Question, Then};
use crate::message::{Body, BodySink, BodyWriter, Request, Response, Service};
use crate::net::home;

/// How much of a file or reader is taken at once, in bytes.
const PIECE: usize = 16 << 10;

/// Fields that are the connection's and not the handler's, as the server has it.
const OF_THE_CONNECTION: [&str; 5] = [
    "Connection",
    "Content-Length",
    "Date",
    "Keep-Alive",
    "Transfer-Encoding",
];

/// Calls the service, and makes of its response what a client would get.
///
/// # Errors
/// When the body fails on its way.
pub(super) fn exchange(
    service: &dyn Service,
    question: &Question,
    mut collected: Collected,
) -> Result<Answer, String> {
    let target = &question.target.path_and_query;
    let mut request =
        Request::new(question.method.clone(), target).with_body(question.body.clone());
    *request.headers_mut() = question.headers.clone();
    let (mut response, note) = match home::catch_panic(|| service.call(&mut request)) {
        Ok(response) => (response, None),
        Err(payload) => (
            Response::error(StatusCode::INTERNAL_SERVER_ERROR),
            Some(format!("the handler panicked: {}", text_of(&*payload))),
        ),
    };
    let upgrades = matches!(response.body(), Body::Upgrade(_))
        && response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if response.status().is_informational() && !upgrades {
        response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let status = response.status();
    let mut headers = response.headers().clone();
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
    let body = response.take_body();
    let bodiless = matches!(status.as_u16(), 101 | 204 | 304);
    if let Some(length) = body.length().filter(|_| !bodiless) {
        headers
            .append("Content-Length", length.to_string())
            .map_err(|error| error.to_string())?;
    }
    if !bodiless && question.method != Method::HEAD {
        collect(body, &mut collected)?;
    }
    Ok(Answer {
        status,
        headers,
        body: collected.bytes,
        note,
    })
}

fn collect(body: Body, into: &mut Collected) -> Result<(), String> {
    match body {
        Body::Empty | Body::Upgrade(_) => Ok(()),
        Body::Bytes(bytes) => into.push(&bytes).map(drop),
        Body::File(range) => {
            let read = |buffer: &mut [u8], at| range.file.read_at(buffer, range.offset + at);
            read_all(read, Some(range.length), into)
        }
        Body::Reader { mut reader, length } => {
            read_all(|buffer, _| reader.read(buffer), length, into)
        }
        body @ (Body::Writer(_) | Body::Relay(_)) => {
            let write = match body {
                Body::Writer(write) => write,
                Body::Relay(relay) => relay.into_write(),
                _ => return Ok(()),
            };
            let mut sink = Sink {
                into,
                left: false,
                failed: None,
            };
            let outcome = home::catch_panic(|| write(&mut BodyWriter::new(&mut sink)));
            match (outcome, sink) {
                (_, Sink { left: true, .. }) => Ok(()),
                (
                    _,
                    Sink {
                        failed: Some(reason),
                        ..
                    },
                ) => Err(reason),
                (Ok(Ok(())), _) => Ok(()),
                (Ok(Err(error)), _) => Err(format!("the body failed: {error}")),
                (Err(payload), _) => Err(format!(
                    "the closure that writes the body panicked: {}",
                    text_of(&*payload)
                )),
            }
        }
    }
}

/// Takes what `read` gives at each position, `length` bytes if that is known.
fn read_all(
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    length: Option<u64>,
    into: &mut Collected,
) -> Result<(), String> {
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    loop {
        let left = length.map_or(PIECE as u64, |length| length - at);
        let most = left.min(PIECE as u64) as usize;
        if most == 0 {
            return Ok(());
        }
        match read(&mut buffer[..most], at) {
            Ok(0) if length.is_some() => {
                return Err(format!(
                    "the body ended after {at} bytes, before its length"
                ));
            }
            Ok(0) => return Ok(()),
            Ok(count) => {
                at += count as u64;
                if into.push(&buffer[..count])? == Then::Leave {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("the body failed: {error}")),
        }
    }
}

/// What a closure writes to.
struct Sink<'a> {
    into: &'a mut Collected,
    /// Whether the client has what it wanted, and is gone.
    left: bool,
    failed: Option<String>,
}

impl BodySink for Sink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.left || self.failed.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.into.push(bytes) {
            Ok(Then::GoOn) => Ok(()),
            Ok(Then::Leave) => {
                self.left = true;
                Ok(())
            }
            Err(reason) => {
                self.failed = Some(reason);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.left {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}
