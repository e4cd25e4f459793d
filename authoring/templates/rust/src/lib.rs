//! Files under any path: `PUT` stores a file, `GET` fetches it, `DELETE` removes it.

use packhouse_sdk::{
    Client, Context, Description, Digest, Expectation, Failure, Format, Intent, Outcome, Params, Plan,
    Request, Response, Router, Version, VersionId,
};
use serde::{Deserialize, Serialize};

/// Maximum size of a file in bytes. An operator can set a lower limit.
const LARGEST: u64 = 1 << 30;

/// The plugin for this format.
pub struct Plugin;

impl Format for Plugin {
    fn describe() -> Description {
        Description::new("my-format", env!("CARGO_PKG_VERSION")).clients([
            Client::publish("curl", "curl --fail --user {email}:{token} --upload-file FILE {address}FILE"),
            Client::read("curl", "curl --fail --user {email}:{token} --remote-name {address}FILE"),
        ])
    }

    fn routes(router: &mut Router) {
        router.get("/{path..}", Plan::read, fetch);
        router.put("/{path..}", plan_store, store);
        router.delete("/{path..}", Plan::delete, remove);
    }
}

/// The record of a file, stored under the file's path.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Digest of the content. The repository finds the content by this digest.
    digest: Digest,
    /// Time of the upload, in ms since 1970.
    put_at: u64,
}

fn fetch(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let record = repository.get_json::<Stored>(&params.joined("path"))?.ok_or_else(missing)?;
    let blob = repository.recorded_blob(&record.value.digest)?;
    Ok(Response::blob(blob).modified(record.value.put_at).revalidate())
}

fn plan_store(_: &Request, params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::publish().subject(params.joined("path")).body(LARGEST))
}

fn store(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, path) = (cx.target()?, params.joined("path"));
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    let digest = repository.keep(&body)?;
    let stored = Stored { digest: digest.clone(), put_at: cx.now() };
    let mut change = repository.begin()?;
    change.put_json(&path, &stored, Expectation::Anything, std::slice::from_ref(&digest))?;
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

packhouse_sdk::export!(Plugin);
