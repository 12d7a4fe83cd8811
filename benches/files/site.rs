//! Which files do all servers serve?

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cases::{Case, GZIP_LEVEL, PAGES};
use crate::content::{self, Random};
use crate::harness::folder::Folder;

/// A temporary folder: `public` for all servers, and `nginx` for what only nginx finds beside a file.
pub(crate) struct Site {
    folder: Folder,
    /// Why there is no file of 1 GiB.
    no_large_file: Option<String>,
}

/// What has to be free of the disk and of the memory for the file of 1 GiB, in bytes.
const ROOM: u64 = 3 << 30;

impl Site {
    /// Writes what these cases need.
    pub(crate) fn lay_out(cases: &[Case]) -> Result<Self, String> {
        let mut site = Self {
            folder: Folder::fresh()?,
            no_large_file: None,
        };
        for &case in cases {
            match case {
                Case::Many => site.write_pages()?,
                Case::Gzip | Case::GzipKept | Case::GzipSize => site.write_json()?,
                Case::File1g => {
                    site.no_large_file = site.write_large(case).err();
                }
                Case::File1m | Case::Bundle | Case::Png15k => {
                    let length = case.length().unwrap_or_default() as usize;
                    site.write(case.target(), &content::pattern(0, length))?;
                }
                Case::Html600 | Case::Html2k | Case::Html4k | Case::NotModified | Case::One => {
                    let length = case.length().unwrap_or_default() as usize;
                    site.write(case.target(), &content::page(case.target(), length))?;
                }
            }
        }
        Ok(site)
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// The file that a target names, as it was written.
    pub(crate) fn body(&self, target: &str) -> Result<Vec<u8>, String> {
        let path = self.path(target);
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// # Errors
    /// Why the case cannot be measured on this machine.
    pub(crate) fn has(&self, case: Case) -> Result<(), String> {
        match &self.no_large_file {
            Some(reason) if case == Case::File1g => Err(reason.clone()),
            _ => Ok(()),
        }
    }

    fn path(&self, target: &str) -> PathBuf {
        self.dir()
            .join("public")
            .join(target.trim_start_matches('/'))
    }

    fn write(&self, target: &str, bytes: &[u8]) -> Result<(), String> {
        self.folder
            .write(&format!("public{target}"), bytes)
            .map(drop)
    }

    fn write_pages(&self) -> Result<(), String> {
        let mut random = Random(9);
        for number in 0..PAGES {
            let target = page_target(number);
            let length = 1_000 + random.below(3_001);
            self.write(&target, &content::page(&target, length))?;
        }
        Ok(())
    }

    fn write_json(&self) -> Result<(), String> {
        let json = content::json();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
        let zipped = encoder
            .write_all(&json)
            .and_then(|()| encoder.finish())
            .map_err(|error| format!("cannot compress the JSON: {error}"))?;
        self.write(Case::Gzip.target(), &json)?;
        self.write(Case::GzipKept.target(), &json)?;
        self.write(Case::GzipSize.target(), &content::pattern(0, zipped.len()))?;
        let beside = format!("nginx{}", Case::GzipKept.target());
        self.folder.write(&beside, &json)?;
        self.folder.write(&format!("{beside}.gz"), &zipped)?;
        Ok(())
    }

    fn write_large(&self, case: Case) -> Result<(), String> {
        let disk = rustix::fs::statvfs(self.dir())
            .map(|free| free.f_bavail.saturating_mul(free.f_frsize))
            .map_err(|error| format!("cannot tell how much of the disk is free: {error}"))?;
        let memory = available_memory().unwrap_or(0);
        for (free, of) in [
            (disk, "the disk of the temporary folder"),
            (memory, "memory"),
        ] {
            if free < ROOM {
                return Err(format!(
                    "needs {} GiB of {of}, and {:.1} are free",
                    ROOM >> 30,
                    free as f64 / f64::from(1 << 30)
                ));
            }
        }
        let path = self.path(case.target());
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| content::write_pattern(&path, case.length().unwrap_or_default()))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// The target of one of the many pages.
pub(crate) fn page_target(number: usize) -> String {
    format!("/many/{number:05}.html")
}

/// proc_meminfo(5): what programs may take without pushing others out, in bytes.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
