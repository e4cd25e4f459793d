//! Files under any path: `PUT` stores one, `GET` fetches it, `DELETE` removes it.

use packhouse_sdk::{
    Context, Description, Expectation, Failure, Format, Intent, Outcome, Params, Plan, Request, Response, Router,
    Version, VersionId,
};

struct Raw;

impl Format for Raw {
    fn describe() -> Description {
        Description::new("raw", env!("CARGO_PKG_VERSION"))
    }

    fn routes(router: &mut Router) {
        router.get("/{path..}", Plan::read, Self::fetch);
        router.put("/{path..}", Self::plan_store, Self::store);
        router.delete("/{path..}", Plan::delete, Self::remove);
    }
}

impl Raw {
    fn fetch(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
        let repository = cx.target()?;
        let digest = repository.get_json(&params.joined("path"))?.map(|entry| entry.value);
        let blob = digest.map(|digest| repository.blob(&digest)).transpose()?.flatten();
        Ok(Response::blob(blob.ok_or_else(|| Failure::not_found("There is no such file"))?).revalidate())
    }

    fn plan_store(_request: &Request, params: &Params) -> Result<Intent, Failure> {
        Ok(Intent::publish().subject(params.joined("path")).body(1 << 30))
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
            Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(Failure::conflict("It changed meanwhile")),
        }
    }

    fn remove(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
        let path = params.joined("path");
        let mut change = cx.target()?.begin()?;
        change.remove(&path, Expectation::Present).hide(&VersionId::new(&path, "latest"));
        match change.commit()? {
            Outcome::Applied(_) => Ok(Response::no_content()),
            Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(Failure::not_found("There is no such file")),
        }
    }
}

packhouse_sdk::export!(Raw);
