//! The step receive: a request's body into staged blobs, hashed while it comes in. The first poll of the body is what sends
//! `100 Continue`, so everything that can refuse a request has done so before.

use http::header::CONTENT_TYPE;
use packhouse_runtime::{Appended, BodyPlan, Intent, Moved, Part};
use packhouse_store::{Append, Blob, RepositoryId, Stager, Store, StoreError};
use packhouse_wire::incoming_body::IncomingBody;

use crate::declared_length::{of_limit, refused_bytes, too_large};
use crate::error_response::HttpError;
use crate::multipart::{self, Form};
use crate::repository_request::RepositoryRequest;

/// What a body became.
#[derive(Default)]
pub(crate) struct Received {
    /// The whole of it.
    pub body: Option<Blob>,
    /// The parts of a form.
    pub parts: Vec<Part>,
    /// What was added to an upload.
    pub appended: Option<Appended>,
    /// Present where another server served it before.
    pub moved: Option<Moved>,
}

impl Received {
    /// The same, with what the sender says of a move.
    pub(crate) fn moved(self, moved: Option<Moved>) -> Received {
        Received { moved, ..self }
    }
}

/// A body that is added to an upload.
struct Addition<'a> {
    upload: &'a str,
    /// Where the client says that it begins.
    offset: Option<u64>,
    limit: u64,
}

/// Takes a body in as the intent asks. 413 as soon as it is over the limit; what was staged is gone then.
pub(crate) async fn receive(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    body: &mut IncomingBody,
) -> Result<Received, HttpError> {
    let store = &request.app.store;
    let target = request.found().map(|row| row.id);
    match &intent.body {
        BodyPlan::None => Ok(Received::default()),
        BodyPlan::Body { limit } => {
            let stager = store.stage(&intent.digests, *limit).of(target);
            let blob = Box::pin(stage(stager, intent, body)).await?;
            Ok(Received { body: Some(blob), ..Received::default() })
        }
        BodyPlan::Parts { limit } => {
            let content_type = request.parts.headers.get(CONTENT_TYPE);
            let content_type = content_type.map_or(&b""[..], |value| value.as_bytes());
            let form = Form { content_type, digests: &intent.digests, limit: *limit, target };
            let parts = Box::pin(multipart::receive(store, form, body)).await;
            let parts = parts.map_err(|refused| of_limit(intent, refused))?;
            Ok(Received { parts, ..Received::default() })
        }
        BodyPlan::Append { upload, offset, limit } => {
            let addition = Addition { upload, offset: *offset, limit: *limit };
            let appended = Box::pin(append(store, target, addition, body)).await;
            let appended = appended.map_err(|refused| of_limit(intent, refused))?;
            Ok(Received { appended: Some(appended), ..Received::default() })
        }
    }
}

async fn stage(mut stager: Stager, intent: &Intent, body: &mut IncomingBody) -> Result<Blob, HttpError> {
    while let Some(bytes) = body.next().await? {
        stager.write(bytes).await.map_err(|error| match error {
            StoreError::TooLarge { limit, .. } => of_limit(intent, too_large(limit)),
            other => HttpError::from(other),
        })?;
    }
    Ok(stager.finish().await?)
}

/// Adds a body to an upload. Where there is none of that name, or its length is another, nothing is read.
async fn append(
    store: &Store,
    target: Option<RepositoryId>,
    addition: Addition<'_>,
    body: &mut IncomingBody,
) -> Result<Appended, HttpError> {
    let Addition { upload: name, offset, limit } = addition;
    let nothing = Appended { upload: name.to_owned(), received: 0 };
    let Some(target) = target else { return Ok(nothing) };
    let Some(upload) = store.upload(target, name).await? else { return Ok(nothing) };
    let Append::Ready(mut appender) = upload.append(offset, limit).await? else { return Ok(nothing) };
    let mut received = 0;
    while let Some(bytes) = body.next().await? {
        received += bytes.len() as u64;
        appender.write(bytes).await.map_err(refused_bytes)?;
    }
    appender.finish().await?;
    Ok(Appended { upload: name.to_owned(), received })
}
