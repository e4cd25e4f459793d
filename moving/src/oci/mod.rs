//! Images and artifacts: manifests with all that they name, indexes with their platforms, referrers such as signatures, and tags; from a
//! registry or an OCI image layout to the other.

mod layout;
mod manifest;
mod registry;

use std::collections::HashSet;
use std::sync::Arc;

use futures::stream;
use jiff::Timestamp;

use crate::fault::Fault;
use crate::origin::Origin;
use crate::report::{Line, Outcome};
use crate::server::{Server, ShownVersion};
use crate::target::{Parcel, Run, Target};

use manifest::{Manifest, Named, stated};
use registry::Blob;

pub(crate) use layout::Layout;
pub(crate) use registry::Registry;

/// Indexes within one another.
const DEEPEST: usize = 8;

/// Where images are read from.
#[derive(Clone, Debug)]
pub(crate) enum Images {
    /// A registry.
    Registry(Arc<Registry>),
    /// What `packhouse export` wrote.
    Layout(Layout),
}

/// Digests of an image's manifests that were seen to in this run.
type Seen = HashSet<String>;

/// What is the same for all that is moved of one image.
struct Image<'a> {
    run: &'a Run,
    source: &'a Images,
    name: &'a str,
    to: To,
    /// Times and names of tags, where the source is a server of ours.
    shown: Vec<ShownVersion>,
}

enum To {
    Registry(Arc<Registry>),
    Layout(Layout),
}

/// Moves the images of a registry; all where none are named. `shown_by` tells the times of tags.
pub(crate) async fn run(
    run: &Run,
    source: Images,
    names: Option<Vec<String>>,
    shown_by: Option<Arc<Server>>,
) -> Result<(), Fault> {
    let names = match (names, run.only.is_empty()) {
        (_, false) => run.only.clone(),
        (Some(names), true) => names,
        (None, true) => source.names().await?,
    };
    run.each(stream::iter(&names), |name| async {
        let moved = async {
            let shown = match (&shown_by, &source) {
                (Some(server), _) => server.versions(name).await?,
                (None, Images::Layout(layout)) => layout.shown(name),
                (None, Images::Registry(_)) => Vec::new(),
            };
            let to = match &run.target {
                Target::Server(server) => To::Registry(Arc::new(Registry::of_server(server)?)),
                Target::Folder(folder) => To::Layout(Layout::in_folder(folder)),
            };
            Image { run, source: &source, name, to, shown }.carry().await
        };
        match moved.await {
            Ok(()) => Ok(()),
            fault => run.ended(Line::of("package", name), fault.map(|()| Outcome::Present)),
        }
    })
    .await
}

impl Images {
    async fn names(&self) -> Result<Vec<String>, Fault> {
        match self {
            Images::Registry(registry) => registry.catalog().await,
            Images::Layout(layout) => layout.names().await,
        }
    }

    async fn tags(&self, image: &str) -> Result<Vec<String>, Fault> {
        match self {
            Images::Registry(registry) => registry.tags(image).await,
            Images::Layout(layout) => layout.tags(image).await,
        }
    }

    async fn manifest(&self, image: &str, reference: &str) -> Result<Manifest, Fault> {
        match self {
            Images::Registry(registry) => registry.manifest(image, reference).await,
            Images::Layout(layout) => layout.manifest(image, reference).await,
        }
    }

    async fn referrers(&self, image: &str, digest: &str) -> Result<Vec<String>, Fault> {
        match self {
            Images::Registry(registry) => registry.referrers(image, digest).await,
            Images::Layout(layout) => layout.referrers(image, digest).await,
        }
    }

    fn blob(&self, image: &str, digest: &str) -> Result<Origin, Fault> {
        match self {
            Images::Registry(registry) => Ok(Origin::Other(Arc::new(Blob::of(registry, image, digest)))),
            Images::Layout(layout) => Ok(Origin::File(layout.blob(image, digest)?)),
        }
    }
}

impl Image<'_> {
    async fn carry(&self) -> Result<(), Fault> {
        let mut seen = Seen::new();
        let mut kept = Vec::new();
        // Signatures under tags of their own come after what they sign, as a client would push them.
        let mut tags = self.source.tags(self.name).await?;
        tags.sort_by_key(|tag| (tag.starts_with("sha256-"), tag.clone()));
        for tag in &tags {
            let line = Line { path: Some(tag.clone()), ..Line::of("tag", self.name).version(tag) };
            match self.tag(tag, &mut seen, &mut kept).await {
                Ok(Outcome::Present) => {}
                done => self.run.ended(line, done)?,
            }
        }
        match &self.to {
            To::Layout(layout) => layout.index(self.name, &kept).await,
            To::Registry(_) => Ok(()),
        }
    }

    /// As the report names it: in a folder the file.
    fn path(&self, kind: &str, digest: &str) -> Result<String, Fault> {
        match &self.to {
            To::Layout(_) => Layout::path(self.name, digest),
            To::Registry(_) => Ok(format!("{}/{kind}/{digest}", self.name)),
        }
    }

    fn published(&self, tag: &str, manifest: &Manifest) -> Option<Timestamp> {
        let shown = self.shown.iter().find(|shown| shown.version == tag);
        shown.and_then(|shown| shown.published).or(manifest.modified).filter(|_| self.run.times)
    }

    async fn tag(
        &self,
        tag: &str,
        seen: &mut Seen,
        kept: &mut Vec<(Manifest, Option<String>)>,
    ) -> Result<Outcome, Fault> {
        let manifest = self.source.manifest(self.name, tag).await?;
        let published = self.published(tag, &manifest);
        self.manifest(&manifest, published, seen, kept, 0).await?;
        kept.push((manifest.clone(), Some(tag.to_owned())));
        match &self.to {
            To::Layout(_) => {
                let path = self.path("manifests", &manifest.digest)?;
                let mut line = Line::file(self.name, &path).version(tag).published(published);
                line.sha256 = manifest.digest.strip_prefix("sha256:").map(str::to_owned);
                line.size = Some(manifest.bytes.len() as u64);
                self.run.report.list(&line);
                Ok(Outcome::Present)
            }
            To::Registry(registry) => {
                if registry.digest(self.name, tag).await?.as_deref() == Some(&manifest.digest) {
                    return Ok(Outcome::Present);
                }
                registry.put(self.name, tag, &manifest, self.run.published_at(published)).await?;
                Ok(Outcome::Moved)
            }
        }
    }

    /// A manifest with what it names, and with what refers to it.
    async fn manifest(
        &self,
        manifest: &Manifest,
        published: Option<Timestamp>,
        seen: &mut Seen,
        kept: &mut Vec<(Manifest, Option<String>)>,
        depth: usize,
    ) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(Fault::Refused("indexes lie too deep within one another".to_owned()));
        }
        if !seen.insert(manifest.digest.clone()) {
            return Ok(());
        }
        for child in manifest.named(&["manifests"]) {
            let child = self.source.manifest(self.name, &child.digest).await?;
            Box::pin(self.manifest(&child, published, seen, kept, depth + 1)).await?;
        }
        let mut line = Line::file(self.name, &self.path("manifests", &manifest.digest)?).published(published);
        line.sha256 = manifest.digest.strip_prefix("sha256:").map(str::to_owned);
        line.size = Some(manifest.bytes.len() as u64);
        let moved = self.put(manifest, published).await?;
        self.run.ended(line, Ok(moved))?;
        for digest in self.source.referrers(self.name, &manifest.digest).await? {
            let referrer = self.source.manifest(self.name, &digest).await?;
            Box::pin(self.manifest(
                &referrer,
                published.max(referrer.modified.filter(|_| self.run.times)),
                seen,
                kept,
                depth + 1,
            ))
            .await?;
            kept.push((referrer, None));
        }
        Ok(())
    }

    async fn put(&self, manifest: &Manifest, published: Option<Timestamp>) -> Result<Outcome, Fault> {
        let there = match &self.to {
            To::Registry(registry) => registry.digest(self.name, &manifest.digest).await?.is_some(),
            To::Layout(_) => false,
        };
        if there {
            return Ok(Outcome::Present);
        }
        let mut blobs = manifest.named(&["config", "layers", "blobs", "fsLayers"]);
        blobs.sort_by(|one, other| one.digest.cmp(&other.digest));
        blobs.dedup_by(|one, other| one.digest == other.digest);
        for blob in &blobs {
            self.blob(blob, published).await?;
        }
        match &self.to {
            To::Registry(registry) => {
                let at = self.run.published_at(published);
                registry.put(self.name, &manifest.digest, manifest, at).await?;
                Ok(Outcome::Moved)
            }
            To::Layout(layout) => layout.put(self.name, manifest).await,
        }
    }

    async fn blob(&self, blob: &Named, published: Option<Timestamp>) -> Result<(), Fault> {
        let Named { digest, size, foreign } = blob;
        let mut line = Line::file(self.name, &self.path("blobs", digest)?);
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
            To::Registry(registry) => registry.push(self.run, self.name, digest, &parcel).await,
            To::Layout(layout) => layout.take(self.name, digest, &parcel).await,
        };
        match moved {
            Err(Fault::Missing(_)) if *foreign => {
                let why = "the source does not hold this layer: it names an address elsewhere for it";
                self.run.report.add(line.ended(Outcome::Skipped, why));
                Ok(())
            }
            // Without it its manifest is not moved either.
            Err(fault) => {
                self.run.ended(line, Err(clone(&fault)))?;
                Err(fault)
            }
            Ok(outcome) => self.run.ended(line, Ok(outcome)),
        }
    }
}

fn clone(fault: &Fault) -> Fault {
    match fault {
        Fault::Missing(text) | Fault::Refused(text) => Fault::Refused(text.clone()),
        Fault::Away(text, wait) => Fault::Away(text.clone(), *wait),
        Fault::Credential(text) => Fault::Credential(text.clone()),
    }
}
