//! Splits a `multipart/form-data` body (RFC 7578) into staged blobs as it arrives.

mod splitter;
#[cfg(test)]
mod tests;

use packhouse_runtime::Part;
use packhouse_store::{Algorithm, Blob, RepositoryId, Stager, Store};
use splitter::{FormEvent, PartHead, Splitter};

use crate::declared_length::{refused_bytes, too_large};
use crate::error_response::HttpError;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// Maximum number of parts in a form.
const MAX_PARTS: usize = 1000;

/// A form that the server is receiving.
pub(crate) struct FormUpload<'a> {
    /// The content type, which contains the boundary.
    pub content_type: &'a [u8],
    /// Digests that are computed for each part, in addition to SHA-256.
    pub digests: &'a [Algorithm],
    /// Maximum size of all parts together, in bytes.
    pub limit: u64,
    pub target: Option<RepositoryId>,
}

/// Receives a form. Fails with 400 for a malformed body, and with 413 if the body has more than
/// `limit` bytes.
pub(crate) async fn receive(
    store: &Store,
    form: FormUpload<'_>,
    body: &mut IncomingBody,
) -> Result<Vec<Part>, HttpError> {
    let FormUpload { content_type, digests, limit, target } = form;
    let boundary = splitter::boundary(content_type)
        .ok_or_else(|| damaged("The request body is not multipart/form-data."))?;
    let mut splitter = Splitter::new(&boundary);
    let mut parts: Vec<Part> = Vec::new();
    let mut open: Option<(PartHead, Stager)> = None;
    let mut left = limit;
    while let Some(bytes) = body.next().await? {
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_large(limit))?;
        splitter.push(&bytes);
        while let Some(event) = splitter.next().map_err(damaged)? {
            match event {
                FormEvent::Begin(head) if parts.len() < MAX_PARTS => {
                    open = Some((head, store.stage(digests, limit).of(target)))
                }
                FormEvent::Begin(_) => return Err(damaged("The form has too many parts.")),
                FormEvent::Data(bytes) => {
                    if let Some((_, stager)) = &mut open {
                        stager.write(bytes).await.map_err(refused_bytes)?;
                    }
                }
                FormEvent::End => {
                    if let Some((head, stager)) = open.take() {
                        parts.push(part(head, stager.finish().await?));
                    }
                }
            }
        }
    }
    if splitter.is_complete() { Ok(parts) } else { Err(damaged("The form is incomplete.")) }
}

fn damaged(reason: &'static str) -> HttpError {
    HttpError::with(&catalogue::INVALID_REQUEST, reason)
}

fn part(head: PartHead, body: Blob) -> Part {
    Part { name: head.name, filename: head.filename, headers: head.headers, body }
}
