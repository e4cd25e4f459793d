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
    let (alone, mut found) = (sources.len() == 1, false);
    for (repository, package) in sources {
        found |= match package {
            None => proxy::add(cx, repository, name, alone, rendering)?,
            Some(package) => {
                hosted::add(repository, name, package, alone, rendering)?;
                true
            }
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
    for repository in cx.sources()? {
        let tags = if repository.is_proxy() {
            proxy::UpstreamPackage::open(cx, repository, name)?.map(|upstream| upstream.tags)
        } else {
            Package::find(repository, name)?.map(|package| package.value.tags)
        };
        // A package of which nothing is offered has no tags, and is there.
        let Some(tags) = tags else { continue };
        let all = all.get_or_insert_default();
        for (tag, number) in tags {
            all.entry(tag).or_insert(number);
        }
    }
    all.ok_or_else(|| missing(name))
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
