//! Hostile behaviour that no plugin should have.

use std::hint::black_box;
use std::mem;

use crate::packhouse::format::blobs::{Blob, Part, Section, Writer};
use crate::packhouse::format::host;
use crate::packhouse::format::http::{Content, Failure, Request, Response};
use crate::packhouse::format::memo::{self, Making};
use crate::packhouse::format::records::{Expectation, Repository, Transaction};
use crate::packhouse::format::types::{Error, Header};
use crate::{refusal, refused, response, second, text};

pub fn respond(path: &str, request: &Request, target: Repository) -> Result<Response, Failure> {
    match path {
        "loop" => spin(),
        "recurse" => Ok(text(200, recurse(0).to_string())),
        "recurse-with-frames" => Ok(text(200, recurse_with_frames(0).to_string())),
        "grow" => grow(),
        "leak-handles" => leak(),
        "forge-handle" => forge(),
        "huge-list" => Ok(response(200, Vec::new(), Content::Inline(vec![7; 16 << 20]))),
        "big-inline" => Ok(response(200, Vec::new(), Content::Inline(vec![7; (1 << 20) + 1]))),
        "bad-status" => Ok(text(99, "")),
        "bad-headers" => Ok(header("x-a", "1\r\nset-cookie: session=stolen")),
        "bad-header-name" => Ok(header("x a", "1")),
        "own-headers" => Ok(header("set-cookie", "session=stolen")),
        "many-headers" => Ok(many_headers()),
        "empty-failure" => Err(Failure { status: 400, headers: Vec::new(), problems: Vec::new() }),
        "trap-mid-publish" => trap_mid_publish(request, &target),
        "other-blob" => other_blob(&second(request), &target),
        "other-record" => other_record(&second(request), &target),
        "write-on-read" => Ok(write_on_read(&target)),
        "invalid-utf8" => invalid_utf8(),
        "flood-log" => Ok(flood_log()),
        "flood-writer" => flood_writer(),
        "flood-parts" => flood_parts(),
        "wrong-parts" => wrong_parts(),
        "wrong-pieces" => Ok(wrong_pieces(&target)),
        "flood-notes" => flood_notes(&target),
        "flood-transaction" => flood_transaction(&target),
        _ => Err(refusal(404, "not_found", path)),
    }
}

pub fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Recursion that ends at the engine's stack limit, because it does not use the stack in the
/// guest's memory.
#[inline(never)]
fn recurse(depth: u64) -> u64 {
    if depth == u64::MAX { depth } else { recurse(depth + 1).wrapping_mul(31) ^ depth }
}

/// Recursion that ends at the guest's own stack limit, at the bottom of its memory.
#[expect(unconditional_recursion, reason = "that is the attack")]
fn recurse_with_frames(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse_with_frames(depth + 1) + black_box(frame)[0]
}

fn grow() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn leak() -> ! {
    loop {
        mem::forget(Writer::new());
    }
}

/// A made-up handle that this call never received.
fn forge() -> Result<Response, Failure> {
    // SAFETY: this is unsound on purpose; the test asserts that the host notices it.
    let forged = unsafe { Repository::from_handle(4_711) };
    Ok(text(200, forged.name()))
}

fn header(name: &str, value: &str) -> Response {
    let header = Header { name: name.to_owned(), value: value.to_owned() };
    response(200, vec![header], Content::None)
}

fn many_headers() -> Response {
    let headers = (0..100_000).map(|_| Header { name: "x".to_owned(), value: "y".to_owned() });
    response(200, headers.collect(), Content::None)
}

/// Traps after the body was stored and a change was begun.
fn trap_mid_publish(request: &Request, target: &Repository) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| refusal(400, "no_body", ""))?;
    let digest = target.keep(&body).map_err(refused)?;
    let transaction = target.begin().map_err(refused)?;
    transaction.put("file/half", digest.as_bytes(), Expectation::Absent, &[digest.clone()]);
    std::process::abort()
}

/// Requests a blob of another repository.
fn other_blob(digest: &str, target: &Repository) -> Result<Response, Failure> {
    match target.blob(digest).map_err(refused)? {
        Some(blob) => Ok(crate::blob(blob)),
        None => Err(refusal(404, "not_found", digest)),
    }
}

/// Requests a record of another repository by every spelling of the key that might escape from the
/// target repository.
fn other_record(key: &str, target: &Repository) -> Result<Response, Failure> {
    let spellings = [
        key.to_owned(),
        format!("../other/{key}"),
        format!("other/{key}"),
        format!("/{key}"),
        "%".to_owned(),
    ];
    for spelling in &spellings {
        if target.get(spelling).map_err(refused)?.is_some() {
            return Ok(text(200, spelling.clone()));
        }
    }
    let found = target.scan("", None, 1_000).map_err(refused)?.len()
        + target.keys("", None, None, 1_000).map_err(refused)?.len()
        + target.search("", 0, 250).map_err(refused)?.names.len();
    if found > 0 { Ok(text(200, found.to_string())) } else { Err(refusal(404, "not_found", key)) }
}

/// Tries every way to write under an intent to read, and lists which ones the host denied.
fn write_on_read(target: &Repository) -> Response {
    let writer = Writer::new();
    let finished = match Writer::finish(writer) {
        Ok(blob) => denied(target.keep(&blob)),
        Err(_) => "failed",
    };
    text(
        200,
        format!(
            "begin {}, keep {finished}, upload {}",
            denied(target.begin()),
            denied(target.begin_upload(""))
        ),
    )
}

fn denied<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "allowed",
        Err(Error::Denied) => "denied",
        Err(_) => "failed",
    }
}

fn invalid_utf8() -> Result<Response, Failure> {
    // SAFETY: this is unsound on purpose; the test asserts that the host notices it.
    let text = unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0xc0, 0x80]) };
    Ok(crate::text(200, "").with_header(text))
}

impl Response {
    fn with_header(mut self, value: String) -> Response {
        self.headers.push(Header { name: "x-a".to_owned(), value });
        self
    }
}

fn flood_log() -> Response {
    for number in 0..10_000 {
        host::log("info", &format!("flood {number}"), &[]);
    }
    text(200, "flooded")
}

fn flood_writer() -> Result<Response, Failure> {
    let writer = Writer::new();
    let piece = vec![7; 1 << 20];
    loop {
        writer.write(&piece).map_err(refused)?;
    }
}

/// Appends the same section of one blob many times in one call.
fn flood_parts() -> Result<Response, Failure> {
    let (writer, of) = (Writer::new(), written(&vec![7; 1 << 20])?);
    let parts: Vec<Part> =
        (0..1_000).map(|_| Part::Section(Section { of: &of, offset: 0, length: 1 << 20 })).collect();
    writer.write_parts(&parts).map_err(refused)?;
    Ok(text(200, "written"))
}

/// Requests sections outside their blob.
fn wrong_parts() -> Result<Response, Failure> {
    let (writer, of) = (Writer::new(), written(b"abc")?);
    let section = |offset, length| Part::Section(Section { of: &of, offset, length });
    let outcomes = [(2, 2), (4, 0), (u64::MAX, 2), (0, u64::MAX)]
        .map(|(offset, length)| outcome(writer.write_parts(&[section(offset, length)])));
    writer
        .write_parts(&[section(1, 2), Part::Bytes(b"-".to_vec()), section(3, 0), section(0, 1)])
        .map_err(refused)?;
    let written = Writer::finish(writer).map_err(refused)?.read(0, 99).map_err(refused)?;
    Ok(text(200, format!("{} {}", outcomes.join(" "), String::from_utf8_lossy(&written))))
}

/// Looks up pieces (see `memo.wit`) by an empty name, by a name that is too long, and by too many
/// names. Then looks up as many as are allowed.
fn wrong_pieces(target: &Repository) -> Response {
    let names = [vec![String::new()], vec!["n".repeat((16 << 10) + 1)], vec!["n".to_owned(); 1_001]];
    let outcomes = names.map(|names| outcome(memo::find_noted(target, &names)));
    let most = memo::find_noted(target, &vec!["n".to_owned(); 1_000]).map(|found| found.len());
    text(200, format!("{} {}", outcomes.join(" "), most.unwrap_or_default()))
}

/// Looks up one piece with a large note many times in one call.
fn flood_notes(target: &Repository) -> Result<Response, Failure> {
    let making = Making::start(target, "large").map_err(refused)?;
    Making::finish_noted(making, &vec![7; 1 << 20], &[]).map_err(refused)?;
    let found = memo::find_noted(target, &vec!["large".to_owned(); 1_000]).map_err(refused)?;
    Ok(text(200, found.len().to_string()))
}

fn outcome<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "allowed",
        Err(Error::Invalid(_)) => "invalid",
        Err(_) => "failed",
    }
}

fn written(bytes: &[u8]) -> Result<Blob, Failure> {
    let writer = Writer::new();
    writer.write(bytes).map_err(refused)?;
    Writer::finish(writer).map_err(refused)
}

/// Adds more changes than a transaction may hold; the commit reports the error.
fn flood_transaction(target: &Repository) -> Result<Response, Failure> {
    let transaction = target.begin().map_err(refused)?;
    let value = vec![7; 1 << 20];
    for number in 0..64 {
        transaction.put(&number.to_string(), &value, Expectation::Anything, &[]);
    }
    Transaction::commit(transaction).map_err(refused)?;
    Ok(text(200, "committed"))
}
