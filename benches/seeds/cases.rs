//! Which five questions are asked, and what is the right answer to each?

use crate::harness::ask::Answer;
use crate::harness::options::Named;
use crate::site::Site;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Html,
    Png,
    Simple,
    Full,
    Template,
}

impl Named for Case {
    const ALL: &'static [Self] = &[
        Self::Html,
        Self::Png,
        Self::Simple,
        Self::Full,
        Self::Template,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Png => "png",
            Self::Simple => "simple",
            Self::Full => "full",
            Self::Template => "template",
        }
    }
}

impl Case {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|case| case.name() == name)
    }

    /// The request target, query included.
    pub(crate) fn target(self, site: &Site) -> String {
        match self {
            Self::Html => "/".to_owned(),
            Self::Png => site.png_target().to_owned(),
            Self::Simple => "/api/tests/simple".to_owned(),
            Self::Full => format!("/api/tests/full?a={FULL_VALUE}"),
            Self::Template => "/api/tests/template".to_owned(),
        }
    }

    /// A benchmark of wrong answers measures nothing.
    pub(crate) fn check(self, answer: &Answer, site: &Site) -> Result<(), String> {
        if answer.status != 200 {
            return Err(format!(
                "answers {} with status {} instead of 200",
                self.target(site),
                answer.status
            ));
        }
        let holds = |text: &str| {
            answer
                .body
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        let right = match self {
            Self::Html => answer.body == site.html(),
            Self::Png => answer.body == site.png(),
            Self::Simple => answer.body == SIMPLE_BODY.as_bytes(),
            Self::Full => ["GET", FULL_VALUE, "127.0.0.1"].into_iter().all(holds),
            Self::Template => {
                holds("Hello, World!")
                    && holds("/api/tests/template")
                    && holds("127.0.0.1")
                    && !holds("{{")
            }
        };
        if right {
            Ok(())
        } else {
            Err(format!(
                "answers {} with other bytes than expected",
                self.target(site)
            ))
        }
    }
}

pub(crate) const SIMPLE_BODY: &str = "Hello World!";

/// A full answer has to show what it was asked: this value comes in the query and has to come back in the body.
const FULL_VALUE: &str = "bench-7";
