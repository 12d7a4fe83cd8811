//! Are forms taken whole, within their limits, and with nothing left behind?

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::Path;

use super::*;
use crate::app::App;
use crate::message::RequestBody;

/// A form of fields (without a file name) and files, whose boundary is `x`.
fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, filename, data) in parts {
        let filename = filename.map_or(String::new(), |name| format!("; filename=\"{name}\""));
        let head =
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{filename}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--x--\r\n");
    body
}

fn take(body: Vec<u8>, limits: &MultipartLimits) -> Result<Multipart, MultipartError> {
    let mut source = Cursor::new(body);
    let limits = Arc::new(limits.clone());
    let reader = MultipartReader::over(&mut source, "x", Arc::clone(&limits), 1 << 10);
    Multipart::read(reader, limits)
}

/// How many descriptors of this process are open on files below `folder`, deleted ones too.
fn open_below(folder: &Path) -> usize {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.starts_with(folder))
        .count()
}

fn names_in(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn fields_and_files_are_told_apart_and_found_by_name() {
    let body = form(&[
        ("a", None, b"1"),
        ("a", None, "é".as_bytes()),
        ("", None, b""),
        ("f", Some("x.txt"), b"one"),
        ("f", Some(""), b"without a name"),
        ("g", Some(""), b""),
        ("h", Some("empty"), b""),
    ]);
    let form = take(body, &MultipartLimits::new()).unwrap();
    assert_eq!((form.text("a"), form.text("")), (Some("1"), Some("")));
    assert_eq!(form.texts("a").collect::<Vec<_>>(), ["1", "é"]);
    assert_eq!((form.text("f"), form.fields().count()), (None, 3));
    assert_eq!(form.file("f").unwrap().bytes().unwrap(), "one");
    // A browser sends a field like `g` where nobody chose a file.
    let names: Vec<_> = form.files().iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["f", "f", "h"]);
    assert!(form.file("h").unwrap().is_empty());
    assert_eq!(form.into_files()[1].content_type, "text/plain");
}

#[test]
fn files_past_the_limits_of_memory_share_one_unnamed_file_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let limits = MultipartLimits::new()
        .folder(folder.path())
        .memory_per_file(1000)
        .memory(1500);
    let large = data(700_001);
    let files: [&[u8]; 7] = [
        &large[..1000],
        &large,
        &large[..1001],
        &large[..500],
        b"1",
        b"",
        &large[1..300_000],
    ];
    let parts: Vec<_> = files.iter().map(|data| ("f", Some("n"), *data)).collect();
    let form = take(form(&parts), &limits).unwrap();
    let disk: Vec<_> = form.files().iter().map(UploadedFile::is_on_disk).collect();
    assert_eq!(disk, [false, true, true, false, true, false, true]);
    assert_eq!((open_below(folder.path()), names_in(folder.path())), (1, 0));
    for (file, want) in form.files().iter().zip(files) {
        assert_eq!(file.len(), want.len() as u64);
        assert_eq!(file.bytes().unwrap(), want);
        let mut read = Vec::new();
        file.reader().read_to_end(&mut read).unwrap();
        assert_eq!(read, want);
    }
    let last = form.into_files().pop().unwrap();
    assert_eq!(last.bytes().unwrap(), files[6]);
    drop(last);
    assert_eq!(open_below(folder.path()), 0);
}

#[test]
fn one_byte_more_than_the_limits_is_refused_with_the_field() {
    let refused = |parts: &[(&str, Option<&str>, &[u8])], limits: MultipartLimits| {
        let error = take(form(parts), &limits).err()?;
        assert_eq!(error.status(), 413);
        Some(error.to_string())
    };
    let limits = || MultipartLimits::new().file_bytes(5).field_bytes(5).parts(3);
    assert_eq!(refused(&[("f", Some("n"), b"12345")], limits()), None);
    let text = refused(&[("f", Some("n"), b"123456")], limits()).unwrap();
    assert!(text.contains("the file in the form's field \"f\" is larger than the 5 bytes"));
    assert!(text.contains("MultipartLimits::file_bytes"), "{text}");
    assert_eq!(
        refused(&[("a", None, b"123"), ("b", None, b"45")], limits()),
        None
    );
    let text = refused(&[("a", None, b"123"), ("b", None, b"456")], limits()).unwrap();
    assert!(
        text.contains("\"b\"") && text.contains("MultipartLimits::field_bytes"),
        "{text}"
    );
    let part: (&str, Option<&str>, &[u8]) = ("a", None, b"");
    assert_eq!(refused(&[part; 3], limits()), None);
    assert!(refused(&[part; 4], limits()).unwrap().contains("3 parts"));
    let head = "Content-Disposition: form-data; name=\"a\"".len() + 2;
    assert_eq!(refused(&[part], limits().part_head_bytes(head)), None);
    let text = refused(&[part], limits().part_head_bytes(head - 1)).unwrap();
    assert!(text.contains("part at byte 3"), "{text}");
    let long = "n".repeat(5000);
    let text = refused(&[(&long, Some("n"), b"123456")], limits()).unwrap();
    assert!(text.len() < 300, "{text}");
    let text = refused(&[("a\u{1b}", Some("n"), b"123456")], limits()).unwrap();
    assert!(text.contains("\"a\\u{1b}\""), "{text}");
}

#[test]
fn a_field_that_is_no_text_and_a_malformed_form_are_400() {
    let error = take(form(&[("a", None, b"\xff")]), &MultipartLimits::new()).unwrap_err();
    assert_eq!(error.status(), 400);
    assert_eq!(
        error.to_string(),
        "the form's field \"a\" is not UTF-8 text"
    );
    let mut cut = form(&[("a", None, b"1")]);
    cut.truncate(cut.len() - "\r\n--x--\r\n".len());
    let error = take(cut, &MultipartLimits::new()).unwrap_err();
    assert_eq!(error.status(), 400);
    assert!(
        error
            .to_string()
            .starts_with("the form is malformed at byte 50: the end of the body"),
        "{error}"
    );
}

#[test]
fn nothing_is_left_of_a_form_that_fails_half_way() {
    let folder = tempfile::tempdir().unwrap();
    let limits = MultipartLimits::new()
        .folder(folder.path())
        .file_bytes(1 << 20);
    let mut body = form(&[
        ("f", Some("n"), &data(900_000)),
        ("g", Some("n"), &data(900_000)),
    ]);
    body.truncate(1_700_000);
    assert!(matches!(
        take(body, &limits),
        Err(MultipartError::Malformed { .. })
    ));
    let body = form(&[("f", Some("n"), &data((1 << 20) + 1))]);
    assert!(matches!(
        take(body, &limits),
        Err(MultipartError::FileTooLarge { .. })
    ));
    assert_eq!((open_below(folder.path()), names_in(folder.path())), (0, 0));
}

#[test]
fn a_disk_that_cannot_take_a_file_is_the_servers_fault_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let limits = MultipartLimits::new().folder(&missing);
    let body = form(&[("f", Some("n"), &data(100_000))]);
    let error = take(body.clone(), &limits).unwrap_err();
    assert_eq!(error.status(), 500);
    let text = error.to_string();
    assert!(text.contains(&missing.display().to_string()), "{text}");
    assert!(text.contains("MultipartLimits::folder or TMPDIR"), "{text}");
    // What the client sees says nothing of it.
    let app = App::new()
        .state(limits)
        .post("/", |request: &mut Request<'_>| {
            Multipart::from_request(request).map(|_| "taken")
        });
    let mut request = Request::post("/")
        .with_header("Content-Type", "multipart/form-data; boundary=x")
        .with_body(body);
    assert_eq!(app.call(&mut request).text(), "500 Internal Server Error\n");
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        let full = MultipartError::Storage {
            folder: missing.clone(),
            source: kind.into(),
        };
        assert_eq!(full.status(), 507);
        assert!(full.to_string().contains("make room there"));
    }
    let many = MultipartError::Storage {
        folder: missing,
        source: rustix::io::Errno::MFILE.into(),
    };
    assert_eq!(many.status(), 500);
    assert!(many.to_string().contains("ulimit -n"), "{many}");
}

#[test]
fn a_file_is_put_in_its_place_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let limits = MultipartLimits::new().memory_per_file(1000);
    let large = data(600_000);
    let body = form(&[("f", Some("small"), b"small"), ("f", Some("large"), &large)]);
    let form = take(body, &limits).unwrap();
    for file in form.files() {
        let path = folder.path().join(&file.filename);
        file.persist(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), file.bytes().unwrap());
    }
    let (small, large) = (&form.files()[0], &form.files()[1]);
    let path = folder.path().join("small");
    let error = large.persist(&path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("small"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"small");
    large.persist_over(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), large.bytes().unwrap());
    let error = small
        .persist(folder.path().join("no/such/folder"))
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(small.persist_over(folder.path()).is_err());
    assert_eq!(names_in(folder.path()), 2);
}

#[test]
fn a_form_is_read_part_by_part_and_what_is_not_read_is_passed_over() {
    let large = data(300_000);
    let body = form(&[
        ("a", None, b"1"),
        ("skipped", Some("n"), &large),
        ("b", Some("../n"), &large),
    ]);
    let mut request = Request::post("/")
        .with_header("Content-Type", "Multipart/Form-Data; boundary=\"x\"")
        .with_body(body);
    let mut form = MultipartReader::new(&mut request).unwrap();
    let part = form.next_part().unwrap().unwrap();
    assert_eq!((part.name(), part.filename()), ("a", None));
    assert_eq!(part.text().unwrap(), "1");
    let mut part = form.next_part().unwrap().unwrap();
    assert_eq!(part.read(&mut [0; 10]).unwrap(), 10);
    let mut part = form.next_part().unwrap().unwrap();
    let mut read = Vec::new();
    part.read_to_end(&mut read).unwrap();
    assert!(read == large);
    assert_eq!((part.name(), part.safe_filename()), ("b", Some("n")));
    assert_eq!(part.read(&mut [0; 10]).unwrap(), 0);
    assert!(form.next_part().unwrap().is_none());
    assert!(form.next_part().unwrap().is_none());
}

#[test]
fn an_error_in_a_part_keeps_its_status_on_its_way_through_a_handler() {
    let status = |body: &[u8], limits: MultipartLimits, most: u64| {
        let app = App::new().post("/", move |request: &mut Request<'_>| {
            request.body().set_limit(most);
            let mut form = MultipartReader::with_limits(request, limits.clone())?;
            let mut read = Vec::new();
            while let Some(mut part) = form.next_part()? {
                part.read_to_end(&mut read)?;
            }
            Ok::<_, crate::HttpError>(read)
        });
        let mut request = Request::post("/")
            .with_header("Content-Type", "multipart/form-data; boundary=x")
            .with_body(body.to_vec());
        app.call(&mut request).status().as_u16()
    };
    let body = form(&[("f", Some("n"), b"123456")]);
    let all = RequestBody::DEFAULT_LIMIT;
    assert_eq!(status(&body, MultipartLimits::new(), all), 200);
    assert_eq!(
        status(&body, MultipartLimits::new().file_bytes(5), all),
        413
    );
    assert_eq!(
        status(&body, MultipartLimits::new(), body.len() as u64),
        200
    );
    assert_eq!(
        status(&body, MultipartLimits::new(), body.len() as u64 - 1),
        413
    );
    assert_eq!(
        status(&body[..body.len() - 4], MultipartLimits::new(), all),
        400
    );
}

#[test]
fn a_form_keeps_no_more_than_its_pieces_in_memory_however_large_a_file_is() {
    /// A form with one file of this many bytes, which exist only as they are read.
    struct Endless(Cursor<Vec<u8>>, u64, Cursor<Vec<u8>>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 if self.1 > 0 => {
                    let count = self.1.min(buffer.len() as u64);
                    self.1 -= count;
                    buffer[..count as usize].fill(b'd');
                    Ok(count as usize)
                }
                0 => self.2.read(buffer),
                count => Ok(count),
            }
        }
    }
    let whole = form(&[("f", Some("n"), b"")]);
    let at = whole.len() - "\r\n--x--\r\n".len();
    let mut source = Endless(
        Cursor::new(whole[..at].to_vec()),
        64 << 20,
        Cursor::new(whole[at..].to_vec()),
    );
    let limits = Arc::new(MultipartLimits::new());
    let mut reader = MultipartReader::over(&mut source, "x", Arc::clone(&limits), 64 << 10);
    let mut spool = Spool::new(limits);
    let mut part = reader.next_part().unwrap().unwrap();
    let mut most = 0;
    loop {
        let piece = part.chunk().unwrap();
        if piece.is_empty() {
            break;
        }
        spool.write(piece).unwrap();
        most = most.max(spool.held() + part.held());
    }
    assert!(most <= (256 << 10) + (64 << 10), "{most} bytes");
    let file = UploadedFile::new(part.into_head(), spool.finish().unwrap());
    assert_eq!(file.len(), 64 << 20);
}
