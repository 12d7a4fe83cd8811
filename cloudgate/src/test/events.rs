//! Which events does a `text/event-stream` hold (WHATWG HTML, section 9.2.6)?

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEvent {
    /// The type; `message` where the stream names none.
    pub event: String,
    /// The lines of data, joined by line breaks.
    pub data: String,
    /// The last id that the stream gave up to this event; empty for none.
    pub id: String,
}

/// Where the `count`th event ends, once it has come whole.
pub(super) fn end_of(stream: &[u8], count: usize) -> Option<usize> {
    let holds = |end: usize| parse(&String::from_utf8_lossy(&stream[..end])).len() >= count;
    if !holds(stream.len()) {
        return None;
    }
    let (mut too_short, mut end) = (0, stream.len());
    while end - too_short > 1 {
        let middle = usize::midpoint(too_short, end);
        if holds(middle) {
            end = middle;
        } else {
            too_short = middle;
        }
    }
    Some(end)
}

/// The events that have come whole.
pub(super) fn parse(stream: &str) -> Vec<ServerEvent> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let (mut event, mut data, mut id) = (String::new(), None::<String>, String::new());
    let mut lines = stream.split('\n').peekable();
    while let Some(line) = lines.next() {
        // What has no line break behind it has not come whole.
        if lines.peek().is_none() {
            break;
        }
        if line.is_empty() {
            let name = std::mem::take(&mut event);
            if let Some(data) = data.take() {
                events.push(ServerEvent {
                    event: if name.is_empty() {
                        "message".to_owned()
                    } else {
                        name
                    },
                    data,
                    id: id.clone(),
                });
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            _ => {}
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stream: &str, want: &[(&str, &str, &str)]) {
        let events = parse(stream);
        let seen: Vec<_> = events
            .iter()
            .map(|event| (&*event.event, &*event.data, &*event.id))
            .collect();
        assert_eq!(seen, want, "{stream:?}");
    }

    #[test]
    fn an_event_ends_with_its_blank_line() {
        let stream = b"data: a\n\n: comment\ndata: b\n\ndata: c\n";
        for (count, want) in [(1, Some(9)), (2, Some(28)), (3, None)] {
            assert_eq!(end_of(stream, count), want, "{count}");
        }
    }

    #[test]
    fn events_are_told_apart_as_browsers_do() {
        check("data: a\n\n", &[("message", "a", "")]);
        check("\u{feff}data:a\r\n\r\n", &[("message", "a", "")]);
        check("data: a\rdata:  b\r\r", &[("message", "a\n b", "")]);
        check(
            "event: x\nid: 1\ndata\n\ndata: b\n\n",
            &[("x", "", "1"), ("message", "b", "1")],
        );
        check(
            ": comment\n\nevent: nothing\n\ndata: a\n\n",
            &[("message", "a", "")],
        );
        check("data: a\n\ndata: unfinished\n", &[("message", "a", "")]);
        check("data: unfinished", &[]);
        check("retry: 5\nunknown: x\n\n", &[]);
    }
}
