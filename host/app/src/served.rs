//! Finds the organization that the server serves at a host, and the server's own address.

use std::net::SocketAddr;

use packhouse_store::{OrganizationId, OrganizationRow, StoreError};
use packhouse_wire::host::without_port;
use packhouse_wire::site::Site;
use url::Url;

use crate::App;
use crate::boxed;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// An organization that the server serves at an address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Served {
    pub organization: OrganizationId,
    /// Address for which ID tokens are issued, without a trailing slash.
    pub base_url: String,
}

/// Returns the organization at this address: the one with this host, or the only one. Returns
/// `None` if the address belongs to another host. `requested` is the site of the request. A server
/// without a public address accepts the name of this site.
#[boxed]
pub async fn find_served(
    app: &App,
    address: &Url,
    requested: Option<&Site>,
) -> Result<Option<Served>, StoreError> {
    let Some(host) = address.host_str() else { return Ok(None) };
    let host = match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let all = app.store.organizations().await?;
    Ok(organization_at(&all, Some(&host)).and_then(|row| {
        let base_url = own_address(app, Some(row), Some(&host));
        let own = base_url.parse::<Url>().ok()?;
        let is_free = app.config.base_url.is_none() && row.base_url.is_none();
        let same = is_free && requested.is_some_and(|requested| Some(requested.name()) == address.host_str())
            || own.host_str() == address.host_str()
                && own.port_or_known_default() == address.port_or_known_default()
                && address.path().starts_with(own.path().trim_end_matches('/'));
        same.then_some(Served { organization: row.id, base_url })
    }))
}

/// Returns the organization with this host, or the only organization.
#[must_use]
pub fn organization_at<'a>(all: &'a [OrganizationRow], host: Option<&str>) -> Option<&'a OrganizationRow> {
    match all {
        [only] => Some(only),
        several => host.and_then(|host| by_host(several, host)),
    }
}

/// Finds the organization by host and port, or by the host alone if its address has no port.
fn by_host<'a>(all: &'a [OrganizationRow], host: &str) -> Option<&'a OrganizationRow> {
    let of = |host: &str| all.iter().find(|row| row.host.as_deref() == Some(host));
    of(host).or_else(|| of(without_port(host)))
}

/// Returns the server's own address, which is also the audience of ID tokens. It is the
/// organization's address, or else the configured one. If neither is set and the client sent a
/// loopback name with the listener's port, it is this host. Otherwise it is the listener's address.
///
/// It is never another name from the client. Otherwise a client could send the name of another
/// service, and this server would accept a token for that service.
#[must_use]
pub fn own_address(app: &App, organization: Option<&OrganizationRow>, host: Option<&str>) -> String {
    if let Some(url) = organization.and_then(|row| row.base_url.as_deref()) {
        return url.trim_end_matches('/').to_owned();
    }
    if app.config.base_url.is_none()
        && let Some((host, listening)) = host.zip(app.listening.get())
        && is_loopback(host, listening.packages.port())
    {
        return [app.packages_scheme(), "://", host].concat();
    }
    app.base_url()
}

fn is_loopback(host: &str, port: u16) -> bool {
    let here = LOOPBACK.contains(&without_port(host));
    let stated = host.strip_prefix(without_port(host)).and_then(|rest| rest.strip_prefix(':'));
    // The comparison is strict: a port has no sign and no leading zero.
    here && stated.is_some_and(|text| !text.starts_with(['+', '0']) && text.parse() == Ok(port))
}

/// Reports whether the server knows that clients reach it at this site. The server knows the host
/// of the organization, the host of `api_url` and the address of its listener. It also knows
/// loopback names and the names in its certificates. The port must be that of the listener or of
/// the scheme. A client may have invented any other site.
#[must_use]
pub fn is_known_site(app: &App, organization: &OrganizationRow, site: &Site) -> bool {
    let (name, host) = (site.name(), organization.host.as_deref());
    if host == Some(site.authority()) {
        return true;
    }
    let listening = app.listening.get().map(|listening| listening.packages);
    has_own_port(site, listening)
        && (is_listener(name, listening)
            || host.map(without_port) == Some(name)
            || app.config.api_url.as_ref().and_then(Url::host_str) == Some(name)
            || is_certified(app, name))
}

/// Reports whether the port is that of the site's scheme or of the listener.
fn has_own_port(site: &Site, listening: Option<SocketAddr>) -> bool {
    let port = site.authority().strip_prefix(site.name()).and_then(|rest| rest.strip_prefix(':'));
    port.is_none_or(|port| listening.is_some_and(|at| port.parse() == Ok(at.port())))
}

/// Reports whether this is a loopback name or the address of the listener.
fn is_listener(name: &str, listening: Option<SocketAddr>) -> bool {
    let address = name.trim_matches(['[', ']']);
    LOOPBACK.contains(&name) || listening.is_some_and(|at| address.parse() == Ok(at.ip()))
}

/// Reports whether a certificate of the repository host contains exactly this name. If only a
/// wildcard matches, the client may have invented the name.
fn is_certified(app: &App, name: &str) -> bool {
    let name = name.trim_matches(['[', ']']);
    app.secured().packages.is_some_and(|tls| {
        tls.served().iter().any(|certificate| certificate.names().iter().any(|known| known == name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, host: Option<&str>) -> OrganizationRow {
        let host = host.map(str::to_owned);
        OrganizationRow {
            id: OrganizationId(id),
            name: id.to_string(),
            base_url: None,
            host,
            created_at: 0,
            quota_bytes: None,
            require_second_factor: false,
        }
    }

    #[test]
    fn the_host_picks_the_organization() {
        let all = [row(1, Some("a.example")), row(2, Some("b.example:8080")), row(3, None)];
        let found = |host| by_host(&all, host).map(|row| row.id.0);
        assert_eq!(found("a.example"), Some(1));
        assert_eq!(found("a.example:443"), Some(1));
        assert_eq!(found("b.example:8080"), Some(2));
        assert_eq!(found("b.example"), None);
        assert_eq!(found("c.example"), None);
    }

    #[test]
    fn a_site_is_known_by_the_port_and_the_address_of_the_listener() {
        let listening = Some("192.0.2.7:8080".parse().unwrap());
        let has_own_port = |site: &str| has_own_port(&Site::of(site).unwrap(), listening);
        assert!(has_own_port("http://a.example:8080") && has_own_port("http://[::1]:8080"));
        assert!(has_own_port("https://a.example") && has_own_port("http://a.example:80"));
        assert!(!has_own_port("http://a.example:8081") && !has_own_port("https://a.example:80"));
        assert!(["localhost", "[::1]", "192.0.2.7"].iter().all(|name| is_listener(name, listening)));
        assert!(["a.localhost", "192.0.2.8"].iter().all(|name| !is_listener(name, listening)));
    }

    #[test]
    fn loopback_counts_with_the_listeners_port_alone() {
        assert!(is_loopback("localhost:8080", 8080));
        assert!(is_loopback("[::1]:8080", 8080));
        assert!(!is_loopback("localhost", 8080));
        assert!(!is_loopback("localhost:80", 8080));
        assert!(!is_loopback("localhost:08080", 8080) && !is_loopback("localhost:+8080", 8080));
        assert!(!is_loopback("elsewhere:8080", 8080));
    }
}
