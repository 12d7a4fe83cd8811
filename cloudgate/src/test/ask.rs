//! What does a test send?

use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::socket::{Socket, random};
use super::target::Target;
use super::{Answer, Client, Collected, Enough, Form, Question, Reply, Way, fail, set, wire};
use crate::message::{Headers, query};
use crate::proto::ws::deflate::Coding;
use crate::proto::ws::extension::Wanted;
use crate::proto::ws::handshake::ClientHandshake;

/// How many redirects are followed for one request.
const MOST_REDIRECTS: usize = 10;

/// What browsers offer: contexts that stay, windows of 32 KiB, and smaller ones if the server likes.
const OFFER: Wanted = Wanted {
    server: REMEMBERING,
    client: REMEMBERING,
};

const REMEMBERING: Coding = Coding {
    takeover: true,
    window_bits: 15,
};

/// A request that is being written; [`Ask::send`] sends it.
///
/// ```
/// use cloudgate::{App, Request, test};
/// let client = test::client(App::new().post("/items", |request: &mut Request<'_>| {
///     format!("{} {}", request.query(), request.header("content-type").unwrap_or("-"))
/// }));
/// let reply = client
///     .post("/items")
///     .query(&[("q", "a b")])
///     .header("Accept", "text/plain")
///     .json(&["one", "two"])
///     .send();
/// assert_eq!(reply.text(), "q=a+b application/json");
/// ```
#[must_use = "nothing is sent before `send`"]
#[derive(Debug)]
pub struct Ask<'c> {
    client: &'c Client,
    method: Method,
    target: Target,
    headers: Headers,
    body: Option<Bytes>,
    follow: bool,
    compressed: bool,
    enough: Enough,
}

impl<'c> Ask<'c> {
    pub(super) fn new(client: &'c Client, method: Method, target: Target) -> Ask<'c> {
        Ask {
            client,
            method,
            target,
            headers: client.headers.clone(),
            body: None,
            follow: false,
            compressed: false,
            enough: Enough::AtItsEnd,
        }
    }

    /// Sets a header field in place of any of the same name.
    ///
    /// # Panics
    /// When the name is no token or the value holds a control character.
    #[track_caller]
    pub fn header(mut self, name: &str, value: &str) -> Ask<'c> {
        set(&mut self.headers, name, value);
        self
    }

    /// Adds pairs to the query, encoded.
    pub fn query(mut self, pairs: &[(&str, &str)]) -> Ask<'c> {
        self.target.add_query(pairs);
        self
    }

    /// Sets the body, without saying what it is.
    pub fn body(mut self, body: impl Into<Bytes>) -> Ask<'c> {
        self.body = Some(body.into());
        self
    }

    /// Sets a body of JSON.
    ///
    /// # Panics
    /// When `value` cannot be serialized.
    #[track_caller]
    pub fn json(self, value: &impl serde::Serialize) -> Ask<'c> {
        match serde_json::to_vec(value) {
            Ok(body) => self.typed("application/json", body),
            Err(error) => fail(format_args!("the value to be sent is no JSON: {error}")),
        }
    }

    /// Sets a body as a form without files sends it.
    #[track_caller]
    pub fn form(self, pairs: &[(&str, &str)]) -> Ask<'c> {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish();
        self.typed("application/x-www-form-urlencoded", body.into_bytes())
    }

    /// Sets a body as a form with files sends it.
    ///
    /// ```standalone_crate
    /// use cloudgate::{App, Event, route, test};
    /// #[route(POST, "/upload")]
    /// fn upload(event: Event) -> String {
    ///     let file = &event.files()[0];
    ///     format!("{} {} {}", file.filename, file.len(), event.params().get("title").unwrap_or("-"))
    /// }
    /// let client = test::client(App::gather());
    /// let reply = client
    ///     .post("/upload")
    ///     .multipart(|form| form.text("title", "A cat").file("picture", "cat.png", "image/png", b"..."))
    ///     .send();
    /// assert_eq!(reply.text(), "cat.png 3 A cat");
    /// ```
    #[track_caller]
    pub fn multipart(self, fill: impl FnOnce(Form) -> Form) -> Ask<'c> {
        let (boundary, body) = fill(Form::default()).encode();
        let content_type = format!("multipart/form-data; boundary={boundary}");
        self.typed(&content_type, body)
    }

    #[track_caller]
    fn typed(mut self, content_type: &str, body: Vec<u8>) -> Ask<'c> {
        set(&mut self.headers, "Content-Type", content_type);
        self.body(body)
    }

    /// Follows up to ten redirects, as a browser does: after 301, 302 and 303 with a GET request.
    pub fn follow_redirects(mut self) -> Ask<'c> {
        self.follow = true;
        self
    }

    /// Leaves once this many bytes of the body have come: for streams that do not end.
    pub fn until_bytes(mut self, count: usize) -> Ask<'c> {
        self.enough = Enough::Bytes(count);
        self
    }

    /// Leaves once this many server-sent events have come; see [`Reply::events`].
    ///
    /// ```
    /// use cloudgate::{App, Response, test};
    /// use std::io::Write;
    /// let app = App::new().get("/ticks", || {
    ///     let ticks = Response::stream(|out| {
    ///         for number in 0.. {
    ///             write!(out, "data: {number}\n\n")?;
    ///             out.flush()?;
    ///         }
    ///         Ok(())
    ///     });
    ///     ticks.header("Content-Type", "text/event-stream")
    /// });
    /// let events = test::client(app).get("/ticks").until_events(2).send().events();
    /// assert_eq!((events.len(), &*events[1].data), (2, "1"));
    /// ```
    pub fn until_events(mut self, count: usize) -> Ask<'c> {
        self.enough = Enough::Events(count);
        self
    }

    /// Sends the request and takes the whole answer.
    ///
    /// # Panics
    /// When there is no whole answer: a target that cannot be sent, a body that fails on its way or is
    /// longer than the client's limit, a connection that ends or brings nothing for 30 seconds, more
    /// than ten redirects.
    #[track_caller]
    pub fn send(mut self) -> Reply {
        for _ in 0..=MOST_REDIRECTS {
            let reply = self.send_once();
            match self.redirected(&reply) {
                Some(target) => self.go_to(target, reply.status()),
                None => return reply,
            }
        }
        fail(format_args!(
            "{} {} is the {}th redirect in a row",
            self.method,
            self.target.path_and_query,
            MOST_REDIRECTS + 1
        ))
    }

    /// Offers to compress the messages of a WebSocket, both ways and as a browser does (permessage-deflate, RFC 7692
    /// section 7). [`Socket::is_compressed`] says whether the server agreed; then all messages that are sent are.
    ///
    /// ```
    /// use cloudgate::{App, FromRequest, PerMessageDeflate, Rejection, Request, Response, WebSocketUpgrade, test};
    ///
    /// fn dots(request: &mut Request<'_>) -> Result<Response, Rejection> {
    ///     let upgrade = WebSocketUpgrade::from_request(request)?.compress(PerMessageDeflate::new());
    ///     Ok(upgrade.accept(|mut socket| Ok(socket.send(".".repeat(5000))?)))
    /// }
    ///
    /// let client = test::serve(App::new().get("/dots", dots));
    /// let mut socket = client.get("/dots").compressed().websocket();
    /// assert!(socket.is_compressed());
    /// assert_eq!(socket.text().len(), 5000);
    /// ```
    pub fn compressed(mut self) -> Ask<'c> {
        self.compressed = true;
        self
    }

    /// Opens a WebSocket, over a connection of its own; of a client made by [`serve`](super::serve). Subprotocols are
    /// offered by the field `Sec-WebSocket-Protocol`, compression by [`Ask::compressed`]. What else a handshake has to
    /// say is added, unless the test has set it: then that is what the server gets to see.
    ///
    /// ```
    /// use cloudgate::{App, FromRequest, Rejection, Request, Response, WebSocketUpgrade, test};
    ///
    /// fn hello(request: &mut Request<'_>) -> Result<Response, Rejection> {
    ///     let upgrade = WebSocketUpgrade::from_request(request)?.protocols(&["v2"]);
    ///     Ok(upgrade.accept(|mut socket| Ok(socket.send("hello")?)))
    /// }
    ///
    /// let client = test::serve(App::new().get("/hello", hello));
    /// let mut socket = client.get("/hello").header("Sec-WebSocket-Protocol", "v1, v2").websocket();
    /// assert_eq!(socket.protocol(), Some("v2"));
    /// assert_eq!(socket.text(), "hello");
    /// ```
    ///
    /// # Panics
    /// When the server does not open it, with its answer; when that answer breaks a rule, or the target cannot be sent.
    #[track_caller]
    pub fn websocket(self) -> Socket {
        match self.upgrade() {
            Ok(socket) => socket,
            Err(reply) => fail(format_args!("no WebSocket was opened: {reply:?}")),
        }
    }

    /// Asks for a WebSocket and takes the answer that refuses it.
    ///
    /// # Panics
    /// When the server opens it, and as [`Ask::send`].
    #[track_caller]
    pub fn websocket_refused(self) -> Reply {
        match self.upgrade() {
            Ok(socket) => fail(format_args!("a WebSocket was opened: {socket:?}")),
            Err(reply) => *reply,
        }
    }

    #[track_caller]
    fn upgrade(mut self) -> Result<Socket, Box<Reply>> {
        let shown = self.sendable();
        let Way::Wire { server, .. } = &self.client.way else {
            fail(format_args!(
                "{shown}: a WebSocket needs a connection; make the client by test::serve"
            ));
        };
        let offered = self
            .headers
            .get("sec-websocket-protocol")
            .unwrap_or("")
            .to_owned();
        let offered: Vec<&str> = offered
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let handshake = ClientHandshake::new(random(), &offered, self.compressed.then_some(OFFER));
        for (name, value) in handshake.fields() {
            if !self.headers.contains(name) {
                set(&mut self.headers, name, &value);
            }
        }
        let question = self.question();
        let (answer, stream, buffer) = match wire::open(server.addr(), &question, self.collected())
        {
            Ok(opened) => opened,
            Err(reason) => fail(format_args!("{shown} has no answer: {reason}")),
        };
        self.keep_cookies(&answer);
        if answer.status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(Box::new(Reply::new(shown, answer)));
        }
        match handshake.check(answer.status, &answer.headers) {
            Ok(opened) => {
                let limit = self.client.body_limit;
                Ok(Socket::new(stream, buffer, opened, limit, shown))
            }
            Err(error) => fail(format_args!("{shown} was answered wrongly: {error}")),
        }
    }

    fn collected(&self) -> Collected {
        Collected {
            bytes: Vec::new(),
            limit: self.client.body_limit,
            enough: self.enough,
        }
    }

    fn keep_cookies(&self, answer: &Answer) {
        let now = SystemTime::now();
        let mut jar = self.client.jar();
        for field in answer.headers.get_all("set-cookie") {
            jar.store(&String::from_utf8_lossy(field), &self.target, now);
        }
    }

    /// What is asked, for people, once it is sure that it can be.
    #[track_caller]
    fn sendable(&self) -> String {
        let shown = self.shown();
        if query::normalise_target(&self.target.path_and_query, &mut String::new()).is_err() {
            fail(format_args!(
                "{shown}: this target cannot be sent; percent-encode what is no plain character, or use `query`"
            ));
        }
        shown
    }

    #[track_caller]
    fn send_once(&self) -> Reply {
        let shown = self.sendable();
        let question = self.question();
        let answer = match self.client.exchange(&question, self.collected()) {
            Ok(answer) => answer,
            Err(reason) => fail(format_args!("{shown} has no answer: {reason}")),
        };
        self.keep_cookies(&answer);
        Reply::new(shown, answer)
    }

    fn question(&self) -> Question {
        let mut headers = Headers::new();
        let mut add = |name: &str, value: &[u8]| {
            headers
                .append(name, value)
                .expect("a field that was checked when it was set");
        };
        if !self.headers.contains("host") {
            add("Host", self.target.authority.as_bytes());
        }
        for (name, value) in self.headers.iter() {
            // Two lengths would be two bodies.
            if !name.eq_ignore_ascii_case("content-length") {
                add(name, value);
            }
        }
        if !self.headers.contains("cookie")
            && let Some(cookies) = self.client.jar().field(&self.target, SystemTime::now())
        {
            add("Cookie", cookies.as_bytes());
        }
        let expected = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
        if let Some(length) = match &self.body {
            Some(body) => Some(body.len()),
            None => expected.then_some(0),
        } {
            add("Content-Length", length.to_string().as_bytes());
        }
        Question {
            method: self.method.clone(),
            target: self.target.clone(),
            headers,
            body: self.body.clone().unwrap_or_default(),
        }
    }

    /// Where the reply sends us on to, if we follow.
    #[track_caller]
    fn redirected(&self, reply: &Reply) -> Option<Target> {
        if !self.follow || !matches!(reply.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = reply.header("location")?;
        let target = self.target.resolve(location);
        if target.is_none() {
            fail(format_args!(
                "{} redirects to {location:?}, which is no place to go to",
                self.shown()
            ));
        }
        target
    }

    /// RFC 9110 section 15.4.
    fn go_to(&mut self, target: Target, status: StatusCode) {
        let becomes_get = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove("content-type");
        }
        if target.authority != self.target.authority {
            self.headers.remove("authorization");
            self.headers.remove("host");
        }
        self.target = target;
    }

    fn shown(&self) -> String {
        let Target {
            secure,
            authority,
            path_and_query,
        } = &self.target;
        if *authority == self.client.base.authority && !secure {
            return format!("{} {path_and_query}", self.method);
        }
        let scheme = if *secure { "https" } else { "http" };
        format!("{} {scheme}://{authority}{path_and_query}", self.method)
    }
}
