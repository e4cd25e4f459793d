//! Receive: a request's body into staged blobs, hashed while it comes in. The first poll of the body is what sends
//! `100 Continue`, so everything that can refuse a request has done so before.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use packhouse_runtime::{Appended, BodyPlan, Intent, Part, excess_of};
use packhouse_store::{Append, Blob, RepositoryId, Store, StoreError};
use packhouse_wire::incoming_body::{IncomingBody, declared};

use crate::multipart;
use crate::shape::Refused;
use packhouse_wire::catalogue;

/// What a body became.
#[derive(Default)]
pub(crate) struct Received {
    /// The whole of it.
    pub body: Option<Blob>,
    /// The parts of a form.
    pub parts: Vec<Part>,
    /// What was added to an upload.
    pub appended: Option<Appended>,
}

/// 413 for a body that is too large by its own declaration.
pub(crate) fn refuse_by_length(intent: &Intent, headers: &HeaderMap) -> Result<(), Refused> {
    let limit = match intent.body {
        BodyPlan::None => return Ok(()),
        BodyPlan::Body { limit } | BodyPlan::Parts { limit } | BodyPlan::Append { limit, .. } => limit,
    };
    match declared(headers) {
        Some(length) if length > limit => Err(of_limit(intent, too_large(limit))),
        _ => Ok(()),
    }
}

/// What is over a limit that has a name may have words of its own in the description.
fn of_limit(intent: &Intent, refused: Refused) -> Refused {
    match &intent.limit {
        Some(name) => refused.because(excess_of(name)),
        None => refused,
    }
}

/// The same of a refusal that may be another than that of the body's size.
fn over_limit(intent: &Intent, refused: Refused) -> Refused {
    if refused.is_of(&catalogue::FILE_TOO_LARGE) { of_limit(intent, refused) } else { refused }
}

/// 413 with the limit in its sentence.
pub(crate) fn too_large(limit: u64) -> Refused {
    Refused::with(&catalogue::FILE_TOO_LARGE, &limit.to_string())
}

/// Takes a body in as the intent asks. 413 as soon as it is over the limit; what was staged is gone then.
pub(crate) async fn receive(
    store: &Store,
    target: Option<RepositoryId>,
    intent: &Intent,
    headers: &HeaderMap,
    body: &mut IncomingBody,
) -> Result<Received, Refused> {
    match &intent.body {
        BodyPlan::None => Ok(Received::default()),
        BodyPlan::Body { limit } => {
            let blob = stage(store, target, intent, *limit, body).await?;
            Ok(Received { body: Some(blob), ..Received::default() })
        }
        BodyPlan::Parts { limit } => {
            let form = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
            let parts = multipart::receive((store, target), &intent.digests, form, *limit, body).await;
            let parts = parts.map_err(|refused| over_limit(intent, refused))?;
            Ok(Received { parts, ..Received::default() })
        }
        BodyPlan::Append { upload, offset, limit } => {
            let appended = append(store, target, (upload, *offset, *limit), body).await;
            let appended = appended.map_err(|refused| over_limit(intent, refused))?;
            Ok(Received { appended, ..Received::default() })
        }
    }
}

async fn stage(
    store: &Store,
    target: Option<RepositoryId>,
    intent: &Intent,
    limit: u64,
    body: &mut IncomingBody,
) -> Result<Blob, Refused> {
    let mut stager = store.stage(&intent.digests, limit).of(target);
    while let Some(bytes) = body.next().await? {
        stager.write(bytes).await.map_err(|error| match error {
            StoreError::TooLarge { limit, .. } => of_limit(intent, too_large(limit)),
            other => Refused::from(other),
        })?;
    }
    Ok(stager.finish().await?)
}

/// A body that goes to an upload. Where there is none of that name, or its length is another, nothing is read.
async fn append(
    store: &Store,
    target: Option<RepositoryId>,
    (name, offset, limit): (&str, Option<u64>, u64),
    body: &mut IncomingBody,
) -> Result<Option<Appended>, Refused> {
    let nothing = Some(Appended { upload: name.to_owned(), received: 0 });
    let Some(target) = target else { return Ok(nothing) };
    let Some(upload) = store.upload(target, name).await? else { return Ok(nothing) };
    let Append::Ready(mut appender) = upload.append(offset, limit).await? else { return Ok(nothing) };
    let mut received = 0;
    while let Some(bytes) = body.next().await? {
        received += bytes.len() as u64;
        appender.write(bytes).await.map_err(refused_bytes)?;
    }
    appender.finish().await?;
    Ok(Some(Appended { upload: name.to_owned(), received }))
}

/// A write's failure, where too many bytes are the client's fault.
pub(crate) fn refused_bytes(error: StoreError) -> Refused {
    match error {
        StoreError::TooLarge { limit, .. } => too_large(limit),
        other => Refused::from(other),
    }
}
