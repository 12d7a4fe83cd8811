//! A chat room: `/chat.html` is its page, and `/api/chat?name=Ada` the WebSocket behind it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cloudgate::{
    CloseFrame, HttpError, Hub, Message, Query, Response, SocketHandler, SocketResult,
    SocketSender, State, WebSocket, WebSocketUpgrade, route,
};
use serde::Deserialize;
use serde_json::{Value, json};

const ROOM: &str = "room";
const LONGEST_NAME: usize = 32;
const LONGEST_TEXT: usize = 2000;
/// Nobody says more than this many things in this time.
const PACE: (usize, Duration) = (8, Duration::from_secs(5));

/// The room that all sockets share.
pub struct Chat {
    /// What is said; who comes later sees the last 50 messages.
    said: Hub,
    /// Who comes and goes, which only those hear who are there.
    people: Hub,
    names: Mutex<BTreeSet<String>>,
    /// The number of the next thing that is said.
    next: Mutex<u64>,
    /// Tells a page that comes back whether it is the room that it knows.
    opened: u64,
}

impl Default for Chat {
    fn default() -> Chat {
        Chat {
            said: Hub::with_replay(50),
            people: Hub::new(),
            names: Mutex::default(),
            next: Mutex::new(1),
            opened: now(),
        }
    }
}

#[derive(Deserialize)]
struct Guest {
    name: String,
}

#[route("/api/chat")]
fn chat(
    upgrade: WebSocketUpgrade,
    Query(guest): Query<Guest>,
    State(chat): State<Chat>,
) -> Result<Response, HttpError> {
    let name = guest.name.trim().to_owned();
    let length = name.chars().count();
    if length == 0 || length > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(HttpError::unprocessable("a name has 1 to 32 letters"));
    }
    let guest = Seat {
        chat,
        name,
        recent: VecDeque::new(),
    };
    Ok(upgrade.message_limit(16 << 10).serve(guest))
}

/// One socket in the room. It is called when something happens, and takes next to nothing meanwhile.
struct Seat {
    chat: Arc<Chat>,
    name: String,
    /// When the last things were said.
    recent: VecDeque<Instant>,
}

impl SocketHandler for Seat {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        let people = self.chat.take_name(&mut self.name);
        let hello =
            json!({"kind": "hello", "name": self.name, "people": people, "room": self.chat.opened});
        socket.send(hello.to_string())?;
        self.chat.said.subscribe(ROOM, &socket.sender())?;
        self.chat.people.subscribe(ROOM, &socket.sender())?;
        self.tell("joined", people);
        Ok(())
    }

    fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        let text = message.as_text().unwrap_or("").trim();
        if text.is_empty() {
            return Ok(());
        }
        let refusal = if text.chars().count() > LONGEST_TEXT {
            Some(format!("A message has up to {LONGEST_TEXT} letters."))
        } else if !self.is_in_pace() {
            Some("Slow down a little.".to_owned())
        } else {
            None
        };
        if let Some(why) = refusal {
            socket.send(json!({"kind": "refused", "why": why, "text": text}).to_string())?;
            return Ok(());
        }
        self.chat.say(&self.name, text);
        Ok(())
    }

    fn close(&mut self, _socket: &SocketSender, _frame: &CloseFrame) {
        let people = self.chat.give_name_back(&self.name);
        self.tell("left", people);
    }
}

impl Seat {
    fn tell(&self, kind: &str, people: usize) {
        let news: Value = json!({"kind": kind, "name": self.name, "people": people, "at": now()});
        self.chat.people.publish(ROOM, news.to_string());
    }

    fn is_in_pace(&mut self) -> bool {
        let (most, time) = PACE;
        self.recent.retain(|said| said.elapsed() < time);
        if self.recent.len() < most {
            self.recent.push_back(Instant::now());
            return true;
        }
        false
    }
}

impl Chat {
    /// Tells everybody. The number is taken and published in one step: a page takes what has a lower number than
    /// the last that it showed for something that it hears again. Publishing waits for nobody, so it may be locked.
    fn say(&self, name: &str, text: &str) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let said = json!({"kind": "said", "id": *next, "name": name, "text": text, "at": now()});
        *next += 1;
        self.said.publish(ROOM, said.to_string());
    }

    /// Makes a name one that nobody else has, and takes it; gives how many are there.
    fn take_name(&self, name: &mut String) -> usize {
        let mut names = self.names();
        let wanted = name.clone();
        let mut number = 2;
        while !names.insert(name.clone()) {
            *name = format!("{wanted} {number}");
            number += 1;
        }
        names.len()
    }

    fn give_name_back(&self, name: &str) -> usize {
        let mut names = self.names();
        names.remove(name);
        names.len()
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since 1970, as JavaScript counts.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
