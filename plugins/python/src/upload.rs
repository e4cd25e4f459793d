//! `POST`: publishes a file if its form, digests, name and own metadata agree. Fewer checks apply
//! to a file that is moved from another server.

use crate::answer::bad;
use crate::archive::{self, ArchiveContents, Rules};
use crate::attestation::{self, CheckedAttestations};
use crate::filename::Filename;
use crate::form::{self, UploadForm};
use crate::records::{self, FileRecord, ProjectRecord, VersionRecord, Yanked};
use crate::status::Status;
use crate::version::Version;
use crate::{FILE_LIMIT, busy, listed_name, metadata, name};
use packhouse_sdk::{
    Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, ReadAt, Redeploy, Repository,
    Request, Response, Settings, Statement, Step, Transaction, Version as ListedVersion, VersionDocument,
    VersionId,
};
use packhouse_zip::ArchiveError;

/// Maximum bytes of a form. It contains the file, and a copy of its metadata.
pub(crate) const FORM_LIMIT: u64 = FILE_LIMIT + (16 << 20);

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::publish().parts(FORM_LIMIT).digests(&["md5", "blake2b-256"]))
}

pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let form = UploadForm::read(request.take_parts())?;
    let rules = if request.is_moved() { Rules::Moved } else { Rules::New };
    let filename = named(&form, rules)?;
    form.check_digests()?;
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (form.content.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        return Err(Failure::too_large(format!(
            "The file has {size} bytes, and at most {limit} are allowed"
        )));
    }
    let sha256 = form.content.sha256()?;
    let slot = UploadSlot::find(repository, &filename, &form.filename)?;
    if let Some(answer) = slot.taken(&settings, &sha256) {
        return answer;
    }
    let found = inspect(cx, &form, &filename, rules)?;
    let upload = Upload::keep(cx, form, filename, &found, sha256)?;
    upload.store(repository, &settings, slot)
}

/// Reads an archive. If the archive of a moved file is invalid, returns empty contents instead of
/// an error.
fn inspect(
    cx: &Context,
    form: &UploadForm,
    filename: &Filename,
    rules: Rules,
) -> Result<ArchiveContents, Failure> {
    match archive::inspect(filename, &form.content, rules) {
        Err(ArchiveError::Refused(reason)) if rules == Rules::Moved => {
            let fields = [("file", form.filename.as_str()), ("reason", reason.as_str())];
            cx.log().warn("a moved file is served without its metadata", &fields);
            Ok(ArchiveContents::default())
        }
        found => found.map_err(|fault| archive::failure(fault, &form.filename)),
    }
}

/// Parses the file's name, and checks that it agrees with the form. For a moved file, the version
/// comes from the name alone.
fn named(form: &UploadForm, rules: Rules) -> Result<Filename, Failure> {
    let name = form.need("name")?;
    let project = name::project(name).ok_or_else(|| bad(format!("{name:?} is not a valid project name")))?;
    let filename = match rules {
        Rules::New => {
            let version = form.need("version")?;
            let version = Version::parse(version)
                .ok_or_else(|| bad(format!("{version:?} is not a PEP 440 version")))?;
            Filename::of(&form.filename, &project, &version).map_err(bad)?
        }
        Rules::Moved => listed_name::read(&form.filename, &project).ok_or_else(|| {
            let called = &form.filename;
            bad(format!("{called:?} is not the name of a file of {project} with a PEP 440 version"))
        })?,
    };
    match form.get("filetype") {
        Some(stated) if stated != filename.kind.filetype() => {
            let actual = filename.kind.filetype();
            Err(bad(format!("The form has filetype {stated}, but {} has filetype {actual}", form.filename)))
        }
        _ => Ok(filename),
    }
}

/// The existing records that decide whether a file can be stored, with their revisions.
struct UploadSlot {
    file: Option<Entry<FileRecord>>,
    /// The used file name, in the spelling of the latest file that had it.
    used: Option<Entry<String>>,
    status: Option<Entry<Status>>,
    yanked: Option<Entry<Yanked>>,
    project: String,
    filename: String,
}

impl UploadSlot {
    fn find(repository: &Repository, filename: &Filename, called: &str) -> Result<Self, Failure> {
        let project = &filename.project;
        let used = repository.get_json::<String>(&records::used(&filename.key()))?;
        // An existing file may have this name in another spelling.
        let holder = used.as_ref().map_or(called, |used| used.value.as_str());
        Ok(Self {
            file: repository.get_json(&records::file(project, holder))?,
            used,
            status: repository.get_json(&records::status(project))?,
            yanked: repository.get_json(&records::yanked(project, &filename.version.key()))?,
            project: project.clone(),
            filename: called.to_owned(),
        })
    }

    /// Returns the response for a file that cannot be stored, or that is already stored. `None` if
    /// the file can be stored.
    fn taken(&self, settings: &Settings, sha256: &Digest) -> Option<Result<Response, Failure>> {
        let file = &self.filename;
        if let Some(there) = &self.file {
            let same = there.value.sha256 == *sha256 && settings.redeploy == Redeploy::Identical;
            return Some(if same { Ok(accepted()) } else { Err(exists(file)) });
        }
        if self.used.is_some() && !settings.republish_deleted {
            let text = format!(
                "The file {file} was deleted here, and its name is not used again; publish a new version"
            );
            return Some(Err(Failure::already_exists(text)));
        }
        let status = self.status.as_ref().map(|entry| entry.value.clone()).unwrap_or_default();
        status.check_upload(&self.project).err().map(Err)
    }

    /// Makes the commit stale if the status or the yank has changed since they were read.
    fn require(&self, change: &mut Transaction, filename: &Filename) {
        change.require(&records::status(&self.project), Expectation::unchanged(self.status.as_ref()));
        let yanked = records::yanked(&self.project, &filename.version.key());
        change.require(&yanked, Expectation::unchanged(self.yanked.as_ref()));
    }
}

fn exists(file: &str) -> Failure {
    Failure::already_exists(format!("File already exists: {file} cannot be replaced; publish a new version"))
}

fn accepted() -> Response {
    Response::text("The file is published.\n")
}

/// A file whose bytes are stored, and the records for it.
struct Upload {
    filename: Filename,
    called: String,
    record: FileRecord,
    project: ProjectRecord,
    version: VersionRecord,
    /// Signed statements about the file: format and bytes of each.
    statements: Vec<(&'static str, Vec<u8>)>,
    /// Bills of materials that the wheel contains.
    sboms: Vec<Sbom>,
}

/// A bill of materials from a wheel.
struct Sbom {
    title: String,
    media_type: &'static str,
    digest: Digest,
    size: u64,
}

impl Upload {
    fn keep(
        cx: &Context,
        form: UploadForm,
        filename: Filename,
        found: &ArchiveContents,
        sha256: Digest,
    ) -> Result<Self, Failure> {
        let repository = cx.target()?;
        repository.keep(&form.content)?;
        let metadata =
            found.bytes.as_ref().map(|bytes| repository.keep(&cx.write_blob(bytes)?)).transpose()?;
        let mut statements = Vec::new();
        let provenance = match form.get("attestations") {
            Some(text) => {
                let CheckedAttestations { provenance, bundles } =
                    attestation::read(text, &form.filename, &sha256)?;
                statements.extend(bundles.into_iter().map(|bundle| (Statement::BUNDLE, bundle)));
                Some(repository.keep(&cx.write_blob(&provenance)?)?)
            }
            None => None,
        };
        if let Some(blob) = &form.signature {
            statements.push((Statement::PGP, blob.read_all(form::SIGNATURE)?));
        }
        let signature = form.signature.as_ref().map(|blob| repository.keep(blob)).transpose()?;
        let sboms = sboms(cx, found)?;
        let bare = metadata.is_none();
        let metadata = metadata.unwrap_or_else(|| sha256.clone());
        let record = FileRecord {
            version: filename.version.to_string(),
            sha256,
            size: form.content.size()?,
            time: cx.now(),
            md5: form.content.digest("md5")?.hex().to_owned(),
            blake2: form.content.digest("blake2b-256")?.hex().to_owned(),
            requires_python: requires_python(&form, found).map(str::to_owned),
            metadata,
            bare,
            signature,
            provenance,
            sboms: sboms.iter().map(|sbom| sbom.digest.clone()).collect(),
        };
        let (project, version) = described(repository, &filename, found)?;
        Ok(Self { filename, called: form.filename, record, project, version, statements, sboms })
    }

    fn store(
        &self,
        repository: &Repository,
        settings: &Settings,
        slot: UploadSlot,
    ) -> Result<Response, Failure> {
        let mut slot = slot;
        repository.update_if_needed(busy, |change| {
            match change.previous() {
                None => {}
                Some(Outcome::UnknownBlobs(_)) => {
                    return Err(Failure::internal("a stored blob is missing"));
                }
                Some(_) => {
                    slot = UploadSlot::find(repository, &self.filename, &self.called)?;
                    if let Some(answer) = slot.taken(settings, &self.record.sha256) {
                        return answer.map(Step::Done);
                    }
                }
            }
            self.change(change, &slot)?;
            Ok(Step::Commit(accepted()))
        })
    }

    /// Adds the records of the file, its version and its project to `change`. Also adds the
    /// version's entry of the package list, the signed statements and the bills of materials. One
    /// commit stores all of them.
    fn change(&self, change: &mut Transaction, slot: &UploadSlot) -> Result<(), Failure> {
        let project = &self.filename.project;
        let used = records::used(&self.filename.key());
        change.put_json(&used, &self.called, Expectation::unchanged(slot.used.as_ref()), &[])?;
        let file = records::file(project, &self.called);
        change.put_json(&file, &self.record, Expectation::Absent, &self.record.blobs())?;
        slot.require(change, &self.filename);
        let version = records::version(project, &self.filename.version.key());
        change.put_json(&version, &self.version, Expectation::Anything, &[])?;
        change.put_json(&records::project(project), &self.project, Expectation::Anything, &[])?;
        let yanked = slot.yanked.as_ref().map(|entry| entry.value.reason.as_str());
        let path = format!("packages/{project}/{}/{}", self.record.version, self.called);
        let listed = listed_version(project, &self.version, yanked);
        change.show(&listed.file(path.as_str(), self.record.sha256.clone(), self.record.size));
        let id = VersionId::new(project, &self.record.version);
        for (kind, bytes) in &self.statements {
            let source = match *kind {
                Statement::PGP => format!("{path}.asc"),
                _ => attestation::path(project, &self.record.version, &self.called),
            };
            let statement = Statement::new(id.clone(), *kind, self.record.sha256.clone(), bytes.clone());
            change.attest(&statement.of_file(path.as_str()).at(source));
        }
        for Sbom { title, media_type, digest, size } in &self.sboms {
            let form = VersionDocument::form_of(media_type).unwrap_or_default();
            let document = VersionDocument::new(id.clone(), form, *media_type, digest.clone(), *size);
            change.document(&document.of_file(path.as_str()).titled(title));
        }
        Ok(())
    }
}

/// Returns the supported versions of Python, from the file's metadata. For a file without metadata,
/// they come from the form.
fn requires_python<'a>(form: &'a UploadForm, found: &'a ArchiveContents) -> Option<&'a str> {
    match &found.metadata {
        Some(metadata) => metadata.requires_python(),
        None => form.get("requires_python").filter(|text| metadata::is_python_requirement(text)),
    }
}

/// Builds the project and version records from a file's metadata. For a file without metadata, the
/// values of existing records stay.
fn described(
    repository: &Repository,
    filename: &Filename,
    found: &ArchiveContents,
) -> Result<(ProjectRecord, VersionRecord), Failure> {
    let Filename { project, version, .. } = filename;
    if let Some(metadata) = &found.metadata {
        let name = metadata.get("name").unwrap_or(project).to_owned();
        let (summary, license) = (metadata.summary(), metadata.license());
        return Ok((
            ProjectRecord { name },
            VersionRecord { version: version.to_string(), summary, license },
        ));
    }
    let known = repository.get_json::<ProjectRecord>(&records::project(project))?;
    let known_project = known.map_or_else(|| ProjectRecord { name: project.clone() }, |entry| entry.value);
    let known = repository.get_json::<VersionRecord>(&records::version(project, &version.key()))?;
    let (summary, license) =
        known.map(|entry| (entry.value.summary, entry.value.license)).unwrap_or_default();
    Ok((known_project, VersionRecord { version: version.to_string(), summary, license }))
}

/// Stores the bills of materials from an archive.
fn sboms(cx: &Context, found: &ArchiveContents) -> Result<Vec<Sbom>, Failure> {
    let repository = cx.target()?;
    let mut stored = Vec::new();
    for (title, bytes) in &found.sboms {
        let Some(media_type) = VersionDocument::media_type_of(title) else { continue };
        let digest = repository.keep(&cx.write_blob(bytes)?)?;
        stored.push(Sbom { title: title.clone(), media_type, digest, size: bytes.len() as u64 });
    }
    Ok(stored)
}

/// Builds the version's entry of the package list, without its files.
pub(crate) fn listed_version(project: &str, version: &VersionRecord, yanked: Option<&str>) -> ListedVersion {
    let mut listed = ListedVersion::new(project, &version.version).summary(&version.summary);
    if !version.license.is_empty() {
        listed = listed.property("license", &version.license);
    }
    match yanked {
        Some(reason) => listed.state("yanked").property("reason", reason),
        None => listed,
    }
}
