//! The upload form, with the file as its last part so that it can be sent while it is read.

use bytes::Bytes;
use serde_json::Value;

use super::simple::PyFile;
use crate::digests::Digests;
use crate::fault::Fault;
use crate::origin::Origin;

/// No file holds this text, and a server would refuse the upload if one did: its digest would be wrong.
const BOUNDARY: &str = "packhouse-part-8c1f6ab26f2a4a9f9e0d";
/// Bytes of a signature or a provenance.
const MOST: usize = 1 << 20;

/// What is said of a file.
pub(super) struct Form<'a> {
    pub(super) project: &'a str,
    /// None for a file of which its name does not tell it here: the server reads it there.
    pub(super) filetype: Option<&'static str>,
    /// The same.
    pub(super) version: Option<&'a str>,
    pub(super) file: &'a PyFile,
}

/// What lies beside a file at the source.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) signature: Option<Bytes>,
    pub(super) provenance: Option<Bytes>,
}

impl Beside {
    /// Reads what the index says is there. What is not there after all is left out.
    pub(super) async fn read(file: &PyFile) -> Result<Beside, Fault> {
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
        Ok(Beside { signature, provenance })
    }

    /// The attestations of all bundles, as the form takes them.
    fn attestations(&self) -> Option<String> {
        let provenance: Value = serde_json::from_slice(self.provenance.as_ref()?).ok()?;
        let bundles = provenance.get("attestation_bundles")?.as_array()?;
        let all: Vec<&Value> =
            bundles.iter().filter_map(|bundle| bundle.get("attestations")?.as_array()).flatten().collect();
        (!all.is_empty()).then(|| serde_json::to_string(&all).ok())?
    }
}

async fn small(origin: &Origin) -> Result<Option<Bytes>, Fault> {
    let opened = match origin.open().await {
        Err(Fault::Missing(_)) => return Ok(None),
        opened => opened?,
    };
    opened.gather(MOST).await.map(Some)
}

impl Form<'_> {
    /// What stands before and behind the file's bytes.
    pub(super) fn around(&self, beside: &Beside) -> (Bytes, Bytes) {
        let Digests { md5, sha256, .. } = &self.file.hashes;
        let attestations = beside.attestations();
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
        if let Some(signature) = &beside.signature {
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

/// The form's media type.
pub(super) fn media_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}
