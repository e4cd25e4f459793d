//! The step that refuses a publish which cannot fit into a quota by its declared length, before a byte of it. It refuses nothing that
//! the commit would take: what a body holds besides files is allowed for, and the commit decides.

use http::HeaderMap;
use packhouse_runtime::{Action, BodyPlan, DescriptionLimits, Intent};
use packhouse_store::QuotasOf;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::declared;

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;

/// What a form or a document says of the files in it, at most as far as this step allows for it.
const BESIDES_FILES: u64 = 128 * 1024;

/// 403 with both figures for a publish whose files are more than a quota has room for. No statement is run where none is set.
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

/// How many bytes of files there are at least in a body of the declared length; none where that cannot be told: a checksum and an index
/// are no files of a version, and their bodies are smaller than a file may be.
fn files_in(intent: &Intent, limits: &DescriptionLimits, headers: &HeaderMap) -> Option<u64> {
    let length = declared(headers)?;
    let among = length.saturating_sub(BESIDES_FILES);
    match intent.body {
        BodyPlan::None => None,
        BodyPlan::Append { offset, .. } => Some(offset.unwrap_or_default().saturating_add(length)),
        BodyPlan::Parts { .. } => Some(among),
        BodyPlan::Body { limit } if limits.max_file_bytes.is_none_or(|file| limit < file) => None,
        // A file is not all of it: in base64, of which four characters are three bytes.
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
    fn files_are_counted_as_what_they_are_at_least() {
        let (file, mega) = (2_000_000, 1_000_000);
        let raw = DescriptionLimits { max_file_bytes: Some(file), ..DescriptionLimits::default() };
        let document = DescriptionLimits { max_body_bytes: Some(2 * file), ..raw.clone() };
        let unbounded = DescriptionLimits::default();
        let append = BodyPlan::Append { upload: String::new(), offset: Some(5), limit: file };
        for (plan, limits, expected) in [
            (BodyPlan::Body { limit: file }, &raw, Some(mega)),
            (BodyPlan::Body { limit: file - 1 }, &raw, None),
            (BodyPlan::Body { limit: file }, &document, Some((mega - BESIDES_FILES) / 4 * 3)),
            (BodyPlan::Body { limit: file }, &unbounded, None),
            (BodyPlan::Parts { limit: file }, &raw, Some(mega - BESIDES_FILES)),
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
