//! How does a site want its files to be answered?

use std::path::Path;

use super::cache_control::CacheControl;
use super::load::own_coding;
use super::resolve::{DotNames, SafePath};
use crate::message::{Headers, mime};
use crate::services::coding::compressible::is_compressible;

/// What was set on [`Files`](super::Files), but for where they are.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// What answers for a folder, the first one that is there.
    pub(super) index: Vec<String>,
    pub(super) listing: bool,
    /// The page that answers where an application in the browser has its own paths.
    pub(super) spa: Option<String>,
    /// The page for what is not there.
    pub(super) not_found: Option<String>,
    pub(super) clean_urls: bool,
    pub(super) dot_names: DotNames,
    pub(super) cache_control: CacheControl,
    /// Media types by the ending of the name, in lower case.
    pub(super) types: Vec<(String, String)>,
    pub(super) compress: bool,
}

impl Rules {
    pub(super) fn new() -> Rules {
        Rules {
            index: vec!["index.html".to_owned()],
            listing: false,
            spa: None,
            not_found: None,
            clean_urls: false,
            dot_names: DotNames::Hidden,
            cache_control: CacheControl::new(),
            types: Vec::new(),
            compress: true,
        }
    }

    /// The Content-Type of the file of this name.
    pub(super) fn content_type(&self, name: &str) -> String {
        let ending = Path::new(name)
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        let own = self
            .types
            .iter()
            .rev()
            .find(|(known, _)| known.eq_ignore_ascii_case(ending));
        match own {
            Some((_, content_type)) => content_type.clone(),
            None => mime::content_type(name.as_ref()),
        }
    }

    /// Whether files of this type may lie compressed beside themselves: such as are compressible, and such as
    /// nothing is known of.
    pub(super) fn varies(&self, name: &str, content_type: &str) -> bool {
        let essence = essence(content_type);
        if own_coding(name).is_some() {
            return false;
        }
        essence == "application/octet-stream" || is_compressible(&essence)
    }

    /// Whether the file of this name is compressed where nobody has done it.
    pub(super) fn compresses(&self, name: &str) -> bool {
        self.compress
            && own_coding(name).is_none()
            && is_compressible(&essence(&self.content_type(name)))
    }

    pub(super) fn cache_control(&self, name: &str, content_type: &str) -> Option<&str> {
        self.cache_control.value_for(name, content_type)
    }

    /// Says what cannot work, and what to write instead.
    pub(super) fn check(&self) -> Result<(), String> {
        self.cache_control.check()?;
        for (ending, content_type) in &self.types {
            let mut headers = Headers::new();
            if !content_type.contains('/') || headers.append("Content-Type", content_type).is_err()
            {
                return Err(format!(
                    "Files::content_type({ending:?}, {content_type:?}) names no media type - write one such as \"text/plain; charset=utf-8\""
                ));
            }
        }
        if let Some(index) = self.index.iter().find(|name| name.contains('/')) {
            return Err(format!(
                "Files::index got {index:?} - it takes names of files, such as \"index.html\", without a folder"
            ));
        }
        let pages = [("spa", &self.spa), ("not_found", &self.not_found)];
        let named = pages
            .into_iter()
            .filter_map(|(method, page)| Some((method, page.as_deref()?)))
            .chain(self.index.iter().map(|name| ("index", &**name)));
        for (method, page) in named {
            let path = format!("/{page}");
            let fits = SafePath::of(&path, DotNames::Shown)
                .is_ok_and(|path| !path.names_folder() && path.as_str() == page);
            if !fits {
                return Err(format!(
                    "Files::{method} got {page:?} - it takes the path of a file in the folder, such as \"index.html\""
                ));
            }
        }
        Ok(())
    }
}

/// A media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim_ascii().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_said_with_what_to_write() {
        let with = |change: fn(&mut Rules)| {
            let mut rules = Rules::new();
            change(&mut rules);
            rules.check()
        };
        assert_eq!(with(|_| {}), Ok(()));
        assert_eq!(
            with(|rules| rules.spa = Some("app/index.html".into())),
            Ok(())
        );
        for (change, want) in [
            (
                (|rules: &mut Rules| rules.types.push(("x".into(), "texty".into())))
                    as fn(&mut Rules),
                "names no media type",
            ),
            (
                |rules| rules.types.push(("x".into(), "text/x\r\nA: b".into())),
                "names no media type",
            ),
            (
                |rules| rules.index = vec!["a/b.html".into()],
                "without a folder",
            ),
            (
                |rules| rules.index = vec!["..".into()],
                "Files::index got \"..\"",
            ),
            (
                |rules| rules.spa = Some("/index.html".into()),
                "Files::spa got",
            ),
            (
                |rules| rules.spa = Some("a%20b.html".into()),
                "Files::spa got",
            ),
            (
                |rules| rules.not_found = Some("../404.html".into()),
                "Files::not_found got",
            ),
            (
                |rules| rules.cache_control = CacheControl::new().path("[", "no-store"),
                "CacheControl::path",
            ),
        ] {
            let error = with(change).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }
}
