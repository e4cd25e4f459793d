//! A format for texts under any path, built from the first release of the contract
//! (`wit/released/0.1.0`) without the SDK. Such a component must run on every later host. `GET`
//! answers from the first repository that has the path, which may be a proxy. `GET` of the
//! repository's own address lists the repositories that the host passed to the plugin.

wit_bindgen::generate!({ world: "plugin", path: "../../../wit/released/0.1.0", generate_all });

use exports::packhouse::format::format::Guest;
use packhouse::format::http::{Content, Failure, Intent, Problem, Request, Response};
use packhouse::format::records::{Expectation, Outcome, Repository, Version};
use packhouse::format::types::Error;
use packhouse::format::upstream::{Fetch, Reply};

struct Released;

impl Guest for Released {
    fn describe() -> String {
        r#"{"format": "released", "version": "0.1.0", "kinds": ["hosted", "proxy", "group"]}"#.to_owned()
    }

    fn route(_kind: String, request: &Request) -> Result<Intent, Failure> {
        let path = request.path().join("/");
        if request.method() != "PUT" {
            return Ok(Intent::new("read", Some(&path)));
        }
        let intent = Intent::new("publish", Some(&path));
        intent.body(1 << 20);
        Ok(intent)
    }

    fn check(_: &Request, _: Option<Repository>, _: Vec<Repository>) -> Result<(), Failure> {
        Ok(())
    }

    fn handle(
        request: &Request,
        target: Option<Repository>,
        others: Vec<Repository>,
    ) -> Result<Response, Failure> {
        let path = request.path().join("/");
        let target = target.ok_or_else(|| refused(500, "there is no repository"))?;
        if request.method() == "PUT" {
            return put(request, &target, &path);
        }
        let sources = if target.kind() == "group" { others } else { vec![target] };
        if path.is_empty() {
            let names: Vec<String> = sources.iter().map(Repository::name).collect();
            return Ok(answer(names.join(" ").into_bytes()));
        }
        for source in &sources {
            let found = match source.kind().as_str() {
                "proxy" => fetched(source, &path)?,
                _ => source.get(&path).map_err(broken)?.map(|entry| entry.value),
            };
            if let Some(text) = found {
                return Ok(answer(text));
            }
        }
        Err(refused(404, "there is no such text"))
    }
}

fn put(request: &Request, target: &Repository, path: &str) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| refused(400, "there is no body"))?;
    let text = body.read(0, 1 << 20).map_err(broken)?;
    let change = target.begin().map_err(broken)?;
    change.put(path, &text, Expectation::Anything, &[]);
    change.show(&Version {
        name: path.to_owned(),
        version: "1".to_owned(),
        files: Vec::new(),
        published: None,
        summary: String::new(),
        properties: Vec::new(),
        state: String::new(),
    });
    match packhouse::format::records::Transaction::commit(change).map_err(broken)? {
        Outcome::Applied(_) => Ok(Response { status: 201, ..answer(Vec::new()) }),
        _ => Err(refused(500, "an unconditional put failed")),
    }
}

fn fetched(proxy: &Repository, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    let reply = Fetch::start(Fetch::new("GET", path), proxy).map_err(broken)?;
    match reply.status().map_err(broken)? {
        200 => Ok(Some(Reply::body(reply).map_err(broken)?.read(0, 1 << 20).map_err(broken)?)),
        404 => Ok(None),
        _ => Err(refused(502, "the upstream failed")),
    }
}

fn answer(text: Vec<u8>) -> Response {
    Response { status: 200, headers: Vec::new(), content: Content::Inline(text), options: None }
}

fn broken(error: Error) -> Failure {
    refused(500, &format!("{error:?}"))
}

fn refused(status: u16, message: &str) -> Failure {
    let problem = Problem { code: "refused".to_owned(), message: message.to_owned(), detail: String::new() };
    Failure { status, headers: Vec::new(), problems: vec![problem] }
}

export!(Released);
