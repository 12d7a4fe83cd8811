//! Do the examples of the guide compile and do what it says, and is there what it names?
//!
//! Each chapter is the documentation of an item that only the documentation tests see, so
//! `cargo test` runs its examples. They are one program: no two `#[route]`s of the guide may answer
//! the same requests, or every example with `App::gather()` fails and says which two it is.

#[cfg(doctest)]
macro_rules! chapters {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!(concat!("../../docs/guide/", $file))]
            struct $name;
        )*
    };
}

#[cfg(doctest)]
chapters! {
    FirstApp "01-first-app.md"
    Routes "02-routes.md"
    Arguments "03-arguments.md"
    Replies "04-replies.md"
    SharedState "05-shared-state.md"
    Middleware "06-middleware.md"
    Waiting "07-waiting.md"
    SeveralApps "08-several-apps.md"
    FilesAndUploads "09-files-and-uploads.md"
    Testing "10-testing.md"
    Running "11-running.md"
    StartErrors "12-start-errors.md"
    WebSockets "14-websockets.md"
    Tls "15-tls.md"
    Gateway "16-gateway.md"
    OperatingAGateway "17-operating-a-gateway.md"
    FromExpress "from-express.md"
    FromAxum "from-axum.md"
    FromActixWeb "from-actix-web.md"
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    /// Path and text of each page.
    fn pages() -> Vec<(PathBuf, String)> {
        let folder = fs::read_dir(root().join("docs/guide")).expect("the guide");
        let paths = folder.map(|entry| entry.expect("a page").path());
        paths
            .map(|path| {
                let text = fs::read_to_string(&path).expect("a page");
                (path, text)
            })
            .collect()
    }

    #[test]
    fn every_page_is_among_the_documentation_tests_if_it_has_any() {
        let listed = fs::read_to_string(root().join("tests/support/guide.rs")).expect("this file");
        let mut examples = 0;
        for (path, text) in pages() {
            let name = path.file_name().expect("a name").to_string_lossy();
            let here = text.matches("\n```rust\n").count();
            examples += here;
            assert!(
                here == 0 || listed.contains(&format!("\"{name}\"")),
                "{name} is not in tests/support/guide.rs"
            );
        }
        assert!(examples > 70, "{examples} examples were found");
    }

    #[test]
    fn tests_that_the_guide_names_exist() {
        let mut named = 0;
        for (page, text) in pages() {
            // Between single backticks: every other piece.
            for code in text
                .lines()
                .flat_map(|line| line.split('`').skip(1).step_by(2))
            {
                let Some((module, test)) = code.split_once("::") else {
                    continue;
                };
                let Ok(source) =
                    fs::read_to_string(root().join(format!("tests/suite/{module}.rs")))
                else {
                    continue;
                };
                named += 1;
                assert!(
                    source.contains(&format!("fn {test}()")),
                    "{} names {code}, which is not there",
                    page.display()
                );
            }
        }
        assert!(named > 20, "{named} names were found");
    }

    #[test]
    fn links_of_the_guide_lead_somewhere() {
        let mut links = 0;
        for (page, text) in pages() {
            for link in text.split("](").skip(1) {
                let target = link.split([')', '#']).next().unwrap_or_default();
                if target.is_empty() || target.starts_with("http") {
                    continue;
                }
                links += 1;
                let there = page.parent().expect("a folder").join(target);
                assert!(there.is_file(), "{} leads to {target}", page.display());
            }
        }
        assert!(links > 30, "{links} links were found");
    }
}
