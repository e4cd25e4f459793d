//! A format for things in boxes: `/depot/in/REPOSITORY/BOX/THING`. It tests the host's support for
//! root paths, scopes, groups and copies between repositories, without the rules of a real format.

use packhouse_sdk::{
    Challenge, Claim, Context, Description, ErrorStyle, Expectation, Failure, Format, Intent, Outcome,
    Params, Plan, Repository, Request, Response, Router, TokenService,
};

pub struct Depot;

impl Format for Depot {
    fn describe() -> Description {
        Description::new("depot", "0.1.0")
            .kinds(&["hosted", "proxy", "group"])
            .error_style(ErrorStyle::Registry)
            .challenge(Challenge::Bearer)
            .token_service(TokenService::new("/depot/token").words(["fetch", "add", "drop"]))
            .claim(Claim::new("root", "/depot/"))
            .claim(
                Claim::new("box", "/depot/in/{repository}/")
                    .challenge("box:in/{repository}/{subject}:{action}"),
            )
    }

    fn routes(router: &mut Router) {
        router.claim("root", |router| {
            router.get("/", Plan::read, |_, _, _| Ok(Response::text("a depot")));
            router.get("/open", Plan::open, |_, _, _| Ok(Response::text("for anyone")));
            router.get("/fall", Plan::read, |_, _, _| std::process::abort());
            router.get("/list", Plan::read, |_, _, _| Err(Failure::new(405, "UNSUPPORTED", "no list")));
            router.get("/{path..}", |_, _| Err(no_name()), unreachable);
            router.put("/{path..}", |_, _| Err(no_name()), unreachable);
        });
        router.claim("box", |router| {
            router.get("/{box}/{thing}", plan_fetch, fetch);
            router.put(
                "/{box}/{thing}",
                |_, params| Ok(Intent::publish().subject(named(params)).body(100)),
                store,
            );
            router.post("/{box}/{thing}", plan_copy, copy);
            router.delete("/{box}/{thing}", Plan::delete, remove);
            router.get("/{path..}", |_, _| Err(no_name()), unreachable);
        });
    }
}

fn no_name() -> Failure {
    Failure::new(400, "NAME_INVALID", "no such name")
}

fn unreachable(_: &Context, _: &Request, _: &Params) -> Result<Response, Failure> {
    Err(Failure::internal("a plan that always refuses was handled"))
}

fn named(params: &Params) -> String {
    params.joined("box")
}

fn key(params: &Params) -> String {
    format!("{}/{}", params.joined("box"), params.joined("thing"))
}

/// Plans a read that also accepts credentials which can only write, because clients query before
/// they write.
fn plan_fetch(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let intent = Intent::read().subject(named(params));
    Ok(if request.query("before") == Some("add") { intent.for_publish() } else { intent })
}

fn plan_copy(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let from = request.query("from").ok_or_else(no_name)?;
    Ok(Intent::publish().subject(named(params)).also_read(from))
}

/// Answers from the first repository that has the thing: the target, or a group's members in their
/// order.
fn fetch(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let key = key(params);
    for repository in std::iter::once(cx.target()?).chain(cx.others()) {
        if let Some(record) = repository.get_json(&key)? {
            let blob = repository.blob(&record.value)?.ok_or_else(missing)?;
            return Ok(Response::blob(blob).revalidate());
        }
    }
    Err(missing())
}

fn store(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    put(cx.target()?, &key(params), &body)?;
    Ok(Response::created())
}

/// Answers 201 if the source can be read and has the thing, otherwise 202.
fn copy(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let key = key(params);
    let Some(source) = cx.others().first() else { return Ok(Response::accepted()) };
    let Some(record) = source.get_json(&key)? else { return Ok(Response::accepted()) };
    let blob = source.blob(&record.value)?.ok_or_else(missing)?;
    put(cx.target()?, &key, &blob)?;
    Ok(Response::created())
}

fn put(repository: &Repository, key: &str, blob: &packhouse_sdk::Blob) -> Result<(), Failure> {
    let digest = repository.keep(blob)?;
    let mut change = repository.begin()?;
    change.put_json(key, &digest, Expectation::Anything, std::slice::from_ref(&digest))?;
    match change.commit()? {
        Outcome::Applied(_) => Ok(()),
        Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(Failure::internal("an unconditional put failed")),
    }
}

fn remove(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let mut change = cx.target()?.begin()?;
    change.remove(&key(params), Expectation::Present);
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::accepted()),
        Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(missing()),
    }
}

fn missing() -> Failure {
    Failure::new(404, "THING_UNKNOWN", "no such thing")
}

packhouse_sdk::export!(Depot);
