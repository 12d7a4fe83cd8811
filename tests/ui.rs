//! Does `#[route]` take what it should, and does it say what is wrong with the rest?
//!
//! `ui/pass` is compiled into this test. Each file of `ui/fail` holds one mistake, and its `.stderr` is what the user reads:
//! `TRYBUILD=overwrite cargo test --test ui` writes them anew, and then they are to be read.

#[path = "ui/pass/handlers.rs"]
mod handlers;

#[path = "ui/pass/options.rs"]
mod options;

#[path = "ui/pass/tree.rs"]
mod tree;

#[test]
fn mistakes_are_explained_where_they_are() {
    // The messages quote the compiler's own, which change with it.
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
