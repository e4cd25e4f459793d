//! Versions that a proxy has fetched: what is needed to offer them again, and whether they have vanished upstream since.

use crate::line::{ForeignLine, without_build};
use crate::name::Name;
use crate::records::fetched;
use packhouse_sdk::{Entry, Error, Expectation, Outcome, Repository, Version};
use serde::{Deserialize, Serialize};

/// What is remembered of a version that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fetched {
    line: String,
    /// Whether it is marked.
    withdrawn: bool,
}

/// Remembers a version that is fetched, and shows since when it is published: by that the host tells how old it is.
pub(crate) fn remember(proxy: &Repository, name: &Name, line: &ForeignLine) -> Result<(), Error> {
    let key = format!("{}{}", fetched(name), without_build(&line.version));
    let record = Fetched { line: line.text.clone(), withdrawn: false };
    let before = proxy.get_json::<Fetched>(&key)?;
    if before.as_ref().is_some_and(|before| before.value == record) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &record, Expectation::unchanged(before.as_ref()), &[])?.show(&shown(name, line));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}

fn shown(name: &Name, line: &ForeignLine) -> Version {
    let shown = Version::new(name.as_str(), line.version.to_string()).property("name", &line.name);
    let shown = if line.yanked { shown.state("yanked") } else { shown };
    Version { published: line.published, ..shown }
}

/// Marks those that the upstream no longer has, and takes the mark back of those that it has again; answers those that are gone.
pub(crate) fn find(
    proxy: &Repository,
    name: &Name,
    spelt: &str,
    known: &[ForeignLine],
) -> Result<Vec<ForeignLine>, Error> {
    let mut gone = Vec::new();
    for entry in proxy.scan(fetched(name)) {
        let entry: Entry<Fetched> = entry?.json()?;
        let Some(line) = ForeignLine::read(&entry.value.line) else { continue };
        if !line.name.eq_ignore_ascii_case(spelt) {
            continue;
        }
        let there = known.iter().any(|other| without_build(&other.version) == without_build(&line.version));
        if there == entry.value.withdrawn {
            mark(proxy, name, &line, &entry)?;
        }
        if !there {
            gone.push(line);
        }
    }
    Ok(gone)
}

/// Should somebody else do it at the same moment, it is done.
fn mark(proxy: &Repository, name: &Name, line: &ForeignLine, entry: &Entry<Fetched>) -> Result<(), Error> {
    let withdrawn = !entry.value.withdrawn;
    let record = Fetched { withdrawn, ..entry.value.clone() };
    let shown = shown(name, line);
    let shown = if withdrawn {
        shown.state("withdrawn").property("reason", "it is no longer there upstream")
    } else {
        shown
    };
    let mut change = proxy.begin()?;
    change.put_json(&entry.key, &record, Expectation::Revision(entry.revision), &[])?.show(&shown);
    let (Outcome::Applied(_) | Outcome::Stale(_) | Outcome::UnknownBlobs(_)) = change.commit()?;
    Ok(())
}
