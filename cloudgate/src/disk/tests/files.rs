//! Is what is kept of a real folder whole, and never old?

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::super::*;
use super::{MILLISECOND, key, on_worker, wait_until};
use crate::message::clock::Clock;
use crate::net::home;

/// A folder on the disk; `None` for what is not there.
struct Folder(PathBuf);

impl Load for Folder {
    type Value = Option<Snapshot>;

    fn load(&self, key: Key<'_>) -> io::Result<Option<Snapshot>> {
        match File::open(self.0.join(key.name)) {
            Ok(file) => read(file, 1 << 20).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn is_current(&self, key: Key<'_>, value: &Option<Snapshot>) -> bool {
        let version = fs::metadata(self.0.join(key.name))
            .ok()
            .map(|metadata| crate::message::FileVersion::of(&metadata));
        version == value.as_ref().map(|snapshot| snapshot.version)
    }

    fn cost(&self, value: &Option<Snapshot>) -> u64 {
        match value {
            Some(snapshot) if !snapshot.settled => u64::MAX,
            Some(snapshot) => snapshot.version.length(),
            None => 0,
        }
    }

    fn for_worker(&self, value: &Option<Snapshot>) -> Option<Snapshot> {
        value.as_ref().map(Snapshot::for_worker)
    }

    fn folders(&self, key: Key<'_>) -> Vec<PathBuf> {
        let path = self.0.join(key.name);
        path.parent().map(PathBuf::from).into_iter().collect()
    }
}

fn text(cache: &Cache<Folder>, name: &str) -> Option<String> {
    match &(*cache.get(key(name)).unwrap()).as_ref()?.content {
        Content::Memory(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        Content::Open(_) => Some("open".to_owned()),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_change_is_seen_at_once_where_the_system_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let at = |name: &str| folder.path().join(name);
    // The clock stands: without being told nobody would look again.
    let loader = Folder(folder.path().to_owned());
    let cache = Cache::with_clock(loader, 1 << 20, Clock::standing());
    for name in ["a", "sub/b"] {
        assert_eq!(text(&cache, name), None);
        fs::write(at(name), "one").unwrap();
        wait_until(|| text(&cache, name).as_deref() == Some("one"));
        fs::write(at(name), "two").unwrap();
        wait_until(|| text(&cache, name).as_deref() == Some("two"));
        fs::write(at("c"), "three").unwrap();
        fs::rename(at("c"), at(name)).unwrap();
        wait_until(|| text(&cache, name).as_deref() == Some("three"));
    }
    fs::remove_file(at("a")).unwrap();
    wait_until(|| text(&cache, "a").is_none());
    assert_eq!(text(&cache, "sub/b").as_deref(), Some("three"));
    fs::rename(at("sub"), at("away")).unwrap();
    wait_until(|| text(&cache, "sub/b").is_none());
}

#[test]
fn a_copy_of_a_worker_has_a_count_of_its_own() {
    home::start_for_tests();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), vec![7; 1000]).unwrap();
    let cache = Arc::new(Cache::new(Folder(folder.path().to_owned()), 1 << 20));
    let copies = [0, 1].map(|worker| {
        let cache = Arc::clone(&cache);
        on_worker(worker, move || cache.get(key("a")).unwrap())
    });
    assert!(!Arc::ptr_eq(&copies[0], &copies[1]));
    let addresses = copies.map(|copy| match &copy.as_ref().as_ref().unwrap().content {
        Content::Memory(bytes) => bytes.as_ptr() as usize,
        Content::Open(_) => panic!("open"),
    });
    // The bytes are there once.
    assert_eq!(addresses[0], addresses[1]);
}

/// What a file was between two calls of the system, and when it became something else.
#[derive(Default)]
struct History {
    states: HashMap<Option<Vec<u8>>, Option<Instant>>,
    last: Option<Vec<u8>>,
}

impl History {
    /// To be called before the file becomes it.
    fn will_be(&mut self, state: Option<Vec<u8>>) {
        self.states.insert(state.clone(), None);
        self.last = state;
    }

    /// To be called after it became the last one.
    fn is(&mut self) {
        let now = Instant::now();
        for (state, over) in &mut self.states {
            if *state == self.last {
                *over = None;
            } else if over.is_none() {
                *over = Some(now);
            }
        }
    }
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 33) % below
}

/// Edits, truncates, appends to, replaces and removes a file, one call of the system after the other.
fn edit(path: &std::path::Path, history: &Mutex<History>, seed: &mut u64) {
    let now = |state: Option<Vec<u8>>, action: &mut dyn FnMut()| {
        history.lock().unwrap().will_be(state);
        action();
        history.lock().unwrap().is();
    };
    let mut content = history.lock().unwrap().last.clone().unwrap_or_default();
    let fresh = vec![random(seed, 256) as u8; random(seed, 40_000) as usize + 1];
    let open = || {
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
    };
    match random(seed, 6) {
        0 => {
            let other = path.with_extension("new");
            fs::write(&other, &fresh).unwrap();
            now(Some(fresh), &mut || fs::rename(&other, path).unwrap());
        }
        1 => now(None, &mut || {
            let _ = fs::remove_file(path);
        }),
        action => {
            let mut file = None;
            now(Some(content.clone()), &mut || file = Some(open().unwrap()));
            let mut file = file.unwrap();
            if action == 2 {
                now(Some(Vec::new()), &mut || file.set_len(0).unwrap());
                content.clear();
            }
            let start = match action {
                3 => content.len(),
                4 => content.len() / 2,
                _ => 0,
            };
            file.seek(io::SeekFrom::Start(start as u64)).unwrap();
            content.resize(content.len().max(start + fresh.len()), 0);
            content[start..start + fresh.len()].copy_from_slice(&fresh);
            content.truncate(200_000);
            let end = content.len().min(start + fresh.len());
            let piece = &fresh[..end - start];
            now(Some(content.clone()), &mut || {
                file.write_all(piece).unwrap();
            });
        }
    }
}

#[test]
fn whatever_is_done_to_files_each_answer_is_a_whole_version_and_none_is_old() {
    home::start_for_tests();
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::new(Folder(folder.path().to_owned()), 4 << 20));
    let names = ["a", "b", "c"];
    let histories: Arc<[Mutex<History>; 3]> = Arc::default();
    for history in &*histories {
        history.lock().unwrap().will_be(None);
    }
    let over = Arc::new(AtomicBool::new(false));
    let (done, results) = mpsc::channel::<Result<usize, String>>();
    let mut readers: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for number in 0..6 {
        let (cache, histories) = (Arc::clone(&cache), Arc::clone(&histories));
        let (over, done) = (Arc::clone(&over), done.clone());
        readers.push(Box::new(move || {
            let mut versions = HashSet::new();
            for round in number.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let place = round % 3;
                let asked = Instant::now();
                let value = cache.get(key(names[place])).unwrap();
                let state = match value.as_ref().as_ref().map(|snapshot| &snapshot.content) {
                    None => None,
                    Some(Content::Memory(bytes)) => Some(bytes.to_vec()),
                    // The server looks for changes while it sends it.
                    Some(Content::Open(_)) => continue,
                };
                let known = histories[place].lock().unwrap().states.get(&state).copied();
                let length = state.as_ref().map(Vec::len);
                let age = known.map(|over| over.map(|over| asked.saturating_duration_since(over)));
                match age {
                    None => return done.send(Err(format!("torn: {length:?} bytes"))).unwrap(),
                    Some(Some(age)) if age > Duration::from_secs(5) => {
                        return done.send(Err(format!("{age:?} old"))).unwrap();
                    }
                    Some(_) => versions.insert((place, state)),
                };
                home::sleep(MILLISECOND);
            }
            done.send(Ok(versions.len())).unwrap();
        }));
    }
    for (number, reader) in readers.into_iter().enumerate() {
        if number < 4 {
            home::spawn(number % 2, "test", reader).unwrap();
        } else {
            std::thread::spawn(reader);
        }
    }
    let begin = Instant::now();
    let mut seed = 7;
    while begin.elapsed() < Duration::from_secs(4) {
        let place = random(&mut seed, 3) as usize;
        edit(
            &folder.path().join(names[place]),
            &histories[place],
            &mut seed,
        );
        // Often at once, often after reading could have ended.
        let pause = random(&mut seed, 60).saturating_sub(20);
        home::sleep(pause as u32 * MILLISECOND);
    }
    for (name, history) in names.iter().zip(&*histories) {
        let last = history.lock().unwrap().last.clone();
        wait_until(|| {
            let value = cache.get(key(name)).unwrap();
            match value.as_ref().as_ref().map(|snapshot| &snapshot.content) {
                None => last.is_none(),
                Some(Content::Memory(bytes)) => last.as_deref() == Some(bytes),
                Some(Content::Open(_)) => false,
            }
        });
    }
    over.store(true, Ordering::Relaxed);
    for _ in 0..6 {
        let versions = results.recv_timeout(Duration::from_secs(60)).unwrap();
        let versions = versions.unwrap();
        assert!(versions > 3, "{versions}");
    }
}
