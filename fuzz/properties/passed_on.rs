//! Is a request that a gateway passes on one request for the server too?

use cloudgate::__fuzz::{self, Length};
use cloudgate::Limits;

/// Fields that may come once at most, or the message has two meanings.
const ONCE: &[&str] = &["host", "content-length", "transfer-encoding"];

/// Whatever the front takes for one request reaches the server as one: whole, with the same method, target and body, the
/// framing said once, and nothing of the connection it came by.
pub fn passed_on(input: &[u8]) {
    let limits = Limits::DEFAULT;
    let Some(sent) = __fuzz::passed_on(input) else {
        return;
    };
    let front = __fuzz::head(input, &limits).expect("it was passed on");
    let front = front.expect("a whole head");
    let mut wide = limits;
    // What is said of the client comes on top.
    wide.head *= 2;
    wide.fields += 16;
    let behind = __fuzz::head(&sent, &wide);
    let shown = sent.escape_ascii();
    let behind = behind.unwrap_or_else(|rule| panic!("refused for {rule:?}: {shown}"));
    let behind = behind.unwrap_or_else(|| panic!("no whole head: {shown}"));
    assert_eq!(behind.consumed, sent.len(), "a second request in {shown}");
    assert_eq!(behind.method, front.method);
    assert_eq!(behind.target, front.target);
    let length = |head: &__fuzz::Head| match &head.message {
        Ok(message) => message.length,
        Err(rule) => panic!("the framing breaks {rule:?}: {shown}"),
    };
    assert_eq!(length(&behind), length(&front), "{shown}");
    for name in ONCE {
        let all = behind.fields.iter();
        let count = all
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .count();
        assert!(count <= 1, "{name} twice in {shown}");
    }
    for (name, _) in &behind.fields {
        let name = name.to_ascii_lowercase();
        let dashed = name.replace('_', "-");
        let hides = dashed != name && ONCE.contains(&dashed.as_str());
        assert!(!hides, "{name} may be taken for {dashed}");
        let ends_here = ["keep-alive", "upgrade", "expect"].contains(&dashed.as_str());
        assert!(!ends_here, "{name} in {shown}");
    }
    assert!(matches!(
        length(&front),
        Length::None | Length::Sized(_) | Length::Chunked
    ));
}
