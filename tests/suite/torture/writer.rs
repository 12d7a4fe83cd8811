//! How does somebody change a site who does everything that can be done to files?

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::ledger::Ledger;
use super::random::Random;

/// The names and their first lengths: below, at and above what the server keeps in memory. Those in `d/` are
/// there twice: what is not in the site stands beside it.
pub const FILES: [(&str, usize); 20] = [
    ("one.bin", 1),
    ("small.bin", 700),
    ("edge.bin", 1 << 20),
    ("over.bin", (1 << 20) + 1),
    ("large.bin", 3 << 20),
    ("other.bin", 3 << 20),
    ("page.bin", 4096),
    ("tiny.txt", 3),
    ("word.txt", 900),
    ("coded.txt", 1024),
    ("text.txt", 20_000),
    ("long.txt", 200_000),
    ("full.txt", 1 << 20),
    ("huge.txt", 2_500_000),
    ("d/one.bin", 17),
    ("d/two.bin", 90_000),
    ("d/big.bin", 1_600_000),
    ("d/one.txt", 2000),
    ("d/two.txt", 70_000),
    ("d/three.txt", 1_200_000),
];

/// The two of them that change places.
pub const EXCHANGED: [usize; 2] = [4, 5];

/// What a file has, and in the folder that is not shown.
type Shelf = Vec<Option<Arc<Vec<u8>>>>;

pub struct Writer<'a> {
    outer: &'a Path,
    ledger: &'a Ledger,
    random: Random,
    version: u64,
    roots: u64,
    shown: Shelf,
    /// Only those in `d/` are ever there.
    spare: Shelf,
    pub edits: u64,
}

impl<'a> Writer<'a> {
    /// Makes the site `outer/site`, a link to a folder.
    pub fn new(outer: &'a Path, ledger: &'a Ledger) -> Writer<'a> {
        let mut writer = Writer {
            outer,
            ledger,
            random: Random::new(7),
            version: 0,
            roots: 0,
            shown: vec![None; FILES.len()],
            spare: vec![None; FILES.len()],
            edits: 0,
        };
        writer.replace_root();
        fs::create_dir(outer.join("spare")).expect("a folder");
        writer
    }

    /// Changes things until then.
    pub fn run(&mut self, until: Instant) {
        let mut rested = Instant::now();
        while Instant::now() < until {
            self.edit();
            self.edits += 1;
            let rest = match self.random.below(20) {
                0..8 => 0,
                8..18 => self.random.below(40),
                _ => self.random.below(400),
            };
            std::thread::sleep(Duration::from_millis(rest));
            // Long enough for what is large to have strong validators.
            if rested.elapsed() > Duration::from_secs(12) {
                std::thread::sleep(Duration::from_secs(4));
                rested = Instant::now();
            }
            self.ledger.tidy(Instant::now());
        }
    }

    fn path(&self, which: usize) -> PathBuf {
        self.outer.join("site").join(FILES[which].0)
    }

    fn content(&mut self, which: usize, length: usize) -> Arc<Vec<u8>> {
        self.version += 1;
        let (name, version) = (FILES[which].0, self.version);
        let mut bytes = format!("{name} {version} {length}\n").into_bytes();
        let mut random = Random::new(self.version << 8);
        while bytes.len() < length {
            let block = random.next();
            if name.ends_with(".txt") {
                bytes.extend_from_slice(format!("{block:016x}").as_bytes());
            } else {
                bytes.extend_from_slice(&block.to_le_bytes());
            }
        }
        bytes.truncate(length);
        Arc::new(bytes)
    }

    fn edit(&mut self) {
        let which = self.random.below(FILES.len() as u64) as usize;
        let is_text = FILES[which].0.ends_with(".txt");
        match self.random.below(24) {
            0..4 => self.write_into(which),
            // The hard case: several versions before the clock for files moves.
            4..7 => {
                for _ in 0..3 {
                    self.write_into(which);
                }
            }
            7..11 => self.replace(which),
            11 => self.truncate(which),
            12 => self.append(which),
            13 => self.remove(which),
            14 | 15 => self.write_anew(which),
            16..19 if is_text => self.write_coded(which),
            16..18 => self.write_into_with_old_date(which),
            18 => self.exchange(),
            19 | 20 => self.exchange_folders(),
            21 => {
                let _ = fs::remove_file(coded(&self.path(which)));
            }
            22 => self.replace(which),
            _ if self.random.below(4) == 0 => self.replace_root(),
            _ => self.write_into(which),
        }
    }

    /// By one write of the whole, of the same length.
    fn write_into(&mut self, which: usize) {
        let Some(before) = self.shown[which].clone() else {
            return self.write_anew(which);
        };
        let bytes = self.content(which, before.len());
        let file = open(&self.path(which));
        self.ledger.change_in_place(FILES[which].0, &bytes, || {
            file.write_all_at(&bytes, 0).expect("room on the disk");
        });
        self.shown[which] = Some(bytes);
    }

    fn write_into_with_old_date(&mut self, which: usize) {
        if self.shown[which].is_none() {
            return;
        }
        let file = open(&self.path(which));
        let modified = file.metadata().expect("a file").modified().expect("a time");
        self.write_into(which);
        let times = FileTimes::new().set_modified(modified);
        file.set_times(times).expect("a time");
    }

    fn some_length(&mut self, which: usize) -> usize {
        match self.random.below(6) {
            0 => self.random.below(3000) as usize,
            1 => FILES[which].1 + self.random.below(5000) as usize,
            _ => FILES[which].1,
        }
    }

    /// By another file that takes its place.
    fn replace(&mut self, which: usize) {
        let length = self.some_length(which);
        let bytes = self.content(which, length);
        let (temporary, path) = (self.outer.join("temporary"), self.path(which));
        fs::write(&temporary, &*bytes).expect("room on the disk");
        self.note(which, Some(bytes), || {
            fs::rename(&temporary, path).expect("a file");
        });
    }

    fn truncate(&mut self, which: usize) {
        let Some(before) = self.shown[which].clone() else {
            return;
        };
        let length = self.random.below(before.len() as u64 + 1);
        let file = open(&self.path(which));
        let bytes = Arc::new(before[..length as usize].to_vec());
        // The system fills the rest of the last page with zeros, also where that is on its way to a client.
        self.ledger.change_in_place(FILES[which].0, &bytes, || {
            file.set_len(length).expect("a file");
        });
        self.shown[which] = Some(bytes);
    }

    fn append(&mut self, which: usize) {
        let Some(before) = self.shown[which].clone() else {
            return;
        };
        let length = 1 + self.random.below(5000) as usize;
        let more = self.content(which, length);
        let bytes = Arc::new([&**before, &**more].concat());
        let file = open(&self.path(which));
        let at = before.len() as u64;
        self.ledger.change_in_place(FILES[which].0, &bytes, || {
            file.write_all_at(&more, at).expect("room on the disk");
        });
        self.shown[which] = Some(bytes);
    }

    fn remove(&mut self, which: usize) {
        let path = self.path(which);
        self.note(which, None, || {
            let _ = fs::remove_file(path);
        });
    }

    /// As most programs do: emptied or made, and then written.
    fn write_anew(&mut self, which: usize) {
        let path = self.path(which);
        self.note(which, Some(Arc::default()), || {
            File::create(&path).expect("a file");
        });
        let length = self.some_length(which);
        let bytes = self.content(which, length);
        self.ledger.change_in_place(FILES[which].0, &bytes, || {
            open(&path).write_all(&bytes).expect("room on the disk");
        });
        self.shown[which] = Some(bytes);
    }

    /// Puts the compressed form beside it, in one of the ways that there are.
    fn write_coded(&mut self, which: usize) {
        let Some(bytes) = &self.shown[which] else {
            return;
        };
        let path = coded(&self.path(which));
        write_coded(&self.outer.join("temporary"), bytes);
        fs::rename(self.outer.join("temporary"), path).expect("a file");
        // By its date it is known which version it is of: no other one may have the same.
        std::thread::sleep(Duration::from_millis(25));
    }

    /// Two files change places.
    fn exchange(&mut self) {
        let [one, other] = EXCHANGED;
        let (Some(_), Some(_)) = (&self.shown[one], &self.shown[other]) else {
            return;
        };
        let states = [(one, other), (other, one)]
            .map(|(to, from)| (FILES[to].0.to_owned(), self.shown[from].clone()));
        let (path, other_path) = (self.path(one), self.path(other));
        self.ledger.change(&states, || exchange(&path, &other_path));
        self.shown.swap(one, other);
    }

    /// The folder changes places with another.
    fn exchange_folders(&mut self) {
        let spare = self.outer.join("spare");
        let which: Vec<usize> = (0..FILES.len())
            .filter(|which| FILES[*which].0.starts_with("d/"))
            .collect();
        let states: Vec<_> = which
            .iter()
            .map(|which| (FILES[*which].0.to_owned(), self.spare[*which].clone()))
            .collect();
        let shown = self.outer.join("site/d");
        self.ledger.change(&states, || exchange(&shown, &spare));
        for which in which {
            std::mem::swap(&mut self.shown[which], &mut self.spare[which]);
        }
    }

    /// Another folder takes the place of the whole site.
    fn replace_root(&mut self) {
        self.roots += 1;
        let name = format!("root-{}", self.roots);
        let root = self.outer.join(&name);
        fs::create_dir_all(root.join("d")).expect("a folder");
        let mut states = Vec::new();
        for (which, (file, length)) in FILES.iter().enumerate() {
            let bytes = self.content(which, *length);
            fs::write(root.join(file), &*bytes).expect("room on the disk");
            if file.ends_with(".txt") && self.random.below(2) == 0 {
                write_coded(&coded(&root.join(file)), &bytes);
            }
            self.shown[which] = Some(Arc::clone(&bytes));
            states.push(((*file).to_owned(), Some(bytes)));
        }
        std::thread::sleep(Duration::from_millis(25));
        let (link, site) = (self.outer.join("link"), self.outer.join("site"));
        symlink(&name, &link).expect("a link");
        self.ledger.change(&states, || {
            fs::rename(&link, &site).expect("a link");
        });
        let _ = fs::remove_dir_all(self.outer.join(format!("root-{}", self.roots - 1)));
    }

    fn note(&mut self, which: usize, bytes: Option<Arc<Vec<u8>>>, change: impl FnOnce()) {
        let name = FILES[which].0.to_owned();
        self.ledger.change(&[(name, bytes.clone())], change);
        self.shown[which] = bytes;
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the file is there")
}

fn coded(path: &Path) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(".gz");
    path.into()
}

fn write_coded(path: &Path, bytes: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    fs::write(path, encoder.finish().expect("memory")).expect("room on the disk");
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("a file system that can");
}
