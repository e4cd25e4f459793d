//! An upstream's packument, read as a stream: first what it says of the package, then its versions one by one.

use crate::document::{Bounded, deprecation};
use crate::manifest::forms;
use crate::name::Name;
use crate::packument::Piece;
use crate::skim::{MEMBER_LIMIT, Skim};
use packhouse_sdk::{Blob, Error};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;
use std::io::BufReader;

/// Bytes of an upstream's packument. The largest that are known have half of it.
pub(crate) const LIMIT: u64 = 256 << 20;

/// What it says besides its manifests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    #[serde(rename = "dist-tags")]
    pub(crate) tags: Option<Bounded<Value>>,
    pub(crate) time: Option<Bounded<Value>>,
    /// The numbers of its versions.
    pub(crate) versions: Option<Bounded<IgnoredAny>>,
    pub(crate) maintainers: Option<Value>,
    pub(crate) readme: Option<Value>,
}

/// A version of an upstream's.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    pub(crate) piece: Piece,
    /// Where its tarball lies.
    pub(crate) tarball: String,
    /// What its tarball must be: `integrity`, or the SHA-1 of `shasum`.
    pub(crate) integrity: Option<String>,
    pub(crate) shasum: Option<String>,
}

impl Head {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for what is no packument.
    pub(crate) fn read(body: &Blob) -> Result<Self, Error> {
        parse(body, |reader| serde_json::from_reader(reader))
    }
}

/// Hands over one version after the other.
///
/// # Errors
/// [`Error::Unavailable`] for what is no packument; else what `take` fails with.
pub(crate) fn each(
    body: &Blob,
    name: &Name,
    take: &mut dyn FnMut(&str, Foreign) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut failed = None;
    let mut hand_over = |number: &str, manifest: Map<String, Value>| {
        let Some(foreign) = foreign(name, number, manifest) else { return true };
        failed = take(number, foreign).err();
        failed.is_none()
    };
    let read = parse(body, |reader| {
        Members(&mut hand_over).deserialize(&mut serde_json::Deserializer::from_reader(reader))
    });
    match failed {
        Some(error) => Err(error),
        None => read,
    }
}

type Reader<'a> = BufReader<Skim<&'a Blob>>;

fn parse<'a, T>(
    body: &'a Blob,
    parse: impl FnOnce(&mut Reader<'a>) -> Result<T, serde_json::Error>,
) -> Result<T, Error> {
    let mut reader = BufReader::with_capacity(16 << 10, Skim::within(body, LIMIT));
    let parsed = parse(&mut reader);
    parsed.map_err(|error| match reader.into_inner().trouble {
        Some(trouble) => Error::Unavailable(format!("the upstream's packument is refused: {trouble:?}")),
        None => Error::Unavailable(format!("the upstream sent no packument: {error}")),
    })
}

/// A manifest in its two forms. None where it says that it is of something else.
fn foreign(name: &Name, number: &str, mut manifest: Map<String, Value>) -> Option<Foreign> {
    let says = |member: &str| manifest.get(member).and_then(Value::as_str);
    if says("name") != Some(name.as_str()) || says("version") != Some(number) {
        return None;
    }
    let deprecated = deprecation(&manifest);
    manifest.remove("deprecated");
    let Some(Value::Object(mut dist)) = manifest.remove("dist") else { return None };
    let tarball = dist.remove("tarball")?.as_str()?.to_owned();
    let attestations = match dist.remove("attestations") {
        Some(Value::Object(attestations)) => Some(attestations),
        _ => None,
    };
    let text = |member: &str| dist.get(member).and_then(Value::as_str).map(str::to_owned);
    let (integrity, shasum) = (text("integrity"), text("shasum"));
    let (abbreviated, full) = forms(&manifest);
    let piece =
        Piece { abbreviated, full, dist: Value::Object(dist).to_string(), deprecated, attestations, time: 0 };
    Some(Foreign { piece, tarball, integrity, shasum })
}

type HandOver<'a> = dyn FnMut(&str, Map<String, Value>) -> bool + 'a;

/// The document: of its members only the versions matter.
struct Members<'a, 'b>(&'a mut HandOver<'b>);

/// The versions: each is handed over and forgotten.
struct Manifests<'a, 'b>(&'a mut HandOver<'b>);

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a packument")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(member) = access.next_key::<String>()? {
            match member.as_str() {
                "versions" => access.next_value_seed(Manifests(&mut *self.0))?,
                _ => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Manifests<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Manifests<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "versions of at most {MEMBER_LIMIT} bytes each")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some((number, manifest)) = access.next_entry::<String, Map<String, Value>>()? {
            if !(self.0)(&number, manifest) {
                return Err(serde::de::Error::custom("given up"));
            }
        }
        Ok(())
    }
}
