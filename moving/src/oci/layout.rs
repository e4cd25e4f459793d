//! OCI image layouts: one for each image, below `images/` in a folder.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::manifest::Manifest;
use crate::error::MoveError;
use crate::export::ExportedFile;
use crate::folder::Folder;
use crate::report::MoveOutcome;
use crate::server::ListedVersion;
use crate::target::Parcel;

/// Annotation with the tag of a manifest.
const TAG: &str = "org.opencontainers.image.ref.name";

/// The image layouts in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    folder: Folder,
    listed: Arc<Vec<ExportedFile>>,
}

impl Layout {
    /// Layouts for writing.
    pub(super) fn in_folder(folder: &Folder) -> Layout {
        Layout { folder: folder.clone(), listed: Arc::default() }
    }

    /// Layouts that an export wrote.
    pub(crate) fn exported(folder: Folder, listed: Arc<Vec<ExportedFile>>) -> Layout {
        Layout { folder, listed }
    }

    /// Path of a blob in the folder.
    pub(super) fn path(image: &str, digest: &str) -> Result<String, MoveError> {
        let (algorithm, hex) = digest
            .split_once(':')
            .ok_or_else(|| MoveError::Refused(format!("`{digest}` is not a digest")))?;
        Ok(format!("images/{image}/blobs/{algorithm}/{hex}"))
    }

    /// File of a blob.
    pub(super) fn blob(&self, image: &str, digest: &str) -> Result<PathBuf, MoveError> {
        self.folder.at(&Layout::path(image, digest)?)
    }

    async fn json(&self, path: &str) -> Result<Value, MoveError> {
        let text = self.folder.document(path).await?;
        serde_json::from_slice(&text)
            .map_err(|error| MoveError::Refused(format!("{path} is not JSON: {error}")))
    }

    async fn entries(&self, image: &str) -> Result<Vec<Value>, MoveError> {
        let index = self.json(&format!("images/{image}/index.json")).await?;
        Ok(index.get("manifests").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// The images that the export lists.
    pub(super) async fn names(&self) -> Result<Vec<String>, MoveError> {
        let mut names: Vec<String> = self.listed.iter().filter_map(|file| file.package.clone()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The tags of an image.
    pub(super) async fn tags(&self, image: &str) -> Result<Vec<String>, MoveError> {
        Ok(self.entries(image).await?.iter().filter_map(|entry| tag(entry).map(str::to_owned)).collect())
    }

    /// The tags of an image, with their times if the export states them.
    pub(super) fn listed_versions(&self, image: &str) -> Vec<ListedVersion> {
        let mine = self.listed.iter().filter(|file| file.package.as_deref() == Some(image));
        mine.filter_map(|file| {
            Some(ListedVersion { version: file.version.clone()?, published: file.published() })
        })
        .collect()
    }

    /// Reads a manifest by its tag or digest.
    pub(super) async fn manifest(&self, image: &str, reference: &str) -> Result<Manifest, MoveError> {
        let entries = self.entries(image).await?;
        let found =
            entries.iter().find(|entry| tag(entry) == Some(reference) || digest(entry) == Some(reference));
        let missing = || MoveError::Missing(format!("the layout of {image} has no manifest {reference}"));
        let expected = match found {
            Some(entry) => digest(entry).ok_or_else(missing)?.to_owned(),
            None if reference.contains(':') => reference.to_owned(),
            None => return Err(missing()),
        };
        let bytes = self.folder.document(&Layout::path(image, &expected)?).await?;
        let media_type = found.and_then(|entry| entry.get("mediaType")?.as_str()).unwrap_or_default();
        Manifest::checked(bytes, media_type, Some(&expected), None)
    }

    /// Digests of the manifests that refer to a manifest.
    pub(super) async fn referrers(&self, image: &str, subject: &str) -> Result<Vec<String>, MoveError> {
        let mut found = Vec::new();
        for entry in self.entries(image).await?.iter().filter(|entry| tag(entry).is_none()) {
            let Some(digest) = digest(entry) else { continue };
            let manifest = self.json(&Layout::path(image, digest)?).await?;
            if manifest.pointer("/subject/digest").and_then(Value::as_str) == Some(subject) {
                found.push(digest.to_owned());
            }
        }
        Ok(found)
    }

    /// Writes a manifest.
    pub(super) async fn put(&self, image: &str, manifest: &Manifest) -> Result<MoveOutcome, MoveError> {
        let path = Layout::path(image, &manifest.digest)?;
        let there = self.folder.at(&path)?.exists();
        self.folder.put(&path, manifest.bytes.clone()).await?;
        Ok(if there { MoveOutcome::Present } else { MoveOutcome::Moved })
    }

    /// Writes a blob, unless the folder has it.
    pub(super) async fn take(
        &self,
        image: &str,
        digest: &str,
        parcel: &Parcel,
    ) -> Result<MoveOutcome, MoveError> {
        let path = Layout::path(image, digest)?;
        if self.folder.holds(&path, &parcel.stated).await?.is_some() {
            return Ok(MoveOutcome::Present);
        }
        let opened = parcel.origin.open().await?;
        self.folder.take(&path, opened, parcel.stated.clone(), parcel.size).await?;
        Ok(MoveOutcome::Moved)
    }

    /// Writes the index, which completes the layout. The index is written last, so that it names
    /// only existing blobs.
    pub(super) async fn index(
        &self,
        image: &str,
        written: &[(Manifest, Option<String>)],
    ) -> Result<(), MoveError> {
        let entry = |(manifest, tag): &(Manifest, Option<String>)| {
            let mut entry = json!({"mediaType": manifest.media_type, "digest": manifest.digest, "size": manifest.bytes.len()});
            if let (Some(tag), Some(object)) = (tag, entry.as_object_mut()) {
                object.insert("annotations".to_owned(), json!({TAG: tag}));
            }
            entry
        };
        let manifests: Vec<Value> = written.iter().map(entry).collect();
        let index = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests,
        });
        self.folder.put(&format!("images/{image}/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).await?;
        self.folder.put(&format!("images/{image}/index.json"), index.to_string()).await
    }
}

fn tag(entry: &Value) -> Option<&str> {
    entry.get("annotations")?.get(TAG)?.as_str()
}

fn digest(entry: &Value) -> Option<&str> {
    entry.get("digest")?.as_str()
}
