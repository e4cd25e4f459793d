//! Fetching a component and its signatures. Verifies every digest. Does not fetch content whose
//! descriptor states a size over the limit.

use bytes::Bytes;
use http::Method;
use packhouse_runtime::MAX_COMPONENT_BYTES;
use packhouse_upstream::remote::{Remote, RemoteAnswer, RemoteError, RemoteRequest};
use serde_json::Value;
use url::Url;

use super::artifact::{self, Descriptor, ManifestKind};
use super::protocol::{self, ACCEPT, DIGEST_HEADER};
use super::{Reference, RegistryError};
use crate::boxed;
use crate::plugins::signatures::TrustedKeys;

/// Maximum sizes in bytes: of a manifest, and of a signed payload.
const MANIFEST_BYTES: u64 = 1 << 20;
const PAYLOAD_BYTES: u64 = 64 << 10;
/// Maximum number of signatures of one artifact that are checked.
const SIGNATURES: usize = 32;
/// Maximum length of a registry's error message in an error of this server, in characters.
const MESSAGE_CHARACTERS: usize = 300;

/// Client for one artifact in a registry.
pub struct Registry {
    pub(super) remote: Remote,
    pub(super) address: Url,
    pub(super) reference: Reference,
}

#[derive(Clone, Debug)]
pub struct Pulled {
    /// Reference to the artifact by the digest of its manifest.
    pub reference: Reference,
    pub bytes: Bytes,
}

struct FetchedManifest {
    digest: String,
    bytes: Bytes,
}

impl Registry {
    /// Creates a client for the registry of this artifact. The client sends its requests through
    /// `remote`.
    pub fn new(reference: &Reference, remote: Remote) -> Result<Registry, RegistryError> {
        Ok(Registry { remote, address: reference.registry()?, reference: reference.clone() })
    }

    /// Fetches the component. Resolves a tag only once, at the start.
    #[boxed]
    pub async fn pull(&self) -> Result<Pulled, RegistryError> {
        let what = format!("the manifest of {}", self.reference);
        let Some(fetched) = self.manifest(&self.reference, &what).await? else {
            return Err(RegistryError::new(format!("there is no {}", self.reference)));
        };
        let pinned = self.reference.pinned(&fetched.digest);
        let (config, layers) = match artifact::read(&fetched.bytes)? {
            ManifestKind::Manifest(config, layers) => (config, layers),
            ManifestKind::Index(manifests) => {
                let one = self.reference.pinned(&artifact::only(&manifests)?.digest);
                let fetched = self.manifest(&one, &what).await?;
                match fetched.map(|fetched| artifact::read(&fetched.bytes)).transpose()? {
                    Some(ManifestKind::Manifest(config, layers)) => (config, layers),
                    Some(ManifestKind::Index(_)) => {
                        return Err(RegistryError::new(
                            "the reference leads to a list of lists of manifests",
                        ));
                    }
                    None => {
                        return Err(RegistryError::new(format!(
                            "there is no {one}, to which the reference leads"
                        )));
                    }
                }
            }
        };
        let layer = artifact::component(&config, &layers, MAX_COMPONENT_BYTES as u64)?;
        let bytes = self.blob(&layer, "the component").await?;
        Ok(Pulled { reference: pinned, bytes })
    }

    /// Returns the fingerprint of the trusted key that signed the manifest with this digest. The
    /// error states why no key matches.
    #[boxed]
    pub async fn signer(&self, manifest: &str, keys: &TrustedKeys) -> Result<String, RegistryError> {
        let tag = self.reference.tagged(&artifact::signature_tag(manifest));
        let mut why = RegistryError::new(format!(
            "the component is not signed, and this server installs only signed ones: there is no cosign \
             signature at {tag}"
        ));
        for layer in &self.signatures(manifest).await? {
            match self.signature(layer, manifest, keys).await {
                Ok(signer) => return Ok(signer),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Returns the signatures that the registry contains beside the manifest with this digest.
    pub(super) async fn signatures(&self, manifest: &str) -> Result<Vec<Descriptor>, RegistryError> {
        let tag = self.reference.tagged(&artifact::signature_tag(manifest));
        let Some(fetched) = self.manifest(&tag, "the signature").await? else { return Ok(Vec::new()) };
        let ManifestKind::Manifest(_, mut layers) = artifact::read(&fetched.bytes)? else {
            return Err(RegistryError::new(format!("{tag} is not a manifest of signatures")));
        };
        layers.retain(|layer| layer.media_type == protocol::SIMPLE_SIGNING);
        layers.truncate(SIGNATURES);
        Ok(layers)
    }

    async fn signature(
        &self,
        layer: &Descriptor,
        manifest: &str,
        keys: &TrustedKeys,
    ) -> Result<String, RegistryError> {
        let signature =
            layer.annotations.get(protocol::SIGNATURE).and_then(Value::as_str).unwrap_or_default();
        if layer.size > PAYLOAD_BYTES {
            return Err(RegistryError::new(format!(
                "the signed payload has {} bytes; the limit is {PAYLOAD_BYTES}",
                layer.size
            )));
        }
        let payload = self.blob(layer, "the signed payload").await?;
        let signer =
            keys.signer(&payload, signature).map_err(|error| RegistryError::new(error.to_string()))?;
        let signer =
            signer.ok_or_else(|| RegistryError::new("the component is signed, but not by a trusted key"))?;
        match artifact::signed_digest(&payload) {
            Some(signed) if signed == manifest => Ok(signer.to_owned()),
            signed => Err(RegistryError::new(format!(
                "the signature is for {}, not for {manifest}",
                signed.as_deref().unwrap_or("an unnamed manifest")
            ))),
        }
    }

    /// Fetches a manifest. Returns `None` if the registry does not contain it. If the reference
    /// contains a digest, the digest must match.
    async fn manifest(
        &self,
        reference: &Reference,
        what: &str,
    ) -> Result<Option<FetchedManifest>, RegistryError> {
        let url = self.url(&format!("manifests/{}", reference.version()))?;
        let request =
            RemoteRequest { accept: ACCEPT, ..RemoteRequest::new(Method::GET, url, MANIFEST_BYTES) };
        let answer = self.remote.ask(request).await.map_err(|error| RegistryError::asking(what, error))?;
        if answer.status == 404 {
            return Ok(None);
        }
        require_success(&answer, what)?;
        let digest = artifact::digest(&answer.body);
        let stated = answer.header(DIGEST_HEADER).filter(|stated| stated.starts_with("sha256:"));
        let expected = reference.digest().or(stated);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(RegistryError::new(format!("{what} has the digest {digest}, not {expected}")));
        }
        Ok(Some(FetchedManifest { digest, bytes: answer.body }))
    }

    async fn blob(&self, part: &Descriptor, what: &str) -> Result<Bytes, RegistryError> {
        let url = self.url(&format!("blobs/{}", part.digest))?;
        let request = RemoteRequest::new(Method::GET, url, part.size);
        let answer = self.remote.ask(request).await.map_err(|error| match error {
            RemoteError::TooLarge(most) => {
                RegistryError::new(format!("{what} has more than the {most} bytes that the manifest states"))
            }
            error => RegistryError::asking(what, error),
        })?;
        require_success(&answer, what)?;
        if answer.body.len() as u64 != part.size {
            let (sent, size) = (answer.body.len(), part.size);
            return Err(RegistryError::new(format!("{what} has {sent} bytes; the manifest states {size}")));
        }
        let found = artifact::digest(&answer.body);
        if found != part.digest {
            return Err(RegistryError::new(format!("{what} has the digest {found}, not {}", part.digest)));
        }
        Ok(answer.body)
    }

    /// Returns the URL of a path below the repository's API path.
    pub(super) fn url(&self, below: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{below}", self.reference.path());
        self.address.join(&path).map_err(|_| RegistryError::new(format!("{path} is not a valid path")))
    }
}

/// Checks that the response is successful.
pub(super) fn require_success(answer: &RemoteAnswer, what: &str) -> Result<(), RegistryError> {
    let why = match answer.status {
        200..=299 => return Ok(()),
        401 => "the registry requires credentials; none are configured for it, or it refused them".to_owned(),
        403 => "the registry refuses this request with these credentials".to_owned(),
        status => format!("the registry answered with status {status}{}", error_message(&answer.body)),
    };
    Err(RegistryError::new(format!("{what}: {why}")))
}

/// Returns the registry's error message without control characters, or an empty text if there is
/// none.
fn error_message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| json.pointer("/errors/0/message")?.as_str());
    let plain = |letter: &char| !letter.is_control();
    message
        .map(|message| {
            format!(": {}", message.chars().filter(plain).take(MESSAGE_CHARACTERS).collect::<String>())
        })
        .unwrap_or_default()
}
