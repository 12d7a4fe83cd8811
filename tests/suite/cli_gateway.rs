//! Does the program check, show and describe a configuration file of the gateway?

use std::fs;

use crate::cli::{command, ended};
use cloudgate_suite::Program;

const RIGHT: &str = "server:\n  port: 3000\n  bodyLimit: 100\nservices:\n  - path: /a\n    servers: [\"localhost:1\"]\n    basicAuth: {users: {ada: hunter2}}\n";

#[test]
fn a_file_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yml");
    let name = path.to_str().unwrap();
    let check = || ended(&["check", "-c", name]);

    let missing = check();
    assert_eq!(missing.code, Some(2), "{}", missing.errors);
    let want = format!("cloudgate: cannot read the configuration {name}: No such file");
    assert!(missing.errors.starts_with(&want), "{}", missing.errors);

    fs::write(&path, RIGHT).unwrap();
    let right = check();
    assert_eq!(right.code, Some(0), "{}", right.errors);
    assert_eq!(right.lines, [format!("{name}: ok, 1 service")]);
    assert!(right.errors.contains("bodyLimit: 100 means 100 bytes"));

    fs::write(&path, RIGHT.replace("port", "prot")).unwrap();
    let wrong = check();
    assert_eq!((wrong.code, wrong.lines.len()), (Some(1), 0));
    let want = format!("{name}:2:3: unknown key `prot` in `server`: did you mean `port`?\n");
    assert!(wrong.errors.starts_with(&want), "{}", wrong.errors);
}

#[test]
fn a_file_is_shown_with_where_each_value_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yml");
    let name = path.to_str().unwrap();
    fs::write(&path, RIGHT).unwrap();
    let mut show = command(&["config", "show", "-c", name, "--origin", "--port", "80"]);
    show.env("HOST", "127.0.0.1");
    let shown = Program::spawn(show).ended();
    assert_eq!(shown.code, Some(0), "{}", shown.errors);
    for line in [
        "  port: 80  # flag --port".to_owned(),
        "  host: \"127.0.0.1\"  # environment HOST".to_owned(),
        format!("  bodyLimit: \"100B\"  # {name}:3"),
        "  shutdownTimeout: \"10s\"  # default".to_owned(),
        format!("        ada: \"***\"  # {name}:7"),
    ] {
        assert!(shown.lines.contains(&line), "{line}: {:?}", shown.lines);
    }
    assert!(!shown.lines.concat().contains("hunter2"));
}

#[test]
fn the_schema_is_json() {
    let schema = ended(&["config", "schema"]);
    assert_eq!(schema.code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&schema.lines.concat()).unwrap();
    assert!(schema["properties"]["services"].is_object());
    let keys = ended(&["config", "keys"]).lines;
    assert!(keys.iter().any(|line| line.starts_with("| `stripPath` |")));
}
