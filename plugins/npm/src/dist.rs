//! Published tarballs. The host decodes a tarball, and the plugin checks it against the digests and
//! names that the client states.

use crate::document::{Attachment, invalid};
use crate::manifest::VersionManifest;
use crate::name::PackageName;
use crate::tar::{self, ArchiveContents, ArchiveError, Sbom};
use crate::version::clean;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::json_scan::Span;
use packhouse_sdk::{Blob, Context, Digest, Error, Failure};
use serde_json::{Map, Value, json};

/// Maximum number of bytes of an unpacked tarball. The limit is ten times [`crate::FILE_LIMIT`]: a
/// larger archive is considered a decompression bomb.
const UNPACKED_LIMIT: u64 = 2_100_000_000;

/// Algorithms of the digests in `integrity`.
const INTEGRITY: [&str; 3] = ["sha512", "sha256", "sha1"];

/// Members of the client's `dist` that are stored, because the server does not compute these
/// numbers itself.
const COUNTS: [&str; 2] = ["fileCount", "unpackedSize"];

/// A decoded tarball with its digests.
pub(crate) struct Tarball {
    pub(crate) blob: Blob,
    /// Size in bytes.
    pub(crate) size: u64,
    /// SHA-512 in the format of `integrity`.
    pub(crate) integrity: String,
    /// SHA-512 in hex, the format of attestations.
    pub(crate) sha512: String,
    /// SHA-1 in hex.
    shasum: String,
}

/// Data from the archive in a tarball.
pub(crate) struct Unpacked {
    /// The archive's own `package.json`.
    pub(crate) own: Map<String, Value>,
    /// The archive's bills of materials, each with its bytes.
    pub(crate) sboms: Vec<(Sbom, Blob)>,
    pub(crate) has_shrinkwrap: bool,
    pub(crate) has_gyp: bool,
}

impl Tarball {
    /// Decodes an attachment of at most `limit` bytes from the body.
    ///
    /// # Errors
    /// 413 if the attachment is larger. 400 if it is not base64, or does not have the stated
    /// length.
    pub(crate) fn decode(
        body: &Blob,
        span: Span,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<Self, Failure> {
        let encoded = body.slice(span.start, span.end - span.start)?;
        let blob = encoded.decode("base64", limit, &["sha1", "sha512"]).map_err(|error| match error {
            Error::TooLarge(_) => Failure::too_large(format!(
                "The tarball of the package is larger than the limit of {limit} bytes"
            )),
            Error::Invalid(_) => invalid("the attachment's data is not base64"),
            other => other.into(),
        })?;
        let size = blob.size()?;
        if let Some(stated) = attachment.length.filter(|stated| *stated != size) {
            return Err(invalid(&format!(
                "the attachment's stated length is {stated}, but {size} bytes were received"
            )));
        }
        let sha512 = blob.digest("sha512")?;
        let (integrity, shasum) = (integrity(&sha512), blob.digest("sha1")?.hex().to_owned());
        Ok(Self { size, integrity, sha512: sha512.hex().to_owned(), shasum, blob })
    }

    /// Compares the tarball with the digests that the client states.
    ///
    /// # Errors
    /// 400 `checksum_mismatch` for a wrong digest.
    pub(crate) fn check_digests(&self, dist: &Map<String, Value>) -> Result<(), Failure> {
        let text = |member: &str| dist.get(member).and_then(Value::as_str);
        if let Some(stated) = text("shasum").filter(|stated| !stated.eq_ignore_ascii_case(&self.shasum)) {
            return Err(mismatch("shasum", stated, &self.shasum));
        }
        for stated in text("integrity").unwrap_or_default().split_whitespace() {
            let stated = stated.split('?').next().unwrap_or_default();
            let Some((algorithm, _)) = stated.split_once('-').filter(|(name, _)| INTEGRITY.contains(name))
            else {
                continue;
            };
            let actual = integrity(&self.blob.digest(algorithm)?);
            if stated != actual {
                return Err(mismatch("integrity", stated, &actual));
            }
        }
        Ok(())
    }

    /// Reads the archive. Each bill of materials is a slice of the unpacked archive.
    ///
    /// # Errors
    /// 400 for an invalid archive, or for an archive of another package or version.
    pub(crate) fn contents(&self, name: &PackageName, number: &str) -> Result<Unpacked, Failure> {
        let archive = self.blob.decode("gzip", UNPACKED_LIMIT, &[]).map_err(|error| match error {
            Error::TooLarge(_) => bad(&format!("it unpacks to more than {UNPACKED_LIMIT} bytes")),
            Error::Invalid(_) => bad("it is not compressed with gzip, or it is damaged"),
            other => other.into(),
        })?;
        let ArchiveContents { package_json: bytes, sboms, has_shrinkwrap, has_gyp } = tar::contents(&archive)
            .map_err(|refusal| match refusal {
                ArchiveError::Bad(problem) => bad(problem),
                ArchiveError::Host(error) => error.into(),
            })?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let own: Value = serde_json::from_slice(bytes)
            .map_err(|error| bad(&format!("its package.json cannot be read: {error}")))?;
        let Value::Object(own) = own else { return Err(bad("its package.json is not a JSON object")) };
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

    /// Returns the text of `dist` for the version's record. The text lacks the tarball's address,
    /// which depends on the requested repository.
    pub(crate) fn dist(&self, cx: &Context, name: &PackageName, manifest: &VersionManifest) -> String {
        let counted = |member: &&str| {
            Some(((*member).to_owned(), manifest.dist.get(*member).filter(|value| value.is_u64())?.clone()))
        };
        let mut dist: Map<String, Value> = COUNTS.iter().filter_map(counted).collect();
        dist.insert("integrity".to_owned(), json!(self.integrity));
        dist.insert("shasum".to_owned(), json!(self.shasum));
        if let Some(signature) = self.sign(cx, name, &manifest.number) {
            dist.insert("signatures".to_owned(), json!([signature]));
        }
        Value::Object(dist).to_string()
    }

    /// Returns the signature that `npm audit signatures` checks. Returns `None` and logs a warning
    /// if the server cannot sign, so that the publish does not fail.
    fn sign(&self, cx: &Context, name: &PackageName, number: &str) -> Option<Value> {
        let message = format!("{name}@{number}:{}", self.integrity);
        match cx.signing().sign(message.as_bytes()) {
            Ok(signature) => {
                Some(json!({"keyid": signature.key_id, "sig": STANDARD.encode(signature.value)}))
            }
            Err(failure) => {
                cx.log().warn(
                    "version published without a signature",
                    &[("why", &failure.internal.unwrap_or_default())],
                );
                None
            }
        }
    }
}

/// Converts a digest to the format of Subresource Integrity: `sha512-` and base64.
pub(crate) fn integrity(digest: &Digest) -> String {
    format!("{}-{}", digest.algorithm(), STANDARD.encode(digest.bytes()))
}

/// Parses a digest in the format of Subresource Integrity; `None` if it is invalid.
pub(crate) fn from_integrity(text: &str) -> Option<Digest> {
    let (algorithm, encoded) =
        text.split('?').next()?.split_once('-').filter(|(name, _)| INTEGRITY.contains(name))?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::new(algorithm, &hex).ok()
}

fn mismatch(member: &str, stated: &str, actual: &str) -> Failure {
    let text = format!("`dist.{member}` is {stated}, but the received tarball has {actual}; publish again");
    Failure::new(400, "checksum_mismatch", text)
}

fn bad(problem: &str) -> Failure {
    Failure::new(400, "invalid_tarball", format!("The tarball is not accepted: {problem}"))
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
