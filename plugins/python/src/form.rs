//! The upload form: which fields count, each at most once, and the digests that must be right.

use crate::answer::bad;
use packhouse_sdk::{Blob, Failure, Part};
use std::collections::BTreeMap;

/// Fields that are read, and the bytes that each may have. What else the form holds is what the file's metadata say, and is
/// taken from there.
const FIELDS: [(&str, u64); 11] = [
    (":action", 100),
    ("protocol_version", 100),
    ("filetype", 100),
    ("name", 1000),
    ("version", 1000),
    ("metadata_version", 100),
    ("requires_python", 1000),
    ("md5_digest", 1000),
    ("sha256_digest", 1000),
    ("blake2_256_digest", 1000),
    ("attestations", 512 << 10),
];

/// Digests as the form calls them, as the host does, and the characters of their hex.
const DIGESTS: [(&str, &str, usize); 3] =
    [("md5_digest", "md5", 32), ("sha256_digest", "sha256", 64), ("blake2_256_digest", "blake2b-256", 64)];

/// Bytes of a signature.
pub(crate) const SIGNATURE: u64 = 64 << 10;

/// What was sent.
pub(crate) struct Form {
    fields: BTreeMap<&'static str, String>,
    /// The name of the file.
    pub(crate) filename: String,
    /// The file.
    pub(crate) content: Blob,
    /// A signature of it.
    pub(crate) signature: Option<Blob>,
}

impl Form {
    /// Reads the parts of an upload. 410 for what a form can ask for besides, and nobody offers any more.
    pub(crate) fn read(parts: Vec<Part>) -> Result<Self, Failure> {
        let mut fields = BTreeMap::new();
        let (mut content, mut signature) = (None, None);
        for part in parts {
            match part.name.as_str() {
                "content" => once(&mut content, part)?,
                "gpg_signature" => once(&mut signature, part)?,
                name => {
                    let Some((name, limit)) = FIELDS.into_iter().find(|(known, _)| *known == name) else {
                        continue;
                    };
                    let text = part
                        .body
                        .text(limit)
                        .map_err(|_| bad(format!("The field {name} is too long or is no text")))?;
                    if fields.insert(name, text.trim().to_owned()).is_some() {
                        return Err(twice(name));
                    }
                }
            }
        }
        check_action(
            fields.get(":action").map(String::as_str),
            fields.get("protocol_version").map(String::as_str),
        )?;
        let content = content.ok_or_else(|| bad("The form has no file: the field `content` is missing"))?;
        let filename = content.filename.ok_or_else(|| bad("The field `content` has no file name"))?;
        let signature = signature.map(|part| part.body);
        if signature.as_ref().map(Blob::size).transpose()?.is_some_and(|size| size > SIGNATURE) {
            return Err(bad("The signature is larger than 64 KiB"));
        }
        Ok(Self { fields, filename, content: content.body, signature })
    }

    /// A field that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A field that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).ok_or_else(|| bad(format!("The field `{name}` of the form is missing")))
    }

    /// Compares every digest that was sent.
    pub(crate) fn check_digests(&self) -> Result<(), Failure> {
        for (field, algorithm, length) in DIGESTS {
            let Some(said) = self.get(field) else { continue };
            let said = said.to_ascii_lowercase();
            if said.len() != length || !said.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Failure::new(
                    400,
                    "invalid_checksum",
                    format!("The field {field} is no digest in hex"),
                ));
            }
            let is = self.content.digest(algorithm)?;
            if is.hex() != said {
                let text = format!(
                    "{field} says {said}, but that of the file that came is {}; send it again",
                    is.hex()
                );
                return Err(Failure::new(400, "checksum_mismatch", text));
            }
        }
        Ok(())
    }
}

fn once(place: &mut Option<Part>, part: Part) -> Result<(), Failure> {
    let name = part.name.clone();
    match place.replace(part) {
        None => Ok(()),
        Some(_) => Err(twice(&name)),
    }
}

/// Two readers of the form could take one and the other.
fn twice(name: &str) -> Failure {
    bad(format!("The field `{name}` is in the form twice"))
}

/// A form that does not say what it asks for can only be an upload: some clients, and scripts, leave it out.
fn check_action(action: Option<&str>, protocol: Option<&str>) -> Result<(), Failure> {
    match (action.unwrap_or_default(), protocol) {
        ("" | "file_upload", None | Some("" | "1")) => Ok(()),
        ("" | "file_upload", Some(other)) => {
            Err(bad(format!("The upload's protocol_version is {other:?}; there is version 1 alone")))
        }
        (other @ ("submit" | "submit_pkg_info" | "register" | "verify" | "doc_upload"), _) => {
            let text = format!("{other} is not offered: a project comes into being with its first file");
            Err(Failure::new(410, "not_supported", text))
        }
        _ => Err(bad("The field `:action` of the form is not `file_upload`")),
    }
}
