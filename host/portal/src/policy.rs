//! What a form must carry, and where a page may lead: against forged requests, framing and open redirects.

use http::HeaderMap;
use packhouse_api::error::ApiError;
use packhouse_api::portal::{self, Visitor};
use packhouse_app::App;
use packhouse_app::sso::is_own_path;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;
use subtle::ConstantTimeEq as _;

/// The cookie that a form without a session goes with: of signing in, accepting an invitation, setting a password.
pub(crate) const FORM: &str = "packhouse_form";
/// How long that is kept, in seconds.
pub(crate) const FORM_SECONDS: i64 = 12 * 60 * 60;
/// Paths of forms that go on in a server that takes no changes, as such calls do.
const GOES_ON: [&str; 2] = ["/sign-in", "/sign-out"];

/// Judges a form of somebody with a session: 403 `csrf_refused` unless it is this host's own and carries the session's token.
pub(crate) fn judge(app: &App, visitor: &Visitor, headers: &HeaderMap, given: &str) -> Result<(), ApiError> {
    visitor.check(app, headers, given)?;
    if same_site(headers) { Ok(()) } else { Err(ApiError::from(&catalogue::CSRF_REFUSED)) }
}

/// Judges whether the form of this path may be sent at present: 503 `read_only` while the server takes no changes, other than to sign
/// in and out.
pub(crate) fn may_change(app: &App, path: &str) -> Result<(), ApiError> {
    if *app.live.read_only.get() && !GOES_ON.contains(&path) {
        return Err(ApiError::from(&catalogue::READ_ONLY));
    }
    Ok(())
}

/// Judges a form of a stranger, against the cookie that its page has set.
pub(crate) fn judge_stranger(app: &App, headers: &HeaderMap, given: &str) -> Result<(), ApiError> {
    let right = stranger(app, headers)
        .is_some_and(|own| bool::from(portal::csrf(&own).as_bytes().ct_eq(given.as_bytes())));
    if right && is_own(app, headers) { Ok(()) } else { Err(ApiError::from(&catalogue::CSRF_REFUSED)) }
}

/// The secret behind a stranger's forms.
pub(crate) fn stranger(app: &App, headers: &HeaderMap) -> Option<Secret> {
    portal::cookie(app, headers, FORM)
}

/// Whether nothing says that the request was made elsewhere than on a page of this host.
pub(crate) fn is_own(app: &App, headers: &HeaderMap) -> bool {
    portal::same_origin(app, headers) && same_site(headers)
}

/// Browsers say `none` of what a person types into the address field, which is never a form.
fn same_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// The path of this host to go on to; the first page where none is named, or one that is none.
pub(crate) fn return_to(named: Option<&str>) -> &str {
    let own = |path: &&str| is_own_path(path) && !path.starts_with("/sign-") && !path.starts_with("/v1/");
    named.filter(own).unwrap_or("/repositories")
}

/// The page that signs in and comes back to this path.
pub(crate) fn sign_in(path: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
    format!("/sign-in?return_to={encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_host_are_gone_on_to() {
        assert_eq!(return_to(Some("/tokens?rotate=7")), "/tokens?rotate=7");
        for other in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            "",
            "/sign-out",
            "/v1/me",
        ] {
            assert_eq!(return_to(Some(other)), "/repositories", "{other:?}");
        }
        assert_eq!(sign_in("/a?b=c&d"), "/sign-in?return_to=%2Fa%3Fb%3Dc%26d");
    }
}
