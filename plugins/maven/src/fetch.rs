//! `GET` and `HEAD` of a path in a repository or in the members of a group.

use crate::answer::parse;
use crate::checksum::Algorithm;
use crate::layout::{FilePath, PathTarget};
use crate::records::{self, PendingChecksums};
use crate::{group, hosted, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let packages = target.packages();
    let intent = packages.into_iter().fold(Intent::read().subject(target.subject()), Intent::about_package);
    // A deploy reads metadata before it writes, so a credential that may only write may read
    // metadata.
    let part_of_publish = match &target {
        PathTarget::Metadata(_) => true,
        PathTarget::Checksum(of, _) => matches!(**of, PathTarget::Metadata(_)),
        _ => false,
    };
    Ok(if part_of_publish { intent.for_publish() } else { intent })
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let target = parse(request)?;
    if repository.is_proxy() {
        return proxy::get(cx, repository, request, &target);
    }
    if repository.is_group() {
        return group::get(cx, request, &target);
    }
    if let PathTarget::Checksum(of, algorithm) = &target
        && let PathTarget::File(file) = &**of
    {
        return get_checksum(
            cx,
            repository,
            request,
            Sidecar { target: &target, file, algorithm: *algorithm },
        );
    }
    hosted::get(cx, repository, request, &target)
}

/// A checksum file, and the file that it belongs to.
#[derive(Clone, Copy)]
struct Sidecar<'a> {
    /// The path of the checksum file.
    target: &'a PathTarget,
    file: &'a FilePath,
    algorithm: Algorithm,
}

/// Serves a checksum file of a hosted repository. Clients can also read a checksum that was
/// uploaded and still waits for its file. `HEAD` finds only checksums that a client uploaded. If
/// `HEAD` found a computed checksum, Ivy would assume that another publisher uploaded the file, and
/// would stop publishing.
fn get_checksum(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    sidecar: Sidecar<'_>,
) -> Result<Response, Failure> {
    let Sidecar { target, file, algorithm } = sidecar;
    match hosted::record(repository, &file.path)? {
        Some(existing) if request.method == "HEAD" && !existing.is_stated(algorithm) => {
            Err(not_uploaded(algorithm))
        }
        Some(_) => hosted::get(cx, repository, request, target),
        None => {
            let pending = repository.get_json::<PendingChecksums>(&records::pending(&file.path))?;
            let pending = pending.map(|pending| pending.value.current(cx.now()));
            match pending.as_ref().and_then(|pending| pending.text(algorithm)) {
                Some(text) => Ok(Response::text(text).revalidate()),
                None => hosted::get(cx, repository, request, target),
            }
        }
    }
}

fn not_uploaded(algorithm: Algorithm) -> Failure {
    Failure::not_found(format!("No client uploaded a {} of this file; `GET` computes it", algorithm.name()))
}
