//! `GET` and `HEAD`: what a path names is looked up in the repository, or in a group's members.

use crate::answer::parse;
use crate::checksum::Algorithm;
use crate::layout::{FilePath, Target};
use crate::records::{self, Held};
use crate::{group, hosted, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let packages = target.packages();
    let intent = packages.into_iter().fold(Intent::read().subject(target.subject()), Intent::about_package);
    // A deploy reads metadata before it writes: a credential that may only write can do that much.
    let part_of_publish = match &target {
        Target::Metadata(_) => true,
        Target::Checksum(of, _) => matches!(**of, Target::Metadata(_)),
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
    if let Target::Checksum(of, algorithm) = &target
        && let Target::File(file) = &**of
    {
        return sidecar(cx, repository, request, Sidecar { target: &target, file, algorithm: *algorithm });
    }
    hosted::get(cx, repository, request, &target)
}

/// A checksum that stands beside a file.
#[derive(Clone, Copy)]
struct Sidecar<'a> {
    /// The checksum.
    target: &'a Target,
    file: &'a FilePath,
    algorithm: Algorithm,
}

/// A checksum of a hosted repository that is asked for itself. Before its file is there, it can be read back. `HEAD` tells whether
/// a client put it: Ivy takes one that it did not put for another's file, and publishes no further.
fn sidecar(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    asked: Sidecar<'_>,
) -> Result<Response, Failure> {
    let Sidecar { target, file, algorithm } = asked;
    match hosted::record(repository, &file.path)? {
        Some(there) if request.method == "HEAD" && !there.is_stated(algorithm) => Err(not_put(algorithm)),
        Some(_) => hosted::get(cx, repository, request, target),
        None => {
            let held = repository.get_json::<Held>(&records::held(&file.path))?;
            let held = held.map(|held| held.value.current(cx.now()));
            match held.as_ref().and_then(|held| held.text(algorithm)) {
                Some(text) => Ok(Response::text(text).revalidate()),
                None => hosted::get(cx, repository, request, target),
            }
        }
    }
}

fn not_put(algorithm: Algorithm) -> Failure {
    Failure::not_found(format!("No {} of it was put here; `GET` computes one", algorithm.name()))
}
