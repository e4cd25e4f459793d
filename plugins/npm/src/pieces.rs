//! Packuments of hosted packages with many versions. The plugin renders them in pieces, which the
//! host caches. Each piece has a run of versions, that is, versions whose keys are neighbours.
//! After a publish, the plugin renders only the piece with the new version again, and at most one
//! neighbouring piece.

use crate::name::PackageName;
use crate::packument::Rendering;
use crate::records::{self, VersionRecord};
use crate::version_content::VersionContent;
use crate::version_text::{self, VersionText};
use packhouse_sdk::{Entry, Error, KeyRun, PieceParts, Repository};
use std::collections::BTreeSet;
use std::ops::Range;

/// Number of versions from which a package is rendered in pieces.
pub(crate) const MANY: usize = 64;

/// Returns true if a package has at least [`MANY`] versions.
///
/// # Errors
/// Errors of the host.
pub(crate) fn are_many(repository: &Repository, name: &PackageName) -> Result<bool, Error> {
    let keys = repository.keys(records::versions(name)).page(MANY as u32).take(MANY);
    Ok(keys.collect::<Result<Vec<_>, _>>()?.len() == MANY)
}

/// Maximum number of versions that [`existing`] looks up one by one. For more versions, it lists
/// all keys of the package.
const FEW: usize = 32;

/// Returns the number of versions in these runs.
pub(crate) fn count(versions: &[KeyRun]) -> usize {
    versions.iter().map(KeyRun::count).sum()
}

/// The deprecated versions, as the keys of their deprecation records.
struct Deprecated {
    prefix: String,
    keys: Vec<String>,
}

impl Deprecated {
    fn read(repository: &Repository, name: &PackageName) -> Result<Self, Error> {
        let prefix = records::deprecations(name);
        let keys = repository.keys(&prefix).collect::<Result<_, _>>()?;
        Ok(Self { prefix, keys })
    }

    fn number(&self, at: usize) -> &str {
        self.keys.get(at).and_then(|key| key.get(self.prefix.len()..)).unwrap_or_default()
    }

    /// Returns the numbers and messages of the deprecations at a range of positions in `keys`.
    fn reasons(&self, repository: &Repository, range: Range<usize>) -> Result<Vec<(String, String)>, Error> {
        let before = range.start.checked_sub(1).and_then(|at| self.keys.get(at));
        let keys = self.keys.get(range).unwrap_or_default();
        let entries = repository.neighbours(&self.prefix, before.map(String::as_str), keys);
        let reason = |entry: Entry| {
            let number = entry.key.get(self.prefix.len()..).unwrap_or_default().to_owned();
            (number, records::text(entry.value))
        };
        entries.map(|entry| entry.map(reason)).collect()
    }
}

/// Adds all versions to a packument that has no versions yet, with one piece for each run of keys.
pub(crate) fn add(
    repository: &Repository,
    name: &PackageName,
    versions: &[KeyRun],
    rendering: &mut Rendering<'_>,
) -> Result<(), Error> {
    let deprecations = Deprecated::read(repository, name)?;
    let latest = rendering.repeats().next().cloned();
    if let Some(latest) = latest
        && let Some(version) = VersionRecord::find(repository, name, &latest)?
    {
        rendering.repeat(&latest, &version.full)?;
    }
    let prefix = records::versions(name);
    let mut runs = Vec::with_capacity(versions.len());
    let mut deprecated = 0;
    for versions in versions {
        let first = deprecated;
        while deprecated < deprecations.keys.len() && deprecations.number(deprecated) <= versions.last() {
            deprecated += 1;
        }
        let (prefix, deprecations) = (prefix.as_str(), &deprecations);
        runs.push(VersionRun { repository, prefix, versions, deprecations, deprecated: first..deprecated });
    }
    let text = rendering.version_text();
    let common = format!("versions\n{:?}\n{}\n{}\n", text.form, text.address, text.name);
    let names: Vec<String> = runs.iter().map(|run| run.piece_name(&common)).collect();
    let pieces = repository.pieces(&names, |at| runs.get(at).map_or(Ok(None), |run| run.render(text)))?;
    for (run, piece) in runs.iter().zip(pieces) {
        match piece {
            Some(piece) => rendering.add_piece(&piece),
            None => run.each(|number, version| rendering.add_beside_pieces(number, version))?,
        }
    }
    let existing = existing(repository, name, rendering.tagged())?;
    rendering.listed(existing);
    Ok(())
}

/// Returns the given numbers, except the numbers of missing versions.
fn existing(
    repository: &Repository,
    name: &PackageName,
    mut numbers: BTreeSet<String>,
) -> Result<BTreeSet<String>, Error> {
    if numbers.len() > FEW {
        let prefix = records::versions(name);
        let keys = repository.keys(&prefix).collect::<Result<Vec<_>, _>>()?;
        let all: BTreeSet<&str> = keys.iter().filter_map(|key| key.get(prefix.len()..)).collect();
        numbers.retain(|number| all.contains(number.as_str()));
        return Ok(numbers);
    }
    let mut existing = BTreeSet::new();
    for number in numbers {
        if VersionRecord::find(repository, name, &number)?.is_some() {
            existing.insert(number);
        }
    }
    Ok(existing)
}

/// A run of neighbouring versions.
struct VersionRun<'a> {
    repository: &'a Repository,
    /// Prefix of the keys of the versions.
    prefix: &'a str,
    versions: &'a KeyRun,
    deprecations: &'a Deprecated,
    /// Positions of the run's deprecations in the keys of `deprecations`.
    deprecated: Range<usize>,
}

impl VersionRun<'_> {
    /// Returns the name of the run's piece. The name contains everything that the piece depends on,
    /// except the contents of the records, whose changes the host notices. The name consists of
    /// `common`, which all runs share, the place of the run among the keys, and the numbers of the
    /// run's deprecated versions.
    fn piece_name(&self, common: &str) -> String {
        let mut name = [common, &self.versions.place(), "\n"].concat();
        for at in self.deprecated.clone() {
            name.push('\n');
            name.push_str(self.deprecations.number(at));
        }
        name
    }

    /// Renders the versions of the run as a piece: members of an object, each with a comma before
    /// it. The note has the publication times. Returns `None` if the piece would be too large.
    fn render(&self, text: VersionText<'_>) -> Result<Option<PieceParts>, Error> {
        let mut parts = PieceParts::default();
        self.each(|number, version| {
            if !parts.fits() {
                return Ok(());
            }
            parts.body.push(',');
            parts.body += &text.member(number, version)?;
            if version.time > 0 {
                version_text::add_time(&mut parts.note, number, version.time)?;
            }
            Ok(())
        })?;
        Ok(parts.fits().then_some(parts))
    }

    /// Passes each version of the run to `take`. Reads one version at a time, because each may be
    /// large.
    fn each(&self, mut take: impl FnMut(&str, &VersionContent) -> Result<(), Error>) -> Result<(), Error> {
        let reasons = self.deprecations.reasons(self.repository, self.deprecated.clone())?;
        let mut reasons = reasons.into_iter().peekable();
        for entry in self.repository.run_records(self.versions) {
            let entry = entry?;
            let number = entry.key.get(self.prefix.len()..).unwrap_or_default();
            while reasons.next_if(|(other, _)| other.as_str() < number).is_some() {}
            let reason = reasons.next_if(|(other, _)| other == number).map(|(_, reason)| reason);
            take(number, &VersionContent::of(VersionRecord::read(&entry.key, entry.value)?, reason))?;
        }
        Ok(())
    }
}
