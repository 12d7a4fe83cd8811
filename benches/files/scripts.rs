//! What is wrk told besides a target?

use crate::cases::{Case, PAGES};
use crate::harness::load::COUNTING;

/// Each counts the bytes that come.
pub(crate) fn script(case: Case) -> String {
    match case {
        Case::Many => random_pages("many", PAGES),
        Case::One => random_pages("many1", 1),
        _ => COUNTING.to_owned(),
    }
}

/// Asks for the pages of a folder at random, the same ones in every run, each thread others.
fn random_pages(folder: &str, count: usize) -> String {
    format!(
        r#"local threads = 0
function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end
function init(args)
  math.randomseed(7 + id)
  requests = {{}}
  for i = 1, {count} do requests[i] = wrk.format("GET", string.format("/{folder}/%05d.html", i - 1)) end
end
function request() return requests[math.random({count})] end
{COUNTING}"#
    )
}
