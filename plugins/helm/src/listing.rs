//! Charts as the repositories have them: read from records, or from an upstream's index.

use crate::listed::{Listed, Listing};
use crate::records::{self, ChartRecord};
use crate::{name, proxy};
use packhouse_sdk::{Context, Failure, Repository};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// All charts; of one version in two repositories the first stands. The newest version is first.
/// None where no repository has an index.
pub(crate) fn all(cx: &Context) -> Result<Option<Listing>, Failure> {
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
    let is_there = !found.is_empty() || cx.sources()?.is_empty();
    Ok(is_there.then(|| joined(found)))
}

/// One chart, as [`all`] has it; empty where there is none.
pub(crate) fn of(cx: &Context, name: &str) -> Result<Vec<Listed>, Failure> {
    if !name::is_name(name) {
        return Ok(Vec::new());
    }
    let found = cx.all(|repository| {
        let mut listing = if repository.is_proxy() {
            proxy::listing(cx, repository)?.unwrap_or_default()
        } else {
            hosted(repository, &records::versions(name))?
        };
        Ok(listing.remove(name).map(|versions| Listing::from([(name.to_owned(), versions)])))
    })?;
    Ok(joined(found).remove(name).unwrap_or_default())
}

fn hosted(repository: &Repository, prefix: &str) -> Result<Listing, Failure> {
    let mut found = Listing::new();
    for entry in repository.scan(prefix) {
        let record = entry?.json::<ChartRecord>()?.value;
        found.entry(record.chart.name.clone()).or_default().push(record.listed());
    }
    Ok(found)
}

fn joined(listings: Vec<Listing>) -> Listing {
    let mut found = Listing::new();
    for (name, versions) in listings.into_iter().flatten() {
        let there = found.entry(name).or_default();
        let known: BTreeSet<String> = there.iter().map(|one| one.chart.version.clone()).collect();
        there.extend(versions.into_iter().filter(|one| !known.contains(&one.chart.version)));
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
