//! `PUT` of a manifest. The blobs and manifests that it names must be stored here. The stored
//! manifest then protects them from garbage collection.

use crate::manifest::Manifest;
use crate::name::{self, Reference};
use crate::records::{self, ManifestRecord, Referrer, TagRecord};
use crate::{MANIFEST_LIMIT, busy, failure, statements, untagged};
use packhouse_sdk::{
    Blob, Context, Digest, Expectation, Failure, Intent, Outcome, Params, ReadAt, Repository, Request,
    Response, Settings, Transaction, Version, VersionId,
};

/// Maximum number of tags in one request.
const MAX_TAGS: usize = 100;
/// Maximum number of layers that are listed for a version.
const MAX_LISTED_BLOBS: usize = 500;

pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    tags(request, &name::reference(params)?)?;
    let declared = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    if declared.is_some_and(|length| length > MANIFEST_LIMIT) {
        Err(failure::manifest_too_large())
    } else {
        Ok(Intent::publish().subject(image.as_str()).about_package(image).body(MANIFEST_LIMIT))
    }
}

pub(crate) fn put(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, image) = (cx.target()?, name::image(request, params)?);
    let reference = name::reference(params)?;
    let tags = tags(request, &reference)?;
    let body = request.planned_body()?;
    if body.size()? > MANIFEST_LIMIT {
        return Err(failure::manifest_too_large());
    }
    let digest = body.sha256()?;
    if matches!(&reference, Reference::Digest(expected) if *expected != digest) {
        return Err(failure::manifest("computed digest does not match reference"));
    }
    let bytes = body.read_all(MANIFEST_LIMIT)?;
    let manifest = Manifest::parse(&bytes, request.header("content-type"))?;
    let push = ManifestPush {
        repository,
        image: &image,
        digest: &digest,
        manifest: &manifest,
        bytes: &bytes,
        now: cx.now(),
    };
    let candidates = push.store(&body, &tags)?;
    if !Settings::of(repository)?.keep_untagged {
        untagged::remove_unreferenced(repository, &image, candidates)?;
    }
    Ok(answer(request, &push, &reference, &tags))
}

/// The tag in the path, or the tags in the query of a push by digest (`?tag=a&tag=b`).
fn tags(request: &Request, reference: &Reference) -> Result<Vec<String>, Failure> {
    let mut tags: Vec<String> = match reference {
        Reference::Tag(tag) => vec![tag.clone()],
        Reference::Digest(_) => {
            let named = request.query_pairs().iter().filter(|(name, _)| name == "tag");
            named.map(|(_, tag)| name::tag(tag)).collect::<Result<_, _>>()?
        }
    };
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        Err(Failure::new(414, "UNSUPPORTED", format!("at most {MAX_TAGS} tags at a time")))
    } else {
        Ok(tags)
    }
}

fn answer(request: &Request, push: &ManifestPush, reference: &Reference, tags: &[String]) -> Response {
    let path = format!("manifests/{}", push.digest);
    let mut answer = Response::created()
        .header("location", name::location(request, push.image, &path))
        .header("docker-content-digest", push.digest.as_str());
    if let Some(subject) = &push.manifest.subject {
        answer = answer.header("oci-subject", subject.as_str());
    }
    match reference {
        Reference::Digest(_) if !tags.is_empty() => answer.header("oci-tag", tags.join(", ")),
        _ => answer,
    }
}

/// The push of a manifest.
struct ManifestPush<'a> {
    repository: &'a Repository,
    image: &'a str,
    digest: &'a Digest,
    manifest: &'a Manifest,
    /// The bytes of the manifest.
    bytes: &'a [u8],
    now: u64,
}

impl ManifestPush<'_> {
    /// Stores the manifest under these tags. Returns the manifests that had these tags before.
    fn store(&self, body: &Blob, tags: &[String]) -> Result<Vec<Digest>, Failure> {
        self.refuse_lost_blobs()?;
        let own = self.repository.keep(body)?;
        let mut blobs = vec![own];
        blobs.extend(self.manifest.blobs.iter().chain(&self.manifest.children).cloned());
        for digest in &self.manifest.foreign {
            if self.repository.blob(digest)?.is_some() {
                blobs.push(digest.clone());
            }
        }
        blobs.sort_unstable();
        blobs.dedup();
        let size = body.size()?;
        let stored = self.repository.update(busy, |change| {
            match change.previous() {
                Some(Outcome::UnknownBlobs(unknown)) => return Err(self.missing(unknown)?),
                // A part of the index is not a manifest of this image, or was removed meanwhile.
                Some(Outcome::Stale(key)) if key.starts_with("m/") => return Err(self.missing(&[])?),
                _ => {}
            }
            self.put_manifest(change, size, &blobs)?;
            let candidates = self.put_tags(change, size, tags)?;
            let subject = self.manifest.subject.as_ref();
            let pushed = statements::PushedManifest { digest: self.digest, bytes: self.bytes, subject, tags };
            statements::attest(self.repository, change, self.image, pushed)?;
            Ok(candidates)
        })?;
        Ok(stored.value)
    }

    /// Refuses a manifest that names stored bytes which can no longer be read. After this error,
    /// clients send the bytes again.
    fn refuse_lost_blobs(&self) -> Result<(), Failure> {
        let mut lost = Vec::new();
        for digest in self.manifest.blobs.iter().chain(&self.manifest.children) {
            if self.repository.blob(digest)?.is_none() {
                lost.push(digest.clone());
            }
        }
        if lost.is_empty() { Ok(()) } else { Err(self.missing(&lost)?) }
    }

    fn put_manifest(&self, change: &mut Transaction, size: u64, blobs: &[Digest]) -> Result<(), Failure> {
        let Self { image, digest, manifest, .. } = *self;
        for child in &manifest.children {
            change.require(&records::manifest(image, child), Expectation::Present);
            change.put(&records::part(image, child, digest), b"", Expectation::Anything, &[]);
        }
        let record = ManifestRecord {
            media_type: manifest.media_type.clone(),
            size,
            time: self.now,
            content: manifest.sizes.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size)),
            children: manifest.children.clone(),
            subject: manifest.subject.clone(),
        };
        change.put_json(&records::manifest(image, digest), &record, Expectation::Anything, blobs)?;
        change.put(&records::touched(image), b"", Expectation::Anything, &[]);
        if let Some(subject) = &manifest.subject {
            let referrer = Referrer {
                media_type: manifest.media_type.clone(),
                digest: digest.clone(),
                size,
                artifact_type: manifest.artifact_type.clone(),
                annotations: manifest.annotations.clone(),
            };
            let key = records::referrer(image, subject, digest);
            change.put_json(&key, &referrer, Expectation::Anything, &[])?;
        }
        Ok(())
    }

    fn put_tags(&self, change: &mut Transaction, size: u64, tags: &[String]) -> Result<Vec<Digest>, Failure> {
        let Self { image, digest, .. } = *self;
        let mut candidates = Vec::new();
        for tag in tags {
            let key = records::tag(image, tag);
            let before = self.repository.get_json::<TagRecord>(&key)?;
            let expect = Expectation::unchanged(before.as_ref());
            let record = TagRecord { digest: digest.clone(), time: self.now };
            change.put_json(&key, &record, expect, &[])?;
            change.put(&records::tagged(image, digest, tag), b"", Expectation::Anything, &[]);
            if let Some(before) = before.map(|entry| entry.value.digest).filter(|before| before != digest) {
                change.remove(&records::tagged(image, &before, tag), Expectation::Anything);
                candidates.push(before);
            }
            self.list_version(change, size, tag);
        }
        Ok(candidates)
    }

    /// Lists the tag as a version of the image. Replaces the previous listing completely.
    fn list_version(&self, change: &mut Transaction, size: u64, tag: &str) {
        let Self { image, digest, manifest, .. } = *self;
        let path = format!("{image}/manifests/{tag}");
        let mut version = Version::new(image, tag)
            .file(path, digest.clone(), size)
            .property("digest", digest.as_str())
            .property("media_type", &manifest.media_type);
        if let Some(license) = manifest.annotations.get("org.opencontainers.image.licenses") {
            let short = license.get(..license.floor_char_boundary(512)).unwrap_or_default();
            version = version.property("license", short);
        }
        if let Some(kind) = &manifest.artifact_type {
            version = version.property("artifact_type", kind);
        }
        for (blob, size) in manifest.sizes.iter().take(MAX_LISTED_BLOBS) {
            version = version.file(format!("{image}/blobs/{blob}"), blob.clone(), *size);
        }
        change.hide(&VersionId::new(image, tag));
        change.show(&version);
    }

    /// 400 with each missing digest once: blobs, and parts of an index that are not manifests of
    /// this image.
    fn missing(&self, unknown: &[Digest]) -> Result<Failure, Failure> {
        let mut missing = unknown.to_vec();
        for child in &self.manifest.children {
            if self.repository.get(&records::manifest(self.image, child))?.is_none() {
                missing.push(child.clone());
            }
        }
        if unknown.is_empty() {
            for blob in &self.manifest.blobs {
                if self.repository.blob(blob)?.is_none() {
                    missing.push(blob.clone());
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(if missing.is_empty() { busy() } else { failure::missing(&missing) })
    }
}
