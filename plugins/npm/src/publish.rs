//! `PUT` of a package: a new version, or a change of what is there.

use crate::address::Address;
use crate::attestation::{self, Attestations};
use crate::difference::Difference;
use crate::dist::{Tarball, Unpacked};
use crate::document::{DOCUMENT_LIMIT, Data, Document, check_tag, invalid};
use crate::manifest::Manifest;
use crate::name::Name;
use crate::readme;
use crate::records::{self, Facts, Package, Version};
use crate::revision::answer;
use crate::settings::{LEGACY_NAMES, allows_legacy_names};
use crate::tar::Sbom;
use crate::{BODY_LIMIT, FILE_LIMIT, busy, change};
use packhouse_sdk::{
    Blob, Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, Repository, Request,
    Response, Settings, Statement, Transaction, VersionDocument, VersionId,
};
use serde_json::{Value, json};

/// Characters of a text that a line of the log repeats.
const SHOWN: usize = 100;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = Address::parse(&request.path)?;
    match &address {
        Address::Package(name) => {
            Ok(Intent::publish().subject(name.as_str()).about_package(name.as_str()).body(BODY_LIMIT))
        }
        Address::AtRevision(name, _) => {
            Ok(Intent::delete().subject(name.as_str()).about_package(name.as_str()).body(DOCUMENT_LIMIT))
        }
        _ => Err(Failure::method_not_allowed("DELETE, GET, HEAD")),
    }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    match Address::parse(&request.path)? {
        Address::Package(name) => {
            let document = Document::read(&body, &name)?;
            if document.publishes() {
                publish(cx, request, &name, document, &body)
            } else {
                change::put(cx, &name, document)
            }
        }
        Address::AtRevision(name, revision) => {
            change::at_revision(cx, &name, &revision, Document::read(&body, &name)?)
        }
        _ => Err(Failure::internal("a PUT that the plan refuses")),
    }
}

/// A version that is ready to be committed.
struct Release<'a> {
    name: &'a Name,
    number: String,
    version: Version,
    deprecated: Option<String>,
    attestations: Option<Attestations>,
    /// Of the tarball.
    sha512: Digest,
    readme: readme::Stored,
    /// Bills of materials that it brought along, each with its digest.
    sboms: Vec<(Sbom, Digest)>,
    /// Tags that are to name this version.
    tags: Vec<String>,
    /// Who publishes it.
    person: Option<Value>,
}

fn publish(
    cx: &Context,
    request: &Request,
    name: &Name,
    mut document: Document,
    body: &Blob,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    if let Some(objection) = name.objection()
        && !allows_legacy_names(repository)?
    {
        return Err(invalid(&format!(
            "{name} cannot be published, because {objection}; npm leaves such names to packages that have them already, and where one \
             is to be brought over, the repository's setting `{LEGACY_NAMES}` allows it"
        )));
    }
    let (number, members) = document.take_version()?;
    let mut manifest = Manifest::check(name, &number, members)?;
    refuse_existing(repository, &settings, name, &manifest.number)?;
    let publish = Publish { name, number: &number, manifest: &manifest, document: &document, body };
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
    let facts = Facts {
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
    let readme = readme.keep(cx, repository)?;
    let (abbreviated, full) = manifest.forms();
    commit(
        repository,
        Release {
            name,
            version: Version { facts, dist, abbreviated, full },
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

/// Tells of a manifest that says something else than the archive: what is served is what the archive says.
fn log(cx: &Context, name: &Name, number: &str, difference: &Difference) {
    let said =
        |text: &Option<String>| text.as_deref().unwrap_or("nothing").chars().take(SHOWN).collect::<String>();
    let (version, published, own) =
        (format!("{name}@{number}"), said(&difference.published), said(&difference.own));
    let fields =
        [("version", &version), ("member", &difference.member), ("manifest", &published), ("archive", &own)];
    let fields = fields.map(|(name, value)| (name, value.as_str()));
    cx.log().info("a manifest differs from its archive, which stands", &fields);
}

/// What came to be published.
struct Publish<'a> {
    name: &'a Name,
    /// As the document has it.
    number: &'a str,
    manifest: &'a Manifest,
    document: &'a Document,
    body: &'a Blob,
}

impl Publish<'_> {
    /// The one tarball among the attachments, of at most `limit` bytes, checked against all that is said of it; and what the archive
    /// in it says.
    fn tarball(&self, limit: u64) -> Result<(Tarball, Unpacked), Failure> {
        let Self { name, number, manifest, document, body } = *self;
        let mut tarballs = document.attachments().filter(|(key, attachment, _)| !attachment.is_bundle(key));
        let (Some((key, attachment, data)), None) = (tarballs.next(), tarballs.next()) else {
            return Err(invalid("a publish brings one tarball in `_attachments`"));
        };
        let file = key.rsplit_once('/').map_or(key, |(_, file)| file);
        let scope = key.rsplit_once('/').and_then(|(scope, _)| scope.strip_prefix('@'));
        let expected = [name.file(number), name.file(&manifest.number)];
        if !expected.iter().any(|expected| expected == file)
            || scope.is_some_and(|scope| name.scope() != Some(scope))
        {
            return Err(invalid(&format!(
                "its attachment is called {key}, but that of {name}@{number} is {}",
                expected.first().map_or("", String::as_str)
            )));
        }
        let Data::Base64(span) = data else {
            return Err(invalid("the attachment's data are not base64"));
        };
        let tarball = Tarball::decode(body, span, attachment, limit)?;
        tarball.check_digests(&manifest.dist)?;
        let archive = tarball.contents(name, &manifest.number)?;
        Ok((tarball, archive))
    }
}

/// The tags that name the version. Where a document names none it is the latest.
fn tags(document: &Document, number: &str) -> Result<Vec<String>, Failure> {
    let said = document.tags.iter().flat_map(|tags| &tags.0);
    let tags: Vec<String> =
        said.filter(|(_, of)| of.as_deref() == Some(number)).map(|(tag, _)| tag.clone()).collect();
    for tag in &tags {
        check_tag(tag)?;
    }
    Ok(if tags.is_empty() { vec!["latest".to_owned()] } else { tags })
}

/// Before the tarball is looked at; whether it still holds is seen when it is committed.
fn refuse_existing(
    repository: &Repository,
    settings: &Settings,
    name: &Name,
    number: &str,
) -> Result<(), Failure> {
    if repository.get(&records::version(name, number))?.is_some() {
        return Err(exists(name, number));
    }
    if repository.get(&records::removed(name, number))?.is_some() && !settings.republish_deleted {
        return Err(was_there(name, number));
    }
    Ok(())
}

/// Tries until nobody else changed the package at the same moment.
fn commit(repository: &Repository, release: Release<'_>, republish: bool) -> Result<Response, Failure> {
    let (key, removed) =
        (records::version(release.name, &release.number), records::removed(release.name, &release.number));
    let applied = repository.update(busy, |change| {
        match change.previous() {
            Some(Outcome::Stale(stale)) if *stale == key => {
                return Err(exists(release.name, &release.number));
            }
            Some(Outcome::Stale(stale)) if *stale == removed => {
                return Err(was_there(release.name, &release.number));
            }
            Some(Outcome::UnknownBlobs(_)) => {
                return Err(Failure::internal("a tarball that was kept is not held"));
            }
            _ => {}
        }
        let package = Package::find(repository, release.name)?;
        // A number that was removed may be given again, or must not have been removed meanwhile.
        if republish {
            change.remove(&removed, Expectation::Anything);
        } else {
            change.require(&removed, Expectation::Absent);
        }
        release.put(change, &key, package)
    })?;
    answer(release.name, applied.revision)
}

impl Release<'_> {
    /// The version, the package and what is shown of it appear together.
    fn put(
        &self,
        change: &mut Transaction,
        key: &str,
        package: Option<Entry<Package>>,
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
        let shown = change::shown(name, number, facts, self.deprecated.as_deref());
        change.show(&shown.file(name.path(number), facts.sha256.clone(), facts.size));
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

    /// The package with this version in it.
    fn package(&self, before: Option<Package>) -> Package {
        let time = self.version.facts.time;
        let mut package = before.unwrap_or_else(|| Package {
            created: time,
            maintainers: self.person.iter().cloned().collect(),
            ..Package::default()
        });
        package.modified = package.modified.max(time);
        for tag in &self.tags {
            package.tags.insert(tag.clone(), self.number.clone());
        }
        package.tags.entry("latest".to_owned()).or_insert_with(|| self.number.clone());
        package
    }
}

fn exists(name: &Name, number: &str) -> Failure {
    Failure::conflict(format!(
        "{name}@{number} is published already and cannot be replaced; publish a new version"
    ))
}

fn was_there(name: &Name, number: &str) -> Failure {
    Failure::conflict(format!(
        "{name}@{number} was published and removed, and its number is not given again; publish a new version"
    ))
}

/// As `maintainers` and `_npmUser` have it.
fn person(caller: &str) -> Value {
    if caller.contains('@') { json!({"name": caller, "email": caller}) } else { json!({"name": caller}) }
}
