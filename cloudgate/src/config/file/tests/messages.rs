//! What does a person read about each mistake?
//!
//! `messages.txt` holds a file with a mistake and then all that is told about it, again and again.

use super::*;

const MESSAGES: &str = include_str!("messages.txt");

#[test]
fn each_mistake_is_told_with_its_place_and_what_to_do() {
    let mut told_all = String::new();
    let mut wrong = Vec::new();
    for case in MESSAGES.split("=== file\n").skip(1) {
        let (file, want) = case.split_once("=== told\n").unwrap();
        let told = match load(file) {
            Ok(_) => "nothing is wrong\n".to_owned(),
            Err(mistakes) => format!("{mistakes}\n"),
        };
        told_all.push_str(&format!("=== file\n{file}=== told\n{told}"));
        if told != want {
            wrong.push(told);
        }
    }
    if std::env::var_os("OVERWRITE_MESSAGES").is_some() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/config/file/tests/messages.txt"
        );
        std::fs::write(file, &told_all).unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn no_case_is_right() {
    assert!(!MESSAGES.contains("nothing is wrong"));
    assert!(MESSAGES.matches("=== file").count() > 70);
}
