//! `Accept-Encoding` header (RFC 9110 §12.5.3): content codings that a client accepts, by
//! preference.

use std::cmp::Reverse;

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A content coding that this server knows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Coding {
    /// The content without any coding.
    Identity,
    /// gzip (RFC 1952), also known as `x-gzip`.
    Gzip,
    /// Zstandard (RFC 8878), known as `zstd`.
    Zstd,
}

impl Coding {
    /// Returns the registered name, as used in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Returns the codings that a request accepts, the preferred one first. `identity` is always
/// included, last if it is refused: a server without an alternative sends it anyway, as §12.5.3
/// allows.
///
/// - Without the header every coding is accepted, and `identity` is preferred.
/// - `*` stands for `gzip` and `identity`. `zstd` must be named, because few clients that send `*`
///   support it.
/// - For equal weights, `zstd` comes before `gzip` before `identity`. An `identity` that is not
///   mentioned has the lowest weight of all accepted codings.
/// - A coding with an invalid weight is not accepted.
pub fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Coding> + use<> {
    let mut order = [Coding::Identity, Coding::Zstd, Coding::Gzip];
    let mut weights = Weights::default();
    if headers.contains_key(ACCEPT_ENCODING) {
        weights = Weights::of(headers);
        order = [Coding::Zstd, Coding::Gzip, Coding::Identity];
        // The sort is stable: equal weights keep the server's order of preference.
        order.sort_by_key(|coding| Reverse(weights.of_coding(*coding)));
    }
    order.into_iter().filter(move |coding| *coding == Coding::Identity || weights.of_coding(*coding) > 0)
}

/// Weight of `identity` if the header neither mentions nor refuses it.
const LEAST: u16 = 1;
/// Weight of a coding that the header mentions without a weight.
const MOST: u16 = 1000;

/// Weights of the codings in thousandths; 0 means refused.
#[derive(Clone, Copy, Debug)]
struct Weights {
    zstd: u16,
    gzip: u16,
    identity: u16,
}

/// Weights for a missing header: every coding is accepted.
impl Default for Weights {
    fn default() -> Self {
        Self { zstd: MOST, gzip: MOST, identity: MOST }
    }
}

impl Weights {
    fn of(headers: &HeaderMap) -> Self {
        let (mut zstd, mut gzip, mut identity, mut any) = (None, None, None, None);
        let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        for member in lines.flat_map(|line| line.split(',')) {
            let mut parts = member.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = weight(parts);
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let slot = match name {
                "*" => &mut any,
                _ if is("zstd") => &mut zstd,
                _ if is("gzip") || is("x-gzip") => &mut gzip,
                _ if is("identity") => &mut identity,
                _ => continue,
            };
            slot.get_or_insert(weight);
        }
        Self {
            zstd: zstd.unwrap_or_default(),
            gzip: gzip.or(any).unwrap_or_default(),
            identity: identity.or(any).unwrap_or(LEAST),
        }
    }

    fn of_coding(self, coding: Coding) -> u16 {
        match coding {
            Coding::Identity => self.identity,
            Coding::Gzip => self.gzip,
            Coding::Zstd => self.zstd,
        }
    }
}

/// Returns the weight in a coding's parameters, in thousandths: 1000 if it is missing, 0 if it is
/// invalid by §12.4.2.
fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let given = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    given.map_or(MOST, |value| thousandths(value).unwrap_or_default())
}

fn thousandths(value: &str) -> Option<u16> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", fraction) => Some(fraction),
        ("1", 0) => Some(MOST),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::{Gzip, Identity, Zstd};
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn order(lines: &[&str]) -> Vec<Coding> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_str(line).unwrap());
        }
        accepted(&headers).collect()
    }

    #[test]
    fn the_preferred_coding_comes_first() {
        for (lines, expected) in [
            (vec![], vec![Identity, Zstd, Gzip]),
            (vec![""], vec![Identity]),
            (vec!["gzip"], vec![Gzip, Identity]),
            (vec!["X-GZip"], vec![Gzip, Identity]),
            (vec!["zstd"], vec![Zstd, Identity]),
            (vec!["gzip, deflate, br, zstd"], vec![Zstd, Gzip, Identity]),
            (vec!["gzip", "zstd"], vec![Zstd, Gzip, Identity]),
            (vec!["zstd;q=0.8, gzip"], vec![Gzip, Zstd, Identity]),
            (vec!["gzip;q=0.5, identity"], vec![Identity, Gzip]),
            (vec!["gzip;q=0.5, identity;q=0.5"], vec![Gzip, Identity]),
            (vec!["gzip ; q=0.001"], vec![Gzip, Identity]),
            (vec!["gzip;x=1;Q=0.2, zstd;q=0.3"], vec![Zstd, Gzip, Identity]),
            (vec!["*"], vec![Gzip, Identity]),
            (vec!["*;q=0.5"], vec![Gzip, Identity]),
            (vec!["*;q=0.5, identity"], vec![Identity, Gzip]),
            (vec!["gzip;q=0, *"], vec![Identity]),
            (vec!["*;q=0"], vec![Identity]),
            (vec!["gzip, *;q=0"], vec![Gzip, Identity]),
            (vec!["identity;q=0"], vec![Identity]),
            (vec!["identity;q=0, gzip;q=0.1"], vec![Gzip, Identity]),
            (vec!["gzip;q=0"], vec![Identity]),
            (vec!["gzip;q=0.000, zstd;q=0."], vec![Identity]),
            (vec!["gzip;q=1.1"], vec![Identity]),
            (vec!["gzip;q=-1"], vec![Identity]),
            (vec!["gzip;q=0.0001"], vec![Identity]),
            (vec!["gzip;q="], vec![Identity]),
            (vec!["gzip;q=high, zstd;q=1.000"], vec![Zstd, Identity]),
            (vec!["br, deflate"], vec![Identity]),
            (vec![", ,gzip,"], vec![Gzip, Identity]),
            (vec!["gzip, gzip;q=0"], vec![Gzip, Identity]),
        ] {
            assert_eq!(order(&lines), expected, "{lines:?}");
        }
    }

    fn member() -> impl Strategy<Value = (&'static str, u16)> {
        (prop::sample::select(vec!["gzip", "zstd", "identity", "br"]), 0_u16..=1000)
    }

    proptest! {
        #[test]
        fn a_refused_compression_is_never_offered(members in prop::collection::vec(member(), 1..5)) {
            let text = |(name, weight): &(&str, u16)| match weight {
                1000 => (*name).to_owned(),
                weight => format!("{name};q=0.{weight:03}"),
            };
            let line = members.iter().map(text).collect::<Vec<_>>().join(", ");
            let order = order(&[&line]);
            let first = |coding: Coding| members.iter().find(|(name, _)| *name == coding.name());
            let weights: Vec<u16> = order
                .iter()
                .filter(|coding| **coding != Identity)
                .map(|coding| first(*coding).map_or(0, |(_, weight)| *weight))
                .collect();
            prop_assert!(weights.iter().all(|weight| *weight > 0), "{line}: {order:?}");
            prop_assert!(weights.is_sorted_by(|one, other| one >= other), "{line}: {order:?}");
            prop_assert_eq!(order.iter().filter(|coding| **coding == Identity).count(), 1);
        }

        #[test]
        fn any_field_is_read(line in "[ -~]{0,40}") {
            prop_assert!(order(&[&line]).contains(&Identity));
        }
    }
}
