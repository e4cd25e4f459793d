//! Publishing: a chart's archive as a body or in ChartMuseum's form, and the signature that goes with it.

use crate::archive;
use crate::provenance::{self, Signed, bad};
use crate::records::{self, ChartRecord, Holder};
use crate::{FILE_LIMIT, busy, name};
use packhouse_sdk::{
    Blob, Context, Entry, Error, Expectation, Failure, Intent, Params, Part, Redeploy, Repository, Request,
    Response, Settings, Step,
};
use serde_json::json;

/// Bytes of a form: a chart, and its signature.
pub(crate) const FORM_LIMIT: u64 = FILE_LIMIT + (2 << 20);

pub(crate) fn plan_post(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let kind = request.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    let form = kind.starts_with("multipart/form-data");
    Ok(if form { Intent::publish().parts(FORM_LIMIT) } else { Intent::publish().body(FILE_LIMIT) })
}

pub(crate) fn plan_put(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    if name::cuts(file.strip_suffix(".prov").unwrap_or(file)).is_empty() {
        let text = "A chart's file is called NAME-VERSION.tgz, and its signature NAME-VERSION.tgz.prov";
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

/// `POST /api/charts`.
pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (chart, signature) = match request.take_body() {
        Some(body) => (body, None),
        None => {
            let [chart, signature] = fields(request.take_parts(), ["chart", "prov"])?;
            let missing = || Failure::invalid("The form has no chart: its archive goes in the field `chart`");
            (chart.ok_or_else(missing)?, signature)
        }
    };
    store(cx, &chart, signature.as_ref(), None)
}

/// `POST /api/prov`.
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

/// `PUT` of a file by its name.
pub(crate) fn put(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (file, body) = (params.segment("file"), request.planned_body()?);
    match file.strip_suffix(".prov") {
        Some(chart) => sign(cx.target()?, &body, Some(chart)),
        None => store(cx, &body, None, Some(file)),
    }
}

/// The fields of a form that count, each at most once.
fn fields<const N: usize>(parts: Vec<Part>, names: [&str; N]) -> Result<[Option<Blob>; N], Failure> {
    let mut found = [const { None }; N];
    for part in parts {
        let Some(place) = names.iter().zip(&mut found).find(|(name, _)| **name == part.name) else {
            continue;
        };
        if place.1.replace(part.body).is_some() {
            return Err(Failure::invalid(format!("The field `{}` is in the form twice", part.name)));
        }
    }
    Ok(found)
}

/// Keeps a chart, once all that is said of it agrees.
fn store(
    cx: &Context,
    file: &Blob,
    signature: Option<&Blob>,
    called: Option<&str>,
) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let settings = Settings::of(repository)?;
    let (size, limit) = (file.size()?, settings.file_limit(FILE_LIMIT));
    if size > limit {
        return Err(Failure::too_large(format!(
            "The chart has {size} bytes, and at most {limit} are allowed"
        )));
    }
    let chart = archive::chart(file)?;
    let own = name::file(&chart.name, &chart.version);
    if let Some(called) = called.filter(|called| **called != own) {
        let text = format!("The address says {called}, but the chart in it is {own}");
        return Err(Failure::new(400, "invalid_chart", text));
    }
    let sha256 = repository.keep(file)?;
    let provenance = match signature {
        Some(signature) => {
            agree(&provenance::read(signature)?, &own, sha256.hex())?;
            Some(repository.keep(signature)?)
        }
        None => None,
    };
    let record = ChartRecord { chart, sha256, size, time: cx.now(), provenance, deprecated: None };
    commit(repository, &settings, &record)?;
    saved()
}

fn agree(signed: &Signed, file: &str, sha256: &str) -> Result<(), Failure> {
    if signed.file != file {
        return Err(bad(&format!("It is of {}, and not of {file}", signed.file)));
    }
    if signed.sha256 != sha256 {
        return Err(bad("The sha256 in it is not that of the chart"));
    }
    Ok(())
}

fn commit(repository: &Repository, settings: &Settings, record: &ChartRecord) -> Result<(), Failure> {
    let (name, version) = (&record.chart.name, &record.chart.version);
    let file = name::file(name, version);
    let (key, holder_key) = (records::version(name, version), records::file(&file));
    let holder = Holder { name: name.clone(), version: version.clone() };
    repository.update_if_needed(busy, |change| {
        let there = repository.get_json::<ChartRecord>(&key)?;
        let held = repository.get_json::<Holder>(&holder_key)?;
        let record = match &there {
            Some(there) => match repeated(settings, there, record)? {
                Some(signed) => signed,
                None => return Ok(Step::Done(())),
            },
            None => {
                free(settings, held.as_ref(), &holder, &file)?;
                record.clone()
            }
        };
        change.put_json(&key, &record, Expectation::unchanged(there.as_ref()), &record.blobs())?;
        change.put_json(&holder_key, &holder, Expectation::unchanged(held.as_ref()), &[])?;
        show(change, &record);
        Ok(Step::Commit(()))
    })
}

/// What becomes of a version that is there: nothing, or the signature that it lacked is added.
fn repeated(
    settings: &Settings,
    there: &Entry<ChartRecord>,
    record: &ChartRecord,
) -> Result<Option<ChartRecord>, Failure> {
    let (name, version) = (&record.chart.name, &record.chart.version);
    let signed = record.provenance.is_none()
        || there.value.provenance.is_none()
        || record.provenance == there.value.provenance;
    if settings.redeploy != Redeploy::Identical || there.value.sha256 != record.sha256 || !signed {
        let text = format!("Version {version} of the chart {name} is there already; publish a new version");
        return Err(Failure::already_exists(text));
    }
    if record.provenance.is_none() || there.value.provenance.is_some() {
        return Ok(None);
    }
    Ok(Some(ChartRecord { provenance: record.provenance.clone(), ..there.value.clone() }))
}

/// Whether a file's name may be used.
fn free(settings: &Settings, held: Option<&Entry<Holder>>, mine: &Holder, file: &str) -> Result<(), Failure> {
    let Some(Holder { name, version }) = held.map(|held| &held.value) else { return Ok(()) };
    if (name, version) != (&mine.name, &mine.version) {
        let text = format!("The file {file} is that of version {version} of the chart {name}");
        return Err(Failure::already_exists(text));
    }
    if settings.republish_deleted {
        return Ok(());
    }
    let text = format!(
        "Version {version} of the chart {name} was deleted here, and its number is not used again; publish a new version"
    );
    Err(Failure::already_exists(text))
}

pub(crate) fn show(change: &mut packhouse_sdk::Transaction, record: &ChartRecord) {
    let path = format!("charts/{}", name::file(&record.chart.name, &record.chart.version));
    change.show(&record.shown().file(path, record.sha256.clone(), record.size));
}

/// Adds a signature to a chart that is there.
fn sign(repository: &Repository, signature: &Blob, called: Option<&str>) -> Result<Response, Failure> {
    let signed = provenance::read(signature)?;
    if let Some(called) = called.filter(|called| **called != signed.file) {
        return Err(bad(&format!("It is of {}, and not of {called}", signed.file)));
    }
    let digest = repository.keep(signature)?;
    let missing = || Failure::not_found(format!("There is no chart {} here: publish it first", signed.file));
    repository.update_if_needed(busy, |change| {
        let record = records::by_file(repository, &signed.file)?.ok_or_else(missing)?;
        let key = records::version(&record.chart.name, &record.chart.version);
        let there = repository.get_json::<ChartRecord>(&key)?.ok_or_else(missing)?;
        agree(&signed, &signed.file, there.value.sha256.hex())?;
        match &there.value.provenance {
            Some(known) if *known == digest => return Ok(Step::Done(())),
            Some(_) => {
                let text = format!("The chart {} is signed already, by other bytes", signed.file);
                return Err(Failure::already_exists(text));
            }
            None => {}
        }
        let record = ChartRecord { provenance: Some(digest.clone()), ..there.value.clone() };
        change.put_json(&key, &record, Expectation::Revision(there.revision), &record.blobs())?;
        Ok(Step::Commit(()))
    })?;
    saved()
}

fn saved() -> Result<Response, Failure> {
    let saved: Result<Response, Error> = Response::json(&json!({"saved": true}));
    Ok(saved?.with_status(201))
}
