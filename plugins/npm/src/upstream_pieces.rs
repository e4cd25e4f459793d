//! Packuments of upstream packages with many versions. The plugin renders them in pieces, which the
//! host caches. Each piece has a run of neighbouring versions. A piece depends on the upstream's
//! document, the offered versions, the form and the repository's address, but not on the client.
//! The plugin therefore renders it once for all clients.

use crate::name::PackageName;
use crate::packument::Rendering;
use crate::upstream_packument::{Packument, UpstreamVersion};
use crate::version_text::{self, VersionText};
use packhouse_sdk::json_scan::Member;
use packhouse_sdk::{Error, PieceParts, Repository, runs};
use std::collections::{BTreeMap, BTreeSet};

/// The upstream package to render.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamPieces<'a> {
    pub(crate) proxy: &'a Repository,
    pub(crate) name: &'a PackageName,
    pub(crate) packument: &'a Packument,
    /// Publication time of each offered version, in ms since 1970.
    pub(crate) offered: &'a BTreeMap<String, u64>,
}

impl UpstreamPieces<'_> {
    /// Adds all offered versions to a packument that has no versions yet.
    pub(crate) fn add(self, rendering: &mut Rendering<'_>) -> Result<(), Error> {
        let readable = self.readable(rendering.tagged())?;
        let latest = rendering.repeats().next().cloned();
        if let Some(latest) = latest
            && readable.contains(&latest)
            && let Some(version) = self.packument.version(self.name, &latest)?
        {
            rendering.repeat(&latest, &version.content.full)?;
        }
        let versions = self.packument.versions();
        let runs: Vec<&[Member]> = runs(versions, |version| version.name.as_str())
            .map(|run| versions.get(run).unwrap_or_default())
            .collect();
        let text = rendering.version_text();
        let names: Vec<String> = runs.iter().map(|run| self.piece_name(text, run)).collect();
        let render = |at| self.render(text, runs.get(at).copied().unwrap_or_default());
        let pieces = self.proxy.pieces(&names, render)?;
        for (run, piece) in runs.iter().zip(pieces) {
            match piece {
                Some(piece) => rendering.add_piece(&piece),
                None => {
                    self.each(run, &mut |number, version| {
                        rendering.add_beside_pieces(number, &version.content)
                    })?;
                }
            }
        }
        rendering.listed(readable);
        Ok(())
    }

    /// Returns the given numbers, except the numbers of versions that are not offered or not
    /// readable.
    fn readable(self, numbers: BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
        let mut readable = BTreeSet::new();
        for number in numbers.into_iter().filter(|number| self.offered.contains_key(number)) {
            if self.packument.version(self.name, &number)?.is_some() {
                readable.insert(number);
            }
        }
        Ok(readable)
    }

    fn piece_name(self, text: VersionText<'_>, run: &[Member]) -> String {
        let digest = &self.packument.digest;
        let mut name = format!("upstream\n{:?}\n{}\n{}\n{digest}\n", text.form, text.address, text.name);
        for version in run.iter().filter(|version| self.offered.contains_key(&version.name)) {
            // An upstream's version number may contain any characters. The quoted form keeps the
            // piece names of two different lists apart.
            name += &format!("\n{:?}", version.name);
        }
        name
    }

    /// Renders a run of versions as a piece, in the form that `pieces` uses for hosted packages.
    fn render(self, text: VersionText<'_>, run: &[Member]) -> Result<Option<PieceParts>, Error> {
        let mut parts = PieceParts::default();
        self.each(run, &mut |number, version| {
            if !parts.fits() {
                return Ok(());
            }
            parts.body.push(',');
            parts.body += &text.member(number, &version.content)?;
            if version.content.time > 0 {
                version_text::add_time(&mut parts.note, number, version.content.time)?;
            }
            Ok(())
        })?;
        Ok(parts.fits().then_some(parts))
    }

    fn each(
        self,
        run: &[Member],
        take: &mut dyn FnMut(&str, UpstreamVersion) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.packument.each(self.name, run, &mut |number, mut version| {
            let Some(time) = self.offered.get(number) else { return Ok(()) };
            version.content.time = *time;
            take(number, version)
        })
    }
}
