//! `PUT` of a package: a new version, or a change of an existing package.

use crate::address::PackageAddress;
use crate::attestation::{self, Attestations};
use crate::difference::Difference;
use crate::dist::{Tarball, Unpacked};
use crate::document::{AttachmentData, DOCUMENT_LIMIT, RequestDocument, check_tag, invalid};
use crate::manifest::VersionManifest;
use crate::name::PackageName;
use crate::readme;
use crate::records::{self, PackageRecord, VersionMetadata, VersionRecord};
use crate::revision::answer;
use crate::settings::{LEGACY_NAMES, allows_legacy_names};
use crate::tar::Sbom;
use crate::{BODY_LIMIT, FILE_LIMIT, busy, change};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, Repository, Request,
    Response, Settings, Statement, Transaction, VersionDocument, VersionId,
};
use serde_json::{Value, json};

/// Maximum number of characters of a value in a log line.
const LOGGED_CHARS: usize = 100;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = PackageAddress::parse(&request.path)?;
    match &address {
        PackageAddress::Package(name) => {
            Ok(Intent::publish().subject(name.as_str()).about_package(name.as_str()).body(BODY_LIMIT))
        }
        PackageAddress::AtRevision(name, _) => {
            Ok(Intent::delete().subject(name.as_str()).about_package(name.as_str()).body(DOCUMENT_LIMIT))
        }
        _ => Err(Failure::method_not_allowed("DELETE, GET, HEAD")),
    }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    match PackageAddress::parse(&request.path)? {
        PackageAddress::Package(name) => {
            let document = RequestDocument::read(&body, &name)?;
            if document.publishes() {
                publish(cx, request, &name, document, &body)
            } else {
                change::put(cx, &name, document)
            }
        }
        PackageAddress::AtRevision(name, revision) => {
            change::at_revision(cx, &name, &revision, RequestDocument::read(&body, &name)?)
        }
        _ => Err(Failure::internal("a PUT that the plan refuses")),
    }
}

/// A version that is ready to be committed.
struct PendingRelease<'a> {
    name: &'a PackageName,
    number: String,
    version: VersionRecord,
    deprecated: Option<String>,
    attestations: Option<Attestations>,
    /// SHA-512 of the tarball.
    sha512: Digest,
    readme: readme::ReadmeRecord,
    /// Bills of materials from the archive, each with its digest.
    sboms: Vec<(Sbom, Digest)>,
    /// Tags that will name this version.
    tags: Vec<String>,
    /// The publisher.
    person: Option<Value>,
}

fn publish(
    cx: &Context,
    request: &Request,
    name: &PackageName,
    mut document: RequestDocument,
    body: &Blob,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    if let Some(objection) = name.objection()
        && !allows_legacy_names(repository)?
    {
        return Err(invalid(&format!(
            "{name} cannot be published, because {objection}; npm reserves such names for existing packages. To publish one \
             here, enable the repository's setting `{LEGACY_NAMES}`"
        )));
    }
    let (number, members) = document.take_version()?;
    let mut manifest = VersionManifest::check(name, &number, members)?;
    refuse_existing(repository, &settings, name, &manifest.number)?;
    let publish = PublishRequest { name, number: &number, manifest: &manifest, document: &document, body };
    let (tarball, archive) = publish.tarball(settings.file_limit(FILE_LIMIT))?;
    for difference in manifest.follow(name, &archive) {
        log(cx, name, &number, &difference);
    }
    let attestations = attestation::read(&document, &tarball)?;
    let person = request.caller().map(|caller| person(&caller));
    if let Some(person) = &person {
        manifest.published_by(person.clone());
    }
    let tags = tags(&document, &number)?;
    let digest = repository.keep(&tarball.blob)?;
    let sha512 = Digest::new("sha512", &tarball.sha512)?;
    let keep = |(sbom, part): (Sbom, Blob)| Ok((sbom, repository.keep(&part)?));
    let sboms = archive.sboms.into_iter().map(keep).collect::<Result<_, Failure>>()?;
    let facts = VersionMetadata {
        time: cx.now(),
        sha256: digest,
        size: tarball.size,
        summary: manifest.summary(),
        keywords: manifest.keywords(),
        license: manifest.license(),
        provenance: attestations.as_ref().and_then(|attestations| attestations.provenance.clone()),
    };
    let dist = tarball.dist(cx, name, &manifest);
    let readme = manifest.readme.take().or_else(|| document.readme()).unwrap_or_default();
    let readme = readme.store(cx, repository)?;
    let (abbreviated, full) = manifest.forms();
    commit(
        repository,
        PendingRelease {
            name,
            version: VersionRecord { facts, dist, abbreviated, full },
            deprecated: manifest.deprecated,
            number: manifest.number,
            attestations,
            sha512,
            readme,
            sboms,
            tags,
            person,
        },
        settings.republish_deleted,
    )
}

/// Logs a difference between the manifest and the archive.
fn log(cx: &Context, name: &PackageName, number: &str, difference: &Difference) {
    let cut = |text: &Option<String>| {
        text.as_deref().unwrap_or("nothing").chars().take(LOGGED_CHARS).collect::<String>()
    };
    let (version, published, own) =
        (format!("{name}@{number}"), cut(&difference.published), cut(&difference.own));
    let fields =
        [("version", &version), ("member", &difference.member), ("manifest", &published), ("archive", &own)];
    let fields = fields.map(|(name, value)| (name, value.as_str()));
    cx.log().info("manifest differs from its archive; the archive's value is served", &fields);
}

/// A publish request.
struct PublishRequest<'a> {
    name: &'a PackageName,
    /// The version number in the document.
    number: &'a str,
    manifest: &'a VersionManifest,
    document: &'a RequestDocument,
    body: &'a Blob,
}

impl PublishRequest<'_> {
    /// Decodes the only tarball among the attachments, of at most `limit` bytes, and reads its
    /// archive. Checks both the tarball and the archive against the document.
    fn tarball(&self, limit: u64) -> Result<(Tarball, Unpacked), Failure> {
        let Self { name, number, manifest, document, body } = *self;
        let mut tarballs = document.attachments().filter(|(key, attachment, _)| !attachment.is_bundle(key));
        let (Some((key, attachment, data)), None) = (tarballs.next(), tarballs.next()) else {
            return Err(invalid("a publish must contain one tarball in `_attachments`"));
        };
        let file = key.rsplit_once('/').map_or(key, |(_, file)| file);
        let scope = key.rsplit_once('/').and_then(|(scope, _)| scope.strip_prefix('@'));
        let expected = [name.file(number), name.file(&manifest.number)];
        if !expected.iter().any(|expected| expected == file)
            || scope.is_some_and(|scope| name.scope() != Some(scope))
        {
            return Err(invalid(&format!(
                "its attachment is called {key}, but the tarball of {name}@{number} must be called {}",
                expected.first().map_or("", String::as_str)
            )));
        }
        let AttachmentData::Base64(span) = data else {
            return Err(invalid("the attachment's data is not base64"));
        };
        let tarball = Tarball::decode(body, span, attachment, limit)?;
        tarball.check_digests(&manifest.dist)?;
        let archive = tarball.contents(name, &manifest.number)?;
        Ok((tarball, archive))
    }
}

/// Returns the tags that the document gives to the version, or `latest` if it gives none.
fn tags(document: &RequestDocument, number: &str) -> Result<Vec<String>, Failure> {
    let all = document.tags.iter().flat_map(|tags| &tags.0);
    let tags: Vec<String> =
        all.filter(|(_, tagged)| tagged.as_deref() == Some(number)).map(|(tag, _)| tag.clone()).collect();
    for tag in &tags {
        check_tag(tag)?;
    }
    Ok(if tags.is_empty() { vec!["latest".to_owned()] } else { tags })
}

/// Refuses an existing or removed version before the tarball is decoded. The commit checks again,
/// because another request may publish or remove the version in the meantime.
fn refuse_existing(
    repository: &Repository,
    settings: &Settings,
    name: &PackageName,
    number: &str,
) -> Result<(), Failure> {
    if repository.get(&records::version(name, number))?.is_some() {
        return Err(exists(name, number));
    }
    if repository.get(&records::removed(name, number))?.is_some() && !settings.republish_deleted {
        return Err(was_removed(name, number));
    }
    Ok(())
}

/// Commits the version, and retries after concurrent changes of the package.
fn commit(
    repository: &Repository,
    release: PendingRelease<'_>,
    republish: bool,
) -> Result<Response, Failure> {
    let (key, removed) =
        (records::version(release.name, &release.number), records::removed(release.name, &release.number));
    let applied = repository.update(busy, |change| {
        match change.previous() {
            Some(Outcome::Stale(stale)) if *stale == key => {
                return Err(exists(release.name, &release.number));
            }
            Some(Outcome::Stale(stale)) if *stale == removed => {
                return Err(was_removed(release.name, &release.number));
            }
            Some(Outcome::UnknownBlobs(_)) => {
                return Err(Failure::internal("the host does not know the stored tarball"));
            }
            _ => {}
        }
        let package = PackageRecord::find(repository, release.name)?;
        // Unless removed numbers may be used again, the commit also requires that this number was
        // never removed.
        if republish {
            change.remove(&removed, Expectation::Anything);
        } else {
            change.require(&removed, Expectation::Absent);
        }
        release.put(change, &key, package)
    })?;
    answer(release.name, applied.revision)
}

impl PendingRelease<'_> {
    /// Adds the records of the version and the package, and the data that the host publishes, to
    /// one commit.
    fn put(
        &self,
        change: &mut Transaction,
        key: &str,
        package: Option<Entry<PackageRecord>>,
    ) -> Result<(), Failure> {
        let Self { name, number, version, .. } = self;
        let facts = &version.facts;
        let sboms = self.sboms.iter().map(|(_, digest)| digest);
        let blobs: Vec<Digest> = std::iter::once(&facts.sha256).chain(sboms).cloned().collect();
        change.put(key, &version.write()?, Expectation::Absent, &blobs);
        let expect = Expectation::unchanged(package.as_ref());
        let package = self.package(package.map(|entry| entry.value));
        let readme = self.readme.blob.as_slice();
        change.put_json(&records::readme(name, number), &self.readme, Expectation::Anything, readme)?;
        change.put_json(&records::package(name), &package, expect, &[])?;
        if let Some(attestations) = &self.attestations {
            change.put(
                &records::attestations(name, number),
                &attestations.document,
                Expectation::Anything,
                &[],
            );
        }
        if let Some(text) = &self.deprecated {
            change.put(&records::deprecation(name, number), text.as_bytes(), Expectation::Anything, &[]);
        }
        let published = change::published(name, number, facts, self.deprecated.as_deref());
        change.show(&published.file(name.path(number), facts.sha256.clone(), facts.size));
        for (kind, bundle) in self.attestations.iter().flat_map(|attestations| &attestations.bundles) {
            let id = VersionId::new(name.as_str(), number);
            let statement = Statement::new(id, kind, self.sha512.clone(), bundle.clone());
            change.attest(&statement.of_file(name.path(number)).at(attestation::path(name, number)));
        }
        for (Sbom { title, media_type, size, .. }, digest) in &self.sboms {
            let (id, form) = (VersionId::new(name.as_str(), number), VersionDocument::form_of(media_type));
            let document =
                VersionDocument::new(id, form.unwrap_or_default(), *media_type, digest.clone(), *size);
            change.document(&document.of_file(name.path(number)).titled(title));
        }
        Ok(())
    }

    /// Returns the package record with the tags and the time of this version.
    fn package(&self, before: Option<PackageRecord>) -> PackageRecord {
        let time = self.version.facts.time;
        let mut package = before.unwrap_or_else(|| PackageRecord {
            created: time,
            maintainers: self.person.iter().cloned().collect(),
            ..PackageRecord::default()
        });
        package.modified = package.modified.max(time);
        for tag in &self.tags {
            package.tags.insert(tag.clone(), self.number.clone());
        }
        package.tags.entry("latest".to_owned()).or_insert_with(|| self.number.clone());
        package
    }
}

fn exists(name: &PackageName, number: &str) -> Failure {
    Failure::conflict(format!(
        "{name}@{number} is published already and cannot be replaced; publish a new version"
    ))
}

fn was_removed(name: &PackageName, number: &str) -> Failure {
    Failure::conflict(format!(
        "{name}@{number} was published and removed, and its number cannot be used again; publish a new version"
    ))
}

/// Returns the caller as a person in the format of `maintainers` and `_npmUser`.
fn person(caller: &str) -> Value {
    if caller.contains('@') { json!({"name": caller, "email": caller}) } else { json!({"name": caller}) }
}
