//! A hosted package with many versions, rendered in pieces that the host remembers: the next packument after a publish costs the
//! run of versions that the new one is in, and not all of them.

use crate::name::Name;
use crate::packument::Rendering;
use crate::records::{self, Version};
use crate::version_piece::Piece;
use crate::version_text::{self, VersionText};
use packhouse_sdk::{Entry, Error, KeyRun, PieceParts, Repository};
use std::collections::BTreeSet;
use std::ops::Range;

/// A package with this many versions is worth the keeping of pieces.
pub(crate) const MANY: usize = 64;

/// Whether a package has so many versions.
///
/// # Errors
/// The host's.
pub(crate) fn are_many(repository: &Repository, name: &Name) -> Result<bool, Error> {
    let keys = repository.keys(records::versions(name)).page(MANY as u32).take(MANY);
    Ok(keys.collect::<Result<Vec<_>, _>>()?.len() == MANY)
}

/// Numbers that are looked up one by one; to know of more, all are listed.
const FEW: usize = 32;

/// How many versions there are in these runs.
pub(crate) fn count(versions: &[KeyRun]) -> usize {
    versions.iter().map(KeyRun::count).sum()
}

/// Which versions are deprecated, by the keys that say why.
struct Deprecated {
    prefix: String,
    keys: Vec<String>,
}

impl Deprecated {
    fn read(repository: &Repository, name: &Name) -> Result<Self, Error> {
        let prefix = records::deprecations(name);
        let keys = repository.keys(&prefix).collect::<Result<_, _>>()?;
        Ok(Self { prefix, keys })
    }

    fn number(&self, at: usize) -> &str {
        self.keys.get(at).and_then(|key| key.get(self.prefix.len()..)).unwrap_or_default()
    }

    /// Those of a range, each with why.
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

/// Adds all versions, in runs of their keys, to a packument that has none yet.
pub(crate) fn add(
    repository: &Repository,
    name: &Name,
    versions: &[KeyRun],
    rendering: &mut Rendering<'_>,
) -> Result<(), Error> {
    let deprecations = Deprecated::read(repository, name)?;
    let latest = rendering.repeats().next().cloned();
    if let Some(latest) = latest
        && let Some(version) = Version::find(repository, name, &latest)?
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
        runs.push(Run { repository, prefix, versions, deprecations, deprecated: first..deprecated });
    }
    let text = rendering.version_text();
    let all = format!("versions\n{:?}\n{}\n{}\n", text.form, text.address, text.name);
    let names: Vec<String> = runs.iter().map(|run| run.piece_name(&all)).collect();
    let pieces = repository.pieces(&names, |at| runs.get(at).map_or(Ok(None), |run| run.render(text)))?;
    for (run, piece) in runs.iter().zip(pieces) {
        match piece {
            Some(piece) => rendering.add_piece(&piece),
            None => run.each(|number, version| rendering.add_beside_pieces(number, version))?,
        }
    }
    let there = those_there(repository, name, rendering.tagged())?;
    rendering.listed(there);
    Ok(())
}

/// Those of these numbers that are versions.
fn those_there(
    repository: &Repository,
    name: &Name,
    mut numbers: BTreeSet<String>,
) -> Result<BTreeSet<String>, Error> {
    if numbers.len() > FEW {
        let prefix = records::versions(name);
        let keys = repository.keys(&prefix).collect::<Result<Vec<_>, _>>()?;
        let all: BTreeSet<&str> = keys.iter().filter_map(|key| key.get(prefix.len()..)).collect();
        numbers.retain(|number| all.contains(number.as_str()));
        return Ok(numbers);
    }
    let mut there = BTreeSet::new();
    for number in numbers {
        if Version::find(repository, name, &number)?.is_some() {
            there.insert(number);
        }
    }
    Ok(there)
}

/// Versions that stand next to each other.
struct Run<'a> {
    repository: &'a Repository,
    /// What their keys begin with.
    prefix: &'a str,
    versions: &'a KeyRun,
    deprecations: &'a Deprecated,
    /// Those of the run.
    deprecated: Range<usize>,
}

impl Run<'_> {
    /// All that the piece is made of besides what stands in the records of the run: what is the same for `all` runs, its place, and
    /// which of those records there are that say why a version is deprecated.
    fn piece_name(&self, all: &str) -> String {
        let mut name = [all, &self.versions.place(), "\n"].concat();
        for at in self.deprecated.clone() {
            name.push('\n');
            name.push_str(self.deprecations.number(at));
        }
        name
    }

    /// The versions as members of an object, each with a comma before it, and a note of their times; none where they are too large.
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

    /// One version after the other, since each may be large.
    fn each(&self, mut take: impl FnMut(&str, &Piece) -> Result<(), Error>) -> Result<(), Error> {
        let reasons = self.deprecations.reasons(self.repository, self.deprecated.clone())?;
        let mut reasons = reasons.into_iter().peekable();
        for entry in self.repository.run_records(self.versions) {
            let entry = entry?;
            let number = entry.key.get(self.prefix.len()..).unwrap_or_default();
            while reasons.next_if(|(of, _)| of.as_str() < number).is_some() {}
            let reason = reasons.next_if(|(of, _)| of == number).map(|(_, reason)| reason);
            take(number, &Piece::of(Version::read(&entry.key, entry.value)?, reason))?;
        }
        Ok(())
    }
}
