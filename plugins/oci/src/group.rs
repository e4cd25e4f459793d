//! Which repositories a read looks into: the target itself, or a group's members in their order.

use crate::failure;
use crate::records;
use crate::settings::Settings;
use packhouse_sdk::{Context, Failure, Repository};

/// The repositories to look into for this image. In a group, a name that a hosted member holds or claims is looked for in
/// hosted members alone, so that nobody can put another image of that name before it at a proxy's upstream.
///
/// # Errors
/// 404 `NAME_UNKNOWN` for a group none of whose members the caller may read.
pub(crate) fn sources<'a>(cx: &'a Context, image: &str) -> Result<Vec<&'a Repository>, Failure> {
    let target = cx.target()?;
    if target.kind() != "group" {
        return Ok(vec![target]);
    }
    let members: Vec<&Repository> = cx.others().iter().collect();
    if members.is_empty() {
        return Err(failure::no_members());
    }
    let (proxies, hosted): (Vec<_>, Vec<_>) =
        members.iter().copied().partition(|member| member.kind() == "proxy");
    if proxies.is_empty() {
        return Ok(hosted);
    }
    for member in &hosted {
        if holds(member, image)? || Settings::of(member)?.claims(image) {
            return Ok(hosted);
        }
    }
    Ok(members)
}

/// Whether a hosted repository has anything of an image.
///
/// # Errors
/// The host's.
pub(crate) fn holds(repository: &Repository, image: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::manifests(image)).page(1).next().transpose()?.is_some())
}

/// The first that one of the repositories answers. A member that cannot be asked ends it, because a later one must not stand in
/// for it; but where the digest is `named`, it is the same wherever it comes from, and the others are asked first.
///
/// # Errors
/// Those of [`sources`]; a member's own.
pub(crate) fn first<T>(
    cx: &Context,
    image: &str,
    named: bool,
    ask: impl Fn(&Repository) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let mut missed = None;
    for repository in sources(cx, image)? {
        match ask(repository) {
            Ok(Some(answer)) => return Ok(Some(answer)),
            Ok(None) => (),
            Err(failure) if named && failure.status == UNREACHED => missed = missed.or(Some(failure)),
            Err(failure) => return Err(failure),
        }
    }
    missed.map_or(Ok(None), Err)
}

/// The status of an upstream that could not be asked.
const UNREACHED: u16 = 502;
