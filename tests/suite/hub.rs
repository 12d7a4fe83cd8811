//! Do the sockets of a topic get what anybody publishes, whoever of them reads slowly or leaves?

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudgate::{
    App, CloseFrame, FromRequest, Hub, HubError, HubLimits, Message, Rejection, Request, Response,
    Running, Seat, Settings, SlowReceiver, SocketHandler, SocketResult, SocketSender, WebSocket,
    WebSocketUpgrade,
};
use cloudgate_suite::{Client, LIMIT, client, get, start_with, wait_for};

/// What may wait for a slow receiver: less than a coroutine takes at once.
const OUTBOX: usize = 48 << 10;

/// A socket without a coroutine that says to its topic what it gets, and that it leaves.
struct Caller {
    hub: Hub,
    topic: String,
}

impl SocketHandler for Caller {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        self.hub.subscribe(&self.topic, &socket.sender())?;
        Ok(socket.send("open")?)
    }

    fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        self.hub
            .publish_from(&socket.sender(), &self.topic, message);
        Ok(())
    }

    fn close(&mut self, _socket: &SocketSender, frame: &CloseFrame) {
        let left = self.hub.presence(&self.topic);
        self.hub
            .publish(&self.topic, format!("{} and {left} are left", frame.code));
    }
}

/// A socket that joins the topics that its query names, and publishes what it gets to the first.
fn member(hub: &Hub, upgrade: WebSocketUpgrade, topics: &str) -> Response {
    let (hub, topics) = (hub.clone(), topics.to_owned());
    upgrade.accept(move |mut socket| {
        let names = topics.split('&');
        let seats: Result<Vec<Seat>, HubError> =
            names.map(|name| hub.join(name, socket.sender())).collect();
        let _seats = match seats {
            Ok(seats) => seats,
            Err(error) => return Ok(socket.close(4000, &error.to_string())?),
        };
        socket.send("open")?;
        while let Some(message) = socket.recv()? {
            hub.publish(topics.split('&').next().unwrap_or("none"), message);
        }
        Ok(())
    })
}

/// A server of a hub: sockets at `/member`, at `/calls`, and at the names of policies, whose senders are noted.
fn serve(hub: &Hub, senders: &Senders, change: impl FnOnce(&mut Settings)) -> Running {
    let upgrade = |request: &mut Request<'_>| -> Result<_, Rejection> {
        let topics = request.query().to_owned();
        Ok((WebSocketUpgrade::from_request(request)?, topics))
    };
    let members = {
        let hub = hub.clone();
        move |request: &mut Request<'_>| -> Result<Response, Rejection> {
            let (upgrade, topics) = upgrade(request)?;
            Ok(member(&hub, upgrade, &topics))
        }
    };
    let calls = {
        let hub = hub.clone();
        move |request: &mut Request<'_>| -> Result<Response, Rejection> {
            let (upgrade, topic) = upgrade(request)?;
            let hub = hub.clone();
            Ok(upgrade.serve(Caller { hub, topic }))
        }
    };
    let timer = {
        let hub = hub.clone();
        move |request: &mut Request<'_>| {
            cloudgate::sleep(Duration::from_millis(1));
            hub.publish(request.query(), "from a timer");
        }
    };
    let mut app = App::new()
        .get("/member", members)
        .get("/calls", calls)
        .get("/timer", timer);
    for policy in POLICIES {
        let (hub, senders) = (hub.clone(), Arc::clone(senders));
        let slow = move |request: &mut Request<'_>| -> Result<Response, Rejection> {
            let (upgrade, topic) = upgrade(request)?;
            let (hub, senders) = (hub.clone(), Arc::clone(&senders));
            let upgrade = upgrade.outbox(OUTBOX, policy);
            Ok(upgrade.accept(move |mut socket| {
                hub.subscribe(&topic, &socket.sender())?;
                let mut all = senders.lock().expect("no test has panicked");
                all.push((policy, socket.sender()));
                drop(all);
                socket.send("open")?;
                while socket.recv()?.is_some() {}
                Ok(())
            }))
        };
        app = app.get(&format!("/{policy:?}"), slow);
    }
    start_with(app, change)
}

const POLICIES: [SlowReceiver; 4] = [
    SlowReceiver::Close,
    SlowReceiver::DropNewest,
    SlowReceiver::DropOldest,
    SlowReceiver::Coalesce,
];

type Senders = Arc<Mutex<Vec<(SlowReceiver, SocketSender)>>>;

/// A client whose socket is in its topics.
#[track_caller]
fn open(server: &Running, path: &str) -> Client {
    let mut client = client(server.addr(), path);
    assert_eq!(client.text(), "open");
    client
}

#[test]
fn handlers_timers_and_threads_reach_all_who_are_there() {
    let hub = Hub::new();
    let server = serve(&hub, &Senders::default(), |settings| {
        settings.timeouts.park = Duration::from_millis(50);
    });
    let mut clients: Vec<Client> = (0..10)
        .map(|_| open(&server, "/member?room/1&room/*"))
        .chain((0..10).map(|_| open(&server, "/calls?room/1")))
        .collect();
    assert_eq!(hub.presence("room/1"), 20);
    assert_eq!(hub.presence("room/*"), 10);
    wait_for("those without a coroutine to rest", || {
        server.parked() == 10
    });
    clients[0].say("from a handler");
    let seen = |client: &mut Client, text: &str| assert_eq!(client.text(), text);
    clients
        .iter_mut()
        .for_each(|client| seen(client, "from a handler"));
    assert_eq!(get(server.addr(), "/timer?room/1").status, 204);
    clients
        .iter_mut()
        .for_each(|client| seen(client, "from a timer"));
    // To all but itself.
    clients[19].say("from a callback");
    clients[..19]
        .iter_mut()
        .for_each(|client| seen(client, "from a callback"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let hub = &hub;
            scope.spawn(move || {
                for number in 0..100 {
                    let published = hub.publish("room/1", format!("{thread} {number}"));
                    assert_eq!((published.receivers, published.dropped), (20, 0));
                }
            });
        }
    });
    let expected: Vec<String> = (0..400).map(|_| clients[0].text()).collect();
    for thread in ["0 ", "1 ", "2 ", "3 "] {
        let own = expected.iter().filter_map(|text| text.strip_prefix(thread));
        let numbers: Vec<u32> = own.map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
    for client in &mut clients[1..] {
        // All of them in one order, and nobody got anything twice or what was not for it.
        for text in &expected {
            assert_eq!(client.text(), *text);
        }
    }
    assert_eq!(cloudgate::thread_changes(), 0);
}

#[test]
fn who_leaves_is_in_no_topic_when_others_hear_of_it() {
    let hub = Hub::new();
    let server = serve(&hub, &Senders::default(), |_| ());
    let mut stays = open(&server, "/calls?t");
    let leaves = open(&server, "/calls?t");
    assert_eq!(hub.presence("t"), 2);
    leaves.leave(b"");
    assert_eq!(stays.text(), "1006 and 1 are left");
    let mut closes = open(&server, "/calls?t");
    assert_eq!(closes.close(4001, ""), 4001);
    assert_eq!(stays.text(), "4001 and 1 are left");
    // Nobody was counted who could not get it.
    assert_eq!(hub.counts().losses.total(), 0);
    let member = open(&server, "/member?t&u&*");
    assert_eq!(hub.topics().len(), 3);
    drop(member);
    wait_for("the member to be gone", || hub.topics() == ["t"]);
    drop(stays);
    wait_for("all to be gone", || server.connections() == 0);
    assert!(hub.topics().is_empty());
}

#[test]
fn who_comes_later_gets_what_was_kept_and_who_asks_for_too_much_is_told() {
    let hub = Hub::with_limits(HubLimits {
        replay: 3,
        topics_per_socket: 2,
        ..HubLimits::default()
    });
    let server = serve(&hub, &Senders::default(), |_| ());
    for number in 0..5 {
        hub.publish("t", number.to_string());
    }
    let mut late = client(server.addr(), "/member?t");
    let mut texts: Vec<String> = (0..4).map(|_| late.text()).collect();
    // What its function says itself does not wait behind what was kept.
    texts.retain(|text| text != "open");
    assert_eq!(texts, ["2", "3", "4"]);
    late.say("5");
    assert_eq!(late.text(), "5");
    let (code, reason) = client(server.addr(), "/member?a&b&c").closed();
    assert_eq!(code, 4000);
    assert!(reason.contains("topics_per_socket"), "{reason}");
}

#[test]
fn slow_receivers_lose_what_their_policy_says_and_others_get_everything() {
    let hub = Hub::new();
    let senders = Senders::default();
    let server = serve(&hub, &senders, |settings| {
        // Nobody is given up for being slow in this test.
        settings.timeouts.grace = 4 * LIMIT;
        settings.timeouts.stall = 4 * LIMIT;
    });
    let mut quick = open(&server, "/member?slow/*");
    let mut slow = POLICIES.map(|policy| open(&server, &format!("/{policy:?}?slow/{policy:?}")));
    let senders = senders.lock().unwrap().clone();
    // Which messages each topic's publisher was told of as dropped.
    let mut dropped: [Vec<usize>; 4] = Default::default();
    let text = |number: usize| format!("{number:0>8000}");
    let mut count = 0;
    let mut rounds_left = 50;
    while rounds_left > 0 {
        // Several at once, so that a coroutine finds more to take than goes out.
        let burst = count..count + 5;
        for (place, policy) in POLICIES.iter().enumerate() {
            for number in burst.clone() {
                let published = hub.publish(&format!("slow/{policy:?}"), text(number));
                // The quick one, and the slow one while it is there.
                assert!((1..=2).contains(&published.receivers));
                dropped[place].extend((published.dropped > 0).then_some(number));
            }
            for number in burst.clone() {
                assert_eq!(quick.text(), text(number));
            }
        }
        count = burst.end;
        // The system's own buffers are full, and some more is lost.
        rounds_left -= usize::from(
            senders
                .iter()
                .all(|(_, sender)| sender.losses().total() > 0),
        );
        assert!(count < 20_000, "nothing was ever lost");
    }
    for (client, (policy, sender)) in slow.iter_mut().zip(&senders) {
        assert!(sender.waiting() <= OUTBOX + 64);
        let mut got: Vec<usize> = Vec::new();
        let code = loop {
            if sender.is_open() && got.len() as u64 + sender.losses().total() == count as u64 {
                break None;
            }
            match client.text_or_close() {
                Ok(text) => got.push(text.parse().unwrap()),
                Err(code) => break Some(code),
            }
        };
        let dropped = &dropped[POLICIES.iter().position(|other| other == policy).unwrap()];
        let losses = sender.losses();
        assert!(got.is_sorted_by(|a, b| a < b), "{policy:?}: {got:?}");
        match policy {
            SlowReceiver::Close => {
                assert_eq!(code, Some(1013));
                // A whole beginning, and nothing behind it.
                assert_eq!(got, (0..got.len()).collect::<Vec<_>>());
                assert!(losses.closed_slow > 0 && got.len() < dropped[0]);
            }
            SlowReceiver::DropNewest => {
                let expected: Vec<_> = (0..count).filter(|at| !dropped.contains(at)).collect();
                assert_eq!(got, expected);
                assert_eq!(
                    (losses.newest, losses.total()),
                    (dropped.len() as u64, losses.newest)
                );
            }
            SlowReceiver::DropOldest => {
                assert!(dropped.is_empty() && losses.oldest == losses.total());
                // The newest are all there: as many as half of the outbox holds.
                let newest = OUTBOX / 2 / 8_200;
                assert_eq!(
                    got[got.len() - newest..],
                    (count - newest..count).collect::<Vec<_>>()
                );
            }
            SlowReceiver::Coalesce => {
                assert!(dropped.is_empty() && losses.coalesced == losses.total());
                assert_eq!(got.last(), Some(&(count - 1)));
            }
        }
    }
    // Those who were slow are served as before.
    for (client, policy) in slow.iter_mut().zip(POLICIES).skip(1) {
        hub.publish(&format!("slow/{policy:?}"), "again");
        assert_eq!(client.text(), "again");
        assert_eq!(quick.text(), "again");
    }
    wait_for("the closed one to be gone", || {
        hub.presence("slow/Close") == 0
    });
    let mut sum = 0;
    for (_, sender) in &senders {
        sum += sender.losses().total();
    }
    assert_eq!(hub.counts().losses.total(), sum);
}

#[test]
fn who_never_reads_is_given_up() {
    let hub = Hub::new();
    let server = serve(&hub, &Senders::default(), |settings| {
        settings.timeouts.grace = Duration::from_millis(200);
        settings.timeouts.stall = Duration::from_millis(200);
    });
    let stopped = POLICIES.map(|policy| open(&server, &format!("/{policy:?}?t")));
    wait_for("them to be gone", || {
        hub.publish("t", "x".repeat(8_000));
        hub.presence("t") == 0
    });
    drop(stopped);
    wait_for("the connections to be gone", || server.connections() == 0);
    assert!(hub.topics().is_empty());
}
