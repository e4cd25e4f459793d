//! The public address of an organization, as it is kept, and the host by which requests find it.

use url::Url;

/// The address without a slash at its end.
pub fn text(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// `host`, or `host:port` where the port is not the scheme's own; in lower case.
pub fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}
