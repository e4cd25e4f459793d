//! The one place where links into answers are made: what they start with, on either host.
//!
//! A public address that is set always counts. Without one, links follow the site that the request was made to. What is made without a
//! request, as a mail is, has only what is set, or else where the server listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use packhouse_store::OrganizationRow;
use packhouse_wire::site::Site;

use crate::served::is_known_site;
use crate::{App, public_url};

/// The host that a request came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The repository host.
    Packages,
    /// Portal and API.
    Api,
}

impl App {
    /// What links into repositories start with, without a slash at its end, in the answer to a request that was made to this site.
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

    /// The same of links to portal and API.
    pub fn api_url_at(&self, site: Option<&Site>, side: Side) -> String {
        match (self.config.public_api_url(), site) {
            (Some(url), _) => url,
            (None, Some(site)) => self.site_of(Side::Api, site, side) + self.config.api_path(),
            (None, None) => self.api_url(),
        }
    }

    /// Returns whether links into the organization's repositories follow this site of a request although the client may have invented it.
    pub fn follows_unknown_site(&self, organization: &OrganizationRow, site: Option<&Site>) -> bool {
        let follows = self.config.base_url.is_none() && organization.base_url.is_none();
        follows && site.is_some_and(|site| !is_known_site(self, organization, site))
    }

    /// The site of one host, as seen from a request to the other: by the same name, at the port where it listens.
    fn site_of(&self, wanted: Side, site: &Site, came_to: Side) -> String {
        if wanted == came_to || self.config.has_one_listener() {
            return site.as_str().to_owned();
        }
        let (scheme, listening) = self.listener(wanted);
        let port = listening.rsplit_once(':').map_or("", |(_, port)| port);
        let other = Site::of(&format!("{scheme}://{}:{port}", site.name()));
        other.map_or_else(|| self.listens_at(wanted), |other| other.as_str().to_owned())
    }

    /// The public address of the API, without a slash at its end: as configured, else where it listens.
    pub fn api_url(&self) -> String {
        let listens = || self.listens_at(Side::Api) + self.config.api_path();
        self.config.public_api_url().unwrap_or_else(listens)
    }

    /// The public address of the repository host, without a slash at its end: as configured, else where it listens.
    pub fn base_url(&self) -> String {
        let url = self.config.base_url.as_ref().map(public_url::text);
        url.unwrap_or_else(|| self.listens_at(Side::Packages))
    }

    fn listens_at(&self, side: Side) -> String {
        let (scheme, listening) = self.listener(side);
        format!("{scheme}://{listening}")
    }

    /// The scheme of a listener, and its address; one on all addresses is reached on loopback.
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
