//! What is made once of a file that is served often?
//!
//! A file has forms: as it is, and one for each content coding. A coded form is the file that lies beside
//! it under the coding's name (`app.js.br`), if it is no older, and else what comes of compressing it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use super::rules::Rules;
use super::source::{Kind, Read, Source, Stamp, is_missing};
use crate::disk::{Content, Key, Load, Place, Sealed};
use crate::message::conditional::Validators;
use crate::message::{Body, FileRange, FileVersion, Headers};
use crate::services::coding::{Coding, encoder};

/// The largest file that is kept in memory, in bytes. Larger ones are kept open, and sent by the system.
const LARGEST_KEPT: u64 = 1 << 20;

/// What a value costs that is given out and not kept.
const NOT_KEPT: u64 = u64::MAX;

/// Files in memory that are larger, in bytes, are sealed: below, the system is not quicker to send them.
const LARGEST_COPIED: usize = 64 << 10;

/// The smallest file in bytes that is compressed: about what one packet holds.
const SMALLEST_CODED: u64 = 1024;

/// How hard to try, from 1 to 9. It is done once a version, but it may be done for many files.
const LEVEL: u32 = 6;

/// A file in one form, with everything that an answer needs.
pub(super) struct Representation {
    held_as: HeldAs,
    length: u64,
    pub(super) validators: Validators,
    /// The fields of a 200.
    pub(super) headers: Headers,
    /// The fields of a 304.
    pub(super) not_modified: Headers,
    /// Whether it may have coded forms.
    pub(super) varies: bool,
    /// The bytes of memory that it takes.
    held: u64,
}

enum HeldAs {
    Bytes(Bytes),
    Sealed(Sealed),
    /// The file itself, which may change.
    Open(Arc<File>, Option<FileVersion>, Option<Arc<Place>>),
}

/// What is known of a path, in one form.
pub(super) struct Known {
    pub(super) what: What,
    seen: Seen,
}

pub(super) enum What {
    File(Box<Representation>),
    Folder,
    /// Nothing that is shown.
    Missing,
    /// A file that is not to be had in this form.
    NoSuchForm,
}

/// What was found on the disk when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// In which of the sources, and what.
    plain: Option<(usize, Kind)>,
    /// What lies beside it under the coding's name.
    coded: Option<Stamp>,
    /// Whether the content can be relied on for as long as nothing else is found.
    settled: bool,
}

/// What lies at a path, in which of the sources, and what lies beside it for a coding.
type Found = (Option<(usize, Kind)>, Option<Stamp>);

/// How a source is looked at: [`Source::kind`], or at once.
type Look = fn(&Source, &str) -> io::Result<Kind>;

/// Makes what is known of a path.
pub(super) struct Loader {
    pub(super) sources: Vec<Source>,
    pub(super) rules: Rules,
}

/// The form of a file that has this coding.
pub(super) fn form(coding: Option<Coding>) -> u8 {
    match coding {
        None => 0,
        Some(Coding::Zstd) => 1,
        Some(Coding::Brotli) => 2,
        Some(Coding::Gzip) => 3,
    }
}

fn coding(form: u8) -> Option<Coding> {
    match form {
        1 => Some(Coding::Zstd),
        2 => Some(Coding::Brotli),
        3 => Some(Coding::Gzip),
        _ => None,
    }
}

impl Representation {
    /// The whole of it.
    pub(super) fn body(&self) -> Body {
        let whole = |file: &Arc<File>| FileRange::new(Arc::clone(file), 0, self.length);
        match &self.held_as {
            HeldAs::Bytes(bytes) => Body::Bytes(bytes.clone()),
            HeldAs::Sealed(sealed) => Body::File(whole(sealed.file())),
            HeldAs::Open(file, None, _) => Body::File(whole(file)),
            HeldAs::Open(file, Some(version), _) => Body::File(whole(file).of_version(*version)),
        }
    }
}

impl Loader {
    /// What lies at this path, and in which source: the first one that has something there.
    fn find(&self, name: &str, look: Look) -> io::Result<Option<(usize, Kind)>> {
        for (index, source) in self.sources.iter().enumerate() {
            match look(source, name) {
                Ok(kind) => return Ok(Some((index, kind))),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn load_plain(&self, name: &str) -> io::Result<Known> {
        let plain = self.find(name, Source::kind)?;
        let known = |what, settled| Known {
            what,
            seen: Seen {
                plain,
                coded: None,
                settled,
            },
        };
        let index = match plain {
            None => return Ok(known(What::Missing, true)),
            Some((_, Kind::Folder)) => return Ok(known(What::Folder, true)),
            Some((index, Kind::File(_))) => index,
        };
        match self.sources[index].read(name, LARGEST_KEPT) {
            Ok(read) => {
                let settled = read.settled;
                let mut known = known(What::Missing, settled);
                known.seen.plain = Some((index, Kind::File(read.stamp)));
                let representation = self.represent(name, read, None);
                known.seen.settled &= !representation.validators.tag().starts_with("W/");
                known.what = What::File(Box::new(representation));
                Ok(known)
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                log::warn!(
                    "{name} is there, but this program may not read it, so clients get a 404: {error}"
                );
                Ok(known(What::Missing, true))
            }
            // It went between the two looks, and what was found may come back as it was.
            Err(error) if is_missing(&error) => Ok(known(What::Missing, false)),
            Err(error) => Err(error),
        }
    }

    fn load_coded(&self, name: &str, coding: Coding) -> io::Result<Known> {
        let (plain, coded) = self.find_coded(name, coding, Source::kind)?;
        let known = |what| Known {
            what,
            seen: Seen {
                plain,
                coded,
                settled: true,
            },
        };
        let Some((index, Kind::File(stamp))) = plain else {
            return Ok(known(What::NoSuchForm));
        };
        let source = &self.sources[index];
        if coded.is_some_and(|coded| is_of(coded, stamp)) {
            match source.read(&beside(name, coding), LARGEST_KEPT) {
                Ok(read) => {
                    let mut known = known(What::NoSuchForm);
                    known.seen.coded = Some(read.stamp);
                    known.seen.settled = read.settled;
                    let representation = self.represent(name, read, Some(coding));
                    known.seen.settled &= !representation.validators.tag().starts_with("W/");
                    known.what = What::File(Box::new(representation));
                    return Ok(known);
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.rules.compresses(name)
            || !Coding::ENCODABLE.contains(&coding)
            || !(SMALLEST_CODED..=LARGEST_KEPT).contains(&stamp.length)
        {
            return Ok(known(What::NoSuchForm));
        }
        let read = match source.read(name, LARGEST_KEPT) {
            Ok(read) => read,
            // It went meanwhile, or may not be read: whether it is there at all is said by its plain form.
            Err(error) if is_missing(&error) => {
                let mut known = known(What::NoSuchForm);
                known.seen.settled = false;
                return Ok(known);
            }
            Err(error) => return Err(error),
        };
        let mut known = known(What::NoSuchForm);
        known.seen.plain = Some((index, Kind::File(read.stamp)));
        known.seen.settled = read.settled;
        if let Content::Memory(bytes) = read.content
            && let Some(coded) = compress(bytes, coding)?
        {
            let read = Read {
                stamp: Stamp {
                    length: coded.len() as u64,
                    ..read.stamp
                },
                content: Content::Memory(coded),
                settled: read.settled,
            };
            known.what = What::File(Box::new(self.represent(name, read, Some(coding))));
        }
        Ok(known)
    }

    /// What lies at the path, and what lies beside it for this coding.
    fn find_coded(&self, name: &str, coding: Coding, look: Look) -> io::Result<Found> {
        let plain = self.find(name, look)?;
        let Some((index, _)) = plain else {
            return Ok((None, None));
        };
        match look(&self.sources[index], &beside(name, coding)) {
            Ok(Kind::File(stamp)) => Ok((plain, Some(stamp))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // Whatever keeps it from being seen, the file itself can be sent.
            Ok(Kind::Folder) | Err(_) => Ok((plain, None)),
        }
    }

    /// What is found for a key, or why that cannot be told.
    fn look_up(&self, key: Key<'_>, look: Look) -> io::Result<Found> {
        match coding(key.form) {
            None => Ok((self.find(key.name, look)?, None)),
            Some(coding) => self.find_coded(key.name, coding, look),
        }
    }

    /// What an answer needs of this content of the file of this name.
    fn represent(&self, name: &str, read: Read, coding: Option<Coding>) -> Representation {
        let content_type = self.rules.content_type(name);
        let coding = coding.or(own_coding(name));
        let varies = self.rules.varies(name, &content_type);
        let validators = Validators::new(entity_tag(&read), read.stamp.modified);
        let mut headers = Headers::new();
        let mut not_modified = Headers::new();
        // None of them can hold a control character: names were checked, values were at start.
        let mut add = |field: &str, value: &str, describes_body: bool| {
            let _ = headers.append(field, value);
            if !describes_body {
                let _ = not_modified.append(field, value);
            }
        };
        add("Content-Type", &content_type, true);
        if let Some(coding) = coding {
            add("Content-Encoding", coding.name(), true);
        }
        add("ETag", validators.tag(), false);
        if let Some(date) = validators.date() {
            add("Last-Modified", date, false);
        }
        if let Some(value) = self.rules.cache_control(name, &content_type) {
            add("Cache-Control", value, false);
        }
        if varies {
            add("Vary", "Accept-Encoding", false);
        }
        add("Accept-Ranges", "bytes", true);
        add("X-Content-Type-Options", "nosniff", true);
        let head = 2 * (headers.wire().len() + not_modified.wire().len()) as u64;
        let (held_as, held) = match read.content {
            Content::Open(file) => {
                let place = Place::take().map(Arc::new);
                // Where there are enough of them it is opened for each request.
                let held = if place.is_some() { 0 } else { NOT_KEPT };
                (HeldAs::Open(file, read.stamp.version, place), held)
            }
            Content::Memory(bytes) => {
                let length = bytes.len() as u64;
                let sealed = (bytes.len() > LARGEST_COPIED)
                    .then(|| Sealed::new(&bytes))
                    .flatten();
                match sealed {
                    Some(sealed) => (HeldAs::Sealed(sealed), length),
                    // A part of the program is in memory anyway.
                    None if read.stamp.version.is_none() && coding.is_none() => {
                        (HeldAs::Bytes(bytes), 0)
                    }
                    None => (HeldAs::Bytes(bytes), length),
                }
            }
        };
        Representation {
            held_as,
            length: read.stamp.length,
            validators,
            headers,
            not_modified,
            varies,
            held: head.saturating_add(held),
        }
    }
}

/// The coding that files of this name are in by themselves: SVG that has been through gzip has the media type of
/// SVG, and would be no picture without that word.
pub(super) fn own_coding(name: &str) -> Option<Coding> {
    let ending = name.rsplit('.').next().unwrap_or_default();
    ending.eq_ignore_ascii_case("svgz").then_some(Coding::Gzip)
}

/// The name of what lies beside a file for this coding.
fn beside(name: &str, coding: Coding) -> String {
    format!("{name}.{}", coding.extension())
}

/// Whether what lies beside a file was made of it as it is: it is no older, and not empty, as no coding is.
fn is_of(coded: Stamp, plain: Stamp) -> bool {
    coded.length > 0 && coded.modified >= plain.modified
}

/// The compressed bytes, if that is worth it: a client has to decode them.
fn compress(bytes: Bytes, coding: Coding) -> io::Result<Option<Bytes>> {
    let most = bytes.len() - bytes.len() / 16;
    match encoder::encode(Body::Bytes(bytes), coding, LEVEL)? {
        Body::Bytes(coded) if coded.len() < most => Ok(Some(coded)),
        _ => Ok(None),
    }
}

/// A strong entity-tag (RFC 9110 section 8.8.3): of the bytes themselves where they are in memory, so that it is the
/// same on every machine, and else of what tells the version; weak as long as that may not be enough.
fn entity_tag(read: &Read) -> String {
    match (&read.content, read.stamp.version) {
        (Content::Memory(bytes), _) => {
            let hash = digest::digest(&digest::SHA256, bytes);
            format!("\"{}\"", URL_SAFE_NO_PAD.encode(&hash.as_ref()[..15]))
        }
        (Content::Open(_), Some(version)) if read.settled => version.entity_tag(SystemTime::now()),
        (Content::Open(_), version) => {
            let tag = version.as_ref().map(FileVersion::opaque_tag);
            format!("W/\"{}\"", tag.unwrap_or_default())
        }
    }
}

impl Load for Arc<Loader> {
    type Value = Known;

    fn load(&self, key: Key<'_>) -> io::Result<Known> {
        match coding(key.form) {
            None => self.load_plain(key.name),
            Some(coding) => self.load_coded(key.name, coding),
        }
    }

    fn is_current(&self, key: Key<'_>, known: &Known) -> bool {
        self.look_up(key, Source::kind)
            .is_ok_and(|found| found == (known.seen.plain, known.seen.coded))
    }

    fn is_current_at_once(&self, key: Key<'_>, known: &Known) -> Option<bool> {
        match self.look_up(key, Source::kind_at_once) {
            Ok(found) => Some(found == (known.seen.plain, known.seen.coded)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    fn cost(&self, known: &Known) -> u64 {
        if !known.seen.settled {
            return NOT_KEPT;
        }
        match &known.what {
            What::File(file) => file.held,
            What::Folder | What::Missing | What::NoSuchForm => 0,
        }
    }

    fn for_worker(&self, known: &Known) -> Known {
        let what = match &known.what {
            What::File(file) => {
                let (mut headers, mut not_modified) =
                    (file.headers.clone(), file.not_modified.clone());
                headers.share();
                not_modified.share();
                What::File(Box::new(Representation {
                    held_as: match &file.held_as {
                        HeldAs::Bytes(bytes) => HeldAs::Bytes(Bytes::from_owner(bytes.clone())),
                        HeldAs::Sealed(sealed) => HeldAs::Sealed(sealed.clone()),
                        HeldAs::Open(file, version, place) => {
                            HeldAs::Open(Arc::clone(file), *version, place.clone())
                        }
                    },
                    length: file.length,
                    validators: file.validators.clone(),
                    headers,
                    not_modified,
                    varies: file.varies,
                    held: file.held,
                }))
            }
            What::Folder => What::Folder,
            What::Missing => What::Missing,
            What::NoSuchForm => What::NoSuchForm,
        };
        Known {
            what,
            seen: known.seen,
        }
    }

    fn folders(&self, key: Key<'_>) -> Vec<PathBuf> {
        self.sources
            .iter()
            .filter_map(|source| source.folder_of(key.name))
            .collect()
    }
}
