//! Exports of the contract, implemented by a format.

use super::generated::packhouse::format as wit;
use super::{blobs, convert, imports, panics, repository};
use crate::{
    Content, Context, Failure, Format, Present, Repository, Response, Retention, Upkeep, VersionId, Versions,
    call,
};
use core::marker::PhantomData;

/// Format as a component.
pub struct Component<F>(PhantomData<F>);

impl<F: Format> super::plugin::exports::packhouse::format::format::Guest for Component<F> {
    fn describe() -> String {
        panics::install_hook();
        call::describe::<F>()
    }

    fn route(kind: String, request: &wit::http::Request) -> Result<wit::http::Intent, wit::http::Failure> {
        panics::install_hook();
        let request = imports::request(kind, request);
        let intent = call::route::<F>(&request);
        imports::leave(request);
        intent.map(convert::intent).map_err(convert::failure)
    }

    fn check(
        request: &wit::http::Request,
        target: Option<wit::records::Repository>,
        others: Vec<wit::records::Repository>,
    ) -> Result<(), wit::http::Failure> {
        let kind = target.as_ref().map(wit::records::Repository::kind).unwrap_or_default();
        let (cx, request) = (context(target, others), imports::request(kind, request));
        call::check::<F>(&cx, &request).map_err(convert::failure)
    }

    fn handle(
        request: &wit::http::Request,
        target: Option<wit::records::Repository>,
        others: Vec<wit::records::Repository>,
    ) -> Result<wit::http::Response, wit::http::Failure> {
        let request = imports::request_again(target.as_ref(), request);
        let cx = context(target, others);
        let answer = call::handle::<F>(&cx, &request).and_then(response);
        answer.map_err(convert::failure)
    }
}

impl<F: Upkeep> super::upkeep::exports::packhouse::format::upkeep::Guest for Component<F> {
    fn delete_version(
        target: wit::records::Repository,
        id: wit::records::VersionId,
    ) -> Result<(), wit::http::Failure> {
        let id = VersionId::new(id.name, id.version);
        call::delete_version::<F>(&context(Some(target), Vec::new()), &id).map_err(convert::failure)
    }

    fn mark_version(
        target: wit::records::Repository,
        id: wit::records::VersionId,
        state: String,
        reason: String,
    ) -> Result<(), wit::http::Failure> {
        let id = VersionId::new(id.name, id.version);
        call::mark_version::<F>(&context(Some(target), Vec::new()), &id, &state, &reason)
            .map_err(convert::failure)
    }
}

impl<F: Present> super::present::exports::packhouse::format::present::Guest for Component<F> {
    fn present_version(
        target: wit::records::Repository,
        id: wit::records::VersionId,
    ) -> Result<String, wit::http::Failure> {
        let id = VersionId::new(id.name, id.version);
        call::present_version::<F>(&context(Some(target), Vec::new()), &id).map_err(convert::failure)
    }
}

impl<F: Retention> super::retention::exports::packhouse::format::retention::Guest for Component<F> {
    fn judge_versions(
        target: wit::records::Repository,
        ids: Vec<wit::records::VersionId>,
    ) -> Result<String, wit::http::Failure> {
        let ids: Vec<VersionId> = ids.into_iter().map(|id| VersionId::new(id.name, id.version)).collect();
        call::judge_versions::<F>(&context(Some(target), Vec::new()), &ids).map_err(convert::failure)
    }

    fn list_unshown(target: wit::records::Repository, after: String) -> Result<String, wit::http::Failure> {
        call::list_unshown::<F>(&context(Some(target), Vec::new()), &after).map_err(convert::failure)
    }
}

impl<F: Versions> super::versions::exports::packhouse::format::versions::Guest for Component<F> {
    fn compare_versions(versions: Vec<String>) -> Vec<Option<u32>> {
        panics::install_hook();
        call::compare_versions::<F>(&versions)
    }
}

fn context(target: Option<wit::records::Repository>, others: Vec<wit::records::Repository>) -> Context {
    panics::install_hook();
    let repository = |host| Repository::new(Box::new(repository::Handle(host)));
    Context::new(
        Box::new(imports::Imports),
        target.map(repository),
        others.into_iter().map(repository).collect(),
    )
}

fn response(response: Response) -> Result<wit::http::Response, Failure> {
    let content = match response.content {
        Content::None => wit::http::Content::None,
        Content::Inline(bytes) => wit::http::Content::Inline(bytes),
        Content::Blob(blob) => wit::http::Content::Blob(blobs::into_blob(blob)?),
    };
    let options = response.modified.map(|at| {
        let options = wit::http::ResponseOptions::new();
        options.modified(at);
        options
    });
    Ok(wit::http::Response {
        status: response.status,
        headers: convert::headers(response.headers),
        content,
        options,
    })
}
