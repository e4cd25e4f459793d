//! Charts as the repositories have them: read from records, or from an upstream's index.

use crate::listed::{Listed, Listing};
use crate::records::{self, ChartRecord};
use crate::{name, proxy};
use packhouse_sdk::{Context, Failure, Repository};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// All charts; of one version in two repositories the first stands. The newest version is first.
pub(crate) fn all(cx: &Context) -> Result<Listing, Failure> {
    let mut found = Listing::new();
    for repository in cx.sources()? {
        let more = if repository.is_proxy() {
            let mut listing = proxy::listing(cx, repository)?;
            let names: Vec<String> = listing.keys().cloned().collect();
            for name in repository.withheld(&names)? {
                listing.remove(&name);
            }
            listing
        } else {
            hosted(repository, records::CHARTS)?
        };
        join(&mut found, more);
    }
    Ok(sorted(found))
}

/// One chart, as [`all`] has it; empty where there is none.
pub(crate) fn of(cx: &Context, name: &str) -> Result<Vec<Listed>, Failure> {
    if !name::is_name(name) {
        return Ok(Vec::new());
    }
    let mut found = Listing::new();
    for repository in cx.sources()? {
        let more = if repository.is_proxy() {
            let mut listing = proxy::listing(cx, repository)?;
            listing.remove(name).map(|versions| (name.to_owned(), versions)).into_iter().collect()
        } else {
            hosted(repository, &records::versions(name))?
        };
        join(&mut found, more);
    }
    Ok(sorted(found).remove(name).unwrap_or_default())
}

fn hosted(repository: &Repository, prefix: &str) -> Result<Listing, Failure> {
    let mut found = Listing::new();
    for entry in repository.scan(prefix) {
        let record = entry?.json::<ChartRecord>()?.value;
        found.entry(record.chart.name.clone()).or_default().push(record.listed());
    }
    Ok(found)
}

fn join(found: &mut Listing, more: Listing) {
    for (name, versions) in more {
        let there = found.entry(name).or_default();
        let known: BTreeSet<String> = there.iter().map(|one| one.chart.version.clone()).collect();
        there.extend(versions.into_iter().filter(|one| !known.contains(&one.chart.version)));
    }
}

fn sorted(mut found: Listing) -> Listing {
    for versions in found.values_mut() {
        versions.sort_by_cached_key(|one| {
            Reverse((name::version(&one.chart.version), one.chart.version.clone()))
        });
        versions.dedup_by(|one, before| one.chart.version == before.chart.version);
    }
    found.retain(|_, versions| !versions.is_empty());
    found
}
