//! Fetching a component and the signatures beside it: every digest is compared, and nothing is fetched that is too large by what names
//! it.

use bytes::Bytes;
use http::Method;
use packhouse_runtime::MAX_COMPONENT_BYTES;
use packhouse_upstream::remote::{Remote, RemoteAnswer, RemoteError, RemoteRequest};
use serde_json::Value;
use url::Url;

use super::artifact::{self, Descriptor, Found};
use super::words::{self, ACCEPT, DIGEST_HEADER};
use super::{Reference, RegistryError};
use crate::boxed;
use crate::plugins::signatures::TrustedKeys;

/// Bytes of a manifest, and of what was signed, at most.
const MANIFEST_BYTES: u64 = 1 << 20;
const PAYLOAD_BYTES: u64 = 64 << 10;
/// Signatures of one artifact that are looked at.
const SIGNATURES: usize = 32;
/// Words of an answer that are repeated.
const WORDS: usize = 300;

/// A registry, as far as one artifact of it goes.
pub struct Registry {
    pub(super) remote: Remote,
    pub(super) address: Url,
    pub(super) reference: Reference,
}

/// A component as it was fetched.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The artifact by the digest of its manifest.
    pub reference: Reference,
    /// The component.
    pub bytes: Bytes,
}

/// A manifest as it was fetched.
struct Fetched {
    digest: String,
    bytes: Bytes,
}

impl Registry {
    /// The registry that this artifact is in; `remote` is what asks it.
    pub fn new(reference: &Reference, remote: Remote) -> Result<Registry, RegistryError> {
        Ok(Registry { remote, address: reference.registry()?, reference: reference.clone() })
    }

    /// The component. A tag is resolved here, once.
    #[boxed]
    pub async fn pull(&self) -> Result<Pulled, RegistryError> {
        let what = format!("the manifest of {}", self.reference);
        let Some(fetched) = self.manifest(&self.reference, &what).await? else {
            return Err(RegistryError::new(format!("there is no {}", self.reference)));
        };
        let pinned = self.reference.pinned(&fetched.digest);
        let (config, layers) = match artifact::read(&fetched.bytes)? {
            Found::Manifest(config, layers) => (config, layers),
            Found::Index(manifests) => {
                let one = self.reference.pinned(&artifact::only(&manifests)?.digest);
                let fetched = self.manifest(&one, &what).await?;
                match fetched.map(|fetched| artifact::read(&fetched.bytes)).transpose()? {
                    Some(Found::Manifest(config, layers)) => (config, layers),
                    Some(Found::Index(_)) => {
                        return Err(RegistryError::new("the reference names a list of lists of manifests"));
                    }
                    None => {
                        return Err(RegistryError::new(format!(
                            "there is no {one}, which the reference names"
                        )));
                    }
                }
            }
        };
        let layer = artifact::component(&config, &layers, MAX_COMPONENT_BYTES as u64)?;
        let bytes = self.blob(&layer, "the component").await?;
        Ok(Pulled { reference: pinned, bytes })
    }

    /// The fingerprint of the trusted key that signed the manifest with this digest. An error says why none did.
    #[boxed]
    pub async fn signer(&self, manifest: &str, keys: &TrustedKeys) -> Result<String, RegistryError> {
        let tag = self.reference.tagged(&artifact::signature_tag(manifest));
        let mut why = RegistryError::new(format!(
            "the component is not signed, and only signed ones are installed here: there is no signature of cosign's kind at {tag}"
        ));
        for layer in &self.signatures(manifest).await? {
            match self.signature(layer, manifest, keys).await {
                Ok(signer) => return Ok(signer),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// The signatures that lie beside the manifest with this digest.
    pub(super) async fn signatures(&self, manifest: &str) -> Result<Vec<Descriptor>, RegistryError> {
        let tag = self.reference.tagged(&artifact::signature_tag(manifest));
        let Some(fetched) = self.manifest(&tag, "the signature").await? else { return Ok(Vec::new()) };
        let Found::Manifest(_, mut layers) = artifact::read(&fetched.bytes)? else {
            return Err(RegistryError::new(format!("{tag} is no manifest of signatures")));
        };
        layers.retain(|layer| layer.media_type == words::SIMPLE_SIGNING);
        layers.truncate(SIGNATURES);
        Ok(layers)
    }

    async fn signature(
        &self,
        layer: &Descriptor,
        manifest: &str,
        keys: &TrustedKeys,
    ) -> Result<String, RegistryError> {
        let signature = layer.annotations.get(words::SIGNATURE).and_then(Value::as_str).unwrap_or_default();
        if layer.size > PAYLOAD_BYTES {
            return Err(RegistryError::new(format!(
                "what was signed has {} bytes, over {PAYLOAD_BYTES}",
                layer.size
            )));
        }
        let payload = self.blob(layer, "what was signed").await?;
        let signer =
            keys.signer(&payload, signature).map_err(|error| RegistryError::new(error.to_string()))?;
        let signer = signer.ok_or_else(|| {
            RegistryError::new("the component is signed, but by none of the keys that are trusted here")
        })?;
        match artifact::signed_digest(&payload) {
            Some(signed) if signed == manifest => Ok(signer.to_owned()),
            signed => Err(RegistryError::new(format!(
                "the signature is of {}, not of {manifest}",
                signed.as_deref().unwrap_or("nothing that it names")
            ))),
        }
    }

    /// A manifest, whose digest is the one of the reference where that names one; none where there is none.
    async fn manifest(&self, reference: &Reference, what: &str) -> Result<Option<Fetched>, RegistryError> {
        let url = self.url(&format!("manifests/{}", reference.version()))?;
        let request =
            RemoteRequest { accept: ACCEPT, ..RemoteRequest::new(Method::GET, url, MANIFEST_BYTES) };
        let answer = self.remote.ask(request).await.map_err(|error| RegistryError::asking(what, error))?;
        if answer.status == 404 {
            return Ok(None);
        }
        well(&answer, what)?;
        let digest = artifact::digest(&answer.body);
        let told = answer.header(DIGEST_HEADER).filter(|told| told.starts_with("sha256:"));
        let expected = reference.digest().or(told);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(RegistryError::new(format!("{what} has the digest {digest}, not {expected}")));
        }
        Ok(Some(Fetched { digest, bytes: answer.body }))
    }

    async fn blob(&self, part: &Descriptor, what: &str) -> Result<Bytes, RegistryError> {
        let url = self.url(&format!("blobs/{}", part.digest))?;
        let request = RemoteRequest::new(Method::GET, url, part.size);
        let answer = self.remote.ask(request).await.map_err(|error| match error {
            RemoteError::TooLarge(most) => {
                RegistryError::new(format!("{what} has more than the {most} bytes that the manifest says"))
            }
            error => RegistryError::asking(what, error),
        })?;
        well(&answer, what)?;
        if answer.body.len() as u64 != part.size {
            let (sent, size) = (answer.body.len(), part.size);
            return Err(RegistryError::new(format!(
                "{what} has {sent} bytes, not {size} as the manifest says"
            )));
        }
        let found = artifact::digest(&answer.body);
        if found != part.digest {
            return Err(RegistryError::new(format!("{what} has the digest {found}, not {}", part.digest)));
        }
        Ok(answer.body)
    }

    /// An address below the repository's.
    pub(super) fn url(&self, below: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{below}", self.reference.path());
        self.address.join(&path).map_err(|_| RegistryError::new(format!("{path} is no address")))
    }
}

/// Whether an answer brings what was asked for.
pub(super) fn well(answer: &RemoteAnswer, what: &str) -> Result<(), RegistryError> {
    let why = match answer.status {
        200..=299 => return Ok(()),
        401 => "the registry asks for credentials, and none that it takes are known here".to_owned(),
        403 => "the registry does not allow it to these credentials".to_owned(),
        status => format!("the registry answered with status {status}{}", words(&answer.body)),
    };
    Err(RegistryError::new(format!("{what}: {why}")))
}

/// What a registry says of a failure, as far as it is plain.
fn words(body: &[u8]) -> String {
    let said: Option<Value> = serde_json::from_slice(body).ok();
    let message = said.as_ref().and_then(|said| said.pointer("/errors/0/message")?.as_str());
    let plain = |letter: &char| !letter.is_control();
    message
        .map(|message| format!(": {}", message.chars().filter(plain).take(WORDS).collect::<String>()))
        .unwrap_or_default()
}
