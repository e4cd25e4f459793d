//! Container images that the tests make from scratch; they fetch nothing.

use crate::api::{Api, Token};
use crate::digests::sha256;
use crate::http::{Client, Request, Response};
use crate::server::{OWNER, Server};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Media type of an OCI image.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A hosted repository of images with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct ImageRepository {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that sends the token.
    pub client: Client,
}

impl ImageRepository {
    /// Creates a repository of this name with these settings.
    #[track_caller]
    pub fn create(server: &Server, name: &str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let body = json!({"name": name, "format": "docker", "kind": "hosted", "settings": settings});
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { name: name.into(), id, token, client }
    }

    /// The path of a resource of an image.
    pub fn path(&self, rest: &str) -> String {
        format!("/v2/repositories/{}/{rest}", self.name)
    }

    /// GET of a resource of an image.
    #[track_caller]
    pub fn get(&self, rest: &str) -> Response {
        self.client.get(&self.path(rest))
    }

    /// Sends a request of this method without a body.
    #[track_caller]
    pub fn ask(&self, method: &str, rest: &str) -> Response {
        self.client.send(Request::new(method, &self.path(rest)))
    }

    /// Pushes a layer in one request.
    #[track_caller]
    pub fn push_blob(&self, image: &str, bytes: &[u8]) -> Response {
        let target = self.path(&format!("{image}/blobs/uploads/?digest={}", digest(bytes)));
        self.client.send(Request::new("POST", &target).body(bytes))
    }

    /// Pushes a manifest.
    #[track_caller]
    pub fn push_manifest(&self, image: &str, tag: &str, kind: &str, manifest: &str) -> Response {
        let target = self.path(&format!("{image}/manifests/{tag}"));
        self.client.send(Request::new("PUT", &target).header("Content-Type", kind).body(manifest))
    }

    /// Pushes an image of these layers as a client does: it skips layers that the repository
    /// already has. Returns the image's manifest, or the server's refusal.
    #[track_caller]
    pub fn push(&self, image: &str, tag: &str, layers: &[&[u8]]) -> Result<String, Response> {
        for bytes in layers.iter().copied().chain([&b"{}"[..]]) {
            let there = self.ask("HEAD", &format!("{image}/blobs/{}", digest(bytes))).status;
            if there != 200 {
                self.push_blob(image, bytes).expect(201);
            }
        }
        let manifest = manifest(layers);
        let answer = self.push_manifest(image, tag, MANIFEST, &manifest);
        if answer.status == 201 { Ok(manifest) } else { Err(answer) }
    }
}

/// A digest as registries write it.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()})
}

/// The manifest of an image of these layers, with `{}` as its config.
pub fn manifest(layers: &[&[u8]]) -> String {
    let layers: Vec<Value> =
        layers.iter().map(|layer| descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)).collect();
    let config = descriptor("application/vnd.oci.image.config.v1+json", b"{}");
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}).to_string()
}

/// Writes an index with one image for each of these platforms to a folder that skopeo and similar
/// tools read (`oci:FOLDER`); returns the index's digest.
pub fn layout(folder: &Path, architectures: &[&str]) -> String {
    let (mut blobs, mut parts) = (Vec::new(), Vec::new());
    for architecture in architectures {
        // A tar ends with two empty blocks: this is the shortest possible layer.
        let layer = [architecture.as_bytes(), &[0; 1024]].concat();
        let layer = tar(&layer);
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        })
        .to_string();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", config.as_bytes()),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        })
        .to_string();
        blobs.extend([layer, config.into_bytes(), manifest.clone().into_bytes()]);
        let mut part = descriptor(MANIFEST, manifest.as_bytes());
        part["platform"] = json!({"architecture": architecture, "os": "linux"});
        parts.push(part);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": parts}).to_string();
    lay_down(folder, &blobs, INDEX, index.as_bytes())
}

/// Writes an artifact to a folder in the form of [`layout`]. The artifact has this config, this
/// layer, and a manifest with these additional fields. Returns the manifest's digest.
pub fn artifact(folder: &Path, config: (&str, &str), layer: (&str, &[u8]), fields: &Value) -> String {
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config.0, config.1.as_bytes()),
        "layers": [descriptor(layer.0, layer.1)],
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        manifest[name] = value.clone();
    }
    lay_down(folder, &[config.1.into(), layer.1.into()], MANIFEST, manifest.to_string().as_bytes())
}

/// Writes the blobs and the top manifest to the folder; returns the digest of the top manifest.
fn lay_down(folder: &Path, blobs: &[Vec<u8>], kind: &str, top: &[u8]) -> String {
    let place = folder.join("blobs/sha256");
    fs::create_dir_all(&place).expect("a folder for blobs");
    for bytes in blobs.iter().map(Vec::as_slice).chain([top]) {
        fs::write(place.join(sha256(bytes)), bytes).expect("a blob");
    }
    let whole = json!({"schemaVersion": 2, "manifests": [descriptor(kind, top)]}).to_string();
    fs::write(folder.join("index.json"), whole).expect("the layout's index");
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("the layout's version");
    digest(top)
}

/// A tar of one file with these bytes.
fn tar(bytes: &[u8]) -> Vec<u8> {
    let mut head = [0u8; 512];
    let mut put = |at: usize, text: &str| {
        for (place, byte) in head.iter_mut().skip(at).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, "hello");
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", bytes.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in head.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *place = byte;
    }
    let padding = vec![0; bytes.len().next_multiple_of(512) - bytes.len() + 1024];
    [&head, bytes, &padding].concat()
}
