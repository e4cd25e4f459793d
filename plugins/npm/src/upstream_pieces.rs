//! The versions of an upstream's package with many, rendered in pieces that the host remembers. What a piece says is a function of
//! the upstream's document and of what is offered of it: so it is read once for each document, whoever asks.

use crate::name::Name;
use crate::packument::Rendering;
use crate::upstream_packument::{Packument, UpstreamVersion};
use crate::version_text::{self, VersionText};
use packhouse_sdk::json_scan::Member;
use packhouse_sdk::{Error, PieceParts, Repository, runs};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be rendered.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamPieces<'a> {
    pub(crate) proxy: &'a Repository,
    pub(crate) name: &'a Name,
    pub(crate) packument: &'a Packument,
    /// When each version that is offered was published, in ms since 1970.
    pub(crate) offered: &'a BTreeMap<String, u64>,
}

impl UpstreamPieces<'_> {
    /// Adds all versions that are offered to a packument that has none yet.
    pub(crate) fn add(self, rendering: &mut Rendering<'_>) -> Result<(), Error> {
        let readable = self.readable(rendering.tagged())?;
        let latest = rendering.repeats().next().cloned();
        if let Some(latest) = latest
            && readable.contains(&latest)
            && let Some(version) = self.packument.version(self.name, &latest)?
        {
            rendering.repeat(&latest, &version.piece.full)?;
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
                        rendering.add_beside_pieces(number, &version.piece)
                    })?;
                }
            }
        }
        rendering.listed(readable);
        Ok(())
    }

    /// Those of these versions that are offered and make sense.
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
            // A stranger's number may hold anything.
            name += &format!("\n{:?}", version.name);
        }
        name
    }

    /// As `pieces` renders those of a hosted repository.
    fn render(self, text: VersionText<'_>, run: &[Member]) -> Result<Option<PieceParts>, Error> {
        let mut parts = PieceParts::default();
        self.each(run, &mut |number, version| {
            if !parts.fits() {
                return Ok(());
            }
            parts.body.push(',');
            parts.body += &text.member(number, &version.piece)?;
            if version.piece.time > 0 {
                version_text::add_time(&mut parts.note, number, version.piece.time)?;
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
            version.piece.time = *time;
            take(number, version)
        })
    }
}
