//! PyPI's own JSON documents of projects and versions, which tools that watch for updates read.

use crate::answer::{document, no_project};
use crate::index::{File, Project, key_of};
use crate::metadata::{LIMIT, Metadata};
use crate::version::Version;
use crate::{name, projects};
use packhouse_sdk::{Blob, Context, Digest, Failure, Intent, Output, Params, ReadAt, Request, Response};
use serde_json::{Map, Value, json};

/// Fields of `info` that are one text, with the metadata's names for them.
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

/// Fields that are lists.
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

/// The newest version, and the files of all.
pub(crate) fn project(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let project = read(cx, params)?;
    // A final version that was not yanked, else any.
    let good = |version: &&String| {
        let files = || project.files.iter().filter(|file| file.version == **version);
        !Version::parse(version).is_some_and(|version| version.is_prerelease())
            && files().any(|file| file.yanked.is_none())
    };
    let newest = project.versions.iter().rev().find(good).or(project.versions.last());
    let newest = newest.ok_or_else(|| no_project(&project.name))?;
    let mut object = about(cx, request, &project, newest)?;
    let releases: Map<String, Value> =
        project.versions.iter().map(|version| (version.clone(), files(request, &project, version))).collect();
    object.insert("releases".to_owned(), Value::Object(releases));
    json(cx, &object)
}

/// One version.
pub(crate) fn version(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let project = read(cx, params)?;
    let (asked, key) = (params.segment("version"), key_of(params.segment("version")));
    let found = project.versions.iter().find(|version| key_of(version) == key);
    let found = found
        .ok_or_else(|| Failure::not_found(format!("There is no version {asked} of {}", project.name)))?;
    json(cx, &about(cx, request, &project, found)?)
}

fn json(cx: &Context, value: &Map<String, Value>) -> Result<Response, Failure> {
    let mut out = Output::new(cx);
    out.json(value)?;
    Ok(document(out.finish()?, "application/json"))
}

fn read(cx: &Context, params: &Params<'_>) -> Result<Project, Failure> {
    let asked = params.segment("project");
    let name = name::project(asked).ok_or_else(|| no_project(asked))?;
    projects::read(cx, &name)?
        .filter(|project| project.status.offers_files())
        .ok_or_else(|| no_project(asked))
}

fn about(
    cx: &Context,
    request: &Request,
    project: &Project,
    version: &str,
) -> Result<Map<String, Value>, Failure> {
    let mut object = Map::new();
    object.insert("info".to_owned(), info(cx, request, project, version)?);
    object.insert("last_serial".to_owned(), json!(0));
    object.insert("urls".to_owned(), files(request, project, version));
    object.insert("vulnerabilities".to_owned(), json!([]));
    Ok(object)
}

/// A version's metadata, from one of its wheels where it has any.
fn info(cx: &Context, request: &Request, project: &Project, version: &str) -> Result<Value, Failure> {
    let key = key_of(version);
    let mut mine = project.files.iter().filter(|file| key_of(&file.version) == key);
    let first = mine.clone().next();
    let best = mine.find(|file| file.filename.ends_with(".whl")).or(first);
    let metadata = match best.and_then(|file| file.record.as_ref()) {
        Some(record) => {
            let bytes = stored(cx, &record.metadata)?.read_all(LIMIT)?;
            Metadata::parse(&bytes).map_err(Failure::internal)?
        }
        None => Metadata::default(),
    };
    let mut info = Map::new();
    let mut set = |name: &str, value: Value| info.insert(name.to_owned(), value);
    for (name, field) in TEXTS {
        set(name, json!(metadata.get(field)));
    }
    for (name, field) in LISTS {
        let all: Vec<&str> = metadata.all(field).collect();
        set(name, if all.is_empty() && name == "requires_dist" { Value::Null } else { json!(all) });
    }
    let pairs = metadata.all("project-url").filter_map(|pair| pair.split_once(','));
    let urls: Map<String, Value> =
        pairs.map(|(label, url)| (label.trim().to_owned(), json!(url.trim()))).collect();
    set("project_urls", if urls.is_empty() { Value::Null } else { Value::Object(urls) });
    let described = metadata.get("description").unwrap_or(&metadata.description);
    set("description", json!(described));
    set("name", json!(project.display));
    set("version", json!(version));
    let page = request.link(&format!("simple/{}/", project.name));
    for name in ["package_url", "project_url", "release_url"] {
        set(name, json!(page));
    }
    let yanked = best.and_then(|file| file.yanked.as_ref());
    set("yanked", json!(yanked.is_some()));
    set("yanked_reason", json!(yanked));
    Ok(Value::Object(info))
}

/// A blob of whichever repository has it.
fn stored(cx: &Context, digest: &Digest) -> Result<Blob, Failure> {
    let found = cx.first(|repository| Ok(repository.blob(digest)?))?;
    found.ok_or_else(|| Failure::internal(format!("a record names {digest}, which is not held")))
}

fn files(request: &Request, project: &Project, version: &str) -> Value {
    let key = key_of(version);
    let mine = project.files.iter().filter(|file| key_of(&file.version) == key);
    mine.map(|file| entry(request, &project.name, file)).collect()
}

fn entry(request: &Request, project: &str, file: &File) -> Value {
    let wheel = file.filename.ends_with(".whl");
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
        "packagetype": if wheel { "bdist_wheel" } else { "sdist" },
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
