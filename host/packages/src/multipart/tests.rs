//! Tests of the form parser: forms of real clients, malformed forms, and arbitrary chunking.

use super::splitter::{FormEvent, LONG_HEAD, MAX_HEAD_BYTES, PartHead, Splitter, boundary, find, parameter};
use proptest::prelude::*;

/// Parses a body in chunks of `size` bytes. Returns the head and the data of each part.
fn split(body: &[u8], boundary: &str, size: usize) -> Result<Vec<(PartHead, Vec<u8>)>, &'static str> {
    let mut splitter = Splitter::new(boundary);
    let mut found: Vec<(PartHead, Vec<u8>)> = Vec::new();
    let mut ended = 0;
    for piece in body.chunks(size) {
        splitter.push(piece);
        while let Some(event) = splitter.next()? {
            match event {
                FormEvent::Begin(head) => found.push((head, Vec::new())),
                FormEvent::Data(bytes) => found.last_mut().unwrap().1.extend_from_slice(&bytes),
                FormEvent::End => ended += 1,
            }
        }
    }
    if splitter.is_complete() && ended == found.len() { Ok(found) } else { Err("incomplete") }
}

fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, data) in parts {
        body.extend_from_slice(
            format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--X--\r\n");
    body
}

#[test]
fn a_form_of_a_real_client_is_split() {
    let body = b"preamble\r\n--b1\r\nContent-Disposition: form-data; name=\":action\"\r\n\r\nfile_upload\r\n\
        --b1\r\nContent-Disposition: form-data; name=\"content\"; filename=\"a-1.0.whl\"\r\n\
        Content-Type: application/octet-stream\r\n\r\nPK\r\n--b\r\n\r\n--b1--\r\nepilogue";
    for size in [1, 3, 17, 1000] {
        let parts = split(body, "b1", size).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].0.name.as_str(), parts[0].1.as_slice()), (":action", &b"file_upload"[..]));
        assert_eq!(parts[1].0.filename.as_deref(), Some("a-1.0.whl"));
        assert_eq!(parts[1].0.headers[1].1, "application/octet-stream");
        assert_eq!(parts[1].1, b"PK\r\n--b\r\n");
    }
}

#[test]
fn damaged_forms_are_refused() {
    let whole = form(&[("a", b"1")]);
    for end in 0..whole.len() - 4 {
        assert!(split(&whole[..end], "X", 1000).is_err(), "cut at {end}");
    }
    for body in [
        &b"--X\r\nContent-Disposition: form-data\r\n\r\n1\r\n--X--"[..],
        b"--X\r\nno colon\r\n\r\n1\r\n--X--",
        b"--Xother\r\n\r\n1\r\n--X--",
        b"--X\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\n1\r\n--X--",
    ] {
        assert!(split(body, "X", 1000).is_err());
    }
    let long = format!("--X\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(split(long.as_bytes(), "X", 1000), Err(LONG_HEAD));
}

#[test]
fn the_longest_head_is_taken_however_it_is_cut() {
    let line = "\r\nContent-Disposition: form-data; name=a\r\nA: ";
    for (length, taken) in [(MAX_HEAD_BYTES, true), (MAX_HEAD_BYTES + 1, false)] {
        let body = format!("--X{line}{}\r\n\r\n1\r\n--X--", "x".repeat(length - line.len()));
        for size in 1..9 {
            assert_eq!(split(body.as_bytes(), "X", size).is_ok(), taken, "{length} bytes by {size}");
        }
    }
}

#[test]
fn parameters_are_read_quoted_and_bare() {
    for (field, name, expected) in [
        ("form-data; name=\"a\"", "name", Some("a")),
        ("form-data; filename=\"a;name=b\"; name=c", "name", Some("c")),
        ("form-data; name=\"a\\\"b%22c\\d\"", "name", Some("a\"b\"c\\d")),
        ("form-data; name=\"open", "name", None),
        ("form-data", "name", None),
    ] {
        assert_eq!(parameter(field, name).as_deref(), expected, "{field}");
    }
    assert_eq!(boundary(b"multipart/form-data; boundary=abc").as_deref(), Some("abc"));
    assert_eq!(boundary(b"Multipart/Form-Data; charset=x; boundary=\"a b\"").as_deref(), Some("a b"));
    assert_eq!(boundary(b"multipart/mixed; boundary=abc"), None);
    assert_eq!(boundary(b"multipart/form-data; boundary="), None);
}

proptest! {
    #[test]
    fn every_form_comes_back_however_it_is_cut(
        parts in proptest::collection::vec(
            ("[a-z]{1,8}", proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'X'), any::<u8>()], 0..60)),
            0..5,
        ),
        size in 1_usize..50,
    ) {
        prop_assume!(parts.iter().all(|(_, data)| find(&[b"\r\n", &data[..], b"\r\n"].concat(), b"\r\n--X").is_none()));
        let given: Vec<(&str, &[u8])> = parts.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect();
        let found = split(&form(&given), "X", size).unwrap();
        let found: Vec<(&str, &[u8])> = found.iter().map(|(head, data)| (head.name.as_str(), data.as_slice())).collect();
        prop_assert_eq!(found, given);
    }

    #[test]
    fn no_input_makes_the_parser_panic(body in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..50) {
        let _ = split(&body, "X", size);
    }
}
