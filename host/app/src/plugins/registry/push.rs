//! Publishing a component. Does not send blobs that the registry already contains. The same file
//! always gives the same artifact.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use packhouse_config::{UpstreamBounds, upstream_networks};
use packhouse_upstream::egress_policy::{EgressPolicy, SystemLookup};
use packhouse_upstream::remote::{Remote, RemoteError, RemoteRequest};
use serde_json::{Value, json};
use url::Url;

use super::artifact::{self, ArtifactFacts, Descriptor};
use super::protocol::{self, DIGEST_HEADER, SCHEME};
use super::pull::{Registry, require_success};
use super::{PATIENCE, Reference, RegistryError, RegistryLogin};
use crate::plugins::signatures::SigningPem;

/// Maximum size of a response, in bytes.
const ANSWER: u64 = 1 << 20;
/// Time in all published documents. It is constant, so that the same input always gives the same
/// artifact.
const EPOCH: &str = "1970-01-01T00:00:00Z";
/// Media type of uploaded blobs.
const OCTETS: &str = "application/octet-stream";

/// Network limits of uploads. The idle limit is long, because uploading a component may take time.
const BOUNDS: UpstreamBounds =
    UpstreamBounds { connect: Duration::from_secs(10), idle: PATIENCE, concurrency: 1 };

pub struct Publication<'a> {
    pub bytes: Bytes,
    pub facts: ArtifactFacts,
    /// Key that signs the component.
    pub key: Option<&'a SigningPem>,
}

#[derive(Clone, Debug)]
pub struct Published {
    /// Reference to the artifact by its digest.
    pub reference: Reference,
    /// Reference to the signature by its tag; `None` if the component was not signed.
    pub signature: Option<Reference>,
}

/// Returns a client that publishes to this artifact's registry. Allows any address, because the
/// person who runs the command chose the registry.
pub fn anywhere(reference: &Reference, login: Option<RegistryLogin>) -> Result<Remote, RegistryError> {
    let networks = upstream_networks("0.0.0.0/0:*,[::/0]:*").map_err(RegistryError)?;
    let policy = EgressPolicy::new(&networks, Arc::new(SystemLookup));
    let login = login.map(RegistryLogin::credentials);
    let failed =
        |error| RegistryError::new(format!("the registry {} cannot be reached: {error}", reference.host()));
    Remote::new(&reference.registry()?, &policy, BOUNDS, login, PATIENCE).map_err(failed)
}

impl Registry {
    /// Publishes a component under the reference's tag, and its signature beside it.
    pub async fn publish(&self, publication: Publication<'_>) -> Result<Published, RegistryError> {
        let Publication { bytes, facts, key } = publication;
        let Some(tag) = self.reference.tag() else {
            let text =
                format!("a component must be published under a tag, for example {SCHEME}HOST/PATH:1.2");
            return Err(RegistryError::new(text));
        };
        let layer = Descriptor::of(protocol::WASM, &bytes);
        self.send_blob(&layer, bytes).await?;
        let config = artifact::wasm_config(&layer.digest, &facts);
        let config = self.send(protocol::WASM_CONFIG, config).await?;
        let annotations = json!({
            "org.opencontainers.image.title": facts.format,
            "org.opencontainers.image.version": facts.version,
        });
        let manifest = artifact::manifest(&config, std::slice::from_ref(&layer), Some(&annotations));
        let digest = self.send_manifest(tag, manifest).await?;
        let signature = match key {
            Some(key) => Some(self.sign(&digest, key).await?),
            None => None,
        };
        Ok(Published { reference: self.reference.pinned(&digest), signature })
    }

    async fn sign(&self, manifest: &str, key: &SigningPem) -> Result<Reference, RegistryError> {
        let named = format!("{}/{}", self.reference.host(), self.reference.path());
        let payload = artifact::payload(&named, manifest);
        let tag = artifact::signature_tag(manifest);
        // Keep the signatures by other keys, and do not add a second one by this key.
        let mut layers = self.signatures(manifest).await?;
        let digest = artifact::digest(&payload);
        let is_own = |layer: &Descriptor| {
            let signature = layer.annotations.get(protocol::SIGNATURE).and_then(Value::as_str);
            layer.digest == digest && signature.is_some_and(|signature| key.made(&payload, signature))
        };
        if layers.iter().any(is_own) {
            return Ok(self.reference.tagged(&tag));
        }
        let signature = key.sign(&payload).map_err(|error| RegistryError::new(error.to_string()))?;
        let mut layer = self.send(protocol::SIMPLE_SIGNING, payload).await?;
        layer.annotations.insert(protocol::SIGNATURE.to_owned(), json!(signature));
        layers.push(layer);
        let digests: Vec<&str> = layers.iter().map(|layer| layer.digest.as_str()).collect();
        let config = json!({
            "architecture": "", "created": EPOCH, "os": "", "config": {},
            "history": vec![json!({"created": EPOCH}); layers.len()],
            "rootfs": {"type": "layers", "diff_ids": digests},
        });
        let config = self.send(protocol::IMAGE_CONFIG, config.to_string().into_bytes()).await?;
        self.send_manifest(&tag, artifact::manifest(&config, &layers, None)).await?;
        Ok(self.reference.tagged(&tag))
    }

    async fn send(&self, media_type: &str, bytes: Vec<u8>) -> Result<Descriptor, RegistryError> {
        let part = Descriptor::of(media_type, &bytes);
        self.send_blob(&part, bytes.into()).await?;
        Ok(part)
    }

    /// Uploads a blob in one request, unless the registry already contains it.
    async fn send_blob(&self, part: &Descriptor, bytes: Bytes) -> Result<(), RegistryError> {
        let there = RemoteRequest::new(Method::HEAD, self.url(&format!("blobs/{}", part.digest))?, ANSWER);
        if self.remote.ask(there).await.map_err(sending)?.status == 200 {
            return Ok(());
        }
        let begin = RemoteRequest::new(Method::POST, self.url("blobs/uploads/")?, ANSWER);
        let begun = self.remote.ask(begin).await.map_err(sending)?;
        require_success(&begun, "starting an upload failed")?;
        let nowhere = || RegistryError::new("the registry started an upload but did not send its address");
        let location = begun.header("location").ok_or_else(nowhere)?;
        let mut upload: Url = begun.url.join(location).map_err(|_| nowhere())?;
        upload.query_pairs_mut().append_pair("digest", &part.digest);
        let put =
            RemoteRequest { body: Some((OCTETS, bytes)), ..RemoteRequest::new(Method::PUT, upload, ANSWER) };
        let sent = self.remote.ask(put).await.map_err(sending)?;
        require_success(&sent, &format!("uploading the blob {} failed", part.digest))
    }

    async fn send_manifest(&self, tag: &str, manifest: Vec<u8>) -> Result<String, RegistryError> {
        let digest = artifact::digest(&manifest);
        let url = self.url(&format!("manifests/{tag}"))?;
        let body = Some((protocol::MANIFEST, manifest.into()));
        let put = RemoteRequest { body, ..RemoteRequest::new(Method::PUT, url, ANSWER) };
        let sent = self.remote.ask(put).await.map_err(sending)?;
        require_success(&sent, &format!("uploading the manifest of {tag} failed"))?;
        match sent.header(DIGEST_HEADER) {
            Some(stated) if stated != digest => Err(RegistryError::new(format!(
                "the registry states the digest {stated} for the manifest, but it is {digest}"
            ))),
            _ => Ok(digest),
        }
    }
}

fn sending(error: RemoteError) -> RegistryError {
    RegistryError::new(format!("the registry cannot be reached: {error}"))
}
