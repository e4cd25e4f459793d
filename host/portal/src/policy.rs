//! Protects forms against forged requests, and redirects against leading to other sites.

use http::HeaderMap;
use packhouse_api::error::ApiError;
use packhouse_api::portal::{self, Visitor};
use packhouse_app::App;
use packhouse_app::sso::is_own_path;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;
use subtle::ConstantTimeEq as _;

/// Cookie of forms without a session: sign-in, invitation and password reset.
pub(crate) const FORM: &str = "packhouse_form";
/// Page where a member sets up a second factor.
pub(crate) const SECOND_FACTOR: &str = "/account/second-factor";
/// Lifetime of that cookie in seconds.
pub(crate) const FORM_SECONDS: i64 = 12 * 60 * 60;
/// Paths of forms that also work while the server is read-only.
const ALLOWED_WHEN_READ_ONLY: [&str; 2] = ["/sign-in", "/sign-out"];

/// Checks the form of a signed-in member. 403 `csrf_refused` unless it comes from this host and
/// carries the session's token.
pub(crate) fn check_member_form(
    app: &App,
    visitor: &Visitor,
    headers: &HeaderMap,
    given: &str,
) -> Result<(), ApiError> {
    visitor.check(app, headers, given)?;
    if same_site(headers) { Ok(()) } else { Err(ApiError::from(&catalogue::CSRF_REFUSED)) }
}

/// Checks whether the form of this path may be submitted now. 503 `read_only` while the server is
/// read-only, except for signing in and out.
pub(crate) fn may_change(app: &App, path: &str) -> Result<(), ApiError> {
    if *app.live.read_only.get() && !ALLOWED_WHEN_READ_ONLY.contains(&path) {
        return Err(ApiError::from(&catalogue::READ_ONLY));
    }
    Ok(())
}

/// Returns whether a member who must set up a second factor first may see this page, or may send
/// its form: to see the account, to set one up, and to sign out.
pub(crate) fn works_without_second_factor(path: &str, sends: bool) -> bool {
    matches!(path, SECOND_FACTOR | "/sign-out") || (path == "/account" && !sends)
}

/// Checks the form of a visitor without a session against the cookie that its page has set.
pub(crate) fn check_guest_form(app: &App, headers: &HeaderMap, given: &str) -> Result<(), ApiError> {
    let right = form_secret(app, headers)
        .is_some_and(|own| bool::from(portal::csrf(&own).as_bytes().ct_eq(given.as_bytes())));
    if right && is_own(app, headers) { Ok(()) } else { Err(ApiError::from(&catalogue::CSRF_REFUSED)) }
}

/// Returns the secret behind the forms of a visitor without a session.
pub(crate) fn form_secret(app: &App, headers: &HeaderMap) -> Option<Secret> {
    portal::cookie(app, headers, FORM)
}

/// Returns whether the request comes from a page of this host, as far as its headers tell.
pub(crate) fn is_own(app: &App, headers: &HeaderMap) -> bool {
    portal::same_origin(app, headers) && same_site(headers)
}

/// Checks `Sec-Fetch-Site`. Browsers send `none` for an address typed by hand, which is never a
/// form.
fn same_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// Returns the path to continue at after the sign-in. `/repositories` if `named` is missing or does
/// not lead to a page of this host.
pub(crate) fn return_to(named: Option<&str>) -> &str {
    let own = |path: &&str| is_own_path(path) && !path.starts_with("/sign-") && !path.starts_with("/v1/");
    named.filter(own).unwrap_or("/repositories")
}

/// Returns the path of the sign-in page that leads back to this path.
pub(crate) fn sign_in(path: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
    format!("/sign-in?return_to={encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_to_accepts_only_pages_of_this_host() {
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
