//! Is what all requests share exact over a real port, whatever worker or thread serves them?

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use cloudgate::{App, RateLimit, Request, Response, ResponseCache, SharedMemory, blocking};
use cloudgate_suite::{Answer, Wire, start};

const CONNECTIONS: usize = 8;

/// Lets each of eight clients send these requests one by one; gives all answers.
fn from_all(address: SocketAddr, targets: &[&str]) -> Vec<Answer> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut wire = Wire::open(address);
                    let ask = |target| wire.send_get(target).answer();
                    targets.iter().copied().map(ask).collect::<Vec<_>>()
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("answers"))
            .collect()
    })
}

#[test]
fn shared_memory_counts_exactly_from_workers_and_blocking_threads() {
    let memory = SharedMemory::new();
    let count = |memory: &SharedMemory| {
        let count = memory.integers("visits").increment("all", 1);
        count.expect("room for one integer").to_string()
    };
    let (here, there) = (memory.clone(), memory.clone());
    let app = App::new()
        .get("/here", move || count(&here))
        .get("/there", move || {
            let there = there.clone();
            blocking(move || count(&there))
        });
    let server = start(app);
    let answers = from_all(server.addr(), &["/here", "/there"].repeat(50));
    let mut counts: Vec<usize> = answers
        .iter()
        .map(|answer| answer.text().parse().unwrap())
        .collect();
    counts.sort_unstable();
    assert!(counts.into_iter().eq(1..=CONNECTIONS * 100));
    assert_eq!(memory.integers("visits").get("all"), Some(800));
}

#[test]
fn a_rate_limit_counts_a_client_over_all_its_connections() {
    let limit = RateLimit::per(20, Duration::from_secs(100_000));
    let server = start(App::new().get("/", || "in").wrap(limit));
    let answers = from_all(server.addr(), &["/"].repeat(10));
    let (passed, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((passed.len(), refused.len()), (20, 60));
    for answer in &passed {
        assert_eq!(
            answer.header("RateLimit-Policy"),
            Some("\"default\";q=20;w=100000")
        );
        assert!(answer.header("RateLimit").is_some());
    }
    for answer in &refused {
        assert_eq!(answer.status, 429);
        let seconds: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
        assert!((1..=5000).contains(&seconds), "{seconds}");
    }
}

#[test]
fn many_connections_at_once_get_one_answer_that_was_made_once() {
    let cache = ResponseCache::for_seconds(1000).wait_at_most(Duration::from_secs(1000));
    let (asked, made) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&made);
    let server = start(move |request: &mut Request<'_>| {
        asked.fetch_add(1, Ordering::SeqCst);
        cache.answer(request, |_| {
            // The others come meanwhile, on this worker too, and wait.
            while asked.load(Ordering::SeqCst) < CONNECTIONS {
                cloudgate::sleep(Duration::from_millis(1));
            }
            let number = made.fetch_add(1, Ordering::SeqCst) + 1;
            Response::text_plain(format!("made {number}")).header("ETag", "\"1\"")
        })
    });
    let address = server.addr();
    for answer in from_all(address, &["/", "/"]) {
        assert_eq!((answer.status, answer.text()), (200, "made 1".to_owned()));
    }
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    let mut wire = Wire::open(address);
    wire.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = wire.answer_to_head();
    assert_eq!(
        (head.status, head.header("Content-Length")),
        (200, Some("6"))
    );
    wire.send("GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"1\"\r\n\r\n");
    assert_eq!(wire.answer().status, 304);
    assert!(wire.send_get("/").answer().header("Age").is_some());
    // Another host is another page.
    wire.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
    assert_eq!(wire.answer().text(), "made 2");
}
