//! How long do the frames, messages and handshakes of a WebSocket take, apart from any socket?

use std::hint::black_box;
use std::io::{self, Read, Write};

use cloudgate::__fuzz::ws::Role;
use cloudgate::__fuzz::ws::decode::{Decoder, Event, MessageLimits};
use cloudgate::__fuzz::ws::deflate::Coding;
use cloudgate::__fuzz::ws::encode::{Compressing, Encoder};
use cloudgate::__fuzz::ws::extension::Wanted;
use cloudgate::__fuzz::ws::frame;
use cloudgate::__fuzz::ws::handshake::{self, ClientHandshake, Origins};
use cloudgate::Request;
use criterion::{Criterion, Throughput};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

const LARGE: usize = 64 << 10;

/// All rows.
pub fn sockets(criterion: &mut Criterion) {
    frames(criterion);
    beside_tungstenite(criterion);
    compressed(criterion);
    opening(criterion);
}

fn from_client(write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Encoder::client(Box::new(|| KEY)), &mut out);
    out
}

/// Bytes of the message that lies in `input`, which is unmasked in place, so that a copy of it is made each time.
fn decode(decoder: &mut Decoder, wire: &[u8], input: &mut [u8]) -> usize {
    input.copy_from_slice(wire);
    match decoder.decode(input).expect("a message").event {
        Some(Event::Text(text)) => text.len(),
        Some(Event::Binary(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// A stream that gives the same frames again and again, and takes nothing.
struct Again {
    wire: Vec<u8>,
    at: usize,
}

impl Read for Again {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.wire.len() {
            self.at = 0;
        }
        let count = buffer.len().min(self.wire.len() - self.at);
        buffer[..count].copy_from_slice(&self.wire[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Again {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A hundred small messages, by our decoder and by tungstenite's: from a copy of the bytes to a text that is owned.
fn beside_tungstenite(criterion: &mut Criterion) {
    const COUNT: usize = 100;
    let text = "x".repeat(64);
    let wire = from_client(|encoder, out| (0..COUNT).for_each(|_| encoder.text(&text, out)));
    let mut group = criterion.benchmark_group("ws");
    group.throughput(Throughput::Elements(COUNT as u64));
    let mut decoder = Decoder::new(Role::Server, MessageLimits::default(), None);
    let mut input = wire.clone();
    group.bench_function("read 100 texts of 64 B", |bencher| {
        bencher.iter(|| {
            input.copy_from_slice(black_box(&wire));
            let (mut at, mut bytes) = (0, 0);
            while at < input.len() {
                let step = decoder.decode(&mut input[at..]).expect("messages");
                at += step.consumed;
                if let Some(Event::Text(text)) = step.event {
                    bytes += black_box(text.into_owned()).len();
                }
            }
            bytes
        });
    });
    let mut socket = tungstenite::WebSocket::from_raw_socket(
        Again { wire, at: 0 },
        tungstenite::protocol::Role::Server,
        None,
    );
    group.bench_function("read 100 texts of 64 B by tungstenite", |bencher| {
        bencher.iter(|| {
            (0..COUNT)
                .map(|_| black_box(socket.read().expect("messages")).len())
                .sum::<usize>()
        });
    });
    group.finish();
}

fn frames(criterion: &mut Criterion) {
    let text = "a message of sixty-four bytes, as a chat or a game may send it..";
    assert_eq!(text.len(), 64);
    let large = vec![0x5a; LARGE];
    let mut group = criterion.benchmark_group("ws");
    for (name, length, wire) in [
        (
            "decode a text of 64 B (with a copy of it)",
            64,
            from_client(|encoder, out| encoder.text(text, out)),
        ),
        (
            "decode 64 KiB (with a copy of it)",
            LARGE,
            from_client(|encoder, out| encoder.binary(&large, out)),
        ),
        (
            "decode a text of 64 KiB (with a copy of it)",
            LARGE,
            from_client(|encoder, out| encoder.text(&text.repeat(LARGE / 64), out)),
        ),
    ] {
        let mut decoder = Decoder::new(Role::Server, MessageLimits::default(), None);
        let mut input = wire.clone();
        assert_eq!(decode(&mut decoder, &wire, &mut input), length);
        group.throughput(Throughput::Bytes(length as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| decode(&mut decoder, black_box(&wire), &mut input));
        });
    }
    for (name, length) in [("unmask 64 B", 64), ("unmask 64 KiB", LARGE)] {
        let mut bytes = vec![0x5a; length];
        group.throughput(Throughput::Bytes(length as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| frame::mask(black_box(&mut bytes), black_box(KEY), 0));
        });
    }
    let (mut encoder, mut out) = (Encoder::server(), Vec::with_capacity(128));
    group.throughput(Throughput::Bytes(64));
    group.bench_function("encode a text of 64 B as a server", |bencher| {
        bencher.iter(|| {
            out.clear();
            encoder.text(black_box(text), &mut out);
            out.len()
        });
    });
    group.finish();
}

/// JSON of 1 KiB, as an application has it.
fn json() -> String {
    let items: Vec<_> = (0..12_u32)
        .map(|id| {
            serde_json::json!({
                "id": id * 7919,
                "name": format!("item number {id}"),
                "price": id * 31 % 17,
                "tags": ["new", "sale"],
            })
        })
        .collect();
    // Cut, or filled up, to the very length.
    format!("{:<1024.1024}", serde_json::Value::from(items).to_string())
}

fn compressed(criterion: &mut Criterion) {
    let text = json();
    let how = Compressing {
        level: 1,
        threshold: 0,
    };
    let mut group = criterion.benchmark_group("ws");
    group.throughput(Throughput::Bytes(text.len() as u64));
    for (name, takeover) in [
        ("deflate and inflate JSON of 1 KiB", false),
        ("deflate and inflate JSON of 1 KiB, with takeover", true),
    ] {
        let coding = Coding {
            takeover,
            window_bits: 15,
        };
        let mut encoder = Encoder::server().compress(coding, how);
        let mut decoder = Decoder::new(Role::Client, MessageLimits::default(), Some(coding));
        let mut wire = Vec::with_capacity(2048);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                wire.clear();
                encoder.text(black_box(&text), &mut wire);
                let step = decoder.decode(&mut wire).expect("a message");
                matches!(step.event, Some(Event::Text(back)) if back.len() == text.len())
            });
        });
    }
    group.finish();
}

fn opening(criterion: &mut Criterion) {
    let wanted = Wanted::default();
    let client = ClientHandshake::new([7; 16], &["chat"], Some(wanted));
    let mut request = Request::get("/socket")
        .with_header("Host", "www.example.org")
        .with_header("Origin", "https://www.example.org");
    for (name, value) in client.fields() {
        request = request.with_header(name, &value);
    }
    let origins = Origins::Same;
    handshake::check(&request, &origins, Some(&wanted)).expect("a handshake");
    let mut group = criterion.benchmark_group("ws");
    group.bench_function("check a handshake", |bencher| {
        bencher.iter(|| handshake::check(black_box(&request), &origins, Some(&wanted)));
    });
    group.finish();
}
