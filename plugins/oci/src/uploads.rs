//! Pushes of layers. `POST` begins a session, `PATCH` appends to it, and `PUT` or `DELETE` ends it.
//! One `POST` can also push a whole layer, or mount a layer of another repository.

use crate::{LAYER_LIMIT, failure, name};
use packhouse_sdk::{Blob, Context, Digest, Failure, Intent, Params, Request, Response, Upload};

/// Plans one of three pushes: a layer in the body (`digest`), a layer of another repository
/// (`mount` and `from`), or a session.
pub(crate) fn plan_begin(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    let intent = Intent::publish().subject(image.as_str()).about_package(image);
    if let Some(mount) = request.query("mount") {
        name::digest(mount)?;
        let source = request.query("from").and_then(name::repository_of);
        let other = source.filter(|source| *source != name::repository(request));
        return Ok(match other {
            Some(other) => intent.also_read(other),
            None => intent,
        });
    }
    Ok(match request.query("digest") {
        Some(digest) => {
            name::digest(digest)?;
            intent.body(LAYER_LIMIT)
        }
        None => intent,
    })
}

pub(crate) fn begin(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, image) = (cx.target()?, name::image(request, params)?);
    if let Some(mount) = request.query("mount") {
        let digest = name::digest(mount)?;
        let here = repository.blob(&digest)?;
        let others = cx.others().iter().map(|other| other.blob(&digest));
        let found = std::iter::once(Ok(here)).chain(others).find_map(Result::transpose);
        if let Some(blob) = found {
            repository.keep(&blob?)?;
            return Ok(stored(request, &image, &digest));
        }
    } else if let Some(digest) = request.query("digest") {
        let body = request.planned_body()?;
        return keep(cx, request, &image, &body, &name::digest(digest)?);
    }
    let upload = repository.begin_upload(&image)?;
    Ok(in_progress(request, &image, &upload, 0).with_status(202))
}

/// Plans a request for the number of received bytes, which clients send to continue a session.
pub(crate) fn plan_status(request: &Request, params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::read().subject(name::image(request, params)?).for_publish())
}

pub(crate) fn status(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (image, id) = (name::image(request, params)?, params.segment("upload"));
    let upload = find(cx, &image, id)?;
    Ok(in_progress(request, &image, id, upload.length()).with_status(204))
}

pub(crate) fn plan_add(request: &Request, params: &Params) -> Result<Intent, Failure> {
    if is_without_content(request) {
        return Err(failure::bad_upload("a chunk without content"));
    }
    append(request, params)
}

pub(crate) fn add(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (image, id) = (name::image(request, params)?, params.segment("upload"));
    let upload = find(cx, &image, id)?;
    if let Some(refused) = refused(request, &image, id, &upload)? {
        return Err(refused);
    }
    Ok(in_progress(request, &image, id, upload.length()).with_status(202))
}

pub(crate) fn plan_finish(request: &Request, params: &Params) -> Result<Intent, Failure> {
    name::digest(request.query("digest").unwrap_or_default())?;
    append(request, params)
}

pub(crate) fn finish(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (image, id) = (name::image(request, params)?, params.segment("upload"));
    let digest = name::digest(request.query("digest").unwrap_or_default())?;
    let upload = find(cx, &image, id)?;
    if let Some(refused) = refused(request, &image, id, &upload)? {
        return Err(refused);
    }
    keep(cx, request, &image, &upload.finish()?, &digest)
}

/// Plans the cancellation of a push, which needs only the permission to push.
pub(crate) fn plan_cancel(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    Ok(Intent::publish().subject(image.as_str()).about_package(image))
}

pub(crate) fn cancel(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    find(cx, &name::image(request, params)?, params.segment("upload"))?.abort()?;
    Ok(Response::no_content())
}

fn append(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    let range = ChunkRange::of(request)?;
    if let (Some(range), Some(length)) = (range, declared(request))
        && length != range.length()
    {
        return Err(failure::wrong_size());
    }
    let offset = range.map(|range| range.first);
    let intent = Intent::publish().subject(image.as_str()).about_package(image);
    Ok(intent.append(params.segment("upload"), offset, LAYER_LIMIT))
}

/// Returns the session with this id. 404 if it does not exist, or if it was begun for another
/// image.
fn find(cx: &Context, image: &str, id: &str) -> Result<Upload, Failure> {
    let upload = cx.target()?.upload(id)?;
    upload.filter(|upload| upload.note() == image).ok_or_else(failure::unknown_upload)
}

/// Returns the failure if the sent bytes were not appended, or if their number differs from the
/// announced number.
fn refused(request: &Request, image: &str, id: &str, upload: &Upload) -> Result<Option<Failure>, Failure> {
    let range = ChunkRange::of(request)?;
    let (length, received) = (upload.length(), upload.received());
    let is_wrong_offset = range.is_some_and(|range| range.first != length.saturating_sub(received));
    let is_not_appended = received == 0 && declared(request).is_some_and(|declared| declared > 0);
    if is_wrong_offset || is_not_appended {
        let failure = Failure::new(416, "RANGE_INVALID", "a chunk must begin where the previous one ended");
        return Ok(Some(
            failure
                .header("location", name::location(request, image, &format!("blobs/uploads/{id}")))
                .header("range", received_range(length))
                .header("docker-upload-uuid", id),
        ));
    }
    Ok(range.filter(|range| range.length() != received).map(|_| failure::wrong_size()))
}

/// Stores a completely received layer, which must have this digest.
fn keep(
    cx: &Context,
    request: &Request,
    image: &str,
    blob: &Blob,
    digest: &Digest,
) -> Result<Response, Failure> {
    if blob.sha256()? != *digest {
        return Err(failure::wrong_digest());
    }
    cx.target()?.keep(blob)?;
    Ok(stored(request, image, digest))
}

fn stored(request: &Request, image: &str, digest: &Digest) -> Response {
    Response::created()
        .header("location", name::location(request, image, &format!("blobs/{digest}")))
        .header("docker-content-digest", digest.as_str())
}

fn in_progress(request: &Request, image: &str, id: &str, length: u64) -> Response {
    Response::ok()
        .header("location", name::location(request, image, &format!("blobs/uploads/{id}")))
        .header("range", received_range(length))
        .header("docker-upload-uuid", id)
}

/// `0-` and the position of the last byte. `0-0` if nothing was received, because clients expect
/// two numbers.
fn received_range(length: u64) -> String {
    format!("0-{}", length.saturating_sub(1))
}

fn declared(request: &Request) -> Option<u64> {
    request.header("content-length")?.parse().ok()
}

/// Returns true if the headers announce an empty body or no body. The caller refuses such a
/// request. A streamed body has no announced length and may be empty, for an empty layer.
fn is_without_content(request: &Request) -> bool {
    let streamed = request.header("transfer-encoding").is_some();
    match declared(request) {
        Some(length) => length == 0,
        None => !streamed,
    }
}

/// The range of a layer's bytes that a chunk contains.
#[derive(Clone, Copy)]
struct ChunkRange {
    first: u64,
    last: u64,
}

impl ChunkRange {
    /// Reads `Content-Range: 0-99`, the form of the distribution specification. Also accepts HTTP's
    /// form `bytes 0-99/200`.
    fn of(request: &Request) -> Result<Option<Self>, Failure> {
        let Some(text) = request.header("content-range") else { return Ok(None) };
        let numbers = text.trim().strip_prefix("bytes").unwrap_or(text).trim_start_matches([' ', '=']);
        let numbers = numbers.split('/').next().unwrap_or_default();
        let range = numbers.split_once('-').and_then(|(first, last)| {
            Some(Self { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? })
        });
        match range.filter(|range| range.first <= range.last && range.last < LAYER_LIMIT) {
            Some(range) => Ok(Some(range)),
            None => Err(failure::bad_upload(
                "Content-Range must be two numbers, the positions of the first and the last byte",
            )),
        }
    }

    fn length(self) -> u64 {
        self.last - self.first + 1
    }
}
