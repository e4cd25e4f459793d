//! The network that a client's address stands for wherever strangers are counted. Whoever has one IPv6 address has all of its
//! /64, so that a limit for each address would be none.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that say whose it is.
const PREFIX: u32 = 64;

/// An IPv4 address, or the /64 of an IPv6 address. Shown as `192.0.2.1`, `2001:db8::/64`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The network of this address; an IPv4 address written as IPv6 is the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << (Ipv6Addr::BITS - PREFIX));
                Self(Ipv6Addr::from_bits(network).into())
            }
            v4 => Self(v4),
        }
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/{PREFIX}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> ClientNetwork {
        ClientNetwork::of(address.parse().unwrap())
    }

    #[test]
    fn an_ipv6_client_is_its_64() {
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn an_ipv4_client_is_its_address() {
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("::ffff:192.0.2.1").to_string(), "192.0.2.1");
    }
}
