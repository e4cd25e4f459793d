//! `gem signin`, by which RubyGems asks for a key that it then writes to its file of credentials.

use packhouse_sdk::{Context, Failure, Params, Request, Response};

/// A plugin neither sees the credential that is shown nor makes another, so that it says in words what to do; `gem` prints them.
pub(crate) fn api_key(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let text = format!(
        "Make a token in the portal and write it to ~/.gem/credentials as a line \"{}/: TOKEN\" (chmod 0600), or set GEM_HOST_API_KEY",
        request.address()
    );
    Err(Failure::new(405, "not_supported", text))
}
