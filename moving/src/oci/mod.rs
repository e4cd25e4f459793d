//! Images and artifacts: manifests with their blobs, indexes with their platforms, referrers such
//! as signatures, and tags. They are moved between registries and OCI image layouts.

mod layout;
mod manifest;
mod registry;

use std::collections::HashSet;
use std::sync::Arc;

use futures::stream;
use jiff::Timestamp;

use crate::error::MoveError;
use crate::origin::Origin;
use crate::report::{MoveOutcome, ReportLine};
use crate::server::{ListedVersion, Server};
use crate::target::{MoveRun, MoveTarget, Parcel};

use manifest::{Descriptor, Manifest, stated};
use registry::RegistryBlob;

pub(crate) use layout::Layout;
pub(crate) use registry::Registry;

/// Maximum depth of nested indexes and referrers.
const MAX_DEPTH: usize = 8;

/// Source of images.
#[derive(Clone, Debug)]
pub(crate) enum ImageSource {
    Registry(Arc<Registry>),
    /// An export that `packhouse export` wrote.
    Layout(Layout),
}

/// Digests of an image's manifests that this run has handled.
type VisitedDigests = HashSet<String>;

/// Transfer of one image.
struct Image<'a> {
    run: &'a MoveRun,
    source: &'a ImageSource,
    name: &'a str,
    to: ImageTarget,
    /// Tags with their times, if the source is a Packhouse server or an export.
    listed_versions: Vec<ListedVersion>,
}

enum ImageTarget {
    Registry(Arc<Registry>),
    Layout(Layout),
}

/// Moves the images that the run selects. Without a selection, moves the images in `names`, or all
/// images of the registry. `version_source` knows the times of tags.
pub(crate) async fn run(
    run: &MoveRun,
    source: ImageSource,
    names: Option<Vec<String>>,
    version_source: Option<Arc<Server>>,
) -> Result<(), MoveError> {
    let names = match (names, run.only.is_empty()) {
        (_, false) => run.only.clone(),
        (Some(names), true) => names,
        (None, true) => source.names().await?,
    };
    run.each(stream::iter(&names), |name| async {
        let moved = async {
            let listed_versions = match (&version_source, &source) {
                (Some(server), _) => server.versions(name).await?,
                (None, ImageSource::Layout(layout)) => layout.listed_versions(name),
                (None, ImageSource::Registry(_)) => Vec::new(),
            };
            let to = match &run.target {
                MoveTarget::Server(server) => ImageTarget::Registry(Arc::new(Registry::of_server(server)?)),
                MoveTarget::Folder(folder) => ImageTarget::Layout(Layout::in_folder(folder)),
            };
            Image { run, source: &source, name, to, listed_versions }.carry().await
        };
        match moved.await {
            Ok(()) => Ok(()),
            fault => run.ended(ReportLine::of("package", name), fault.map(|()| MoveOutcome::Present)),
        }
    })
    .await
}

impl ImageSource {
    async fn names(&self) -> Result<Vec<String>, MoveError> {
        match self {
            ImageSource::Registry(registry) => registry.catalog().await,
            ImageSource::Layout(layout) => layout.names().await,
        }
    }

    async fn tags(&self, image: &str) -> Result<Vec<String>, MoveError> {
        match self {
            ImageSource::Registry(registry) => registry.tags(image).await,
            ImageSource::Layout(layout) => layout.tags(image).await,
        }
    }

    async fn manifest(&self, image: &str, reference: &str) -> Result<Manifest, MoveError> {
        match self {
            ImageSource::Registry(registry) => registry.manifest(image, reference).await,
            ImageSource::Layout(layout) => layout.manifest(image, reference).await,
        }
    }

    async fn referrers(&self, image: &str, digest: &str) -> Result<Vec<String>, MoveError> {
        match self {
            ImageSource::Registry(registry) => registry.referrers(image, digest).await,
            ImageSource::Layout(layout) => layout.referrers(image, digest).await,
        }
    }

    fn blob(&self, image: &str, digest: &str) -> Result<Origin, MoveError> {
        match self {
            ImageSource::Registry(registry) => {
                Ok(Origin::Other(Arc::new(RegistryBlob::of(registry, image, digest))))
            }
            ImageSource::Layout(layout) => Ok(Origin::File(layout.blob(image, digest)?)),
        }
    }
}

impl Image<'_> {
    async fn carry(&self) -> Result<(), MoveError> {
        let mut visited = VisitedDigests::new();
        let mut written = Vec::new();
        // Signatures that have their own tags come after the images that they sign, as when a
        // client pushes them.
        let mut tags = self.source.tags(self.name).await?;
        tags.sort_by_key(|tag| (tag.starts_with("sha256-"), tag.clone()));
        for tag in &tags {
            let line =
                ReportLine { path: Some(tag.clone()), ..ReportLine::of("tag", self.name).version(tag) };
            match self.tag(tag, &mut visited, &mut written).await {
                Ok(MoveOutcome::Present) => {}
                done => self.run.ended(line, done)?,
            }
        }
        match &self.to {
            ImageTarget::Layout(layout) => layout.index(self.name, &written).await,
            ImageTarget::Registry(_) => Ok(()),
        }
    }

    /// The path of an item in the report. For a folder, it is the path of the file.
    fn path(&self, kind: &str, digest: &str) -> Result<String, MoveError> {
        match &self.to {
            ImageTarget::Layout(_) => Layout::path(self.name, digest),
            ImageTarget::Registry(_) => Ok(format!("{}/{kind}/{digest}", self.name)),
        }
    }

    fn published(&self, tag: &str, manifest: &Manifest) -> Option<Timestamp> {
        let listed = self.listed_versions.iter().find(|listed| listed.version == tag);
        listed.and_then(|listed| listed.published).or(manifest.modified).filter(|_| self.run.times)
    }

    async fn tag(
        &self,
        tag: &str,
        visited: &mut VisitedDigests,
        written: &mut Vec<(Manifest, Option<String>)>,
    ) -> Result<MoveOutcome, MoveError> {
        let manifest = self.source.manifest(self.name, tag).await?;
        let published = self.published(tag, &manifest);
        self.manifest(&manifest, published, visited, written, 0).await?;
        written.push((manifest.clone(), Some(tag.to_owned())));
        match &self.to {
            ImageTarget::Layout(_) => {
                let path = self.path("manifests", &manifest.digest)?;
                let mut line = ReportLine::file(self.name, &path).version(tag).published(published);
                line.sha256 = manifest.digest.strip_prefix("sha256:").map(str::to_owned);
                line.size = Some(manifest.bytes.len() as u64);
                self.run.report.list(&line);
                Ok(MoveOutcome::Present)
            }
            ImageTarget::Registry(registry) => {
                if registry.digest(self.name, tag).await?.as_deref() == Some(&manifest.digest) {
                    return Ok(MoveOutcome::Present);
                }
                registry.put(self.name, tag, &manifest, self.run.published_at(published)).await?;
                Ok(MoveOutcome::Moved)
            }
        }
    }

    /// Moves a manifest, the content that it names, and its referrers.
    async fn manifest(
        &self,
        manifest: &Manifest,
        published: Option<Timestamp>,
        visited: &mut VisitedDigests,
        written: &mut Vec<(Manifest, Option<String>)>,
        depth: usize,
    ) -> Result<(), MoveError> {
        if depth > MAX_DEPTH {
            return Err(MoveError::Refused("indexes are nested too deeply".to_owned()));
        }
        if !visited.insert(manifest.digest.clone()) {
            return Ok(());
        }
        for child in manifest.named(&["manifests"]) {
            let child = self.source.manifest(self.name, &child.digest).await?;
            Box::pin(self.manifest(&child, published, visited, written, depth + 1)).await?;
        }
        let mut line =
            ReportLine::file(self.name, &self.path("manifests", &manifest.digest)?).published(published);
        line.sha256 = manifest.digest.strip_prefix("sha256:").map(str::to_owned);
        line.size = Some(manifest.bytes.len() as u64);
        let moved = self.put(manifest, published).await?;
        self.run.ended(line, Ok(moved))?;
        for digest in self.source.referrers(self.name, &manifest.digest).await? {
            let referrer = self.source.manifest(self.name, &digest).await?;
            Box::pin(self.manifest(
                &referrer,
                published.max(referrer.modified.filter(|_| self.run.times)),
                visited,
                written,
                depth + 1,
            ))
            .await?;
            written.push((referrer, None));
        }
        Ok(())
    }

    async fn put(&self, manifest: &Manifest, published: Option<Timestamp>) -> Result<MoveOutcome, MoveError> {
        let there = match &self.to {
            ImageTarget::Registry(registry) => registry.digest(self.name, &manifest.digest).await?.is_some(),
            ImageTarget::Layout(_) => false,
        };
        if there {
            return Ok(MoveOutcome::Present);
        }
        let mut blobs = manifest.named(&["config", "layers", "blobs", "fsLayers"]);
        blobs.sort_by(|one, other| one.digest.cmp(&other.digest));
        blobs.dedup_by(|one, other| one.digest == other.digest);
        for blob in &blobs {
            self.blob(blob, published).await?;
        }
        match &self.to {
            ImageTarget::Registry(registry) => {
                let at = self.run.published_at(published);
                registry.put(self.name, &manifest.digest, manifest, at).await?;
                Ok(MoveOutcome::Moved)
            }
            ImageTarget::Layout(layout) => layout.put(self.name, manifest).await,
        }
    }

    async fn blob(&self, blob: &Descriptor, published: Option<Timestamp>) -> Result<(), MoveError> {
        let Descriptor { digest, size, foreign } = blob;
        let mut line = ReportLine::file(self.name, &self.path("blobs", digest)?);
        line.sha256 = digest.strip_prefix("sha256:").map(str::to_owned);
        line.size = *size;
        let parcel = Parcel {
            line: line.clone(),
            origin: self.source.blob(self.name, digest)?,
            stated: stated(digest)?,
            size: *size,
            published,
        };
        let moved = match &self.to {
            ImageTarget::Registry(registry) => registry.push(self.run, self.name, digest, &parcel).await,
            ImageTarget::Layout(layout) => layout.take(self.name, digest, &parcel).await,
        };
        match moved {
            Err(MoveError::Missing(_)) if *foreign => {
                let why = "the source does not store this layer, but states another address for it";
                self.run.report.add(line.ended(MoveOutcome::Skipped, why));
                Ok(())
            }
            // The error also stops the move of the manifest, which needs this blob.
            Err(fault) => {
                self.run.ended(line, Err(clone(&fault)))?;
                Err(fault)
            }
            Ok(outcome) => self.run.ended(line, Ok(outcome)),
        }
    }
}

fn clone(fault: &MoveError) -> MoveError {
    match fault {
        MoveError::Missing(text) | MoveError::Refused(text) => MoveError::Refused(text.clone()),
        MoveError::Unavailable(text, wait) => MoveError::Unavailable(text.clone(), *wait),
        MoveError::Credential(text) => MoveError::Credential(text.clone()),
    }
}
