//! Does the parser find the same parts however a body arrives?

use super::*;

/// Name, file name and content of a part.
type Part = (String, Option<String>, String);
type Wanted<'a> = (&'a str, Option<&'a str>, &'a str);

const LIMITS: ParserLimits = ParserLimits {
    parts: 1000,
    part_head: 8 << 10,
};

/// The parts of a body that arrives in pieces of this size, with what a caller does between.
fn parse(body: &[u8], piece: usize) -> Result<Vec<Part>, ParserError> {
    let mut parser = Parser::new("x", LIMITS);
    let (mut parts, mut buffer, mut pieces) = (Vec::new(), Vec::new(), body.chunks(piece));
    let mut open: Option<(PartHead, Vec<u8>)> = None;
    loop {
        let step = parser.step(&buffer)?;
        match step.event {
            Some(Event::Head(head)) => open = Some((head, Vec::new())),
            Some(Event::Data(range)) => {
                assert!(!range.is_empty() && range.end == step.consumed);
                open.as_mut().unwrap().1.extend_from_slice(&buffer[range]);
            }
            Some(Event::PartEnd) => {
                let (head, data) = open.take().unwrap();
                let data = String::from_utf8(data).unwrap();
                parts.push((head.name, head.filename, data));
            }
            Some(Event::End) => assert!(open.is_none()),
            None => {
                assert!(buffer.len() - step.consumed <= LIMITS.part_head + 4);
                buffer.drain(..step.consumed);
                match pieces.next() {
                    Some(next) => buffer.extend_from_slice(next),
                    None => {
                        parser.finish(&buffer)?;
                        return Ok(parts);
                    }
                }
                continue;
            }
        }
        buffer.drain(..step.consumed);
    }
}

#[track_caller]
fn check(body: &str, want: Result<&[Wanted<'_>], ParserError>) {
    let want = want.map(|parts| {
        let owned = |(name, file, data): &Wanted<'_>| {
            (
                (*name).to_owned(),
                file.map(str::to_owned),
                (*data).to_owned(),
            )
        };
        parts.iter().map(owned).collect::<Vec<_>>()
    });
    for piece in [body.len().max(1), 1, 2, 3, 7] {
        assert_eq!(parse(body.as_bytes(), piece), want, "{body:?} by {piece}");
    }
}

#[track_caller]
fn refuses(body: &str, at: u64, part_of_reason: &str) {
    match parse(body.as_bytes(), body.len().max(1)) {
        Err(ParserError::Malformed { at: found, reason }) => {
            assert_eq!(found, at, "{body:?}: {reason}");
            assert!(reason.contains(part_of_reason), "{body:?}: {reason}");
            check(body, Err(ParserError::Malformed { at, reason }));
        }
        other => assert_eq!(format!("{other:?}"), part_of_reason, "{body:?}"),
    }
}

#[test]
fn fields_and_files() {
    check(
        "preamble\r\n--x \r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n--x\r\n\
         content-disposition: form-data; filename=\"q%22.txt\"; name=b\r\n\r\n\r\n--x--\r\nepilogue",
        Ok(&[("a", None, "1\r\n2"), ("b", Some("q\".txt"), "")]),
    );
    check("--x--", Ok(&[]));
    check("\r\n--x--", Ok(&[]));
}

#[test]
fn what_only_looks_like_a_boundary_is_content() {
    let content = "\r\n-\r\n--\r\n--y\r\r\r\n\n--x--x\r\n\r\n --x";
    check(
        &format!(
            "--y\r--x\r\n--x\t\r\nContent-Disposition: form-data; name=a\r\n\r\n{content}\r\n--x--"
        ),
        Ok(&[("a", None, content)]),
    );
}

#[test]
fn malformed_bodies_are_refused_with_the_place() {
    let part = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n";
    let after = part.len() as u64;
    refuses("", 0, "without the boundary");
    refuses("hello", 5, "without the boundary");
    refuses("--x", 3, "in the line of a boundary");
    refuses("--x-", 4, "in the line of a boundary");
    refuses("--x\r\n", 5, "in the head of a part");
    refuses("--xy\r\n\r\n--x--", 3, "more than spaces behind it");
    refuses("--x -\r\n--x--", 4, "more than spaces behind it");
    refuses("--x\r \r\n--x--", 3, "more than spaces behind it");
    refuses(
        "--x\nContent-Disposition: form-data; name=a\n\n1\n--x--\n",
        3,
        "LF alone",
    );
    refuses(&format!("{part}1"), after + 1, "last boundary");
    refuses(&format!("{part}1\r\n--"), after + 5, "last boundary");
    refuses(
        &format!("{part}--x--"),
        after,
        "right behind the empty line",
    );
    refuses(
        &format!("{part}\r\n--x\r\nno colon\r\n\r\n--x--"),
        after + 7,
        "colon",
    );
    refuses("--x\r\n\r\n1\r\n--x--", 3, "without Content-Disposition");
    refuses(
        "--x\r\n--x\r\n\r\n\r\n--x--",
        5,
        "boundary inside of the head",
    );
}

#[test]
fn limits_hold_at_the_limit_and_one_past_it() {
    let part = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
    let parts = |count: usize| parse((part.repeat(count) + "--x--").as_bytes(), 1 << 20);
    assert_eq!(parts(1000).unwrap().len(), 1000);
    assert_eq!(parts(1001), Err(ParserError::TooManyParts { limit: 1000 }));

    let head = |length: usize| {
        let known = "\r\nContent-Disposition: form-data; name=a\r\nX: ";
        let padding = "p".repeat(length - known.len());
        format!("--x{known}{padding}\r\n\r\n1\r\n--x--")
    };
    check(&head(8192), Ok(&[("a", None, "1")]));
    let refused = ParserError::HeadTooLarge { at: 3, limit: 8192 };
    check(&head(8193), Err(refused));
    check(&format!("--x\r\n{}", "p".repeat(9000)), Err(refused));
}
