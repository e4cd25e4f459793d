//! Lists the charts of repositories: from records, or from an upstream's index.

use crate::listed::{ChartListing, ListedChart};
use crate::records::{self, ChartRecord};
use crate::{name, proxy};
use packhouse_sdk::{Context, Failure, Repository};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Lists all charts, each with its newest version first. Returns `None` if no repository has an
/// index. If two repositories have the same version, the list contains the version of the first
/// repository.
pub(crate) fn all(cx: &Context) -> Result<Option<ChartListing>, Failure> {
    let found = cx.all(|repository| {
        if !repository.is_proxy() {
            return hosted(repository, records::CHARTS).map(Some);
        }
        let Some(mut listing) = proxy::listing(cx, repository)? else { return Ok(None) };
        let names: Vec<String> = listing.keys().cloned().collect();
        for name in repository.withheld(&names)? {
            listing.remove(&name);
        }
        Ok(Some(listing))
    })?;
    let has_index = !found.is_empty() || cx.sources()?.is_empty();
    Ok(has_index.then(|| joined(found)))
}

/// Lists the versions of one chart, in the order of [`all`]. The list is empty if the chart does
/// not exist.
pub(crate) fn of(cx: &Context, name: &str) -> Result<Vec<ListedChart>, Failure> {
    if !name::is_name(name) {
        return Ok(Vec::new());
    }
    let found = cx.all(|repository| {
        let mut listing = if repository.is_proxy() {
            proxy::listing(cx, repository)?.unwrap_or_default()
        } else {
            hosted(repository, &records::versions(name))?
        };
        Ok(listing.remove(name).map(|versions| ChartListing::from([(name.to_owned(), versions)])))
    })?;
    Ok(joined(found).remove(name).unwrap_or_default())
}

fn hosted(repository: &Repository, prefix: &str) -> Result<ChartListing, Failure> {
    let mut found = ChartListing::new();
    for entry in repository.scan(prefix) {
        let record = entry?.json::<ChartRecord>()?.value;
        found.entry(record.chart.name.clone()).or_default().push(record.into_listed());
    }
    Ok(found)
}

fn joined(listings: Vec<ChartListing>) -> ChartListing {
    let mut found = ChartListing::new();
    for (name, versions) in listings.into_iter().flatten() {
        let listed = found.entry(name).or_default();
        let known: BTreeSet<String> = listed.iter().map(|one| one.chart.version.clone()).collect();
        listed.extend(versions.into_iter().filter(|one| !known.contains(&one.chart.version)));
    }
    for versions in found.values_mut() {
        versions.sort_by_cached_key(|one| {
            Reverse((name::version(&one.chart.version), one.chart.version.clone()))
        });
        versions.dedup_by(|one, before| one.chart.version == before.chart.version);
    }
    found.retain(|_, versions| !versions.is_empty());
    found
}
