//! PyPI's own JSON documents of projects and versions. Update tools read these documents.

use crate::answer::{document, no_project};
use crate::file_entries::FileEntries;
use crate::index::{Availability, ProjectFile, key_of};
use crate::listed_name::ListedKind;
use crate::metadata::{CoreMetadata, LIMIT};
use crate::name;
use crate::sources::Sources;
use crate::version::Version;
use packhouse_sdk::{Blob, Context, Digest, Failure, Intent, Output, Params, ReadAt, Request, Response};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Fields of `info` with a single text, and their names in the metadata.
const TEXTS: [(&str, &str); 13] = [
    ("author", "author"),
    ("author_email", "author-email"),
    ("description_content_type", "description-content-type"),
    ("download_url", "download-url"),
    ("home_page", "home-page"),
    ("keywords", "keywords"),
    ("license", "license"),
    ("license_expression", "license-expression"),
    ("maintainer", "maintainer"),
    ("maintainer_email", "maintainer-email"),
    ("platform", "platform"),
    ("requires_python", "requires-python"),
    ("summary", "summary"),
];

/// Fields of `info` that are lists, and their names in the metadata.
const LISTS: [(&str, &str); 5] = [
    ("classifiers", "classifier"),
    ("dynamic", "dynamic"),
    ("license_files", "license-file"),
    ("provides_extra", "provides-extra"),
    ("requires_dist", "requires-dist"),
];

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read().subject(params.segment("project")), params))
}

/// Serves the document of a project: the newest version, and the files of all versions.
pub(crate) fn project(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    render(cx, request, params, None)
}

/// Serves the document of one version.
pub(crate) fn version(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    render(cx, request, params, Some(params.segment("version")))
}

/// Renders the document of a project, or of the version with this number.
fn render(
    cx: &Context,
    request: &Request,
    params: &Params<'_>,
    number: Option<&str>,
) -> Result<Response, Failure> {
    let requested = params.segment("project");
    let name = name::project(requested).ok_or_else(|| no_project(requested))?;
    let sources = Sources::open(cx, &name)?;
    let display = sources.display();
    let is_offered = sources.status()?.unwrap_or_default().offers_files();
    let mut entries = FileEntries::new(cx);
    let mut chosen = ChosenVersion::new(number);
    let (mut offered, mut denied) = (BTreeSet::new(), BTreeSet::new());
    let versions = sources.each(&mut |file, availability| {
        // An update tool treats every file in this document as available, so the document omits
        // withheld files.
        if availability == Availability::Denied {
            denied.insert(file.version);
            return Ok(());
        }
        offered.insert(file.version.clone());
        if number.is_none() || chosen.is_of_number(&file) {
            entries.add(&file.version, &entry(request, &name, &file))?;
        }
        chosen.take(file);
        Ok(())
    })?;
    let mut versions = versions.filter(|_| is_offered).ok_or_else(|| no_project(requested))?;
    versions.retain(|version| offered.contains(version) || !denied.contains(version));
    let Some(version) = chosen.version(&versions) else {
        return Err(match number {
            Some(number) => Failure::not_found(format!("There is no version {number} of {name}")),
            None => no_project(&name),
        });
    };
    let described = DescribedVersion { name: &name, display: &display, version, file: chosen.file() };
    let mut out = Output::new(cx);
    out.push("{\"info\":")?;
    out.json(&info(cx, request, &described)?)?;
    let entries = entries.by_version()?;
    if number.is_none() {
        out.push(",\"last_serial\":0,\"releases\":{")?;
        let mut between = "";
        for version in &versions {
            out.push(std::mem::replace(&mut between, ","))?;
            out.json(version)?;
            out.push(":")?;
            entries.write(version, &mut out)?;
        }
        out.push("}")?;
    } else {
        out.push(",\"last_serial\":0")?;
    }
    out.push(",\"urls\":")?;
    entries.write(version, &mut out)?;
    out.push(",\"vulnerabilities\":[]}")?;
    Ok(document(out.finish()?, "application/json"))
}

/// Selection of the version that a document describes, and of one file of this version. The
/// document takes the metadata from this file, which is a wheel if the version has one.
struct ChosenVersion {
    /// The key of the requested version. If it is `None`, the choice is the highest final version
    /// with a file that was not yanked, or else the highest version.
    key: Option<String>,
    /// Highest final version with a file that is not yanked, and its best such file. `None` if the
    /// client requested a version.
    good: Option<(Version, ProjectFile)>,
    /// Highest version, and its best file.
    any: Option<(Option<Version>, ProjectFile)>,
}

impl ChosenVersion {
    fn new(number: Option<&str>) -> Self {
        Self { key: number.map(key_of), good: None, any: None }
    }

    fn is_of_number(&self, file: &ProjectFile) -> bool {
        self.key.as_ref().is_none_or(|key| key_of(&file.version) == *key)
    }

    fn take(&mut self, file: ProjectFile) {
        if !self.is_of_number(&file) {
            return;
        }
        let version = Version::parse(&file.version);
        let is_good =
            version.as_ref().is_some_and(|version| !version.is_prerelease()) && file.yanked.is_none();
        if let Some(version) = version.clone().filter(|_| is_good && self.key.is_none()) {
            replace(&mut self.good, version, &file);
        }
        replace(&mut self.any, version, &file);
    }

    fn file(&self) -> Option<&ProjectFile> {
        let good = self.good.as_ref().map(|(_, file)| file);
        good.or(self.any.as_ref().map(|(_, file)| file))
    }

    /// Returns the chosen version as this list spells it. `None` if the list does not contain the
    /// requested version.
    fn version<'a>(&self, versions: &'a [String]) -> Option<&'a str> {
        let key = self.file().map(|file| key_of(&file.version)).or_else(|| self.key.clone());
        let of_file = versions.iter().find(|version| Some(key_of(version)) == key);
        of_file.or(versions.last().filter(|_| self.key.is_none())).map(String::as_str)
    }
}

/// Replaces the chosen file if the new file has a higher version, or has the same version and ranks
/// higher. Wheels rank above other files. Among wheels, and among other files, a file with metadata
/// ranks higher.
fn replace<V: Ord>(place: &mut Option<(V, ProjectFile)>, version: V, file: &ProjectFile) {
    let has_metadata =
        |file: &ProjectFile| file.record.as_ref().is_some_and(|record| record.metadata().is_some());
    let rank = |file: &ProjectFile| (file.filename.ends_with(".whl"), has_metadata(file));
    let is_better = place.as_ref().is_none_or(|(before, known)| match version.cmp(before) {
        Ordering::Greater => true,
        Ordering::Equal => rank(file) > rank(known),
        Ordering::Less => false,
    });
    if is_better {
        *place = Some((version, file.clone()));
    }
}

/// The version that `info` describes.
struct DescribedVersion<'a> {
    name: &'a str,
    display: &'a str,
    version: &'a str,
    file: Option<&'a ProjectFile>,
}

/// Renders the member `info` from the metadata of the chosen file.
fn info(cx: &Context, request: &Request, described: &DescribedVersion<'_>) -> Result<Value, Failure> {
    let DescribedVersion { name, display, version, file } = described;
    let metadata = match file.and_then(|file| file.record.as_ref()?.metadata()) {
        Some(digest) => {
            let bytes = stored(cx, digest)?.read_all(LIMIT)?;
            CoreMetadata::parse(&bytes).map_err(Failure::internal)?
        }
        None => CoreMetadata::default(),
    };
    let mut info = Map::new();
    let mut set = |name: &str, value: Value| info.insert(name.to_owned(), value);
    for (member, field) in TEXTS {
        set(member, json!(metadata.get(field)));
    }
    for (member, field) in LISTS {
        let all: Vec<&str> = metadata.all(field).collect();
        set(member, if all.is_empty() && member == "requires_dist" { Value::Null } else { json!(all) });
    }
    let pairs = metadata.all("project-url").filter_map(|pair| pair.split_once(','));
    let urls: Map<String, Value> =
        pairs.map(|(label, url)| (label.trim().to_owned(), json!(url.trim()))).collect();
    set("project_urls", if urls.is_empty() { Value::Null } else { Value::Object(urls) });
    let description = metadata.get("description").unwrap_or(&metadata.description);
    set("description", json!(description));
    set("name", json!(display));
    set("version", json!(version));
    let page = request.link(&format!("simple/{name}/"));
    for member in ["package_url", "project_url", "release_url"] {
        set(member, json!(page));
    }
    let yanked = file.and_then(|file| file.yanked.as_ref());
    set("yanked", json!(yanked.is_some()));
    set("yanked_reason", json!(yanked));
    Ok(Value::Object(info))
}

/// Finds a blob in one of the repositories.
fn stored(cx: &Context, digest: &Digest) -> Result<Blob, Failure> {
    let found = cx.first(|repository| Ok(repository.blob(digest)?))?;
    found.ok_or_else(|| Failure::internal(format!("a record refers to {digest}, which is not stored")))
}

fn entry(request: &Request, project: &str, file: &ProjectFile) -> Value {
    let kind = ListedKind::of(&file.filename).map_or("sdist", |kind| kind.packagetype);
    let wheel = kind == "bdist_wheel";
    let python = file.filename.rsplit('-').nth(2).filter(|_| wheel).unwrap_or("source");
    let mut digests = file.hashes.clone();
    if let Some(record) = &file.record {
        digests.insert("md5".to_owned(), record.md5.clone());
        digests.insert("blake2b_256".to_owned(), record.blake2.clone());
    }
    let time = file.time.as_deref();
    json!({
        "comment_text": "",
        "md5_digest": digests.get("md5"),
        "digests": digests,
        "downloads": -1,
        "filename": file.filename,
        "has_sig": file.signature,
        "packagetype": kind,
        "python_version": python,
        "requires_python": file.requires_python,
        "size": file.size,
        "upload_time": time.and_then(|time| time.get(..19)),
        "upload_time_iso_8601": time,
        "url": request.link(&format!("packages/{project}/{}/{}", file.version, file.filename)),
        "yanked": file.yanked.is_some(),
        "yanked_reason": file.yanked,
    })
}
