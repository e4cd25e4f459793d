//! Parses the upload form. Refuses a repeated field, and a digest that does not match the file.

use crate::answer::bad;
use packhouse_sdk::{Blob, Failure, Part};
use std::collections::BTreeMap;

/// Fields that the plugin reads, with their maximum length in bytes. Other fields repeat the file's
/// metadata, which the plugin reads from the file.
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

/// Digest fields of the form, the host's name for each algorithm, and the number of hex characters.
const DIGESTS: [(&str, &str, usize); 3] =
    [("md5_digest", "md5", 32), ("sha256_digest", "sha256", 64), ("blake2_256_digest", "blake2b-256", 64)];

/// Maximum bytes of a signature.
pub(crate) const SIGNATURE: u64 = 64 << 10;

/// A parsed upload form.
pub(crate) struct UploadForm {
    fields: BTreeMap<&'static str, String>,
    /// The file's name.
    pub(crate) filename: String,
    /// The file's content.
    pub(crate) content: Blob,
    /// A detached signature of the file.
    pub(crate) signature: Option<Blob>,
}

impl UploadForm {
    /// Reads the parts of an upload.
    ///
    /// # Errors
    /// 400 for an invalid form. 410 for old actions that no index supports any more.
    pub(crate) fn read(parts: Vec<Part>) -> Result<Self, Failure> {
        let mut fields = BTreeMap::new();
        let (mut content, mut signature) = (None, None);
        for part in parts {
            match part.name.as_str() {
                "content" => set_once(&mut content, part)?,
                "gpg_signature" => set_once(&mut signature, part)?,
                name => {
                    let Some((name, limit)) = FIELDS.into_iter().find(|(known, _)| *known == name) else {
                        continue;
                    };
                    let text = part
                        .body
                        .text(limit)
                        .map_err(|_| bad(format!("The field `{name}` is too long or is not text")))?;
                    if fields.insert(name, text.trim().to_owned()).is_some() {
                        return Err(repeated(name));
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

    /// Returns a field's value, if the field is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the value of a required field.
    ///
    /// # Errors
    ///
    /// 400 if the field is missing or empty.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).ok_or_else(|| bad(format!("The field `{name}` of the form is missing")))
    }

    /// Compares every digest in the form with the file.
    pub(crate) fn check_digests(&self) -> Result<(), Failure> {
        for (field, algorithm, length) in DIGESTS {
            let Some(stated) = self.get(field) else { continue };
            let stated = stated.to_ascii_lowercase();
            if stated.len() != length || !stated.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Failure::new(
                    400,
                    "invalid_checksum",
                    format!("The field `{field}` is not a hexadecimal digest"),
                ));
            }
            let computed = self.content.digest(algorithm)?;
            if computed.hex() != stated {
                let text = format!(
                    "`{field}` is {stated}, but the received file has {}; upload it again",
                    computed.hex()
                );
                return Err(Failure::new(400, "checksum_mismatch", text));
            }
        }
        Ok(())
    }
}

fn set_once(field: &mut Option<Part>, part: Part) -> Result<(), Failure> {
    let name = part.name.clone();
    match field.replace(part) {
        None => Ok(()),
        Some(_) => Err(repeated(&name)),
    }
}

/// Creates the 400 for a repeated field. Such a form is ambiguous: one parser could use the first
/// value, and another parser the second.
fn repeated(name: &str) -> Failure {
    bad(format!("The field `{name}` is in the form twice"))
}

/// Checks the action. Accepts a form without an action as an upload, because some clients and
/// scripts leave the action out.
fn check_action(action: Option<&str>, protocol: Option<&str>) -> Result<(), Failure> {
    match (action.unwrap_or_default(), protocol) {
        ("" | "file_upload", None | Some("" | "1")) => Ok(()),
        ("" | "file_upload", Some(other)) => {
            Err(bad(format!("The protocol_version of the form is {other:?}; only version 1 is supported")))
        }
        (other @ ("submit" | "submit_pkg_info" | "register" | "verify" | "doc_upload"), _) => {
            let text = format!("The action {other} is not supported: the first upload creates a project");
            Err(Failure::new(410, "not_supported", text))
        }
        _ => Err(bad("The field `:action` of the form is not `file_upload`")),
    }
}
