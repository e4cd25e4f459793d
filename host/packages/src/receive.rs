//! The step receive: stores the body of a request as staged blobs, and hashes it while it arrives.
//! The first poll of the body sends `100 Continue`, so all checks that can refuse a request come
//! before this step.

use http::header::CONTENT_TYPE;
use packhouse_runtime::{Appended, BodyPlan, Intent, Moved, Part};
use packhouse_store::{Append, Blob, RepositoryId, Stager, Store, StoreError};
use packhouse_wire::incoming_body::IncomingBody;

use crate::declared_length::{of_limit, refused_bytes, too_large};
use crate::error_response::HttpError;
use crate::multipart::{self, FormUpload};
use crate::repository_request::RepositoryRequest;

/// The result of receiving a body.
#[derive(Default)]
pub(crate) struct ReceivedBody {
    /// The whole body as one staged blob.
    pub body: Option<Blob>,
    pub parts: Vec<Part>,
    /// Bytes that the host appended to an upload.
    pub appended: Option<Appended>,
    /// Present if the client states that another server published the package earlier.
    pub moved: Option<Moved>,
}

impl ReceivedBody {
    /// Adds the client's statement about an earlier publication.
    pub(crate) fn moved(self, moved: Option<Moved>) -> ReceivedBody {
        ReceivedBody { moved, ..self }
    }
}

/// A body that the host appends to an upload.
struct Addition<'a> {
    upload: &'a str,
    /// The offset that the client states.
    offset: Option<u64>,
    limit: u64,
}

/// Receives a body in the way that the intent requires. Fails with 413 as soon as the body exceeds
/// the limit, and deletes the staged bytes.
pub(crate) async fn receive(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    body: &mut IncomingBody,
) -> Result<ReceivedBody, HttpError> {
    let store = &request.app.store;
    let target = request.found().map(|row| row.id);
    match &intent.body {
        BodyPlan::None => Ok(ReceivedBody::default()),
        BodyPlan::Body { limit } => {
            let stager = store.stage(&intent.digests, *limit).of(target);
            let blob = Box::pin(stage(stager, intent, body)).await?;
            Ok(ReceivedBody { body: Some(blob), ..ReceivedBody::default() })
        }
        BodyPlan::Parts { limit } => {
            let content_type = request.parts.headers.get(CONTENT_TYPE);
            let content_type = content_type.map_or(&b""[..], |value| value.as_bytes());
            let form = FormUpload { content_type, digests: &intent.digests, limit: *limit, target };
            let parts = Box::pin(multipart::receive(store, form, body)).await;
            let parts = parts.map_err(|refused| of_limit(intent, refused))?;
            Ok(ReceivedBody { parts, ..ReceivedBody::default() })
        }
        BodyPlan::Append { upload, offset, limit } => {
            let addition = Addition { upload, offset: *offset, limit: *limit };
            let appended = Box::pin(append(store, target, addition, body)).await;
            let appended = appended.map_err(|refused| of_limit(intent, refused))?;
            Ok(ReceivedBody { appended: Some(appended), ..ReceivedBody::default() })
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

/// Appends a body to an upload. If the upload does not exist, or its length differs from the
/// offset, the body is not read.
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
