//! Sizes, addresses and networks as people write them.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use crate::Secret;

/// The shortest key for sealing that an operator may choose, in bytes.
pub const SHORTEST_SEALING_KEY: usize = 16;

/// A number of bytes: `52428800`, `50 MB`, `64 MiB`. KB, MB and GB are powers of 1000, KiB, MiB and GiB of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(format!("{text:?} is no size; write bytes, or as in 50 GB or 64 MiB")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is no size; write bytes, or as in 50 GB"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

/// A key for sealing: text that is long enough not to be guessed. The error does not repeat it.
pub(crate) fn sealing_key(text: &str) -> Result<Secret, String> {
    match text.trim() {
        key if key.len() >= SHORTEST_SEALING_KEY => Ok(Secret::new(key)),
        _ => Err(format!("write at least {SHORTEST_SEALING_KEY} characters, best 32 random bytes in base64")),
    }
}

/// A level of the log, or levels by target: `info`, `info,packhouse_store=debug`. A word that is no level would be taken for a target,
/// and nothing else be logged any more.
pub(crate) fn log_levels(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok("info".to_owned());
    }
    for part in text.split(',').map(str::trim) {
        let (target, level) =
            part.rsplit_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        let known = LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known));
        if !known || target.is_some_and(|target| target.trim().is_empty()) {
            return Err(format!(
                "{part:?} is no log level; write one of {}, or levels by target as in info,packhouse_store=debug",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(text.to_owned())
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// A whole number.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is no whole number"))
}

/// A number of milliseconds, from a tenth of a second to an hour: a time that must end, and not at once.
pub(crate) fn some_millis(text: &str) -> Result<Duration, String> {
    match count(text)? {
        millis @ 100..=3_600_000 => Ok(Duration::from_millis(millis)),
        _ => Err("write 100 to 3600000 milliseconds".to_owned()),
    }
}

/// `true` or `false`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// `host:port`, a bare `:port` or `port` being refused.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no address; write HOST:PORT, as in 127.0.0.1:8080");
    let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
    let _: u16 = port.parse().map_err(|_| wrong())?;
    match host.is_empty() {
        true => Err(wrong()),
        false => Ok(text.trim().to_owned()),
    }
}

/// An http or https address without a path, a query or a fragment.
pub(crate) fn url(text: &str) -> Result<url::Url, String> {
    let wrong =
        |why: &str| format!("{text:?} is no public address: {why}; write as in https://packages.example");
    let url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.host().is_none() => Err(wrong("it has no host")),
        "http" | "https" if url.path() != "/" => Err(wrong("it has a path")),
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => Err(wrong("it has a query")),
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(wrong("it has a password"))
        }
        "http" | "https" => Ok(url),
        _ => Err(wrong("it is neither http nor https")),
    }
}

/// An IP network: `10.0.0.0/8`, `fd00::/8`; a bare address is a network of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether the address is in it. An IPv4 address written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same(u128::from(network.to_bits()), u128::from(address.to_bits()), 32, self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same(network.to_bits(), address.to_bits(), 128, self.prefix)
            }
            _ => false,
        }
    }
}

fn same(one: u128, other: u128, width: u32, prefix: u8) -> bool {
    let rest = width.saturating_sub(u32::from(prefix));
    rest >= 128 || (one ^ other) >> rest == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text:?} is no network; write as in 10.0.0.0/8");
        let (address, prefix) = text.split_once('/').map_or((text, None), |(one, two)| (one, Some(two)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u8 = prefix.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if prefix > width { Err(wrong()) } else { Ok(Network { address, prefix }) }
    }
}

/// Networks separated by commas; none in an empty text.
pub(crate) fn networks(text: &str) -> Result<Vec<Network>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

/// A network in which upstreams may be: `10.0.0.0/8`; at one port alone, `10.0.0.7:8443`, `[fd00::/8]:443`; or with all ports named,
/// `127.0.0.0/8:*`, so that upstreams of allowed networks may lead to any of them even on loopback.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpstreamNetwork {
    network: Network,
    ports: Ports,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ports {
    /// Nothing was said.
    Any,
    /// `*`.
    All,
    One(u16),
}

impl UpstreamNetwork {
    /// Whether this address is in it, at this port. Where the port is not known, a network of one port holds nothing.
    pub fn holds(&self, address: IpAddr, port: Option<u16>) -> bool {
        let at = match self.ports {
            Ports::Any | Ports::All => true,
            Ports::One(own) => port == Some(own),
        };
        at && self.network.contains(address)
    }

    /// Whether the ports were written down.
    pub fn names_ports(&self) -> bool {
        self.ports != Ports::Any
    }
}

impl FromStr for UpstreamNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<UpstreamNetwork, String> {
        let wrong =
            || format!("{text:?} is no network; write as in 10.0.0.0/8, 10.0.0.7:8443 or 127.0.0.0/8:*");
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

/// Networks for upstreams, separated by commas; none in an empty text.
pub fn upstream_networks(text: &str) -> Result<Vec<UpstreamNetwork>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1000_or_1024_as_they_are_written() {
        for (text, expected) in
            [("0", 0), ("50 GB", 50_000_000_000), ("64 MiB", 64 << 20), ("1kb", 1000), ("7B", 7)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MB", "1.5 GB", "-1", "5 TB", "99999999999 GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_no_log_level() {
        for text in ["info", "WARN", "off", "info,packhouse_store=debug", "trace, hyper=off", ""] {
            assert!(log_levels(text).is_ok(), "{text}");
        }
        for text in ["verbose", "info,packhouse_store", "info,=debug", "info,", "packhouse=loud"] {
            assert!(log_levels(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_hold_what_shares_their_prefix() {
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
        assert!("10.0.0.0/33".parse::<Network>().is_err());
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

    #[test]
    fn a_public_address_is_a_scheme_and_a_host() {
        assert!(url("https://packages.example").is_ok());
        for text in ["packages.example", "ftp://x", "https://x/path", "https://x?q", "https://u:p@x"] {
            assert!(url(text).is_err(), "{text}");
        }
        assert!(address("127.0.0.1:0").is_ok());
        assert!(address("[::1]:80").is_ok());
        for text in ["8080", ":8080", "host", "host:99999"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
