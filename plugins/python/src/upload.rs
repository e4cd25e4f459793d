//! `POST`: a file, once everything that is said of it agrees: the form, its digests, its name and its own metadata. A file that another
//! server had is taken as that server had it.

use crate::answer::bad;
use crate::archive::{self, Found, Rules};
use crate::attestation::{self, Attested};
use crate::filename::Filename;
use crate::form::{self, Form};
use crate::records::{self, FileRecord, ProjectRecord, VersionRecord, Yanked};
use crate::status::Status;
use crate::version::Version;
use crate::{FILE_LIMIT, busy, listed_name, metadata, name};
use packhouse_sdk::{
    Context, Digest, Entry, Expectation, Failure, Intent, Outcome, Params, ReadAt, Redeploy, Repository,
    Request, Response, Settings, Statement, Step, Transaction, Version as Shown, VersionDocument, VersionId,
};
use packhouse_zip::ArchiveError;

/// Bytes of a form: besides the file it holds its metadata once more.
pub(crate) const FORM_LIMIT: u64 = FILE_LIMIT + (16 << 20);

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::publish().parts(FORM_LIMIT).digests(&["md5", "blake2b-256"]))
}

pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let form = Form::read(request.take_parts())?;
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

/// What an archive holds. A moved file is taken without its metadata where they cannot be read.
fn inspect(cx: &Context, form: &Form, filename: &Filename, rules: Rules) -> Result<Found, Failure> {
    match archive::inspect(filename, &form.content, rules) {
        Err(ArchiveError::Refused(reason)) if rules == Rules::Moved => {
            let fields = [("file", form.filename.as_str()), ("reason", reason.as_str())];
            cx.log().warn("a moved file is served without its metadata", &fields);
            Ok(Found::default())
        }
        found => found.map_err(|fault| archive::failure(fault, &form.filename)),
    }
}

/// Reads which file the form is about. The file's name must say the same; of a moved file it alone says the version.
fn named(form: &Form, rules: Rules) -> Result<Filename, Failure> {
    let said_name = form.need("name")?;
    let project =
        name::project(said_name).ok_or_else(|| bad(format!("{said_name:?} is no name of a project")))?;
    let filename = match rules {
        Rules::New => {
            let said_version = form.need("version")?;
            let version = Version::parse(said_version)
                .ok_or_else(|| bad(format!("{said_version:?} is no version as PEP 440 has them")))?;
            Filename::of(&form.filename, &project, &version).map_err(bad)?
        }
        Rules::Moved => listed_name::read(&form.filename, &project).ok_or_else(|| {
            let called = &form.filename;
            bad(format!("{called:?} is not called as a file of {project} with a version of PEP 440"))
        })?,
    };
    match form.get("filetype") {
        Some(said) if said != filename.kind.filetype() => {
            let is = filename.kind.filetype();
            Err(bad(format!("The form says filetype {said}, but {} is of type {is}", form.filename)))
        }
        _ => Ok(filename),
    }
}

/// What is there where a file is to go, as it was read.
struct UploadSlot {
    file: Option<Entry<FileRecord>>,
    /// Names the file under which its name was used.
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
        // Another spelling of the name may have it.
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

    /// The answer where the file cannot come here, or need not.
    fn taken(&self, settings: &Settings, sha256: &Digest) -> Option<Result<Response, Failure>> {
        let file = &self.filename;
        if let Some(there) = &self.file {
            let same = there.value.sha256 == *sha256 && settings.redeploy == Redeploy::Identical;
            return Some(if same { Ok(accepted()) } else { Err(exists(file)) });
        }
        if self.used.is_some() && !settings.republish_deleted {
            let text = format!(
                "A file {file} was deleted here, and its name is not used again; publish a new version"
            );
            return Some(Err(Failure::already_exists(text)));
        }
        let status = self.status.as_ref().map(|entry| entry.value.clone()).unwrap_or_default();
        status.check_upload(&self.project).err().map(Err)
    }

    /// Nothing of it may have changed when the file comes.
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

/// A file whose bytes are kept, with what is to be remembered of it.
struct Upload {
    filename: Filename,
    called: String,
    record: FileRecord,
    project: ProjectRecord,
    version: VersionRecord,
    /// Signed statements about it, by their form.
    statements: Vec<(&'static str, Vec<u8>)>,
    /// Bills of materials that it brought along.
    sboms: Vec<Sbom>,
}

/// A bill of materials in a wheel.
struct Sbom {
    title: String,
    media_type: &'static str,
    digest: Digest,
    size: u64,
}

impl Upload {
    fn keep(
        cx: &Context,
        form: Form,
        filename: Filename,
        found: &Found,
        sha256: Digest,
    ) -> Result<Self, Failure> {
        let repository = cx.target()?;
        repository.keep(&form.content)?;
        let metadata =
            found.bytes.as_ref().map(|bytes| repository.keep(&cx.write_blob(bytes)?)).transpose()?;
        let mut statements = Vec::new();
        let provenance = match form.get("attestations") {
            Some(text) => {
                let Attested { provenance, bundles } = attestation::read(text, &form.filename, &sha256)?;
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
                    return Err(Failure::internal("a blob that was kept is not held"));
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

    /// The file, its version, its project and what is shown of them appear together.
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
        let shown = shown(project, &self.version, yanked);
        change.show(&shown.file(path.as_str(), self.record.sha256.clone(), self.record.size));
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

/// Which Pythons a file runs on. The form tells it of a file that does not tell it itself.
fn requires_python<'a>(form: &'a Form, found: &'a Found) -> Option<&'a str> {
    match &found.metadata {
        Some(metadata) => metadata.requires_python(),
        None => form.get("requires_python").filter(|text| metadata::is_python_requirement(text)),
    }
}

/// What a file says of its project and its version. One that says nothing leaves what other files have said.
fn described(
    repository: &Repository,
    filename: &Filename,
    found: &Found,
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

/// Keeps the bills of materials that an archive brought along.
fn sboms(cx: &Context, found: &Found) -> Result<Vec<Sbom>, Failure> {
    let repository = cx.target()?;
    let mut kept = Vec::new();
    for (title, bytes) in &found.sboms {
        let Some(media_type) = VersionDocument::media_type_of(title) else { continue };
        let digest = repository.keep(&cx.write_blob(bytes)?)?;
        kept.push(Sbom { title: title.clone(), media_type, digest, size: bytes.len() as u64 });
    }
    Ok(kept)
}

/// What people see of a version, without its files.
pub(crate) fn shown(project: &str, version: &VersionRecord, yanked: Option<&str>) -> Shown {
    let mut shown = Shown::new(project, &version.version).summary(&version.summary);
    if !version.license.is_empty() {
        shown = shown.property("license", &version.license);
    }
    match yanked {
        Some(reason) => shown.state("yanked").property("reason", reason),
        None => shown,
    }
}
