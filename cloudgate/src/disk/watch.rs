//! Who says at once that something in a folder has changed?
//!
//! One thread a process, with inotify. It can miss things: what happens on a file server, what a program
//! writes through a memory mapping, what is past the limits. So nothing relies on it; it makes things sooner.

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::inotify::{
    CreateFlags, Event, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;

/// The most folders that are watched, by the whole process.
const MOST_WATCHES: usize = 4096;

/// How long the thread lets events gather before it reads the next ones. The same event twice in a row is
/// one in the queue, so a file that is written all the time costs 500 events a second.
const GATHER: Duration = Duration::from_millis(2);

/// The room for events that are read at once, in bytes.
const READ_BYTES: usize = 16 << 10;

const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Whom changes concern. It is told of them on the thread that watches.
pub(super) trait Listener: Send + Sync {
    /// This file of the folder has changed, appeared or gone; or the folder's own attributes have changed.
    fn changed(&self, folder: &Path, file: Option<&str>);

    /// Anything may have changed.
    fn all_changed(&self);
}

/// Watches a folder for `listener`, for as long as that lives. To be called again whenever something in the
/// folder is read: by then the path may lead to another folder. May block.
pub(super) fn add(folder: &Arc<Path>, listener: &Weak<dyn Listener>) {
    if let Some(watcher) = &*WATCHER {
        watcher.add(folder, listener);
    }
}

/// Ends what is watched for listeners that live no more.
pub(super) fn remove_dropped() {
    if let Some(watcher) = &*WATCHER {
        watcher.remove_dropped();
    }
}

static WATCHER: LazyLock<Option<Arc<Watcher>>> =
    LazyLock::new(|| match Watcher::start(MOST_WATCHES) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            log::info!("folders are not watched ({error}): changes are seen after a second");
            None
        }
    });

struct Watcher {
    inotify: OwnedFd,
    state: Mutex<State>,
    most: usize,
    /// Whether it was said that there is no room for another watch.
    said: AtomicBool,
}

#[derive(Default)]
struct State {
    /// By the system's number of the watch. Two paths to one folder have the same.
    watches: HashMap<i32, Arc<Vec<Watched>>>,
    numbers: HashMap<Arc<Path>, i32>,
    /// How many are being added.
    pending: usize,
}

#[derive(Clone)]
struct Watched {
    folder: Arc<Path>,
    listener: Weak<dyn Listener>,
}

impl Watcher {
    fn start(most: usize) -> io::Result<Arc<Watcher>> {
        let watcher = Arc::new(Watcher {
            inotify: init(CreateFlags::CLOEXEC)?,
            state: Mutex::default(),
            most,
            said: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&watcher);
        std::thread::Builder::new()
            .name("cloudgate-watch".to_owned())
            .spawn(move || theirs.run())?;
        Ok(watcher)
    }

    fn add(&self, folder: &Arc<Path>, listener: &Weak<dyn Listener>) {
        let has_room = self.state().reserve(folder, self.most);
        if !has_room {
            self.say_full(format_args!("{} are watched already", self.most));
            return;
        }
        // Not under the lock, for a path may lead to a file server that is slow. Should the watch of this
        // folder end just now, the thread is told so, and the next load begins another.
        let added = add_watch(&self.inotify, &**folder, CHANGES);
        let mut state = self.state();
        state.pending -= 1;
        match added {
            Ok(number) => {
                let over = state.note(number, folder, listener);
                drop(state);
                self.end(over);
            }
            Err(error @ (Errno::NOSPC | Errno::NOMEM)) => {
                drop(state);
                self.say_full(format_args!("{error}; see fs.inotify.max_user_watches"));
            }
            // It is not there, or may not be read.
            Err(_) => {}
        }
    }

    fn say_full(&self, why: std::fmt::Arguments<'_>) {
        if !self.said.swap(true, Ordering::Relaxed) {
            log::info!(
                "no more folders can be watched ({why}): in others, changes are seen after a second"
            );
        }
    }

    fn remove_dropped(&self) {
        let over = self.state().remove_dropped();
        self.end(over);
    }

    fn end(&self, numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            // Fails where the folder is gone, and the watch with it.
            let _ = remove_watch(&self.inotify, number);
        }
    }

    /// The life of the thread.
    fn run(&self) {
        let mut room = vec![MaybeUninit::uninit(); READ_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut room);
        loop {
            match reader.next() {
                Ok(event) => self.tell(&event),
                Err(Errno::INTR) => {}
                Err(error) => {
                    log::warn!("folders are not watched any more: {error}");
                    return;
                }
            }
            if reader.is_buffer_empty() {
                std::thread::sleep(GATHER);
            }
        }
    }

    fn tell(&self, event: &Event<'_>) {
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            let all: Vec<_> = self.state().watches.values().cloned().collect();
            for watched in all {
                all_changed(&watched);
            }
            return;
        }
        let watched = {
            let mut state = self.state();
            if flags.intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF) {
                state.remove(event.wd())
            } else {
                state.watches.get(&event.wd()).cloned()
            }
        };
        // Listeners are told without the lock: they may be dropped here, which takes it.
        let Some(watched) = watched else {
            return;
        };
        if flags.contains(ReadFlags::MOVE_SELF) {
            // It would go on telling of the folder at its new place.
            self.end([event.wd()]);
        }
        if flags.intersects(
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED,
        ) {
            all_changed(&watched);
            return;
        }
        let file = match event.file_name().map(CStr::to_str) {
            Some(Ok(name)) => Some(name),
            None => None,
            // No key has such a name.
            Some(Err(_)) => return,
        };
        for Watched { folder, listener } in &*watched {
            if let Some(listener) = listener.upgrade() {
                listener.changed(folder, file);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all_changed(watched: &[Watched]) {
    for Watched { listener, .. } in watched {
        if let Some(listener) = listener.upgrade() {
            listener.all_changed();
        }
    }
}

impl State {
    /// Whether there is room for this folder, and then it is taken.
    fn reserve(&mut self, folder: &Path, most: usize) -> bool {
        let has_room =
            self.numbers.contains_key(folder) || self.watches.len() + self.pending < most;
        self.pending += usize::from(has_room);
        has_room
    }

    /// Notes for whom a folder is watched; gives the watch that the same path had before, if nobody needs it.
    fn note(
        &mut self,
        number: i32,
        folder: &Arc<Path>,
        listener: &Weak<dyn Listener>,
    ) -> Option<i32> {
        let before = self.numbers.insert(Arc::clone(folder), number);
        let watched = self.watches.entry(number).or_default();
        let is_there = |of: &Watched| of.folder == *folder && Weak::ptr_eq(&of.listener, listener);
        if !watched.iter().any(is_there) {
            Arc::make_mut(watched).push(Watched {
                folder: Arc::clone(folder),
                listener: Weak::clone(listener),
            });
        }
        let before = before.filter(|before| *before != number)?;
        let others = Arc::make_mut(self.watches.get_mut(&before)?);
        others.retain(|watched| watched.folder != *folder);
        if !others.is_empty() {
            return None;
        }
        self.watches.remove(&before);
        Some(before)
    }

    fn remove(&mut self, number: i32) -> Option<Arc<Vec<Watched>>> {
        let watched = self.watches.remove(&number)?;
        self.numbers.retain(|_, other| *other != number);
        Some(watched)
    }

    fn remove_dropped(&mut self) -> Vec<i32> {
        for watched in self.watches.values_mut() {
            if watched.iter().any(|of| of.listener.strong_count() == 0) {
                Arc::make_mut(watched).retain(|of| of.listener.strong_count() > 0);
            }
        }
        let over = self
            .watches
            .iter()
            .filter(|(_, watched)| watched.is_empty());
        let over: Vec<i32> = over.map(|(number, _)| *number).collect();
        self.watches.retain(|_, watched| !watched.is_empty());
        let watches = &self.watches;
        self.numbers
            .retain(|_, number| watches.contains_key(number));
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::mpsc::{Receiver, Sender, channel};

    #[derive(Debug, PartialEq)]
    enum Told {
        Changed(PathBuf, Option<String>),
        All,
    }

    struct Teller(Mutex<Sender<Told>>);

    impl Listener for Teller {
        fn changed(&self, folder: &Path, file: Option<&str>) {
            let told = Told::Changed(folder.to_owned(), file.map(str::to_owned));
            let _ = self.0.lock().unwrap().send(told);
        }

        fn all_changed(&self) {
            let _ = self.0.lock().unwrap().send(Told::All);
        }
    }

    fn listener() -> (Arc<dyn Listener>, Receiver<Told>) {
        let (sender, told) = channel();
        (Arc::new(Teller(Mutex::new(sender))), told)
    }

    #[track_caller]
    fn wait_for(told: &Receiver<Told>, want: &Told) {
        while told.recv_timeout(Duration::from_secs(60)).unwrap() != *want {}
    }

    #[test]
    fn each_kind_of_change_is_told() {
        let watcher = Watcher::start(10).unwrap();
        let (listener, told) = listener();
        let outer = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = outer.path().join("folder").into();
        fs::create_dir(&folder).unwrap();
        watcher.add(&folder, &Arc::downgrade(&listener));
        let changed = |name: &str| Told::Changed(folder.to_path_buf(), Some(name.to_owned()));
        fs::write(folder.join("a"), "1").unwrap();
        wait_for(&told, &changed("a"));
        fs::rename(folder.join("a"), folder.join("b")).unwrap();
        wait_for(&told, &changed("a"));
        wait_for(&told, &changed("b"));
        fs::write(outer.path().join("c"), "1").unwrap();
        fs::rename(outer.path().join("c"), folder.join("c")).unwrap();
        wait_for(&told, &changed("c"));
        fs::remove_file(folder.join("b")).unwrap();
        wait_for(&told, &changed("b"));
        let permissions = fs::metadata(folder.join("c")).unwrap().permissions();
        fs::set_permissions(folder.join("c"), permissions).unwrap();
        wait_for(&told, &changed("c"));
        fs::rename(&folder, outer.path().join("moved")).unwrap();
        wait_for(&told, &Told::All);
        assert_eq!(watcher.state().watches.len(), 0);
        assert_eq!(watcher.state().numbers.len(), 0);
        // The path leads to another folder now.
        fs::create_dir(&folder).unwrap();
        watcher.add(&folder, &Arc::downgrade(&listener));
        fs::write(folder.join("d"), "1").unwrap();
        wait_for(&told, &changed("d"));
        fs::remove_dir_all(&folder).unwrap();
        wait_for(&told, &Told::All);
    }

    #[test]
    fn a_path_that_leads_elsewhere_by_now_is_watched_there() {
        let watcher = Watcher::start(10).unwrap();
        let (listener, told) = listener();
        let outer = tempfile::tempdir().unwrap();
        let link: Arc<Path> = outer.path().join("link").into();
        for name in ["one", "two"] {
            fs::create_dir(outer.path().join(name)).unwrap();
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(name, &link).unwrap();
            watcher.add(&link, &Arc::downgrade(&listener));
            watcher.add(&link, &Arc::downgrade(&listener));
            assert_eq!(watcher.state().watches.len(), 1);
            fs::write(link.join(name), "1").unwrap();
            let want = Told::Changed(link.to_path_buf(), Some(name.to_owned()));
            wait_for(&told, &want);
        }
    }

    #[test]
    fn watches_are_bounded_and_end_with_whom_they_are_for() {
        let watcher = Watcher::start(3).unwrap();
        let outer = tempfile::tempdir().unwrap();
        let folders: Vec<Arc<Path>> = (0..4)
            .map(|number| outer.path().join(number.to_string()).into())
            .collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let (first, _told) = listener();
        let (second, told) = listener();
        for folder in &folders[..2] {
            watcher.add(folder, &Arc::downgrade(&first));
        }
        let missing: Arc<Path> = outer.path().join("missing").into();
        watcher.add(&missing, &Arc::downgrade(&second));
        watcher.add(&folders[1], &Arc::downgrade(&second));
        watcher.add(&folders[2], &Arc::downgrade(&second));
        assert_eq!(watcher.state().watches.len(), 3);
        assert!(!watcher.said.load(Ordering::Relaxed));
        watcher.add(&folders[3], &Arc::downgrade(&second));
        assert_eq!(watcher.state().watches.len(), 3);
        assert!(watcher.said.load(Ordering::Relaxed));
        // One that is there takes no room.
        watcher.add(&folders[0], &Arc::downgrade(&second));
        watcher.add(&folders[0], &Arc::downgrade(&first));
        drop(second);
        watcher.remove_dropped();
        assert_eq!(watcher.state().watches.len(), 2);
        drop(first);
        watcher.remove_dropped();
        assert_eq!(watcher.state().watches.len(), 0);
        assert_eq!(watcher.state().numbers.len(), 0);
        assert_eq!(watcher.state().pending, 0);
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn a_file_that_is_written_all_the_time_is_told_of_now_and_then() {
        let watcher = Watcher::start(3).unwrap();
        let outer = tempfile::tempdir().unwrap();
        let (listener, told) = listener();
        watcher.add(&outer.path().into(), &Arc::downgrade(&listener));
        let mut file = fs::File::create(outer.path().join("log")).unwrap();
        let writes = 50_000;
        for _ in 0..writes {
            file.write_all(b"x").unwrap();
        }
        drop(file);
        fs::write(outer.path().join("end"), "").unwrap();
        let end = Told::Changed(outer.path().to_owned(), Some("end".to_owned()));
        let mut count = 0;
        while told.recv_timeout(Duration::from_secs(60)).unwrap() != end {
            count += 1;
        }
        assert!((1..writes / 4).contains(&count), "{count}");
    }
}
