//! What several repositories have of a package: the one that was asked, or those of a group's members that the host lets serve it.

use crate::name::Name;
use crate::packument::Rendering;
use crate::records::{Package, missing};
use crate::version_piece::Piece;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure};
use std::collections::BTreeMap;

/// Adds what each repository knows of a package.
///
/// # Errors
/// 404 where none knows it.
pub(crate) fn each(cx: &Context, name: &Name, rendering: &mut Rendering<'_>) -> Result<(), Failure> {
    let mut sources = Vec::new();
    for repository in cx.sources()? {
        if repository.is_proxy() {
            sources.push((repository, None));
        } else if let Some(package) = Package::find(repository, name)? {
            sources.push((repository, Some(package)));
        }
    }
    let (alone, mut found, mut left_out) = (sources.len() == 1, None, cx.left_out());
    for (repository, package) in sources {
        let added = match package {
            None => proxy::add(cx, repository, name, alone, rendering).map(|added| added.then_some(())),
            Some(package) => {
                hosted::add(repository, name, package, alone, rendering).map(Some).map_err(Failure::from)
            }
        };
        found = found.or(left_out.unless_failed(repository, added)?);
    }
    left_out.or_failure(found)?.ok_or_else(|| missing(name))
}

/// The tags of a package.
///
/// # Errors
/// 404 where no repository knows it.
pub(crate) fn tags(cx: &Context, name: &Name) -> Result<BTreeMap<String, String>, Failure> {
    // A package of which nothing is offered has no tags, and is there.
    let found = cx.all(|repository| {
        Ok(if repository.is_proxy() {
            proxy::UpstreamPackage::open(cx, repository, name)?.map(|upstream| upstream.tags)
        } else {
            Package::find(repository, name)?.map(|package| package.value.tags)
        })
    })?;
    if found.is_empty() {
        return Err(missing(name));
    }
    let mut all = BTreeMap::new();
    for (tag, number) in found.into_iter().flatten() {
        all.entry(tag).or_insert(number);
    }
    Ok(all)
}

/// One version, from the first repository that has it.
pub(crate) fn version(cx: &Context, name: &Name, number: &str) -> Result<Option<Piece>, Failure> {
    cx.first(|repository| {
        if repository.is_proxy() {
            proxy::version(cx, repository, name, number)
        } else {
            Ok(hosted::version(repository, name, number)?)
        }
    })
}
