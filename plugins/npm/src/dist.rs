//! A published tarball: decoded by the host, and checked against all that is said of it.

use crate::document::{Attachment, invalid};
use crate::manifest::Manifest;
use crate::name::Name;
use crate::tar::{self, Contents, Refusal, Sbom};
use crate::version::clean;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::json_scan::Span;
use packhouse_sdk::{Blob, Context, Digest, Error, Failure};
use serde_json::{Map, Value, json};

/// Bytes of a tarball's contents. More than ten times what a tarball may have are a bomb.
const UNPACKED_LIMIT: u64 = 2_100_000_000;

/// Digests by which clients name a tarball, as they write them.
const INTEGRITY: [&str; 3] = ["sha512", "sha256", "sha1"];

/// What of the client's `dist` is kept: what it counted, and the registry does not.
const KEPT: [&str; 2] = ["fileCount", "unpackedSize"];

/// A tarball that is what it should be.
pub(crate) struct Tarball {
    pub(crate) blob: Blob,
    /// Bytes.
    pub(crate) size: u64,
    /// SHA-512, as `integrity` has it.
    pub(crate) integrity: String,
    /// SHA-512 in hex, as attestations have it.
    pub(crate) sha512: String,
    /// SHA-1 in hex.
    shasum: String,
}

/// What the archive in a tarball says of itself.
pub(crate) struct Unpacked {
    /// Its own `package.json`.
    pub(crate) own: Map<String, Value>,
    /// Its bills of materials.
    pub(crate) sboms: Vec<(Sbom, Blob)>,
    pub(crate) has_shrinkwrap: bool,
    pub(crate) has_gyp: bool,
}

impl Tarball {
    /// Decodes what lies in the body, at most `limit` bytes.
    ///
    /// # Errors
    /// 413 for more, 400 for what is no base64 or not of the length that is said.
    pub(crate) fn decode(
        body: &Blob,
        span: Span,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<Self, Failure> {
        let encoded = body.slice(span.start, span.end - span.start)?;
        let blob = encoded.decode("base64", limit, &["sha1", "sha512"]).map_err(|error| match error {
            Error::TooLarge(_) => Failure::too_large(format!(
                "The package's tarball is larger than the {limit} bytes that are allowed"
            )),
            Error::Invalid(_) => invalid("the attachment's data are not base64"),
            other => other.into(),
        })?;
        let size = blob.size()?;
        if let Some(said) = attachment.length.filter(|said| *said != size) {
            return Err(invalid(&format!(
                "the attachment's length is said to be {said}, but {size} bytes came"
            )));
        }
        let sha512 = blob.digest("sha512")?;
        let (integrity, shasum) = (integrity(&sha512), blob.digest("sha1")?.hex().to_owned());
        Ok(Self { size, integrity, sha512: sha512.hex().to_owned(), shasum, blob })
    }

    /// Compares it with the digests that the client states.
    ///
    /// # Errors
    /// 400 `checksum_mismatch` for one that is wrong.
    pub(crate) fn check_digests(&self, said: &Map<String, Value>) -> Result<(), Failure> {
        let text = |member: &str| said.get(member).and_then(Value::as_str);
        if let Some(said) = text("shasum").filter(|said| !said.eq_ignore_ascii_case(&self.shasum)) {
            return Err(mismatch("shasum", said, &self.shasum));
        }
        for said in text("integrity").unwrap_or_default().split_whitespace() {
            let said = said.split('?').next().unwrap_or_default();
            let Some((algorithm, _)) = said.split_once('-').filter(|(name, _)| INTEGRITY.contains(name))
            else {
                continue;
            };
            let is = integrity(&self.blob.digest(algorithm)?);
            if said != is {
                return Err(mismatch("integrity", said, &is));
            }
        }
        Ok(())
    }

    /// What the archive says of itself; its bills of materials, each as a part of it.
    ///
    /// # Errors
    /// 400 for what is no such archive, or one of another package or version.
    pub(crate) fn contents(&self, name: &Name, number: &str) -> Result<Unpacked, Failure> {
        let archive = self.blob.decode("gzip", UNPACKED_LIMIT, &[]).map_err(|error| match error {
            Error::TooLarge(_) => bad(&format!("it unpacks to more than {UNPACKED_LIMIT} bytes")),
            Error::Invalid(_) => bad("it is not compressed with gzip, or damaged"),
            other => other.into(),
        })?;
        let Contents { package_json: bytes, sboms, has_shrinkwrap, has_gyp } = tar::contents(&archive)
            .map_err(|refusal| match refusal {
                Refusal::Bad(said) => bad(said),
                Refusal::Host(error) => error.into(),
            })?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let own: Value = serde_json::from_slice(bytes)
            .map_err(|error| bad(&format!("its package.json cannot be read: {error}")))?;
        let Value::Object(own) = own else { return Err(bad("its package.json is no JSON object")) };
        let text = |member: &str| own.get(member).and_then(Value::as_str).unwrap_or_default().trim();
        if text("name") != name.as_str() || clean(text("version")).as_deref() != Some(number) {
            let (own_name, own_version) = (text("name"), text("version"));
            return Err(bad(&format!(
                "its own package.json is that of {own_name}@{own_version}, not of {name}@{number}"
            )));
        }
        let part = |sbom: Sbom| Ok((sbom.clone(), archive.slice(sbom.offset, sbom.size)?));
        let sboms = sboms.into_iter().map(part).collect::<Result<_, Failure>>()?;
        Ok(Unpacked { own, sboms, has_shrinkwrap, has_gyp })
    }

    /// `dist` as it is kept: without the tarball's address, which depends on who asks.
    pub(crate) fn dist(&self, cx: &Context, name: &Name, manifest: &Manifest) -> String {
        let counted = |member: &&str| {
            Some(((*member).to_owned(), manifest.dist.get(*member).filter(|value| value.is_u64())?.clone()))
        };
        let mut dist: Map<String, Value> = KEPT.iter().filter_map(counted).collect();
        dist.insert("integrity".to_owned(), json!(self.integrity));
        dist.insert("shasum".to_owned(), json!(self.shasum));
        if let Some(signature) = self.sign(cx, name, &manifest.number) {
            dist.insert("signatures".to_owned(), json!([signature]));
        }
        Value::Object(dist).to_string()
    }

    /// As `npm audit signatures` checks it. A publish does not fail for want of a key.
    fn sign(&self, cx: &Context, name: &Name, number: &str) -> Option<Value> {
        let message = format!("{name}@{number}:{}", self.integrity);
        match cx.signing().sign(message.as_bytes()) {
            Ok(signature) => {
                Some(json!({"keyid": signature.key_id, "sig": STANDARD.encode(signature.value)}))
            }
            Err(failure) => {
                cx.log().warn(
                    "a version is published without a signature",
                    &[("why", &failure.internal.unwrap_or_default())],
                );
                None
            }
        }
    }
}

/// A digest as Subresource Integrity writes it: `sha512-` and base64.
pub(crate) fn integrity(digest: &Digest) -> String {
    format!("{}-{}", digest.algorithm(), STANDARD.encode(digest.bytes()))
}

/// The other way round; none for what is not such a text.
pub(crate) fn from_integrity(text: &str) -> Option<Digest> {
    let (algorithm, encoded) =
        text.split('?').next()?.split_once('-').filter(|(name, _)| INTEGRITY.contains(name))?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::new(algorithm, &hex).ok()
}

fn mismatch(what: &str, said: &str, is: &str) -> Failure {
    let text = format!("`dist.{what}` says {said}, but of the tarball that came it is {is}; publish again");
    Failure::new(400, "checksum_mismatch", text)
}

fn bad(what: &str) -> Failure {
    Failure::new(400, "invalid_tarball", format!("The tarball is not accepted: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrity_is_base64_of_the_bytes() {
        let digest = Digest::new("sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709").unwrap();
        assert_eq!(integrity(&digest), "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=");
        assert_eq!(from_integrity("sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=?x"), Some(digest));
        assert_eq!(from_integrity("sha512-2jmj"), None);
        assert_eq!(from_integrity("md5-2jmj"), None);
    }
}
