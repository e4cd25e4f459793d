//! Sizes, times and addresses as people write them.

use std::time::Duration;

use packhouse_store::FETCH_DAYS;

use crate::Secret;

/// The shortest key for sealing that an operator may choose, in bytes.
pub const SHORTEST_SEALING_KEY: usize = 16;

const NO_SIZE: &str = "is no size; write bytes, or as in 50 GB or 64 MiB";

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
        _ => return Err(NO_SIZE.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| NO_SIZE.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "is too large; write less than 16 EiB".to_owned())
}

/// A key for sealing: text that is long enough not to be guessed. The error does not repeat it.
pub(crate) fn sealing_key(text: &str) -> Result<Secret, String> {
    match text.trim() {
        key if key.len() >= SHORTEST_SEALING_KEY => Ok(Secret::new(key)),
        _ => Err(format!(
            "is too short; write at least {SHORTEST_SEALING_KEY} characters, best 32 random bytes in base64"
        )),
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
        if !known || target.is_some_and(|target| target.trim().is_empty() || target.contains(['=', '['])) {
            return Err(format!(
                "holds {part:?}, which is no log level; write one of {}, or levels by target as in info,packhouse_store=debug",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(text.to_owned())
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// A whole number.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| "is no whole number; write digits alone, as in 10000".to_owned())
}

/// Days of which it can be remembered what was fetched.
pub(crate) fn fetch_days(text: &str) -> Result<i64, String> {
    let days = i64::try_from(count(text)?).ok().filter(|days| *days <= FETCH_DAYS);
    days.ok_or_else(|| format!("is more than {FETCH_DAYS}, which are as many days as can be remembered"))
}

/// A whole number of events a second.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| "is too large; write a smaller number".to_owned())
}

/// A whole number that counts things in memory.
pub(crate) fn number(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| "is too large; write a smaller number".to_owned())
}

/// A number of bytes in memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "is too large; write a smaller size".to_owned())
}

/// A number of milliseconds, from a tenth of a second to an hour: a time that must end, and not at once.
pub(crate) fn some_millis(text: &str) -> Result<Duration, String> {
    match count(text)? {
        millis @ 100..=3_600_000 => Ok(Duration::from_millis(millis)),
        _ => Err("is out of bounds; write 100 to 3600000 milliseconds".to_owned()),
    }
}

/// `true` or `false`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("is neither true nor false; write one of these".to_owned()),
    }
}

/// `host:port`, a bare `:port` or `port` being refused.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let wrong = || "is no address to listen on; write HOST:PORT, as in 127.0.0.1:8080".to_owned();
    let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
    let _: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() { Err(wrong()) } else { Ok(text.trim().to_owned()) }
}

/// An http or https address without a path, a query or a fragment.
pub(crate) fn url(text: &str) -> Result<url::Url, String> {
    match public_url(text)? {
        url if url.path() == "/" => Ok(url),
        _ => Err(wrong_url("it has a path")),
    }
}

fn wrong_url(why: &str) -> String {
    format!("is no public address: {why}; write as in https://packages.example")
}

/// An http or https address without a query or a fragment; its path, where it has one, needs no encoding.
pub(crate) fn public_url(text: &str) -> Result<url::Url, String> {
    let wrong = wrong_url;
    let url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    match url.scheme() {
        "http" | "https" if url.host().is_none() => Err(wrong("it has no host")),
        "http" | "https" if !url.path().bytes().all(plain) || url.path().contains("//") => {
            Err(wrong("its path is not made of letters, digits, `-`, `.`, `_`, `~` and single slashes"))
        }
        "http" | "https" if is_unspecified(&url) => {
            Err(wrong("it is the unspecified address, which no client can go to"))
        }
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => Err(wrong("it has a query")),
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(wrong("it has a password"))
        }
        "http" | "https" => Ok(url),
        _ => Err(wrong("it is neither http nor https")),
    }
}

fn is_unspecified(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_unspecified(),
        Some(url::Host::Ipv6(address)) => address.to_canonical().is_unspecified(),
        _ => false,
    }
}

/// A part of a whole: a number from 0 to 1.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| format!("{text:?} is no number from 0 to 1"))
}

/// An http or https address that spans are posted to: that of a collector, below which `/v1/traces` is meant, or one with a path.
pub(crate) fn collector(text: &str) -> Result<url::Url, String> {
    let wrong = |why: &str| format!("{text:?} is no address of a collector: {why}");
    let mut url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a password does not go here but into OTEL_EXPORTER_OTLP_HEADERS"));
    }
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    Ok(url)
}

/// The address of an ACME directory: https, and what follows.
pub(crate) fn directory(text: &str) -> Result<url::Url, String> {
    let wrong = |why: &str| {
        format!("is no directory: {why}; write as in https://acme-v02.api.letsencrypt.org/directory")
    };
    let url = url::Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        _ => Err(wrong("it is not https")),
    }
}

/// Names of hosts, separated by commas or spaces, in lower case, each once, in order.
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
                "holds {name:?}, which is no host's name that a certificate can be ordered for; write as in packages.example"
            ));
        }
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    Ok(domains)
}

/// Issuers and identities, as in `https://issuer https://github.com/acme/*`, separated by commas.
pub(crate) fn identities(text: &str) -> Result<Vec<[String; 2]>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
        let wrong = |_| {
            format!(
                "holds {part:?}, which is no issuer and identity; write both with a space between them, as in \
                 https://issuer.example me@example.com"
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
    fn a_word_that_is_no_level_is_no_log_level() {
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
    fn a_collector_has_a_path_of_its_own_or_the_usual_one() {
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
    fn certificates_are_ordered_for_names_alone() {
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
