//! Answers `gem signin`, which requests an API key to write it to its credentials file.

use packhouse_sdk::{Context, Failure, Params, Request, Response};

/// Refuses the request, because a plugin cannot see or create credentials. `gem` prints the
/// message, which tells the user how to set a token instead.
pub(crate) fn api_key(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let text = format!(
        "Create a token in the portal and write it to ~/.gem/credentials as a line \"{}/: TOKEN\" (chmod 0600), or set GEM_HOST_API_KEY",
        request.address()
    );
    Err(Failure::new(405, "not_supported", text))
}
