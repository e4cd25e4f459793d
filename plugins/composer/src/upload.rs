//! Publishes a zip that is sent as a body or in a form. Its version is in the path, the query, the
//! form or the composer.json.
//!
//! A numbered version is published only once. A development version moves: each upload replaces its
//! zip.

use crate::archive::{composer_json, invalid_package};
use crate::package::{self, ComposerJson, quoted};
use crate::records::{self, PackageRecord};
use crate::version::Version;
use crate::{FILE_LIMIT, FORM_LIMIT, busy, name};
use packhouse_sdk::{
    Blob, Context, Entry, Expectation, Failure, Intent, Params, Redeploy, Repository, Request, Response,
    Settings, Step, VersionId,
};
use serde_json::json;

/// The size limit of the form field `version`, in bytes.
const FIELD_LIMIT: u64 = 250;

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

/// `PUT /NAME.zip`: curl appends the name of the file to a URL that ends with a slash. Apart from
/// its ending, the name does not matter.
pub(crate) fn plan_file(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    if file.ends_with(".json") {
        return Err(Failure::method_not_allowed("GET, HEAD"));
    }
    if !file.ends_with(".zip") {
        return Err(Failure::not_found("The name of an uploaded file must end with .zip"));
    }
    Ok(intent(request).subject(file))
}

pub(crate) fn plan_named(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(intent(request), &name::of(params)))
}

/// `PUT` and `POST` of a package's zip.
pub(crate) fn upload(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (zip, in_form) = received(request)?;
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (zip.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        let text = format!("The zip has {size} bytes; at most {limit} are allowed");
        return Err(Failure::too_large(text));
    }
    let ComposerJson { name, version: own, members } = package::read(&composer_json(&zip)?)?;
    let address = name::of(params);
    if !params.segment("vendor").is_empty() && address != name {
        let text = format!("The path names {address}, but the composer.json names {name}");
        return Err(invalid_package(&text));
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

/// Returns the zip, and the version that a form states. A plain body states no version.
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
            let text = part.body.text(FIELD_LIMIT);
            version = Some(text.map_err(|_| {
                Failure::invalid("The field `version` must be UTF-8 text of at most 250 bytes")
            })?);
        }
    }
    let missing = || Failure::invalid("The form has no file; send the zip of the package as a file");
    Ok((zip.ok_or_else(missing)?, version))
}

/// Returns the version to publish, as text and parsed. If both the request and the composer.json
/// state a version, the two must be equal.
fn agreed(stated: Option<&str>, own: Option<&str>) -> Result<(String, Version), Failure> {
    let missing =
        || invalid_package("Neither the request (?version=1.0.0) nor the composer.json states a version");
    let text = stated.or(own).ok_or_else(missing)?;
    let version = read_version(text)?;
    if let (Some(stated), Some(own)) = (stated, own)
        && read_version(own)?.key() != version.key()
    {
        let text = format!("The request states version {stated}, but the composer.json states {own}");
        return Err(invalid_package(&text));
    }
    Ok((text.to_owned(), version))
}

fn read_version(text: &str) -> Result<Version, Failure> {
    let invalid = || invalid_package(&format!("{} is not a version that Composer can read", quoted(text)));
    Version::parse(text).ok_or_else(invalid)
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
        let existing = records::find(repository, &record.name, &version.key(), &record.version)?;
        let key = existing.as_ref().map_or(&own_key, |entry| &entry.key);
        let used = repository.get_json::<bool>(&used_key)?;
        if let Some(Entry { value: published, .. }) = &existing {
            let same = published.sha256 == record.sha256 && published.version == record.version;
            if same && version.is_dev() || is_identical(settings, published, record) {
                return Ok(Step::Done(()));
            }
        }
        if !version.is_dev() {
            check_unused(settings, existing.as_ref(), used.is_some(), record)?;
        }
        let mut record = record.clone();
        if let Some(Entry { value: published, .. }) = &existing {
            record.deprecated.clone_from(&published.deprecated);
            if published.version != record.version {
                change.hide(&VersionId::new(&published.name, &published.version));
            }
        }
        let blobs = std::slice::from_ref(&record.sha256);
        change.put_json(key, &record, Expectation::unchanged(existing.as_ref()), blobs)?;
        change.put_json(&used_key, &true, Expectation::unchanged(used.as_ref()), &[])?;
        change.show(&record.listed_version());
        Ok(Step::Commit(()))
    })
}

fn is_identical(settings: &Settings, published: &PackageRecord, record: &PackageRecord) -> bool {
    settings.redeploy == Redeploy::Identical && published.sha256 == record.sha256
}

/// Refuses a version whose number was published before. A setting allows clients to publish the
/// numbers of deleted versions again.
fn check_unused(
    settings: &Settings,
    existing: Option<&Entry<PackageRecord>>,
    used: bool,
    record: &PackageRecord,
) -> Result<(), Failure> {
    let PackageRecord { name, version, .. } = record;
    if let Some(existing) = existing {
        let published = &existing.value.version;
        let text = format!("Version {published} of {name} already exists; publish a new version");
        return Err(Failure::already_exists(text));
    }
    if used && !settings.republish_deleted {
        let text = format!(
            "Version {version} of {name} was deleted here, and its number cannot be used again; publish a new version"
        );
        return Err(Failure::already_exists(text));
    }
    Ok(())
}
