//! The step that counts a request against the operator's rate limits. There is a limit for each
//! credential, and for each client network without a credential.

use std::sync::Arc;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_app::rate_limits::Requester;
use packhouse_config::client_network::ClientNetwork;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;

/// Refuses a request that exceeds its limit, with 429 `rate_limited` and the time to wait.
pub(crate) fn limit_rate(request: &RepositoryRequest<'_>) -> Result<(), HttpError> {
    let requester = || match &request.principal.credential {
        Some(credential) => Requester::Credential(request.organization, Arc::clone(credential)),
        None => Requester::Unauthenticated(ClientNetwork::of(request.peer)),
    };
    request.app.live.rates.count(requester).map_err(|exceeded| {
        let wait = HeaderValue::from(exceeded.retry_after);
        HttpError::of(&catalogue::RATE_LIMITED).and_header(RETRY_AFTER, wait)
    })
}
