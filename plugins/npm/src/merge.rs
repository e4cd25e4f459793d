//! Which repositories a package is read from: the one that was asked, or a group's members. A name that a hosted member has
//! belongs to this organization: what somebody else publishes under it elsewhere is not seen (dependency confusion).

use crate::name::Name;
use crate::packument::{Piece, Rendering};
use crate::records::{Package, missing};
use crate::settings::Settings;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure, Repository};
use std::collections::BTreeMap;

/// The repositories that may have this package, in order.
pub(crate) fn repositories<'a>(cx: &'a Context, name: &Name) -> Result<Vec<&'a Repository>, Failure> {
    let target = cx.target()?;
    if target.kind() != "group" {
        return Ok(vec![target]);
    }
    let is_proxy = |member: &&Repository| member.kind() == "proxy";
    let hosted: Vec<&Repository> = cx.others().iter().filter(|member| !is_proxy(member)).collect();
    let mut ours = Settings::of(target)?.claims(name);
    for member in &hosted {
        ours = ours || Package::find(member, name)?.is_some();
    }
    Ok(if ours { hosted } else { cx.others().iter().collect() })
}

/// Adds what each repository knows of a package.
///
/// # Errors
/// 404 where none knows it.
pub(crate) fn each(cx: &Context, name: &Name, rendering: &mut Rendering<'_>) -> Result<(), Failure> {
    let mut found = false;
    for repository in repositories(cx, name)? {
        found |= match repository.kind().as_str() {
            "proxy" => proxy::add(cx, repository, name, rendering)?,
            _ => hosted::add(repository, name, rendering)?,
        };
    }
    if found { Ok(()) } else { Err(missing(name)) }
}

/// The tags of a package.
///
/// # Errors
/// 404 where no repository knows it.
pub(crate) fn tags(cx: &Context, name: &Name) -> Result<BTreeMap<String, String>, Failure> {
    let mut all: Option<BTreeMap<String, String>> = None;
    for repository in repositories(cx, name)? {
        let tags = match repository.kind().as_str() {
            "proxy" => proxy::Upstream::open(cx, repository, name)?.map(|upstream| upstream.tags),
            _ => Package::find(repository, name)?.map(|package| package.value.tags),
        };
        for (tag, number) in tags.into_iter().flatten() {
            all.get_or_insert_default().entry(tag).or_insert(number);
        }
    }
    all.ok_or_else(|| missing(name))
}

/// One version, from the first repository that has it.
pub(crate) fn version(cx: &Context, name: &Name, number: &str) -> Result<Option<Piece>, Failure> {
    for repository in repositories(cx, name)? {
        let piece = match repository.kind().as_str() {
            "proxy" => proxy::version(cx, repository, name, number)?,
            _ => hosted::version(repository, name, number)?,
        };
        if piece.is_some() {
            return Ok(piece);
        }
    }
    Ok(None)
}
