//! Publishes charts and their signatures. Clients send them as a body or in ChartMuseum's form.

use crate::archive;
use crate::provenance::{self, SignedFile, invalid_provenance};
use crate::records::{self, ChartRecord, FileOwner};
use crate::{FILE_LIMIT, busy, name};
use packhouse_sdk::{
    Blob, Context, Entry, Error, Expectation, Failure, Intent, Params, Part, Redeploy, Repository, Request,
    Response, Settings, Step,
};
use serde_json::json;

/// The largest form, in bytes: a chart and its signature.
pub(crate) const FORM_LIMIT: u64 = FILE_LIMIT + (2 << 20);

pub(crate) fn plan_post(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let kind = request.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let form = kind.starts_with("multipart/form-data");
    Ok(if form { Intent::publish().parts(FORM_LIMIT) } else { Intent::publish().body(FILE_LIMIT) })
}

pub(crate) fn plan_put(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    if name::splits(file.strip_suffix(".prov").unwrap_or(file)).is_empty() {
        let text =
            "The file of a chart must be named NAME-VERSION.tgz, and its signature NAME-VERSION.tgz.prov";
        return Err(Failure::invalid(text));
    }
    let limit = if file.ends_with(".prov") { provenance::LIMIT } else { FILE_LIMIT };
    Ok(Intent::publish().subject(file).body(limit))
}

pub(crate) fn plan_provenance(request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let intent = plan_post(request, params)?;
    let is_form = matches!(intent.body, packhouse_sdk::BodyPlan::Parts { .. });
    Ok(if is_form { Intent::publish().parts(2 << 20) } else { Intent::publish().body(provenance::LIMIT) })
}

/// Handles `POST /api/charts`.
pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (chart, signature) = match request.take_body() {
        Some(body) => (body, None),
        None => {
            let [chart, signature] = fields(request.take_parts(), ["chart", "prov"])?;
            let missing = || Failure::invalid("The form has no chart; send its archive in the field `chart`");
            (chart.ok_or_else(missing)?, signature)
        }
    };
    store(cx, &chart, signature.as_ref(), None)
}

/// Handles `POST /api/prov`.
pub(crate) fn post_provenance(
    cx: &Context,
    request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    let signature = match request.take_body() {
        Some(body) => body,
        None => {
            let [signature] = fields(request.take_parts(), ["prov"])?;
            signature.ok_or_else(|| Failure::invalid("The form has no field `prov`"))?
        }
    };
    sign(cx.target()?, &signature, None)
}

/// Handles `PUT` of a chart or a signature by its file name.
pub(crate) fn put(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (file, body) = (params.segment("file"), request.planned_body()?);
    match file.strip_suffix(".prov") {
        Some(chart) => sign(cx.target()?, &body, Some(chart)),
        None => store(cx, &body, None, Some(file)),
    }
}

/// Returns the contents of the named fields of a form. A repeated field is an error.
fn fields<const N: usize>(parts: Vec<Part>, names: [&str; N]) -> Result<[Option<Blob>; N], Failure> {
    let mut found = [const { None }; N];
    for part in parts {
        let Some((_, field)) = names.iter().zip(&mut found).find(|(name, _)| **name == part.name) else {
            continue;
        };
        if field.replace(part.body).is_some() {
            return Err(Failure::invalid(format!("The form has the field `{}` twice", part.name)));
        }
    }
    Ok(found)
}

/// Stores a chart. Before that, checks its size, its archive, its signature, and the file name in
/// the path.
fn store(
    cx: &Context,
    file: &Blob,
    signature: Option<&Blob>,
    file_name: Option<&str>,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (file.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        return Err(Failure::too_large(format!("The chart has {size} bytes; at most {limit} are allowed")));
    }
    let chart = archive::chart(file)?;
    let own = name::file(&chart.name, &chart.version);
    if let Some(file_name) = file_name.filter(|file_name| **file_name != own) {
        let text = format!("The path names {file_name}, but the body is {own}");
        return Err(Failure::new(400, "invalid_chart", text));
    }
    let sha256 = repository.keep(file)?;
    let provenance = match signature {
        Some(signature) => {
            check_signature(&provenance::read(signature)?, &own, sha256.hex())?;
            Some(repository.keep(signature)?)
        }
        None => None,
    };
    let record = ChartRecord { chart, sha256, size, time: cx.now(), provenance, deprecated: None };
    commit(repository, &settings, &record)?;
    saved()
}

fn check_signature(signed: &SignedFile, file: &str, sha256: &str) -> Result<(), Failure> {
    if signed.file != file {
        return Err(invalid_provenance(&format!("It is for {}, not for {file}", signed.file)));
    }
    if signed.sha256 != sha256 {
        return Err(invalid_provenance("Its SHA-256 does not match the chart"));
    }
    Ok(())
}

fn commit(repository: &Repository, settings: &Settings, record: &ChartRecord) -> Result<(), Failure> {
    let (name, version) = (&record.chart.name, &record.chart.version);
    let file = name::file(name, version);
    let (key, owner_key) = (records::version(name, version), records::file(&file));
    let owner = FileOwner { name: name.clone(), version: version.clone() };
    repository.update_if_needed(busy, |change| {
        let existing = repository.get_json::<ChartRecord>(&key)?;
        let current = repository.get_json::<FileOwner>(&owner_key)?;
        let record = match &existing {
            Some(existing) => match check_repeated(settings, existing, record)? {
                Some(signed) => signed,
                None => return Ok(Step::Done(())),
            },
            None => {
                check_file_name(settings, current.as_ref(), &owner, &file)?;
                record.clone()
            }
        };
        change.put_json(&key, &record, Expectation::unchanged(existing.as_ref()), &record.blobs())?;
        change.put_json(&owner_key, &owner, Expectation::unchanged(current.as_ref()), &[])?;
        list_version(change, &record);
        Ok(Step::Commit(()))
    })
}

/// Checks a publish of a version that exists already. Returns the changed record if the publish
/// adds a signature to a version without one, and `None` if it changes nothing.
///
/// # Errors
/// 409 if the setting `redeploy` is not `identical`, or if the chart or its signature differs.
fn check_repeated(
    settings: &Settings,
    existing: &Entry<ChartRecord>,
    record: &ChartRecord,
) -> Result<Option<ChartRecord>, Failure> {
    let (name, version) = (&record.chart.name, &record.chart.version);
    let same_signature = record.provenance.is_none()
        || existing.value.provenance.is_none()
        || record.provenance == existing.value.provenance;
    if settings.redeploy != Redeploy::Identical || existing.value.sha256 != record.sha256 || !same_signature {
        let text = format!("Version {version} of the chart {name} already exists; publish a new version");
        return Err(Failure::already_exists(text));
    }
    if record.provenance.is_none() || existing.value.provenance.is_some() {
        return Ok(None);
    }
    Ok(Some(ChartRecord { provenance: record.provenance.clone(), ..existing.value.clone() }))
}

/// Returns an error if the file name belongs to another version, or to a deleted version whose
/// number cannot be used again.
fn check_file_name(
    settings: &Settings,
    current: Option<&Entry<FileOwner>>,
    mine: &FileOwner,
    file: &str,
) -> Result<(), Failure> {
    let Some(FileOwner { name, version }) = current.map(|current| &current.value) else { return Ok(()) };
    if (name, version) != (&mine.name, &mine.version) {
        let text = format!("The file {file} already belongs to version {version} of the chart {name}");
        return Err(Failure::already_exists(text));
    }
    if settings.republish_deleted {
        return Ok(());
    }
    let text = format!(
        "Version {version} of the chart {name} was deleted here, and its number cannot be used again; publish a new version"
    );
    Err(Failure::already_exists(text))
}

/// Adds the version, with its file, to the package list.
pub(crate) fn list_version(change: &mut packhouse_sdk::Transaction, record: &ChartRecord) {
    let path = format!("charts/{}", name::file(&record.chart.name, &record.chart.version));
    change.show(&record.listed_version().file(path, record.sha256.clone(), record.size));
}

/// Adds a signature to an existing chart.
fn sign(repository: &Repository, signature: &Blob, file_name: Option<&str>) -> Result<Response, Failure> {
    let signed = provenance::read(signature)?;
    if let Some(file_name) = file_name.filter(|file_name| **file_name != signed.file) {
        return Err(invalid_provenance(&format!("It is for {}, not for {file_name}", signed.file)));
    }
    let digest = repository.keep(signature)?;
    let missing = || {
        Failure::not_found(format!("There is no chart {} in this repository; publish it first", signed.file))
    };
    repository.update_if_needed(busy, |change| {
        let record = records::by_file(repository, &signed.file)?.ok_or_else(missing)?;
        let key = records::version(&record.chart.name, &record.chart.version);
        let existing = repository.get_json::<ChartRecord>(&key)?.ok_or_else(missing)?;
        check_signature(&signed, &signed.file, existing.value.sha256.hex())?;
        match &existing.value.provenance {
            Some(known) if *known == digest => return Ok(Step::Done(())),
            Some(_) => {
                let text = format!("The chart {} already has a different signature", signed.file);
                return Err(Failure::already_exists(text));
            }
            None => {}
        }
        let record = ChartRecord { provenance: Some(digest.clone()), ..existing.value.clone() };
        change.put_json(&key, &record, Expectation::Revision(existing.revision), &record.blobs())?;
        change.about_package(&record.chart.name);
        Ok(Step::Commit(()))
    })?;
    saved()
}

fn saved() -> Result<Response, Failure> {
    let saved: Result<Response, Error> = Response::json(&json!({"saved": true}));
    Ok(saved?.with_status(201))
}
