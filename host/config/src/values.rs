//! Parsers for the values of settings: sizes, times, addresses and others.

use std::time::Duration;

use packhouse_store::FETCH_DAYS;

use crate::Secret;

/// Minimum length of a sealing key that an operator chooses, in bytes.
pub const SHORTEST_SEALING_KEY: usize = 16;

const NO_SIZE: &str = "is not a size; expected a number of bytes, or for example 50 GB or 64 MiB";

/// Parses a number of bytes: `52428800`, `50 MB`, `64 MiB`. KB, MB and GB are powers of 1000; KiB,
/// MiB and GiB are powers of 1024.
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
        _ => return Err(NO_SIZE.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| NO_SIZE.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "is too large; the size must be less than 16 EiB".to_owned())
}

/// Parses a sealing key, which must be long enough that nobody can guess it. The error does not
/// contain the key.
pub(crate) fn sealing_key(text: &str) -> Result<Secret, String> {
    match text.trim() {
        key if key.len() >= SHORTEST_SEALING_KEY => Ok(Secret::new(key)),
        _ => Err(format!(
            "is too short; expected at least {SHORTEST_SEALING_KEY} characters, preferably 32 random bytes \
             in base64"
        )),
    }
}

/// Parses a log level, or levels by target: `info`, `info,packhouse_store=debug`. Refuses an
/// unknown level: the log library would read it as a target, and then log nothing else.
pub(crate) fn log_levels(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok("info".to_owned());
    }
    for part in text.split(',').map(str::trim) {
        let (target, level) =
            part.rsplit_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        let known = LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known));
        if !known || target.is_some_and(|target| target.trim().is_empty() || target.contains(['=', '['])) {
            return Err(format!(
                "contains {part:?}, which is not a log level; expected one of {}, or levels by target, for \
                 example info,packhouse_store=debug",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(text.to_owned())
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

pub(crate) fn count(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| "is not an integer; use digits only, for example 10000".to_owned())
}

/// Parses the number of days for which the server records fetches.
pub(crate) fn fetch_days(text: &str) -> Result<i64, String> {
    let days = i64::try_from(count(text)?).ok().filter(|days| *days <= FETCH_DAYS);
    days.ok_or_else(|| format!("is too large; the fetches of at most {FETCH_DAYS} days can be recorded"))
}

/// Parses an integer number of events a second.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| "is too large; use a smaller number".to_owned())
}

/// Parses a number of objects that fit into memory.
pub(crate) fn number(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| "is too large; use a smaller number".to_owned())
}

/// Parses a number of bytes that fit into memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "is too large; use a smaller size".to_owned())
}

/// Parses a number of milliseconds, from a tenth of a second to an hour. These bounds exclude a
/// time limit of zero and an unlimited one.
pub(crate) fn some_millis(text: &str) -> Result<Duration, String> {
    match count(text)? {
        millis @ 100..=3_600_000 => Ok(Duration::from_millis(millis)),
        _ => Err("is out of range; expected 100 to 3600000 milliseconds".to_owned()),
    }
}

pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("is not a boolean; expected true or false".to_owned()),
    }
}

/// Parses `host:port`. Refuses `:port` and `port` without a host.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let wrong =
        || "is not an address to listen on; expected HOST:PORT, for example 127.0.0.1:8080".to_owned();
    let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
    let _: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() { Err(wrong()) } else { Ok(text.trim().to_owned()) }
}

/// Parses an http or https address without a path, a query or a fragment.
pub(crate) fn url(text: &str) -> Result<url::Url, String> {
    match public_url(text)? {
        url if url.path() == "/" => Ok(url),
        _ => Err(wrong_url("it has a path")),
    }
}

fn wrong_url(why: &str) -> String {
    format!("is not a public address: {why}; expected for example https://packages.example")
}

/// Parses an http or https address without a query or a fragment. Its path, if any, must not
/// contain characters that need percent-encoding.
pub(crate) fn public_url(text: &str) -> Result<url::Url, String> {
    let wrong = wrong_url;
    let url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    match url.scheme() {
        "http" | "https" if url.host().is_none() => Err(wrong("it has no host")),
        "http" | "https" if !url.path().bytes().all(plain) || url.path().contains("//") => {
            Err(wrong("its path may contain only letters, digits, `-`, `.`, `_`, `~` and single slashes"))
        }
        "http" | "https" if is_unspecified(&url) => {
            Err(wrong("it is the unspecified address, to which no client can connect"))
        }
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => Err(wrong("it has a query")),
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(wrong("it has a password"))
        }
        "http" | "https" => Ok(url),
        _ => Err(wrong("it does not begin with http:// or https://")),
    }
}

fn is_unspecified(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_unspecified(),
        Some(url::Host::Ipv6(address)) => address.to_canonical().is_unspecified(),
        _ => false,
    }
}

/// Parses a number from 0 to 1.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "is not a number from 0 to 1".to_owned())
}

/// Parses the http or https address to which the server posts spans. If the address has no path,
/// the path becomes `/v1/traces`.
pub(crate) fn collector(text: &str) -> Result<url::Url, String> {
    let wrong = |why: &str| format!("is not the address of a collector: {why}");
    let mut url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it does not begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it has a password, which belongs into OTEL_EXPORTER_OTLP_HEADERS"));
    }
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    Ok(url)
}

/// Parses the https address of an ACME directory.
pub(crate) fn directory(text: &str) -> Result<url::Url, String> {
    let wrong = |why: &str| {
        format!(
            "is not an ACME directory: {why}; expected for example \
             https://acme-v02.api.letsencrypt.org/directory"
        )
    };
    let url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        _ => Err(wrong("it does not begin with https://")),
    }
}

/// Parses host names that are separated by commas or spaces. Returns the names in lower case,
/// without duplicates, in the order of the text.
pub(crate) fn domains(text: &str) -> Result<Vec<String>, String> {
    let mut domains: Vec<String> = Vec::new();
    for name in text.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
        let name = name.to_ascii_lowercase();
        let label = |label: &str| {
            let inner =
                label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            !label.is_empty()
                && label.len() <= 63
                && inner
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let number =
            name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        if number || name.len() > 253 || !name.split('.').all(label) {
            return Err(format!(
                "contains {name:?}, which is not a host name that a certificate can be ordered for; \
                 expected for example packages.example"
            ));
        }
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    Ok(domains)
}

/// Parses pairs of an issuer and an identity that are separated by commas, for example
/// `https://issuer https://github.com/acme/*`.
pub(crate) fn identities(text: &str) -> Result<Vec<[String; 2]>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
        let wrong = |_| {
            format!(
                "contains {part:?}, which is not an issuer and an identity; expected both with a space \
                 between them, for example https://issuer.example me@example.com"
            )
        };
        <[String; 2]>::try_from(words).map_err(wrong)
    };
    parts.map(pair).collect()
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
    fn an_unknown_log_level_is_refused() {
        for text in ["info", "WARN", "off", "info,packhouse_store=debug", "trace, hyper=off", ""] {
            assert!(log_levels(text).is_ok(), "{text}");
        }
        for text in [
            "verbose",
            "info,packhouse_store",
            "info,=debug",
            "info,",
            "packhouse=loud",
            "a=b=info",
            "packhouse_store[commit]=debug",
        ] {
            assert!(log_levels(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_collector_has_its_own_path_or_the_default_one() {
        let at = |text| collector(text).map(|url| url.to_string());
        assert_eq!(at("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(at("https://c.example/otlp/v1/traces").unwrap(), "https://c.example/otlp/v1/traces");
        for wrong in ["127.0.0.1:4318", "grpc://c.example", "http://u:p@c.example", ""] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ratio("0.25"), Ok(0.25));
        for wrong in ["1.5", "-0.1", "NaN", "half", ""] {
            assert!(ratio(wrong).is_err(), "{wrong}");
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

    #[test]
    fn certificates_are_ordered_only_for_host_names() {
        assert_eq!(
            domains("a.example, B.example a.example"),
            Ok(vec!["a.example".into(), "b.example".into()])
        );
        for text in ["127.0.0.1", "*.example", "a..example", "-a.example", "a.example:443", "[::1]"] {
            assert!(domains(text).is_err(), "{text}");
        }
        assert!(directory("https://ca.example/dir").is_ok());
        assert!(directory("http://ca.example/dir").is_err() && directory("ca.example").is_err());
    }
}
