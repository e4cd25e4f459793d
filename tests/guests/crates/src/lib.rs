//! The part of a crate registry that cargo needs to publish and fetch a crate. Below
//! `/crates/REPOSITORY/`, it serves a sparse index and two calls of the API. The index requires a
//! token from the first request on. Cargo sends its token in `Authorization` without a scheme. The
//! challenge, in a form that only cargo reads, tells the user where to get a token. Cargo shows
//! `errors[].detail` of every refusal.

use packhouse_sdk::{
    Authorization, Blob, Challenge, Claim, Context, Description, ErrorTemplate, Expectation, Failure, Format,
    Intent, Outcome, Params, Plan, Request, Response, Router,
};
use serde_json::{Value, json};

pub struct Crates;

/// Size limit of a crate with its metadata, in bytes.
const LIMIT: u64 = 1 << 20;
/// Size limit of the metadata, in bytes.
const METADATA_LIMIT: u32 = 64 << 10;

impl Format for Crates {
    fn describe() -> Description {
        let errors =
            ErrorTemplate::new(json!({"errors": "{problems}"})).problem(json!({"detail": "{message}"}));
        Description::new("crates", "0.1.0")
            .kinds(&["hosted", "proxy", "group"])
            .errors(errors)
            .challenge(Challenge::scheme("Cargo").parameter("login_url", "{api_url}/tokens").into())
            .authorization(&[Authorization::Bare, Authorization::Bearer, Authorization::Basic])
            .open_requests(&[])
            .max_file_bytes(LIMIT)
            .claim(Claim::new("registry", "/crates/{repository}/"))
    }

    fn routes(router: &mut Router) {
        router.claim("registry", |router| {
            router.get("/config.json", Plan::read_many, config);
            router.put("/api/v1/crates/new", plan_publish, publish);
            router.get("/api/v1/crates/{name}/{version}/download", Plan::read, download);
            router.get("/{path..}", Plan::read, index);
        });
    }
}

fn config(_: &Context, request: &Request, _: &Params) -> Result<Response, Failure> {
    let config = json!({
        "dl": request.link("api/v1/crates"),
        "api": request.link("").trim_end_matches('/'),
        "auth-required": true,
    });
    Ok(Response::json(&config)?)
}

/// The index lines of one crate. The last path segment is the crate's name; the segments before it
/// only spread the crates over folders.
fn index(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let name = params.segments("path").last().map(String::as_str).unwrap_or_default();
    let lines: Vec<String> = cx
        .target()?
        .scan(format!("index/{name}/"))
        .map(|entry| Ok(String::from_utf8_lossy(&entry?.value).into_owned()))
        .collect::<Result<_, Failure>>()?;
    if lines.is_empty() { Err(missing()) } else { Ok(Response::text(lines.join("\n"))) }
}

fn plan_publish(_: &Request, _: &Params) -> Result<Intent, Failure> {
    Ok(Intent::publish().body(LIMIT))
}

fn publish(cx: &Context, request: &Request, _: &Params) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    let length = number(&body, 0)?;
    if length > METADATA_LIMIT {
        return Err(Failure::invalid("The metadata is too long."));
    }
    let metadata: Value = serde_json::from_slice(&body.read(4, length)?)
        .map_err(|_| Failure::invalid("The metadata is not JSON."))?;
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("vers"));
    if name.is_empty() || version.is_empty() {
        return Err(Failure::invalid("A crate has a name and a version."));
    }
    let start = 4 + u64::from(length);
    let size = u64::from(number(&body, start)?);
    let repository = cx.target()?;
    let digest = repository.keep(&body.slice(start + 4, size)?)?;
    let line = json!({
        "name": name, "vers": version, "deps": [], "cksum": digest.hex(), "features": {}, "yanked": false,
    });
    let mut change = repository.begin()?;
    let held = std::slice::from_ref(&digest);
    change.put_json(&format!("file/{name}/{version}"), &digest, Expectation::Absent, held)?;
    change.put(&format!("index/{name}/{version}"), line.to_string().as_bytes(), Expectation::Absent, &[]);
    match change.commit()? {
        Outcome::Applied(_) => {
            let warnings = json!({"invalid_categories": [], "invalid_badges": [], "other": []});
            Ok(Response::json(&json!({"warnings": warnings}))?)
        }
        Outcome::Stale(_) => {
            Err(Failure::already_exists(format!("crate version `{version}` is already uploaded")))
        }
        Outcome::UnknownBlobs(_) => Err(Failure::internal("a blob that was stored is unknown")),
    }
}

/// A length as cargo writes it: 32 bits, little-endian.
fn number(body: &Blob, offset: u64) -> Result<u32, Failure> {
    let bytes = body.read(offset, 4)?;
    let bytes: [u8; 4] = bytes.try_into().map_err(|_| Failure::invalid("The body ends too early."))?;
    Ok(u32::from_le_bytes(bytes))
}

fn download(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let key = format!("file/{}/{}", params.segment("name"), params.segment("version"));
    let record = cx.target()?.get_json(&key)?.ok_or_else(missing)?;
    Ok(Response::blob(cx.target()?.blob(&record.value)?.ok_or_else(missing)?).immutable())
}

fn missing() -> Failure {
    Failure::not_found("There is no such crate")
}

packhouse_sdk::export!(Crates);
