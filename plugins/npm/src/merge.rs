//! Which repositories a package is read from: the one that was asked, or a group's members. A name that a hosted member has
//! belongs to this organization: what somebody else publishes under it elsewhere is not seen (dependency confusion).

use crate::name::Name;
use crate::packument::{Piece, Rendering};
use crate::records::{Package, missing};
use crate::settings::Settings;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure, Repository};
use std::collections::BTreeMap;

/// The repositories that may have this package, in order. A name that the target or one of its members claims is looked for in
/// no proxy.
pub(crate) fn repositories<'a>(cx: &'a Context, name: &Name) -> Result<Vec<&'a Repository>, Failure> {
    let target = cx.target()?;
    let all: Vec<&Repository> = match target.kind().as_str() {
        "group" => cx.others().iter().collect(),
        _ => vec![target],
    };
    let is_proxy = |repository: &&Repository| repository.kind() == "proxy";
    let (proxies, hosted): (Vec<&Repository>, Vec<&Repository>) = all.iter().copied().partition(is_proxy);
    if proxies.is_empty() {
        return Ok(all);
    }
    let mut ours = Settings::of(target)?.claims(name);
    for member in &all {
        ours = ours || Settings::of(member)?.claims(name);
    }
    for member in &hosted {
        ours = ours || Package::find(member, name)?.is_some();
    }
    Ok(if ours { hosted } else { all })
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
