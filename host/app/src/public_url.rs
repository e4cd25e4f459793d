//! Public address of an organization, and the host by which the server finds the organization of a
//! request.

use url::Url;

/// Returns the address without a trailing slash.
pub fn text(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Returns the host in lower case, with `:port` if the port is not the scheme's default.
pub fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}
