//! The step that refuses a publish by its declared length if its files cannot fit into a quota. It
//! runs before the host reads the body. It never refuses a publish that the commit would accept: it
//! counts only the least possible size of the files, and the commit decides.

use http::HeaderMap;
use packhouse_runtime::{Action, BodyPlan, DescriptionLimits, Intent};
use packhouse_store::QuotasOf;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::declared;

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;

/// Allowance for the metadata around the files in a form or document, in bytes.
const METADATA_BYTES: u64 = 128 * 1024;

/// Refuses a publish whose files exceed a quota, with 403 and both figures. Without a quota, the
/// function runs no statement.
pub(crate) async fn refuse_past_quota(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
) -> Result<(), HttpError> {
    let (Some(row), Action::Publish) = (request.found(), intent.action) else { return Ok(()) };
    let limits = &request.description().limits;
    let Some(bytes) = files_in(intent, limits, &request.parts.headers) else { return Ok(()) };
    let quotas = QuotasOf::new(&row.settings, request.principal.facts.organization_quota);
    let path = request.head.path.join("/");
    let exceeded = request.app.store.exceeded_by(row.organization, row.id, quotas, &path, bytes).await?;
    match exceeded {
        Some(quota) => Err(HttpError::with(&catalogue::QUOTA_EXCEEDED, &quota.sentence())),
        None => Ok(()),
    }
}

/// Returns the least possible size of the files in a body of the declared length, in bytes. Returns
/// `None` if the size is unknown. Checksums and indexes are not files of a version; their limits
/// are smaller than the limit of a file.
fn files_in(intent: &Intent, limits: &DescriptionLimits, headers: &HeaderMap) -> Option<u64> {
    let length = declared(headers)?;
    let among = length.saturating_sub(METADATA_BYTES);
    match intent.body {
        BodyPlan::None => None,
        BodyPlan::Append { offset, .. } => Some(offset.unwrap_or_default().saturating_add(length)),
        BodyPlan::Parts { .. } => Some(among),
        BodyPlan::Body { limit } if limits.max_file_bytes.is_none_or(|file| limit < file) => None,
        // The document contains the file in base64, which has four characters for three bytes.
        BodyPlan::Body { .. } if limits.max_body_bytes.is_some() => Some(among / 4 * 3),
        BodyPlan::Body { .. } => Some(length),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_LENGTH;

    use super::*;
    use crate::response_cache::tests::intent;

    #[test]
    fn files_are_counted_with_their_minimum_size() {
        let (file, mega) = (2_000_000, 1_000_000);
        let raw = DescriptionLimits { max_file_bytes: Some(file), ..DescriptionLimits::default() };
        let document = DescriptionLimits { max_body_bytes: Some(2 * file), ..raw.clone() };
        let unbounded = DescriptionLimits::default();
        let append = BodyPlan::Append { upload: String::new(), offset: Some(5), limit: file };
        for (plan, limits, expected) in [
            (BodyPlan::Body { limit: file }, &raw, Some(mega)),
            (BodyPlan::Body { limit: file - 1 }, &raw, None),
            (BodyPlan::Body { limit: file }, &document, Some((mega - METADATA_BYTES) / 4 * 3)),
            (BodyPlan::Body { limit: file }, &unbounded, None),
            (BodyPlan::Parts { limit: file }, &raw, Some(mega - METADATA_BYTES)),
            (append, &raw, Some(mega + 5)),
            (BodyPlan::None, &raw, None),
        ] {
            let intent = Intent { body: plan, ..intent() };
            let headers = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from(mega))]);
            assert_eq!(files_in(&intent, limits, &headers), expected, "{intent:?}");
            assert_eq!(files_in(&intent, limits, &HeaderMap::new()), None);
        }
    }
}
