//! A hosted package with many versions, rendered in pieces that the host remembers: the next packument after a publish costs the
//! run of versions that the new one is in, and not all of them.

use crate::name::Name;
use crate::packument::Rendering;
use crate::records::{self, Version};
use crate::version_piece::Piece;
use crate::version_text::{self, VersionText};
use packhouse_sdk::{Error, PieceParts, Repository, runs};
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

/// Keys below a prefix, in their order.
pub(crate) struct Listed {
    prefix: String,
    keys: Vec<String>,
}

impl Listed {
    /// All of them.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn read(repository: &Repository, prefix: String) -> Result<Self, Error> {
        let keys = repository.keys(&prefix).collect::<Result<_, _>>()?;
        Ok(Self { prefix, keys })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    fn number(&self, at: usize) -> &str {
        self.keys.get(at).and_then(|key| key.get(self.prefix.len()..)).unwrap_or_default()
    }

    /// Records of a range of the keys.
    fn read_range<'a>(
        &'a self,
        repository: &'a Repository,
        range: Range<usize>,
    ) -> packhouse_sdk::Neighbours<'a> {
        let before = range.start.checked_sub(1).and_then(|at| self.keys.get(at));
        let keys = self.keys.get(range).unwrap_or_default();
        repository.neighbours(&self.prefix, before.map(String::as_str), keys)
    }
}

/// Adds all versions, which are listed, to a packument that has none yet.
pub(crate) fn add(
    repository: &Repository,
    name: &Name,
    versions: Listed,
    rendering: &mut Rendering<'_>,
) -> Result<(), Error> {
    let deprecations = Listed::read(repository, records::deprecations(name))?;
    if let Some(latest) = rendering.repeats()
        && let Some(version) = Version::find(repository, name, &latest)?
    {
        rendering.repeat(&latest, &version.full)?;
    }
    let mut deprecated = 0;
    for run in runs(&versions.keys, String::as_str) {
        let last = versions.number(run.end - 1);
        let first = deprecated;
        while deprecated < deprecations.keys.len() && deprecations.number(deprecated) <= last {
            deprecated += 1;
        }
        let run = Run {
            repository,
            versions: &versions,
            run,
            deprecations: &deprecations,
            deprecated: first..deprecated,
        };
        run.add(rendering)?;
    }
    rendering.listed(versions.keys.iter().filter_map(|key| key.get(versions.prefix.len()..)));
    Ok(())
}

/// Versions that stand next to each other.
struct Run<'a> {
    repository: &'a Repository,
    versions: &'a Listed,
    run: Range<usize>,
    deprecations: &'a Listed,
    /// Those of the run.
    deprecated: Range<usize>,
}

impl Run<'_> {
    fn add(&self, rendering: &mut Rendering<'_>) -> Result<(), Error> {
        let text = rendering.version_text();
        match self.repository.piece(&self.piece_name(text), || self.render(text))? {
            Some(piece) => rendering.add_piece(&piece),
            None => self.each(|number, version| rendering.add_beside_pieces(number, version)),
        }
    }

    /// All that the piece is made of besides what stands in the records: which there are is said too.
    fn piece_name(&self, text: VersionText<'_>) -> String {
        let mut name = format!("versions\n{:?}\n{}\n{}", text.form, text.address, text.name);
        for (listed, range) in [(self.versions, &self.run), (self.deprecations, &self.deprecated)] {
            name.push('\n');
            range.clone().for_each(|at| {
                name.push('\n');
                name.push_str(listed.number(at));
            });
        }
        name
    }

    /// The versions as members of an object, and a note of their times; none where they are too large.
    fn render(&self, text: VersionText<'_>) -> Result<Option<PieceParts>, Error> {
        let mut parts = PieceParts::default();
        self.each(|number, version| {
            if !parts.fits() {
                return Ok(());
            }
            if !parts.body.is_empty() {
                parts.body.push(',');
            }
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
        let mut reasons = Vec::with_capacity(self.deprecated.len());
        for entry in self.deprecations.read_range(self.repository, self.deprecated.clone()) {
            let entry = entry?;
            let number = entry.key.get(self.deprecations.prefix.len()..).unwrap_or_default().to_owned();
            reasons.push((number, records::text(entry.value)));
        }
        let mut reasons = reasons.into_iter().peekable();
        for entry in self.versions.read_range(self.repository, self.run.clone()) {
            let entry = entry?;
            let number = entry.key.get(self.versions.prefix.len()..).unwrap_or_default();
            while reasons.next_if(|(of, _)| of.as_str() < number).is_some() {}
            let reason = reasons.next_if(|(of, _)| of == number).map(|(_, reason)| reason);
            take(number, &Piece::of(Version::read(&entry.key, entry.value)?, reason))?;
        }
        Ok(())
    }
}
