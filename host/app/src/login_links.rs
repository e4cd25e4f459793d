//! The links of sign-ins that a package client began and a person finishes in a browser.
//!
//! The client asks with one secret and the page is opened with another, which is made from it: who sees the page's address, in a
//! history or over a shoulder, can finish the sign-in with an account of their own, and never fetch the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_wire::site::Site;
use sha2::{Digest as _, Sha256};

use crate::App;
use crate::links::Side;

/// How long a sign-in can be finished after it was begun: 5 minutes in ms.
pub const LIFETIME_MS: i64 = 5 * 60 * 1000;

/// What the page of a sign-in is opened with, from what the client asks with.
pub fn page_of(poll: &str) -> String {
    let hash = Sha256::new_with_prefix("packhouse login page 1\0").chain_update(poll).finalize();
    URL_SAFE_NO_PAD.encode(hash)
}

/// The address of a sign-in's page, for a client that asked the repository host of this site.
pub fn url(app: &App, page: &str, site: Option<&Site>) -> String {
    format!("{}/npm-login/{page}", app.api_url_at(site, Side::Packages))
}

/// What the secret of a sign-in's token is sealed for.
pub fn purpose(page: &str) -> String {
    format!("login {}", hex::encode(hash_of_page(page)))
}

/// What a page is kept by: the SHA-256 of what it is opened with.
pub fn hash_of_page(page: &str) -> [u8; 32] {
    Sha256::digest(page.as_bytes()).into()
}
