//! A format for files under any path: `PUT` stores a file, `GET` fetches it, `DELETE` removes it.

use packhouse_sdk::{
    Context, Description, Expectation, Failure, Format, Intent, Outcome, Params, Plan, Request, Response,
    Router, Version, VersionId,
};

pub struct Raw;

impl Format for Raw {
    fn describe() -> Description {
        Description::new("raw", "0.1.0")
    }

    fn routes(router: &mut Router) {
        router.get("/{path..}", Plan::read, fetch);
        router.put("/{path..}", plan_store, store);
        router.delete("/{path..}", Plan::delete, remove);
    }
}

fn fetch(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let record = cx.target()?.get_json(&params.joined("path"))?.ok_or_else(missing)?;
    let blob = cx.target()?.blob(&record.value)?.ok_or_else(missing)?;
    Ok(Response::blob(blob).revalidate())
}

fn plan_store(_: &Request, params: &Params) -> Result<Intent, Failure> {
    match params.joined("path") {
        path if path.len() > 1024 => Err(Failure::invalid("A path has at most 1,024 bytes")),
        path => Ok(Intent::publish().subject(path).body(1 << 30)),
    }
}

fn store(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, path) = (cx.target()?, params.joined("path"));
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    let digest = repository.keep(&body)?;
    let mut change = repository.begin()?;
    change.put_json(&path, &digest, Expectation::Anything, std::slice::from_ref(&digest))?;
    change.show(&Version::new(&path, "latest").file(&path, digest, body.size()?));
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::created()),
        Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(Failure::internal("an unconditional put failed")),
    }
}

fn remove(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let path = params.joined("path");
    let mut change = cx.target()?.begin()?;
    change.remove(&path, Expectation::Present).hide(&VersionId::new(&path, "latest"));
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::no_content()),
        Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(missing()),
    }
}

fn missing() -> Failure {
    Failure::not_found("There is no such file")
}

packhouse_sdk::export!(Raw);
