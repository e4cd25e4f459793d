//! Links for sign-ins that a package client starts and a user completes in a browser.
//!
//! The client polls with one secret. The browser opens the page with another secret, which is
//! derived from the first. The page's address may leak, for example through the browser's history.
//! Anyone who finds it can complete the sign-in with their own account, but cannot fetch the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_wire::site::Site;
use sha2::{Digest as _, Sha256};

use crate::App;
use crate::links::Side;

/// Time in which a user must complete a sign-in: 5 minutes, in ms.
pub const LIFETIME_MS: i64 = 5 * 60 * 1000;

/// Derives the secret of a sign-in's page from the secret with which the client polls.
pub fn page_of(poll: &str) -> String {
    let hash = Sha256::new_with_prefix("packhouse login page 1\0").chain_update(poll).finalize();
    URL_SAFE_NO_PAD.encode(hash)
}

/// Returns the address of a sign-in's page. `site` is the site at which the client reached the
/// repository host.
pub fn url(app: &App, page: &str, site: Option<&Site>) -> String {
    format!("{}/npm-login/{page}", app.api_url_at(site, Side::Packages))
}

/// Returns the sealing purpose of a sign-in's token.
pub fn purpose(page: &str) -> String {
    format!("login {}", hex::encode(hash_of_page(page)))
}

/// Returns the key under which the server stores a page: the SHA-256 of the page's secret.
pub fn hash_of_page(page: &str) -> [u8; 32] {
    Sha256::digest(page.as_bytes()).into()
}
