//! Publishing: a zip as a body or in a form, with its version in the address or in its composer.json.

use crate::archive::{self, bad};
use crate::package::Package;
use crate::records::{self, PackageRecord};
use crate::version::Version;
use crate::{FILE_LIMIT, busy};
use packhouse_sdk::{
    Blob, Context, Entry, Expectation, Failure, Intent, Params, Redeploy, Repository, Request, Response,
    Settings, Step,
};
use serde_json::json;

/// Bytes of a form.
pub(crate) const FORM_LIMIT: u64 = FILE_LIMIT + (1 << 20);

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let kind = request.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let form = kind.starts_with("multipart/form-data");
    let intent = if form { Intent::publish().parts(FORM_LIMIT) } else { Intent::publish().body(FILE_LIMIT) };
    Ok(intent.digests(&["sha1"]))
}

/// `PUT /NAME.zip`: curl puts the file's name behind an address that ends with a slash. What it is called tells nothing.
pub(crate) fn plan_file(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    if file.ends_with(".json") {
        return Err(Failure::method_not_allowed("GET, HEAD"));
    }
    if !file.ends_with(".zip") {
        return Err(Failure::not_found("A package is put as a file called .zip"));
    }
    Ok(plan(request, params)?.subject(file))
}

pub(crate) fn plan_named(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(plan(request, params)?.subject(named(params)))
}

/// The package that the address names; none is `/`.
fn named(params: &Params<'_>) -> String {
    format!("{}/{}", params.segment("vendor"), params.segment("package"))
}

pub(crate) fn upload(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (zip, said) = sent(request)?;
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (zip.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        return Err(Failure::too_large(format!("The zip has {size} bytes, and at most {limit} are allowed")));
    }
    let package = Package::read(&archive::composer_json(&zip)?)?;
    let address = named(params);
    if address != "/" && address != package.name {
        return Err(bad(format!("The address says {address}, but its composer.json says {}", package.name)));
    }
    let asked =
        [Some(params.segment("version").to_owned()), request.query("version").map(str::to_owned), said];
    let (text, version) = agreed(asked.into_iter().flatten().find(|text| !text.is_empty()), package.version)?;
    let record = PackageRecord {
        name: package.name,
        version: text,
        members: package.members,
        sha256: repository.keep(&zip)?,
        sha1: zip.digest("sha1")?.hex().to_owned(),
        size,
        time: cx.now(),
        deprecated: None,
    };
    commit(repository, &settings, &record, &version.key())?;
    Ok(Response::json(&json!({"name": record.name, "version": record.version}))?.with_status(201))
}

/// The zip, and the version that a form says.
fn sent(request: &Request) -> Result<(Blob, Option<String>), Failure> {
    if let Some(body) = request.take_body() {
        return Ok((body, None));
    }
    let (mut zip, mut version) = (None, None);
    for part in request.take_parts() {
        if part.name == "version" && part.filename.is_none() {
            version =
                Some(part.body.text(200).map_err(|_| Failure::invalid("The field `version` is no version"))?);
        } else if part.filename.is_some() && zip.replace(part.body).is_some() {
            return Err(Failure::invalid("The form has more than one file"));
        }
    }
    let zip = zip.ok_or_else(|| Failure::invalid("The form has no file: the package's zip goes in one"))?;
    Ok((zip, version))
}

/// The version that is published, where all who say one say the same.
fn agreed(asked: Option<String>, own: Option<String>) -> Result<(String, Version), Failure> {
    let none = || bad("Neither the request says a version (?version=1.0.0) nor its composer.json");
    let read = |text: &str| {
        Version::parse(text)
            .ok_or_else(|| bad(format!("{text:?} is no version that a package is published under")))
    };
    let text = asked.clone().or_else(|| own.clone()).ok_or_else(none)?;
    let version = read(&text)?;
    if let (Some(asked), Some(own)) = (asked, own)
        && read(&own)?.key() != version.key()
    {
        return Err(bad(format!("The request says version {asked}, but its composer.json says {own}")));
    }
    Ok((text, version))
}

fn commit(
    repository: &Repository,
    settings: &Settings,
    record: &PackageRecord,
    version: &str,
) -> Result<(), Failure> {
    let (key, used) = (records::version(&record.name, version), records::used(&record.name, version));
    repository.update_if_needed(busy, |change| {
        let there = repository.get_json::<PackageRecord>(&key)?;
        let before = repository.get_json::<bool>(&used)?;
        if let Some(there) = &there {
            return repeated(settings, there, record).map(Step::Done);
        }
        if before.is_some() && !settings.republish_deleted {
            let text = format!(
                "Version {} of {} was deleted here, and its number is not used again; publish a new version",
                record.version, record.name
            );
            return Err(Failure::already_exists(text));
        }
        change.put_json(&key, record, Expectation::Absent, std::slice::from_ref(&record.sha256))?;
        change.put_json(&used, &true, Expectation::unchanged(before.as_ref()), &[])?;
        change.show(&record.shown());
        Ok(Step::Commit(()))
    })
}

fn repeated(
    settings: &Settings,
    there: &Entry<PackageRecord>,
    record: &PackageRecord,
) -> Result<(), Failure> {
    if settings.redeploy == Redeploy::Identical && there.value.sha256 == record.sha256 {
        return Ok(());
    }
    let text =
        format!("Version {} of {} is there already; publish a new version", there.value.version, record.name);
    Err(Failure::already_exists(text))
}
