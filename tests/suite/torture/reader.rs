//! Is what a client gets what was there?

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;

use super::client::{Client, Reply};
use super::ledger::{Ledger, State, hash};
use super::random::Random;
use super::writer::{EXCHANGED, FILES};

/// How old an answer may be: the second that the server promises, and as much again for a busy machine.
const OLDEST: Duration = Duration::from_secs(2);

/// Who is not running for so long within a write leaves a file at rest that is a bit of both.
const SLOW_WRITE: Duration = Duration::from_millis(15);

/// The bytes that each strong entity-tag stands for, by hash.
#[derive(Default)]
pub struct Tags(Mutex<HashMap<String, [u8; 32]>>);

/// What came.
#[derive(Debug, Default)]
pub struct Counts {
    pub whole: u64,
    pub coded: u64,
    pub strong: u64,
    pub parts: u64,
    pub unchanged: u64,
    pub heads: u64,
    pub missing: u64,
    pub unsatisfiable: u64,
    pub several: u64,
    /// Connections that ended before the answer did.
    pub cut: u64,
    /// Answers that are a bit of two versions, of a file that was written into while it was sent.
    pub mixed: u64,
    pub wrong: Vec<String>,
}

impl Counts {
    pub fn add(&mut self, more: &Counts) {
        self.whole += more.whole;
        self.coded += more.coded;
        self.strong += more.strong;
        self.parts += more.parts;
        self.unchanged += more.unchanged;
        self.heads += more.heads;
        self.missing += more.missing;
        self.unsatisfiable += more.unsatisfiable;
        self.several += more.several;
        self.cut += more.cut;
        self.mixed += more.mixed;
        self.wrong.extend_from_slice(&more.wrong);
    }
}

/// A whole answer that the client has kept.
#[derive(Clone)]
struct Kept {
    tag: String,
    date: Option<String>,
    body: Arc<Vec<u8>>,
    content: [u8; 32],
}

pub struct Reader<'a> {
    client: Client,
    ledger: &'a Ledger,
    tags: &'a Tags,
    random: Random,
    kept: HashMap<(usize, bool), Kept>,
    pub counts: Counts,
}

impl<'a> Reader<'a> {
    pub fn new(address: SocketAddr, ledger: &'a Ledger, tags: &'a Tags, number: u64) -> Self {
        Reader {
            client: Client::new(address),
            ledger,
            tags,
            random: Random::new(number + 1),
            kept: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Asks for something, and looks at what comes.
    pub fn ask(&mut self) {
        let which = self.random.below(FILES.len() as u64) as usize;
        let name = FILES[which].0;
        let wants_gzip = name.ends_with(".txt") && self.random.below(2) == 0;
        let kept = self.kept.get(&(which, wants_gzip)).cloned();
        let mut fields = String::new();
        if wants_gzip {
            fields.push_str("Accept-Encoding: gzip\r\n");
        }
        let mut method = "GET";
        let mut asked = None;
        let first = self.random.below(FILES[which].1 as u64 + 10);
        match (self.random.below(12), &kept) {
            (0, _) => method = "HEAD",
            (1..4, Some(kept)) => fields += &format!("If-None-Match: {}\r\n", kept.tag),
            (4, _) => asked = Some(format!("bytes={first}-{}", first + 70_000)),
            (5, _) => asked = Some(format!("bytes={first}-")),
            (6, _) => asked = Some(format!("bytes=0-99,{}-{}", first + 500, first + 70_000)),
            (7, Some(kept)) => {
                fields += &format!("If-Range: {}\r\n", kept.tag);
                asked = Some(format!("bytes={first}-"));
            }
            (
                8,
                Some(Kept {
                    date: Some(date), ..
                }),
            ) => {
                fields += &format!("If-Range: {date}\r\n");
                asked = Some(format!("bytes={first}-"));
            }
            _ => {}
        }
        if let Some(asked) = &asked {
            fields += &format!("Range: {asked}\r\n");
        }
        let since = Instant::now();
        let Some(reply) = self.client.ask(method, &format!("/{name}"), &fields) else {
            self.counts.cut += 1;
            return;
        };
        let look = Look {
            which,
            wants_gzip,
            since,
            until: Instant::now(),
            ledger: self.ledger,
        };
        let judged = match reply.status {
            200 if method == "HEAD" => look.head(&reply, &mut self.counts),
            200 => self.whole(&look, &reply),
            206 => self.part(&look, &reply, kept.as_ref(), &fields),
            304 => self.unchanged(&look, &reply, kept.as_ref()),
            404 => {
                self.counts.missing += 1;
                look.was(None).then_some(()).ok_or("there was such a file")
            }
            416 => {
                self.counts.unsatisfiable += 1;
                let length = reply.field("content-range");
                let length = length.and_then(|value| value.strip_prefix("bytes */")?.parse().ok());
                // How long what is coded was is not in the ledger.
                let fits = length.is_some_and(|length: u64| {
                    first >= length
                        && (wants_gzip || look.any(|bytes| bytes.len() as u64 == length))
                });
                (fits || look.is_mixed(&reply))
                    .then_some(())
                    .ok_or("no such length")
            }
            _ => Err("a status that nobody asked for"),
        };
        if let Err(why) = judged {
            let (status, fields_of_reply) = (reply.status, &reply.fields);
            self.counts.wrong.push(format!(
                "{why}: {method} {name} {fields:?} {status} {fields_of_reply:?}"
            ));
        }
    }

    fn whole(&mut self, look: &Look<'_>, reply: &Reply) -> Result<(), &'static str> {
        self.counts.whole += 1;
        let coded = reply.field("content-encoding").is_some();
        let content = if coded {
            self.counts.coded += 1;
            let mut plain = Vec::new();
            let decoded = GzDecoder::new(&*reply.body).read_to_end(&mut plain);
            if decoded.is_err() {
                return Err("no gzip");
            }
            hash(&plain)
        } else {
            hash(&reply.body)
        };
        let tag = reply.field("etag").ok_or("no tag")?.to_owned();
        if !look.was(Some(content)) {
            if look.is_mixed(reply) {
                self.counts.mixed += 1;
                return Ok(());
            }
            return Err(
                if self.ledger.was_ever(FILES[look.which].0, Some(content)) {
                    "too old"
                } else {
                    "never was so"
                },
            );
        }
        if !tag.starts_with("W/") {
            self.counts.strong += 1;
            let raw = hash(&reply.body);
            let mut tags = self.tags.0.lock().expect("no panic");
            if *tags.entry(tag.clone()).or_insert(raw) != raw {
                // Then all of it was on its way when it was overwritten.
                if look.is_mixed(reply) {
                    self.counts.mixed += 1;
                    return Ok(());
                }
                return Err("one tag for two contents");
            }
        }
        let kept = Kept {
            tag,
            date: reply.field("last-modified").map(str::to_owned),
            body: Arc::new(reply.body.clone()),
            content,
        };
        self.kept.insert((look.which, look.wants_gzip), kept);
        Ok(())
    }

    fn unchanged(
        &mut self,
        look: &Look<'_>,
        reply: &Reply,
        kept: Option<&Kept>,
    ) -> Result<(), &'static str> {
        self.counts.unchanged += 1;
        let kept = kept.ok_or("not asked for")?;
        let opaque = |tag: &str| tag.trim_start_matches("W/").to_owned();
        if reply.field("etag").map(opaque) != Some(opaque(&kept.tag)) {
            return Err("another tag");
        }
        if look.was(Some(kept.content)) || kept.tag.starts_with("W/") && look.is_mixed(reply) {
            Ok(())
        } else {
            Err("the client's copy is too old")
        }
    }

    fn part(
        &mut self,
        look: &Look<'_>,
        reply: &Reply,
        kept: Option<&Kept>,
        fields: &str,
    ) -> Result<(), &'static str> {
        self.counts.parts += 1;
        let parts = parts(reply).ok_or("parts that cannot be read")?;
        self.counts.several += u64::from(parts.len() > 1);
        let fits = |whole: &[u8]| {
            parts.iter().all(|part| {
                whole.len() == part.length
                    && whole.get(part.at..part.at + part.bytes.len()) == Some(part.bytes)
            })
        };
        let tag = reply.field("etag").ok_or("no tag")?;
        if look.is_mixed(reply) {
            // Then the bytes may be of neither.
            return Ok(());
        }
        if let Some(kept) = kept
            && (kept.tag == tag && !tag.starts_with("W/") || fields.contains("If-Range: \""))
        {
            return fits(&kept.body)
                .then_some(())
                .ok_or("a part of another version");
        }
        // A date holds for whatever has it: versions of one second, and those whose date somebody has set. For that
        // a client that has a tag must not send one (RFC 9110 section 13.1.5); the part is of what is there now.
        // What is coded is not in the ledger.
        if reply.field("content-encoding").is_some() || look.any(fits) {
            return Ok(());
        }
        Err("a part of nothing that was there")
    }
}

/// An answer to one request, and when it came.
struct Look<'a> {
    which: usize,
    wants_gzip: bool,
    since: Instant,
    until: Instant,
    ledger: &'a Ledger,
}

impl Look<'_> {
    fn oldest(&self) -> Instant {
        self.since.checked_sub(OLDEST).unwrap_or(self.since)
    }

    fn was(&self, state: State) -> bool {
        let name = FILES[self.which].0;
        self.ledger.was(name, state, self.oldest(), self.until)
    }

    fn any(&self, fits: impl Fn(&[u8]) -> bool) -> bool {
        let name = FILES[self.which].0;
        self.ledger.any(name, self.oldest(), self.until, fits)
    }

    /// Whether the answer may be a bit of two versions: what is sent from the open file, and was written into
    /// meanwhile. What is kept in memory, and has a strong tag for it, never may.
    fn is_mixed(&self, reply: &Reply) -> bool {
        let name = FILES[self.which].0;
        let in_memory = reply.field("etag").is_some_and(|tag| tag.len() == 22);
        let (since, took) = if in_memory {
            (self.oldest(), SLOW_WRITE)
        } else {
            (self.since, Duration::ZERO)
        };
        // What was asked for by one name may have been written into by the other.
        let names = if EXCHANGED.contains(&self.which) {
            EXCHANGED.map(|which| FILES[which].0)
        } else {
            [name; 2]
        };
        let was_mixed = |name| self.ledger.was_mixed(name, since, self.until, took);
        names.into_iter().any(was_mixed)
    }

    fn head(&self, reply: &Reply, counts: &mut Counts) -> Result<(), &'static str> {
        counts.heads += 1;
        let length = reply.field("content-length").ok_or("no length")?;
        let fits = self.any(|bytes| bytes.len().to_string() == length);
        if reply.field("content-encoding").is_some() || fits || self.is_mixed(reply) {
            Ok(())
        } else {
            Err("a length that nothing had")
        }
    }
}

struct Part<'b> {
    at: usize,
    bytes: &'b [u8],
    /// That of the whole.
    length: usize,
}

fn parts(reply: &Reply) -> Option<Vec<Part<'_>>> {
    if let Some(range) = reply.field("content-range") {
        return Some(vec![part(range, &reply.body)?]);
    }
    let content_type = reply.field("content-type")?;
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=")?;
    let (open, close) = (format!("--{boundary}\r\n"), format!("--{boundary}--\r\n"));
    let mut rest = &*reply.body;
    let mut parts = Vec::new();
    while rest != close.as_bytes() {
        rest = rest.strip_prefix(open.as_bytes())?;
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&rest[..end]).ok()?;
        let range = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Range: "))?;
        let (first, last) = range
            .strip_prefix("bytes ")?
            .split_once('/')?
            .0
            .split_once('-')?;
        let length = last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?;
        let body = rest.get(end + 4..end + 4 + length)?;
        parts.push(part(range, body)?);
        rest = rest.get(end + 4 + length..)?.strip_prefix(b"\r\n")?;
    }
    Some(parts)
}

fn part<'b>(range: &str, bytes: &'b [u8]) -> Option<Part<'b>> {
    let (span, length) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    let (at, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let length = length.parse().ok()?;
    (last + 1 - at == bytes.len()).then_some(Part { at, bytes, length })
}
