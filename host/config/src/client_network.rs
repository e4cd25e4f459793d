//! Network of a client, for limits on unauthenticated clients. An IPv6 client usually controls a
//! whole /64, so it could evade a limit on single addresses.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Length of the prefix that identifies an IPv6 client, in bits.
const PREFIX: u32 = 64;

/// An IPv4 address, or the /64 of an IPv6 address. Displayed as `192.0.2.1` or `2001:db8::/64`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// Returns the network of this address. Treats an IPv4-mapped IPv6 address as its IPv4 address.
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
    fn an_ipv6_client_is_identified_by_its_64_prefix() {
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn an_ipv4_client_is_identified_by_its_address() {
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("::ffff:192.0.2.1").to_string(), "192.0.2.1");
    }
}
