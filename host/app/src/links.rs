//! Base addresses of links in responses, on either host. Other modules do not make links on their
//! own.
//!
//! A configured public address always takes precedence. Without one, links begin with the site of
//! the request. Links that are made without a request, for example in mails, begin with the
//! configured address, or else with the address of the listener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use packhouse_store::OrganizationRow;
use packhouse_wire::site::Site;

use crate::served::is_known_site;
use crate::{App, public_url};

/// The host that received the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Packages,
    /// Host of portal and API.
    Api,
}

impl App {
    /// Returns the base address of links into repositories, without a trailing slash. `site` is the
    /// site of the current request.
    pub fn base_url_at(
        &self,
        organization: Option<&OrganizationRow>,
        site: Option<&Site>,
        side: Side,
    ) -> String {
        let own = organization.and_then(|row| row.base_url.as_deref());
        match (own, &self.config.base_url, site) {
            (Some(url), ..) => url.trim_end_matches('/').to_owned(),
            (None, Some(url), _) => public_url::text(url),
            (None, None, Some(site)) => self.site_of(Side::Packages, site, side),
            (None, None, None) => self.base_url(),
        }
    }

    /// Returns the base address of links to the portal and the API.
    pub fn api_url_at(&self, site: Option<&Site>, side: Side) -> String {
        match (self.config.public_api_url(), site) {
            (Some(url), _) => url,
            (None, Some(site)) => self.site_of(Side::Api, site, side) + self.config.api_path(),
            (None, None) => self.api_url(),
        }
    }

    /// Reports whether links into the organization's repositories begin with the site of the
    /// request although the server does not know this site. The client may have invented it.
    pub fn follows_unknown_site(&self, organization: &OrganizationRow, site: Option<&Site>) -> bool {
        let follows = self.config.base_url.is_none() && organization.base_url.is_none();
        follows && site.is_some_and(|site| !is_known_site(self, organization, site))
    }

    /// Returns the site of the host `target`, derived from a request to either host. It has the
    /// name from the request and the port of that host's listener.
    fn site_of(&self, target: Side, site: &Site, came_to: Side) -> String {
        if target == came_to || self.config.has_one_listener() {
            return site.as_str().to_owned();
        }
        let (scheme, listening) = self.listener(target);
        let port = listening.rsplit_once(':').map_or("", |(_, port)| port);
        let other = Site::of(&format!("{scheme}://{}:{port}", site.name()));
        other.map_or_else(|| self.listens_at(target), |other| other.as_str().to_owned())
    }

    /// Returns the public address of the API without a trailing slash: the configured address, or
    /// else the address of its listener.
    pub fn api_url(&self) -> String {
        let listens = || self.listens_at(Side::Api) + self.config.api_path();
        self.config.public_api_url().unwrap_or_else(listens)
    }

    /// Returns the public address of the repository host without a trailing slash: the configured
    /// address, or else the address of its listener.
    pub fn base_url(&self) -> String {
        let url = self.config.base_url.as_ref().map(public_url::text);
        url.unwrap_or_else(|| self.listens_at(Side::Packages))
    }

    fn listens_at(&self, side: Side) -> String {
        let (scheme, listening) = self.listener(side);
        format!("{scheme}://{listening}")
    }

    /// Returns the scheme and the address of a listener. If the listener is on all addresses,
    /// returns the loopback address.
    fn listener(&self, side: Side) -> (&'static str, String) {
        let (scheme, set) = match side {
            Side::Packages => (self.packages_scheme(), &self.config.packages_listen),
            Side::Api => (self.api_scheme(), &self.config.api_listen),
        };
        let bound = self.listening.get().map(|listening| match side {
            Side::Packages => listening.packages,
            Side::Api => listening.api,
        });
        let bound = bound.or_else(|| set.parse().ok());
        (scheme, bound.map_or_else(|| set.clone(), |bound| reachable(bound).to_string()))
    }
}

fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn no_link_leads_to_the_unspecified_address() {
        for (bound, expected) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), expected);
        }
    }
}
