//! Publishing: a zip as a body or in a form, with its version in the address, in the form or in its
//! composer.json.
//!
//! A version with a number is published once. A development version moves: its zip is replaced.

use crate::archive::{bad, composer_json};
use crate::package::{self, Package, quoted};
use crate::records::{self, PackageRecord};
use crate::version::Version;
use crate::{FILE_LIMIT, FORM_LIMIT, busy, name};
use packhouse_sdk::{
    Blob, Context, Entry, Expectation, Failure, Intent, Params, Redeploy, Repository, Request, Response,
    Settings, Step, VersionId,
};
use serde_json::json;

/// The size limit of the form's field with the version, in bytes.
const FIELD: u64 = 250;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(intent(request))
}

fn intent(request: &Request) -> Intent {
    let kind = request.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let intent = Intent::publish();
    let intent = if kind.starts_with("multipart/form-data") {
        intent.parts(FORM_LIMIT)
    } else {
        intent.body(FILE_LIMIT)
    };
    intent.digests(&["sha1"])
}

/// `PUT /NAME.zip`: curl puts the file's name behind an address that ends with a slash. The name
/// does not matter.
pub(crate) fn plan_file(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    if file.ends_with(".json") {
        return Err(Failure::method_not_allowed("GET, HEAD"));
    }
    if !file.ends_with(".zip") {
        return Err(Failure::not_found("A package is put as a file called .zip"));
    }
    Ok(intent(request).subject(file))
}

pub(crate) fn plan_named(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(intent(request).subject(name::of(params)))
}

/// `PUT` and `POST` of a package's zip.
pub(crate) fn upload(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (zip, in_form) = received(request)?;
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (zip.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        let text = format!("The zip has {size} bytes, and at most {limit} are allowed");
        return Err(Failure::too_large(text));
    }
    let Package { name, version: own, members } = package::read(&composer_json(&zip)?)?;
    let address = name::of(params);
    if !params.segment("vendor").is_empty() && address != name {
        let text = format!("The address says {address}, but its composer.json says {name}");
        return Err(bad(&text));
    }
    let in_address = params.joined("version");
    let stated = [Some(in_address.as_str()), request.query("version"), in_form.as_deref()];
    let stated = stated.into_iter().flatten().find(|text| !text.is_empty());
    let (text, version) = agreed(stated, own.as_deref())?;
    let sha1 = zip.digest("sha1")?.hex().to_owned();
    let sha256 = repository.keep(&zip)?;
    let (time, deprecated) = (cx.now(), None);
    let record = PackageRecord { name, version: text, members, sha256, sha1, size, time, deprecated };
    publish(repository, &settings, &record, &version)?;
    let body = json!({"name": record.name, "version": record.version});
    Ok(Response::json(&body)?.with_status(201))
}

/// The zip, and the version in a form.
fn received(request: &Request) -> Result<(Blob, Option<String>), Failure> {
    if let Some(body) = request.take_body() {
        return Ok((body, None));
    }
    let (mut zip, mut version) = (None, None);
    for part in request.take_parts() {
        if part.filename.is_some() {
            if zip.replace(part.body).is_some() {
                return Err(Failure::invalid("The form has more than one file"));
            }
        } else if part.name == "version" {
            let text = part.body.text(FIELD);
            version = Some(text.map_err(|_| Failure::invalid("The field `version` is no version"))?);
        }
    }
    let missing = || Failure::invalid("The form has no file: the package's zip goes in one");
    Ok((zip.ok_or_else(missing)?, version))
}

/// The version to publish, if all statements of it agree: its text, and the version.
fn agreed(stated: Option<&str>, own: Option<&str>) -> Result<(String, Version), Failure> {
    let missing = || bad("Neither the request says a version (?version=1.0.0) nor its composer.json");
    let text = stated.or(own).ok_or_else(missing)?;
    let version = read_version(text)?;
    if let (Some(stated), Some(own)) = (stated, own)
        && read_version(own)?.key() != version.key()
    {
        let text = format!("The request says version {stated}, but its composer.json says {own}");
        return Err(bad(&text));
    }
    Ok((text.to_owned(), version))
}

fn read_version(text: &str) -> Result<Version, Failure> {
    let none = || bad(&format!("{} is no version that a package is published under", quoted(text)));
    Version::parse(text).ok_or_else(none)
}

fn publish(
    repository: &Repository,
    settings: &Settings,
    record: &PackageRecord,
    version: &Version,
) -> Result<(), Failure> {
    let own_key = records::version(&record.name, &version.key());
    let used_key = records::used(&record.name, &version.key());
    repository.update_if_needed(busy, |change| {
        let there = records::find(repository, &record.name, &version.key(), &record.version)?;
        let key = there.as_ref().map_or(&own_key, |entry| &entry.key);
        let used = repository.get_json::<bool>(&used_key)?;
        if let Some(Entry { value: there, .. }) = &there {
            let same = there.sha256 == record.sha256 && there.version == record.version;
            if same && version.is_dev() || is_identical(settings, there, record) {
                return Ok(Step::Done(()));
            }
        }
        if !version.is_dev() {
            free(settings, there.as_ref(), used.is_some(), record)?;
        }
        let mut record = record.clone();
        if let Some(Entry { value: there, .. }) = &there {
            record.deprecated.clone_from(&there.deprecated);
            if there.version != record.version {
                change.hide(&VersionId::new(&there.name, &there.version));
            }
        }
        let blobs = std::slice::from_ref(&record.sha256);
        change.put_json(key, &record, Expectation::unchanged(there.as_ref()), blobs)?;
        change.put_json(&used_key, &true, Expectation::unchanged(used.as_ref()), &[])?;
        change.show(&record.shown());
        Ok(Step::Commit(()))
    })
}

fn is_identical(settings: &Settings, there: &PackageRecord, record: &PackageRecord) -> bool {
    settings.redeploy == Redeploy::Identical && there.sha256 == record.sha256
}

/// Refuses the number of a version that was published before.
fn free(
    settings: &Settings,
    there: Option<&Entry<PackageRecord>>,
    used: bool,
    record: &PackageRecord,
) -> Result<(), Failure> {
    let PackageRecord { name, version, .. } = record;
    if let Some(there) = there {
        let text =
            format!("Version {} of {name} is there already; publish a new version", there.value.version);
        return Err(Failure::already_exists(text));
    }
    if used && !settings.republish_deleted {
        let text = format!(
            "Version {version} of {name} was deleted here, and its number is not used again; publish a new version"
        );
        return Err(Failure::already_exists(text));
    }
    Ok(())
}
