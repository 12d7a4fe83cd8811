//! How often does a request allocate, once its connection is warm?
//!
//! ```text
//! cargo bench --bench allocations
//! ```
//!
//! Server and client share this process and its counting allocator; the client itself allocates
//! nothing while it counts. Allocations of all threads are counted.

#![allow(clippy::print_stdout)] // The table is the output.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;

use cloudgate::{App, Request, Response, Server};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WARM_UP: u32 = 2_000;

const REQUESTS: u32 = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = App::new()
        .get("/simple", || Response::html("Hello World!"))
        .get("/items/{id}", |request: &mut Request<'_>| {
            request.parameter("id").map_or(0, str::len).to_string()
        })
        .get("/made", || Response::html("x".repeat(200)))
        .post("/echo", |request: &mut Request<'_>| {
            request.body().read_all().map_or_else(
                |error| Response::error(error.status()),
                |body| Response::of_type("text/plain", body),
            )
        });
    let server = Server::bind("127.0.0.1:0")?.serve(app)?;
    let mut stream = TcpStream::connect(server.addr())?;
    stream.set_nodelay(true)?;
    println!("| request | allocations | bytes allocated |\n|---|---|---|");
    for (name, request) in [
        ("simple", "GET /simple HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            "simple, with a browser's fields",
            "GET /simple HTTP/1.1\r\nHost: h\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html\r\n\
             Accept-Language: en\r\nAccept-Encoding: gzip, br\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n",
        ),
        (
            "one path parameter",
            "GET /items/1234 HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (
            "a body made by the handler",
            "GET /made HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (
            "a body there and back",
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        ),
        ("no route", "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"),
    ] {
        let length = answer_length(&mut stream, request)?;
        ask(&mut stream, request, length, WARM_UP)?;
        let region = Region::new(ALLOCATOR);
        ask(&mut stream, request, length, REQUESTS)?;
        let change = region.change();
        let each = |count: usize| count as f64 / f64::from(REQUESTS);
        println!(
            "| {name} | {:.3} | {:.0} |",
            each(change.allocations + change.reallocations),
            each(change.bytes_allocated)
        );
    }
    Ok(())
}

/// How many bytes the answer to `request` has: they come in one write.
fn answer_length(stream: &mut TcpStream, request: &str) -> std::io::Result<usize> {
    stream.write_all(request.as_bytes())?;
    stream.read(&mut [0; 1000])
}

fn ask(stream: &mut TcpStream, request: &str, length: usize, count: u32) -> std::io::Result<()> {
    let mut buffer = [0; 1000];
    for _ in 0..count {
        stream.write_all(request.as_bytes())?;
        stream.read_exact(&mut buffer[..length])?;
    }
    Ok(())
}
