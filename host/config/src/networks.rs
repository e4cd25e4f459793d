//! Parsing of IP networks.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// An IP network, for example `10.0.0.0/8` or `fd00::/8`. A single address is a network with one
/// member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network(IpNet);

impl Network {
    /// Returns whether the network contains this address. Treats an IPv4-mapped IPv6 address as its
    /// IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("contains {text:?}, which is not a network; expected for example 10.0.0.0/8");
        // The standard library parses the address, not `IpNet`: `IpNet` reads `010.0.0.0` as
        // `10.0.0.0`, but other programs read its first number as octal.
        let Some((address, prefix)) = text.split_once('/') else {
            return Ok(Network(text.parse::<IpAddr>().map_err(|_| wrong())?.into()));
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        IpNet::new(address, prefix).map(Network).map_err(|_| wrong())
    }
}

/// Parses a list of networks that are separated by commas. An empty text gives an empty list.
pub(crate) fn networks(text: &str) -> Result<Vec<Network>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

/// A network in which upstreams may be. It has one of these forms:
///
/// - `10.0.0.0/8`: any port.
/// - `10.0.0.7:8443` or `[fd00::/8]:443`: only this port.
/// - `127.0.0.0/8:*`: all ports, stated explicitly. Upstreams in allowed networks may then also
///   redirect to any of these ports, even on loopback.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpstreamNetwork {
    network: Network,
    ports: Ports,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ports {
    Any,
    All,
    One(u16),
}

impl UpstreamNetwork {
    /// Returns whether the network contains this address and port. If the port is unknown, a
    /// network that allows only one port does not match.
    pub fn holds(&self, address: IpAddr, port: Option<u16>) -> bool {
        let at = match self.ports {
            Ports::Any | Ports::All => true,
            Ports::One(own) => port == Some(own),
        };
        at && self.network.contains(address)
    }

    /// Returns whether the network allows only this port.
    pub fn is_at(&self, port: u16) -> bool {
        self.ports == Ports::One(port)
    }

    /// Returns whether the text states the ports explicitly: one port, or `*`.
    pub fn names_ports(&self) -> bool {
        self.ports != Ports::Any
    }
}

impl FromStr for UpstreamNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<UpstreamNetwork, String> {
        let wrong = || {
            format!(
                "contains {text:?}, which is not a network; expected for example 10.0.0.0/8, 10.0.0.7:8443 \
                 or 127.0.0.0/8:*"
            )
        };
        let (network, ports) = match text.strip_prefix('[') {
            Some(rest) => {
                let (network, rest) = rest.split_once(']').ok_or_else(wrong)?;
                let ports =
                    if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) };
                (network, ports)
            }
            None => match text.split_once(':') {
                Some((network, ports)) if !ports.contains(':') => (network, Some(ports)),
                _ => (text, None),
            },
        };
        let ports = match ports {
            None => Ports::Any,
            Some("*") => Ports::All,
            Some(port) => Ports::One(port.parse().map_err(|_| wrong())?),
        };
        Ok(UpstreamNetwork { network: network.parse().map_err(|_| wrong())?, ports })
    }
}

/// Parses a list of upstream networks that are separated by commas. An empty text gives an empty
/// list.
pub fn upstream_networks(text: &str) -> Result<Vec<UpstreamNetwork>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_addresses_with_its_prefix() {
        let held = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(held("10.0.0.0/8", "10.255.0.1"));
        assert!(held("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!held("10.0.0.0/8", "11.0.0.1"));
        assert!(held("0.0.0.0/0", "203.0.113.9"));
        assert!(held("::/0", "fd00::1"));
        assert!(held("127.0.0.1", "127.0.0.1"));
        assert!(!held("127.0.0.1", "127.0.0.2"));
        for wrong in ["10.0.0.0/33", "010.0.0.0/8", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_of_upstreams_may_name_ports() {
        let holds = |text: &str, address: &str, port: Option<u16>| {
            text.parse::<UpstreamNetwork>().unwrap().holds(address.parse().unwrap(), port)
        };
        assert!(holds("10.0.0.0/8", "10.1.1.1", None) && holds("10.0.0.0/8", "10.1.1.1", Some(1)));
        assert!(holds("127.0.0.0/8:*", "127.0.0.1", Some(1)));
        assert!(holds("10.0.0.7:8443", "10.0.0.7", Some(8443)));
        assert!(!holds("10.0.0.7:8443", "10.0.0.7", Some(443)) && !holds("10.0.0.7:8443", "10.0.0.7", None));
        assert!(holds("fd00::/8", "fd00::1", Some(1)) && holds("[fd00::/8]:443", "fd00::1", Some(443)));
        assert!(!holds("[fd00::/8]:443", "fd00::1", Some(80)));
        let names = |text: &str| text.parse::<UpstreamNetwork>().unwrap().names_ports();
        assert!(names("127.0.0.0/8:*") && names("127.0.0.1:1") && !names("127.0.0.0/8") && !names("[::1]"));
        for wrong in ["10.0.0.0/8:", "10.0.0.0/8:x", "10.0.0.0/8:70000", "[::1", "[::1]443", "x:1"] {
            assert!(wrong.parse::<UpstreamNetwork>().is_err(), "{wrong}");
        }
    }
}
