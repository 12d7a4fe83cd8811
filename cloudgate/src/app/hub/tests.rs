//! Does everybody get what is published, once and in order, and is nothing left of those who have gone?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::kinds::KINDS;
use super::*;
use crate::app::websocket::SlowReceiver;
use crate::app::websocket::tests::{compressing, end, sender, texts};

/// A socket with room for everything.
fn socket() -> SocketSender {
    sender(64 << 20, SlowReceiver::Close).0
}

#[test]
fn all_who_are_subscribed_get_it_until_they_leave() {
    let hub = Hub::new();
    let (a, b) = (socket(), socket());
    hub.subscribe("lobby", &a).unwrap();
    hub.subscribe("lobby", &a).unwrap();
    let seat = hub.join("lobby", b.clone()).unwrap();
    assert_eq!((hub.presence("lobby"), hub.presence("other")), (2, 0));
    let published = hub.publish("lobby", "one");
    assert_eq!((published.receivers, published.dropped), (2, 0));
    assert_eq!(hub.publish_from(&a, "lobby", "two").receivers, 1);
    drop(seat);
    assert_eq!(hub.publish("lobby", "three").receivers, 1);
    assert!(hub.unsubscribe("lobby", &a) && !hub.unsubscribe("lobby", &a));
    assert_eq!(hub.publish("lobby", "four").receivers, 0);
    assert_eq!(texts(&a), ["one", "three"]);
    assert_eq!(texts(&b), ["one", "two"]);
    assert_eq!(hub.topics(), Vec::<String>::new());
    let counts = hub.counts();
    assert_eq!((counts.published, counts.delivered), (4, 4));
}

#[test]
fn a_socket_that_ends_leaves_every_topic_and_nothing_of_it() {
    let hub = Hub::new();
    let (a, b) = (socket(), socket());
    for number in 0..100 {
        hub.subscribe(&format!("topic/{number}"), &a).unwrap();
    }
    hub.subscribe("topic/0", &b).unwrap();
    hub.subscribe("*", &a).unwrap();
    end(&a);
    assert_eq!(hub.topics(), ["topic/0"]);
    assert_eq!(hub.presence("topic/0"), 1);
    // One that has ended already is not kept either.
    hub.subscribe("late", &a).unwrap();
    let seat = hub.join("late", a).unwrap();
    drop(seat);
    assert_eq!(hub.topics(), ["topic/0"]);
    end(&b);
    assert!(hub.topics().is_empty() && lock(&hub.0.subscriptions).is_empty());
    assert_eq!(hub.0.wildcards.load(Ordering::SeqCst), 0);
    // Nor what is subscribed to and left again and again.
    let c = socket();
    for number in 0..10_000 {
        drop(hub.join(&format!("room/{number}"), c.clone()).unwrap());
    }
    assert!(hub.topics().is_empty());
    assert_eq!(lock(&hub.0.subscriptions)[&c.id()].capacity(), 4);
}

#[test]
fn patterns_get_what_is_below_them_and_a_socket_gets_it_once() {
    let hub = Hub::new();
    let (all, news, sport, both) = (socket(), socket(), socket(), socket());
    hub.subscribe("*", &all).unwrap();
    hub.subscribe("news/*", &news).unwrap();
    hub.subscribe("news/sport", &sport).unwrap();
    for topic in ["*", "news/*", "news/sport", "news/sport/*"] {
        hub.subscribe(topic, &both).unwrap();
    }
    for (topic, receivers) in [
        ("news/sport", 4),
        ("news/sport/tennis", 3),
        ("news", 2),
        ("newsletter", 2),
    ] {
        assert_eq!(hub.publish(topic, topic).receivers, receivers, "{topic}");
    }
    assert_eq!(texts(&sport), ["news/sport"]);
    assert_eq!(texts(&news), ["news/sport", "news/sport/tennis"]);
    let every = ["news/sport", "news/sport/tennis", "news", "newsletter"];
    assert_eq!(texts(&all), every);
    assert_eq!(texts(&both), every);
    assert_eq!(hub.publish_from(&all, "x", "x").receivers, 1);
    // Nobody can publish to a pattern.
    assert_eq!(hub.publish("news/*", "x"), Published::default());
    assert_eq!(hub.publish("", "x"), Published::default());
    assert_eq!(hub.subscribe("a*", &all), Err(HubError::InvalidName));
}

#[test]
fn who_comes_later_gets_what_was_kept() {
    let hub = Hub::with_replay(3);
    let early = socket();
    hub.subscribe("t", &early).unwrap();
    for number in 0..5 {
        hub.publish("t", number.to_string());
    }
    let late = socket();
    hub.subscribe("t", &late).unwrap();
    hub.subscribe("t", &late).unwrap();
    hub.publish("t", "5");
    assert_eq!(texts(&early), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(texts(&late), ["2", "3", "4", "5"]);
    // It is kept while nobody is there, until it is forgotten.
    end(&early);
    end(&late);
    assert_eq!(hub.topics(), ["t"]);
    let last = socket();
    hub.subscribe("t", &last).unwrap();
    assert_eq!(texts(&last), ["3", "4", "5"]);
    hub.forget("t");
    assert_eq!(hub.topics(), ["t"]);
    end(&last);
    assert!(hub.topics().is_empty());
}

#[test]
fn what_is_kept_has_a_limit_in_bytes() {
    let hub = Hub::with_limits(HubLimits {
        replay: 10,
        replay_bytes: 2 * (64 + 6),
        ..HubLimits::default()
    });
    for text in ["first.", "second", "third."] {
        hub.publish("t", text);
    }
    let socket = socket();
    hub.subscribe("t", &socket).unwrap();
    assert_eq!(texts(&socket), ["second", "third."]);
    hub.publish("t", "x".repeat(100));
    assert_eq!(texts(&socket).len(), 1);
    let late = super::tests::socket();
    hub.subscribe("t", &late).unwrap();
    assert!(
        texts(&late).is_empty(),
        "one that is larger than all drives all out"
    );
}

#[test]
fn limits_hold_at_the_last_topic() {
    let hub = Hub::with_limits(HubLimits {
        topics: 2,
        topics_per_socket: 2,
        ..HubLimits::default()
    });
    let (a, b) = (socket(), socket());
    hub.subscribe("1", &a).unwrap();
    hub.subscribe("2", &a).unwrap();
    assert_eq!(
        hub.subscribe("3", &a),
        Err(HubError::TooManySubscriptions { most: 2 })
    );
    hub.subscribe("2", &a).unwrap();
    assert_eq!(
        hub.subscribe("3", &b),
        Err(HubError::TooManyTopics { most: 2 })
    );
    hub.subscribe("1", &b).unwrap();
    hub.unsubscribe("2", &a);
    hub.subscribe("3", &b).unwrap();
    assert_eq!(hub.presence("1"), 2);
}

#[test]
fn slow_receivers_lose_what_their_policy_says_and_others_nothing() {
    let hub = Hub::new();
    let quick = socket();
    hub.subscribe("t", &quick).unwrap();
    // Three messages of this length fill an outbox.
    let limit = 3 * (64 + 2 + 1);
    let slow: Vec<SocketSender> = [
        SlowReceiver::Close,
        SlowReceiver::DropNewest,
        SlowReceiver::DropOldest,
        SlowReceiver::Coalesce,
    ]
    .map(|policy| sender(limit, policy).0)
    .into();
    for socket in &slow {
        hub.subscribe("t", socket).unwrap();
    }
    for number in 0..3 {
        assert_eq!(hub.publish("t", number.to_string()).dropped, 0);
    }
    assert_eq!(hub.counts().losses.total(), 0);
    // Closed, and the newest dropped.
    let published = hub.publish("t", "3");
    assert_eq!((published.receivers, published.dropped), (5, 2));
    let losses = hub.counts().losses;
    assert_eq!(
        (
            losses.closed_slow,
            losses.newest,
            losses.oldest,
            losses.coalesced
        ),
        (4, 1, 1, 3)
    );
    let published = hub.publish("t", "4");
    assert_eq!((published.receivers, published.dropped), (5, 2));
    assert_eq!(hub.counts().losses.closed, 1);
    assert_eq!(texts(&quick), ["0", "1", "2", "3", "4"]);
    let kept: Vec<_> = slow.iter().map(texts).collect();
    assert_eq!(
        kept,
        [
            vec![],
            vec!["0", "1", "2"],
            vec!["2", "3", "4"],
            vec!["3", "4"]
        ]
    );
}

#[test]
fn all_that_is_kept_has_a_limit_too() {
    let hub = Hub::with_limits(HubLimits {
        replay: 10,
        replay_total_bytes: 3 * (64 + 1),
        ..HubLimits::default()
    });
    for text in ["1", "2"] {
        hub.publish("a", text);
    }
    hub.publish("b", "3");
    // It is full: a topic drives out its own, and one without any keeps nothing.
    hub.publish("a", "4");
    hub.publish("c", "5");
    let kept = |topic| {
        let socket = socket();
        hub.subscribe(topic, &socket).unwrap();
        let kept = texts(&socket);
        end(&socket);
        kept
    };
    assert_eq!(
        (kept("a"), kept("b")),
        (vec!["2".to_owned(), "4".to_owned()], vec!["3".to_owned()])
    );
    assert_eq!(hub.topics().len(), 2);
    hub.forget("a");
    hub.publish("c", "6");
    assert_eq!(kept("c"), ["6"]);
    hub.forget("b");
    hub.forget("c");
    assert_eq!(hub.0.kept.load(Ordering::SeqCst), 0);
}

#[test]
fn what_is_too_large_to_be_kept_leaves_no_topic() {
    let hub = Hub::with_limits(HubLimits {
        replay: 10,
        replay_bytes: 64 + 6,
        topics: 3,
        ..HubLimits::default()
    });
    for number in 0..10 {
        hub.publish(&format!("large/{number}"), "seven..");
    }
    assert!(hub.topics().is_empty());
    hub.publish("fits", "sixsix");
    assert_eq!(hub.topics(), ["fits"]);
    // Nor does one that drives out what was there.
    hub.publish("fits", "seven..");
    assert!(hub.topics().is_empty());
}

#[test]
fn who_comes_later_is_not_closed_by_what_was_kept() {
    let hub = Hub::with_replay(100);
    for number in 0..100 {
        hub.publish("t", format!("{number:0>2}"));
    }
    // Half of what may wait is for what is kept, and that has room for three: 64 a message, and a frame's head of 2.
    let half = 3 * (64 + 2 + 2);
    for policy in [SlowReceiver::Close, SlowReceiver::DropNewest] {
        for (limit, expected) in [
            (2 * half, vec!["97", "98", "99"]),
            (2 * half - 2, vec!["98", "99"]),
        ] {
            let (socket, _tie) = sender(limit, policy);
            hub.subscribe("t", &socket).unwrap();
            assert!(socket.is_open());
            assert_eq!(socket.losses().total(), 0);
            assert_eq!(texts(&socket), expected, "{policy:?} {limit}");
        }
    }
}

#[test]
fn a_topic_that_is_given_up_takes_no_message() {
    let topic = Topic::new("t");
    assert!(topic.give_up_if_unused());
    let mut delivery = Delivering {
        message: &Arc::new(Prepared::new("x".into())),
        topic: 1,
        except: None,
        seen: None,
        outcome: Outcome::default(),
    };
    assert_eq!(topic.deliver(&mut delivery, None), Delivered::Gone);
}

#[test]
fn messages_are_prepared_for_those_who_are_there() {
    let hub = Hub::new();
    // Few compress as these do, and they leave again.
    let odd: Vec<SocketSender> = (9..13).map(compressing).collect();
    for socket in &odd {
        hub.subscribe("t", socket).unwrap();
        hub.subscribe("u", socket).unwrap();
    }
    let many: Vec<SocketSender> = (0..2).map(|_| compressing(15)).collect();
    for socket in &many {
        hub.subscribe("t", socket).unwrap();
    }
    let usual = many[0].compresses().unwrap();
    // The most frequent comes first, and there are not too many.
    let kinds = lock(&hub.0.kinds).frequent();
    assert_eq!((kinds.len(), kinds[0]), (KINDS, usual));
    odd.iter().for_each(end);
    assert_eq!(lock(&hub.0.kinds).frequent(), [usual]);
    many.iter().for_each(end);
    assert!(lock(&hub.0.kinds).frequent().is_empty());
}

#[test]
fn subscribers_miss_nothing_and_get_nothing_twice_while_others_publish() {
    const MESSAGES: usize = 3_000;
    for wildcard in [false, true] {
        let hub = Hub::with_replay(MESSAGES);
        let pattern = socket();
        if wildcard {
            hub.subscribe("t/*", &pattern).unwrap();
        }
        let done = AtomicBool::new(false);
        let (first, sockets) = std::thread::scope(|scope| {
            let subscribing = scope.spawn(|| {
                let mut sockets = Vec::new();
                while !done.load(Ordering::SeqCst) && sockets.len() < 200 {
                    let socket = socket();
                    hub.subscribe("t/x", &socket).unwrap();
                    sockets.push(socket);
                }
                sockets
            });
            let publish = |thread: usize| {
                let hub = &hub;
                scope.spawn(move || {
                    for number in 0..MESSAGES / 2 {
                        hub.publish("t/x", format!("{thread} {number}"));
                    }
                })
            };
            let threads = [publish(0), publish(1)];
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            done.store(true, Ordering::SeqCst);
            let first = socket();
            hub.subscribe("t/x", &first).unwrap();
            (first, subscribing.join().unwrap())
        });
        let expected = texts(&first);
        assert_eq!(expected.len(), MESSAGES);
        for thread in ["0 ", "1 "] {
            let numbers: Vec<usize> = expected
                .iter()
                .filter_map(|text| text.strip_prefix(thread)?.parse().ok())
                .collect();
            assert!(numbers.is_sorted() && numbers.len() == MESSAGES / 2);
        }
        // All see one order, whenever they came.
        for socket in &sockets {
            assert_eq!(texts(socket), expected);
        }
        if wildcard {
            assert_eq!(texts(&pattern), expected);
        }
    }
}

#[test]
fn many_join_publish_and_leave_at_once() {
    let hub = Hub::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let hub = &hub;
            scope.spawn(move || {
                for round in 0..500 {
                    let socket = socket();
                    let name = format!("room/{}", (thread + round) % 3);
                    let seat = hub.join(&name, socket.clone()).unwrap();
                    hub.subscribe("room/*", &socket).unwrap();
                    assert!(hub.publish(&name, "x").receivers >= 1);
                    if round % 2 == 0 {
                        drop(seat);
                        end(&socket);
                    } else {
                        end(&socket);
                        drop(seat);
                    }
                }
            });
        }
    });
    assert!(hub.topics().is_empty() && lock(&hub.0.subscriptions).is_empty());
    assert_eq!(hub.0.wildcards.load(Ordering::SeqCst), 0);
}

/// What a receiver costs: `cargo test --release -p cloudgate --lib -- --ignored --nocapture hub::tests::cost`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn cost_of_a_receiver() {
    let hub = Hub::new();
    let sockets: Vec<_> = (0..10_000)
        .map(|_| sender(1000, SlowReceiver::DropOldest).0)
        .collect();
    for socket in &sockets {
        hub.subscribe("t", socket).unwrap();
    }
    let message = "x".repeat(128);
    for _ in 0..5 {
        let began = std::time::Instant::now();
        hub.publish("t", message.as_str());
        println!("{} ns a receiver", began.elapsed().as_nanos() / 10_000);
    }
    assert_eq!(Arc::strong_count(&hub.0), 1);
}
