//! Does a gateway pass on what it should, and answer by itself what it must?

use std::time::Duration;

use cloudgate::{App, Cors, Gateway, Running};
use cloudgate_suite::{Asked, Upstream, Wire, ask, get, response, start, wait_for};

/// A gateway to one server, at the root.
pub(crate) fn to(upstream: &Upstream) -> Gateway {
    Gateway::to([&*upstream.url()]).expect("a URL")
}

pub(crate) fn serve(gateway: Gateway) -> Running {
    start(App::new().mount("/", gateway))
}

fn echo(asked: &Asked) -> Vec<u8> {
    response("200 OK", "", &asked.body)
}

#[test]
fn a_request_and_its_answer_pass_through() {
    let upstream = Upstream::answering(|_| {
        response(
            "418 I'm a teapot",
            "X-A: 1\r\nX-A: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
            "hello",
        )
    });
    let server = serve(to(&upstream));
    let answer = ask(
        server.addr(),
        "PATCH /a%2Fb?c=%41&d HTTP/1.1\r\nHost: shop.test\r\nX-B: 1\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nhi",
    );
    assert_eq!((answer.status, answer.text().as_str()), (418, "hello"));
    for line in ["X-A: 1\r\nX-A: 2", "Set-Cookie: a=1\r\nSet-Cookie: b=2"] {
        assert!(answer.head.contains(line), "{}", answer.head);
    }
    // The time of the answer is the one of who has made it.
    assert_eq!(answer.header("date"), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
    let asked = &upstream.asked()[0];
    assert_eq!(
        (asked.method(), asked.target()),
        ("PATCH", "/a%2Fb?c=%41&d")
    );
    assert_eq!(asked.fields("x-b"), ["1", "2"]);
    assert_eq!(asked.body, b"hi");
    assert_eq!(asked.field("host"), Some(&*upstream.address().to_string()));
    assert_eq!(asked.field("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(asked.field("x-forwarded-host"), Some("shop.test"));
    assert_eq!(asked.field("via"), Some("1.1 cloudgate"));
    assert_eq!(asked.field("x-request-id").map(str::len), Some(32));
}

#[test]
fn a_prefix_is_cut_and_comes_back_in_what_the_server_names() {
    let upstream = Upstream::answering(|asked| {
        let fields = "Location: /login?next=1\r\nSet-Cookie: s=1; Path=/\r\n";
        response("302 Found", fields, asked.target())
    });
    let gateway = to(&upstream).strip_path(true);
    let server = start(
        App::new()
            .get("/orders-new", || "mine")
            .mount("/orders", gateway),
    );
    let answer = get(server.addr(), "/orders/7?a=b");
    // It is passed on and not followed.
    assert_eq!((answer.status, &*answer.text()), (302, "/7?a=b"));
    assert_eq!(answer.header("location"), Some("/orders/login?next=1"));
    assert_eq!(answer.header("set-cookie"), Some("s=1; Path=/orders"));
    let asked = &upstream.asked()[0];
    assert_eq!(asked.field("x-forwarded-prefix"), Some("/orders"));
    // A prefix ends where a segment does.
    assert_eq!(get(server.addr(), "/orders-new").text(), "mine");
    assert_eq!(get(server.addr(), "/ordersX").status, 404);
}

#[test]
fn connections_to_the_server_are_used_again() {
    let upstream = Upstream::answering(echo);
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    for _ in 0..20 {
        assert_eq!(wire.send_get("/").answer().status, 200);
    }
    assert!(upstream.connections() <= 2, "{}", upstream.connections());
}

#[test]
fn an_idle_connection_that_the_server_has_closed_is_no_failure() {
    // It closes each connection behind an answer, without a word of that.
    let upstream = Upstream::start(|talk| {
        if talk.request().is_some() {
            talk.ok("hello");
        }
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    for round in 0..30 {
        let answer = wire.send_get("/").answer();
        assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{round}");
    }
}

#[test]
fn a_request_that_must_not_be_made_twice_is_made_once() {
    let upstream = Upstream::start(|talk| {
        // It reads and goes.
        talk.request();
    });
    let server = serve(to(&upstream));
    let post = "POST /pay HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(ask(server.addr(), post).status, 502);
    assert_eq!(upstream.asked().len(), 1);
}

#[test]
fn what_cannot_be_answered_tells_the_client_nothing_of_what_lies_behind() {
    let upstream = Upstream::answering(|_| b"\0\x01 no answer\r\n\r\n".to_vec());
    let server = serve(to(&upstream));
    let answer = get(server.addr(), "/");
    assert_eq!(answer.status, 502);
    let id = answer.header("x-request-id").unwrap().to_owned();
    assert_eq!(answer.text(), format!("502 Bad Gateway: request {id}\n"));
    assert_eq!(upstream.asked()[0].field("x-request-id"), Some(&*id));

    let nobody = Gateway::to(["http://127.0.0.1:1"]).unwrap();
    let answer = get(serve(nobody).addr(), "/");
    assert_eq!(answer.status, 502);
    assert!(!answer.head.contains("127.0.0.1") && !answer.text().contains("127.0.0.1"));
    // A name that cannot be found keeps nothing from starting.
    let nowhere = Gateway::to(["http://no-such-host.invalid"]).unwrap();
    let answer = get(serve(nowhere).addr(), "/");
    assert_eq!(answer.status, 502);
    assert!(!answer.text().contains("invalid"));
}

#[test]
fn a_server_that_takes_too_long_is_a_504() {
    let upstream = Upstream::start(|talk| {
        talk.request();
        talk.is_left();
    });
    let total = serve(to(&upstream).timeout(Duration::from_millis(200)));
    assert_eq!(get(total.addr(), "/").status, 504);
    let first = serve(to(&upstream).first_byte_timeout(Duration::from_millis(200)));
    assert_eq!(get(first.addr(), "/").status, 504);
    // Not asked again, for it may be at it still.
    assert_eq!(upstream.asked().len(), 2);
}

#[test]
fn a_client_that_leaves_ends_the_work_behind_the_gateway() {
    let (left, heard) = std::sync::mpsc::channel();
    let left = std::sync::Mutex::new(left);
    let upstream = Upstream::start(move |talk| {
        talk.request();
        let gone = talk.is_left();
        left.lock().unwrap().send(gone).unwrap();
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send_get("/slow");
    wait_for("the request", || upstream.asked().len() == 1);
    drop(wire);
    assert!(heard.recv_timeout(Duration::from_secs(20)).unwrap());
}

#[test]
fn steps_up_traces_and_max_forwards_end_here() {
    let upstream = Upstream::answering(echo);
    let server = start(App::new().mount("/public", to(&upstream).strip_path(true)));
    for target in [
        "/public/../admin",
        "/public/%2e%2e/admin",
        "/public/..%2fadmin",
        "/public/..;/admin",
    ] {
        assert_eq!(get(server.addr(), target).status, 400, "{target}");
    }
    let answer = ask(
        server.addr(),
        "TRACE /public HTTP/1.1\r\nHost: h\r\nCookie: secret\r\n\r\n",
    );
    assert_eq!(answer.status, 405);
    assert!(!answer.text().contains("secret"));
    let answer = ask(
        server.addr(),
        "OPTIONS /public HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n",
    );
    assert_eq!(answer.status, 204);
    assert!(upstream.asked().is_empty());
    ask(
        server.addr(),
        "OPTIONS /public HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n",
    );
    assert_eq!(upstream.asked()[0].field("max-forwards"), Some("2"));
}

#[test]
fn traces_go_on_unless_they_are_broken() {
    let upstream = Upstream::answering(echo);
    let server = serve(to(&upstream));
    let trace = "00-12345678901234567890123456789012-1234567890123456-01";
    for (sent, want) in [(trace, Some(trace)), ("00-0-0-01", None)] {
        ask(
            server.addr(),
            format!("GET / HTTP/1.1\r\nHost: h\r\ntraceparent: {sent}\r\ntracestate: a=b\r\n\r\n"),
        );
        let asked = upstream.asked().pop().unwrap();
        assert_eq!(asked.field("traceparent"), want);
        assert_eq!(asked.field("tracestate"), want.map(|_| "a=b"));
    }
}

#[test]
fn handlers_files_and_middlewares_stand_beside_a_gateway() {
    let upstream = Upstream::answering(echo);
    let app = App::new()
        .wrap(Cors::new().origin("https://app.test"))
        .get("/here", || "here")
        .mount("/there", to(&upstream));
    let server = start(app);
    assert_eq!(get(server.addr(), "/here").text(), "here");
    let answer = ask(
        server.addr(),
        "GET /there HTTP/1.1\r\nHost: h\r\nOrigin: https://app.test\r\n\r\n",
    );
    assert_eq!(answer.status, 200);
    let allowed = answer.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://app.test"));
}

#[test]
fn a_gateway_that_cannot_work_says_so_before_a_port_is_taken() {
    let start = |gateway: Gateway| {
        App::new()
            .mount("/", gateway)
            .run(cloudgate::Config::from_env().unwrap())
    };
    let nobody = start(Gateway::to([]).unwrap()).unwrap_err().to_string();
    assert!(nobody.contains("without a server"), "{nobody}");
    let edit = Gateway::to(["http://127.0.0.1:1"])
        .unwrap()
        .set_request_header("Host", "x");
    let error = start(edit).unwrap_err().to_string();
    assert!(
        error.contains("the field Host is written by the gateway itself"),
        "{error}"
    );
    let error = Gateway::to(["localhost"]).unwrap_err().to_string();
    assert!(
        error.contains("\"localhost\" is no server: without http:// in front it needs a port"),
        "{error}"
    );
}

#[test]
fn the_numbers_of_a_gateway_are_in_the_metrics() {
    let upstream = Upstream::answering(echo);
    let server = serve(to(&upstream).named("counted"));
    ask(
        server.addr(),
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    );
    let text = cloudgate::metrics();
    for line in [
        "cloudgate_gateway_requests_total{service=\"counted\",code=\"2xx\"} 1".to_owned(),
        "cloudgate_gateway_request_bytes_total{service=\"counted\"} 5".to_owned(),
        "cloudgate_gateway_response_bytes_total{service=\"counted\"} 5".to_owned(),
        format!(
            "cloudgate_gateway_upstream_connects_total{{service=\"counted\",server=\"{}\"}} 1",
            upstream.url()
        ),
        format!(
            "cloudgate_gateway_upstream_connections{{service=\"counted\",server=\"{}\",state=\"idle\"}} 1",
            upstream.url()
        ),
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
    }
}
