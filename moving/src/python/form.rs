//! The upload form. The file is its last part, so that it can be sent while it is read.

use bytes::Bytes;
use serde_json::Value;

use super::simple::PyFile;
use crate::digests::Digests;
use crate::error::MoveError;
use crate::origin::Origin;

/// Boundary of the parts. If a file contained this text, the server would see another file content,
/// and would refuse the upload because of its digest.
const BOUNDARY: &str = "packhouse-part-8c1f6ab26f2a4a9f9e0d";
/// Maximum size of a signature or a provenance, in bytes.
const MAX_SIDECAR_BYTES: usize = 1 << 20;

/// Fields of the upload form for one file.
pub(super) struct UploadForm<'a> {
    pub(super) project: &'a str,
    /// Type of the file. `None` if the file name does not show the type; the server then determines
    /// it.
    pub(super) filetype: Option<&'static str>,
    /// Version of the file. `None` if the file name does not show the version.
    pub(super) version: Option<&'a str>,
    pub(super) file: &'a PyFile,
}

/// Signature and provenance of a file at the source.
#[derive(Debug, Default)]
pub(super) struct Sidecars {
    pub(super) signature: Option<Bytes>,
    pub(super) provenance: Option<Bytes>,
}

impl Sidecars {
    /// Reads the signature and the provenance that the index announces. The field of a missing one
    /// is `None`.
    pub(super) async fn read(file: &PyFile) -> Result<Sidecars, MoveError> {
        let signature = match (&file.origin, file.signed) {
            (_, false) | (Origin::Other(_), _) => None,
            (Origin::Url(client, url), true) => {
                let mut url = url.clone();
                url.set_path(&format!("{}.asc", url.path()));
                small(&Origin::Url(client.clone(), url)).await?
            }
            (Origin::File(path), true) => {
                let mut path = path.clone().into_os_string();
                path.push(".asc");
                small(&Origin::File(path.into())).await?
            }
        };
        let provenance = match &file.provenance {
            Some(origin) => small(origin).await?,
            None => None,
        };
        Ok(Sidecars { signature, provenance })
    }

    /// The attestations of all bundles, as the upload form expects them.
    fn attestations(&self) -> Option<String> {
        let provenance: Value = serde_json::from_slice(self.provenance.as_ref()?).ok()?;
        let bundles = provenance.get("attestation_bundles")?.as_array()?;
        let all: Vec<&Value> =
            bundles.iter().filter_map(|bundle| bundle.get("attestations")?.as_array()).flatten().collect();
        (!all.is_empty()).then(|| serde_json::to_string(&all).ok())?
    }
}

async fn small(origin: &Origin) -> Result<Option<Bytes>, MoveError> {
    let opened = match origin.open().await {
        Err(MoveError::Missing(_)) => return Ok(None),
        opened => opened?,
    };
    opened.gather(MAX_SIDECAR_BYTES).await.map(Some)
}

impl UploadForm<'_> {
    /// The form's text before and after the bytes of the file.
    pub(super) fn around(&self, sidecars: &Sidecars) -> (Bytes, Bytes) {
        let Digests { md5, sha256, .. } = &self.file.hashes;
        let attestations = sidecars.attestations();
        let requires_python = self.file.requires_python.as_deref();
        let requires_python = requires_python.filter(|text| !text.contains(char::is_control));
        let fields = [
            (":action", Some("file_upload")),
            ("protocol_version", Some("1")),
            ("name", Some(self.project)),
            ("version", self.version),
            ("filetype", self.filetype),
            ("requires_python", requires_python),
            ("sha256_digest", sha256.as_deref()),
            ("md5_digest", md5.as_deref()),
            ("attestations", attestations.as_deref()),
        ];
        let mut before = Vec::new();
        for (name, value) in fields {
            let Some(value) = value else { continue };
            before.extend(
                format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                    .bytes(),
            );
        }
        if let Some(signature) = &sidecars.signature {
            before.extend(part("gpg_signature", &format!("{}.asc", self.file.filename)));
            before.extend_from_slice(signature);
            before.extend(b"\r\n");
        }
        before.extend(part("content", &self.file.filename));
        (before.into(), Bytes::from(format!("\r\n--{BOUNDARY}--\r\n")))
    }
}

fn part(name: &str, filename: &str) -> Vec<u8> {
    let filename = filename.replace(['"', '\r', '\n', '\\'], "_");
    format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes()
}

/// Media type of the form, with its boundary.
pub(super) fn media_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}
