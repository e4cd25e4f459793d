//! Splits a `multipart/form-data` body (RFC 7578) into staged blobs while it comes in.

mod splitter;
#[cfg(test)]
mod tests;

use packhouse_runtime::Part;
use packhouse_store::{Algorithm, Blob, RepositoryId, Stager, Store};
use splitter::{Event, Head, Splitter};

use crate::declared_length::{refused_bytes, too_large};
use crate::error_response::HttpError;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// Parts of one form.
const MAX_PARTS: usize = 1000;

/// A form that is to be taken in.
pub(crate) struct Form<'a> {
    /// Its content type, with the boundary of its parts.
    pub content_type: &'a [u8],
    /// Digests of each part besides SHA-256.
    pub digests: &'a [Algorithm],
    /// Bytes of all parts together, at most.
    pub limit: u64,
    /// The repository that it is for.
    pub target: Option<RepositoryId>,
}

/// Takes in a form. 400 for a body that is no form or is damaged, 413 for more than `limit` bytes together.
pub(crate) async fn receive(
    store: &Store,
    form: Form<'_>,
    body: &mut IncomingBody,
) -> Result<Vec<Part>, HttpError> {
    let Form { content_type, digests, limit, target } = form;
    let boundary =
        splitter::boundary(content_type).ok_or_else(|| damaged("The body is no multipart/form-data."))?;
    let mut splitter = Splitter::new(&boundary);
    let mut parts: Vec<Part> = Vec::new();
    let mut open: Option<(Head, Stager)> = None;
    let mut left = limit;
    while let Some(bytes) = body.next().await? {
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_large(limit))?;
        splitter.push(&bytes);
        while let Some(event) = splitter.next().map_err(damaged)? {
            match event {
                Event::Begin(head) if parts.len() < MAX_PARTS => {
                    open = Some((head, store.stage(digests, limit).of(target)))
                }
                Event::Begin(_) => return Err(damaged("The form has too many parts.")),
                Event::Data(bytes) => {
                    if let Some((_, stager)) = &mut open {
                        stager.write(bytes).await.map_err(refused_bytes)?;
                    }
                }
                Event::End => {
                    if let Some((head, stager)) = open.take() {
                        parts.push(part(head, stager.finish().await?));
                    }
                }
            }
        }
    }
    if splitter.is_complete() { Ok(parts) } else { Err(damaged("The form ends too early.")) }
}

fn damaged(reason: &'static str) -> HttpError {
    HttpError::with(&catalogue::INVALID_REQUEST, reason)
}

fn part(head: Head, body: Blob) -> Part {
    Part { name: head.name, filename: head.filename, headers: head.headers, body }
}
