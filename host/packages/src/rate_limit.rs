//! The step that counts a request for its credential and its organization, where the operator has set how many they may make.

use std::sync::Arc;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_app::rate_limits::Requester;
use packhouse_config::client_network::ClientNetwork;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;

/// 429 `rate_limited` with the time to wait, for one more than may be.
pub(crate) fn limit_rate(request: &RepositoryRequest<'_>) -> Result<(), HttpError> {
    let requester = || match &request.principal.credential {
        Some(credential) => Requester::Credential(request.organization, Arc::clone(credential)),
        None => Requester::Stranger(ClientNetwork::of(request.peer)),
    };
    request.app.live.rates.count(requester).map_err(|exceeded| {
        let wait = HeaderValue::from(exceeded.retry_after);
        HttpError::of(&catalogue::RATE_LIMITED).and_header(RETRY_AFTER, wait)
    })
}
