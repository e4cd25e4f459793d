//! The addresses that the host may connect to: http and https on the public internet, and the
//! networks that the operator allows.
//!
//! A name is resolved once, and the connection goes to one of the checked addresses. An attacker
//! therefore gains nothing from a name that resolves to another address on a second lookup.
//! [`upstream_egress`](super::upstream_egress) decides where redirects and links in metadata may
//! lead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use futures::future::BoxFuture;
use url::{Host, Url};

use packhouse_config::UpstreamNetwork;
use packhouse_config::live::Live;

use crate::boxed;

pub trait NameLookup: Send + Sync + 'static {
    /// Returns the addresses of a host.
    fn lookup(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

pub struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The operator's policy. Cheap to clone.
#[derive(Clone)]
pub struct EgressPolicy {
    allowed: Live<Vec<UpstreamNetwork>>,
    names: Arc<dyn NameLookup>,
}

/// The error for a forbidden address.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EgressDenied {
    #[error(
        "{0} is not an address that an upstream may have; the setting upstream.allow_networks can allow it"
    )]
    Address(String),
    /// Forbidden as a target of this upstream's redirects and links.
    #[error(
        "{0} is not an address that this upstream may lead to; upstream.allow_networks lists the allowed targets of internal upstreams"
    )]
    Target(String),
}

impl EgressDenied {
    /// Creates the error for an address that is forbidden for every upstream.
    pub fn address(address: impl Into<String>) -> Self {
        Self::Address(address.into())
    }

    /// Creates the error for an address that this upstream may not lead to.
    pub fn target(address: impl Into<String>) -> Self {
        Self::Target(address.into())
    }
}

impl EgressPolicy {
    /// Allows public addresses and these networks.
    pub fn new(allowed: &[UpstreamNetwork], names: Arc<dyn NameLookup>) -> EgressPolicy {
        EgressPolicy { allowed: Live::new(allowed.to_vec()), names }
    }

    /// Replaces the allowed networks, also in all clones.
    pub fn allow(&self, allowed: Vec<UpstreamNetwork>) {
        self.allowed.set(allowed);
    }

    /// Checks an upstream's own address before its name is resolved. A name passes, because its
    /// addresses are not known yet.
    pub fn check(&self, url: &Url) -> Result<(), EgressDenied> {
        self.check_scheme(url)?;
        let ip = match url.host() {
            None | Some(Host::Domain(_)) => return Ok(()),
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
        };
        let allowed = self.allows(ip, url.port_or_known_default());
        if allowed { Ok(()) } else { Err(EgressDenied::address(ip.to_string())) }
    }

    /// Requires http or https, and a host.
    pub fn check_scheme(&self, url: &Url) -> Result<(), EgressDenied> {
        if url.host().is_some() && matches!(url.scheme(), "http" | "https") {
            Ok(())
        } else {
            Err(EgressDenied::address(url.to_string()))
        }
    }

    /// Returns the addresses of a host.
    #[boxed]
    pub async fn lookup(&self, host: String) -> std::io::Result<Vec<IpAddr>> {
        self.names.lookup(host).await
    }

    /// Returns true if an upstream may have this address. If the port is unknown, networks that are
    /// allowed only at certain ports do not allow the address.
    pub fn allows(&self, ip: IpAddr, port: Option<u16>) -> bool {
        is_public(ip) || self.allowed.get().iter().any(|network| network.holds(ip, port))
    }

    /// Returns true if a network is allowed only at this port.
    pub fn names_port(&self, port: u16) -> bool {
        self.allowed.get().iter().any(|network| network.is_at(port))
    }

    /// Returns true if an upstream in an allowed network may lead to this address. On loopback, the
    /// port must be the upstream's own, or one that the operator named.
    pub fn allows_target(&self, ip: IpAddr, port: Option<u16>, upstream_port: Option<u16>) -> bool {
        let own = port.is_some() && port == upstream_port;
        let named =
            |network: &UpstreamNetwork| network.names_ports() || own || !ip.to_canonical().is_loopback();
        self.allowed.get().iter().any(|network| network.holds(ip, port) && named(network))
    }
}

/// Returns true for an address of the public internet (RFC 6890 and later registrations).
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, _, _, _, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c) {
        // An IPv4 address in IPv6 notation, and the prefixes by which a network translates to IPv4.
        (0, 0, 0) => ip.to_ipv4_mapped().is_some() && v4(g, h),
        (0x64, 0xff9b, 0) => v4(g, h),
        (0x2002, _, _) => v4(b, c),
        // Teredo, other ranges reserved for protocols, and documentation.
        (0x2001, 0..=0x1ff | 0xdb8, _) | (0x3fff, 0..=0xfff, _) => false,
        // The range of global unicast addresses.
        _ => a >> 13 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &str) -> EgressPolicy {
        EgressPolicy::new(&packhouse_config::upstream_networks(allowed).unwrap(), Arc::new(SystemLookup))
    }

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "100::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        let policy = policy("10.0.0.0/8,192.168.0.1:8443");
        for right in
            ["https://repo.test/x", "http://1.1.1.1/", "http://10.0.0.1:8080/", "http://192.168.0.1:8443/"]
        {
            assert!(policy.check(&right.parse().unwrap()).is_ok(), "{right}");
        }
        for wrong in [
            "http://127.0.0.1/",
            "http://192.168.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
            "gopher://x/",
            "ftp://x/",
        ] {
            assert!(policy.check(&wrong.parse().unwrap()).is_err(), "{wrong}");
        }
    }
}
