//! Merges a package from several repositories: the requested one, or the group members that the
//! host selects for the package.

use crate::name::PackageName;
use crate::packument::Rendering;
use crate::records::{PackageRecord, missing};
use crate::version_content::VersionContent;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure};
use std::collections::BTreeMap;

/// Adds the package's versions in each repository to a packument.
///
/// # Errors
/// 404 if no repository has the package.
pub(crate) fn each(cx: &Context, name: &PackageName, rendering: &mut Rendering<'_>) -> Result<(), Failure> {
    let mut sources = Vec::new();
    for repository in cx.sources()? {
        if repository.is_proxy() {
            sources.push((repository, None));
        } else if let Some(package) = PackageRecord::find(repository, name)? {
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

/// Returns the tags of a package. If several repositories have the same tag, the first repository
/// decides which version the tag names.
///
/// # Errors
/// 404 if no repository has the package.
pub(crate) fn tags(cx: &Context, name: &PackageName) -> Result<BTreeMap<String, String>, Failure> {
    // A proxy may have the package but offer none of its versions. It then returns an empty map of
    // tags, and the package is not missing.
    let found = cx.all(|repository| {
        Ok(if repository.is_proxy() {
            proxy::UpstreamPackage::open(cx, repository, name)?.map(|upstream| upstream.tags)
        } else {
            PackageRecord::find(repository, name)?.map(|package| package.value.tags)
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

/// Returns one version, from the first repository that has it.
pub(crate) fn version(
    cx: &Context,
    name: &PackageName,
    number: &str,
) -> Result<Option<VersionContent>, Failure> {
    cx.first(|repository| {
        if repository.is_proxy() {
            proxy::version(cx, repository, name, number)
        } else {
            Ok(hosted::version(repository, name, number)?)
        }
    })
}
