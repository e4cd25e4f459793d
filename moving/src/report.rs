//! The report of a run: a line of JSON for each item, and a summary.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;

use crate::export::ExportedFile;

/// Outcome for one item.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MoveOutcome {
    /// The item was added to the target.
    Moved,
    /// The target already has the same item.
    Present,
    /// The item was left out, for a reason.
    Skipped,
    /// The item does not match the source's statements, or the target refused it.
    Refused,
    /// A server or a disk failed.
    Failed,
}

/// A line of the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReportLine {
    pub(crate) outcome: Option<MoveOutcome>,
    /// Kind of the item: `file`, `state`, `tag` or `package`.
    pub(crate) what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// Time of publication by RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl ReportLine {
    /// A line about one file.
    pub(crate) fn file(package: &str, path: &str) -> ReportLine {
        let path = Some(path.to_owned());
        ReportLine { path, ..ReportLine::of("file", package) }
    }

    /// A line about an item of a package.
    pub(crate) fn of(what: &'static str, package: &str) -> ReportLine {
        ReportLine {
            outcome: None,
            what,
            package: Some(package.to_owned()).filter(|name| !name.is_empty()),
            version: None,
            path: None,
            sha256: None,
            size: None,
            published_at: None,
            state: None,
            reason: None,
        }
    }

    /// Sets the version.
    pub(crate) fn version(self, version: &str) -> ReportLine {
        ReportLine { version: Some(version.to_owned()), ..self }
    }

    /// Sets the time of publication.
    pub(crate) fn published(self, at: Option<jiff::Timestamp>) -> ReportLine {
        ReportLine { published_at: at.map(|at| at.to_string()), ..self }
    }

    /// Sets the outcome and the reason.
    pub(crate) fn ended(self, outcome: MoveOutcome, reason: impl Into<String>) -> ReportLine {
        let reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        ReportLine { outcome: Some(outcome), reason: reason.or(self.reason), ..self }
    }
}

/// Number of items by outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Files that were added to the target.
    pub moved: u64,
    /// Total size of the added files.
    pub bytes: u64,
    /// Files that the target already had.
    pub present: u64,
    /// States and tags that were set.
    pub marked: u64,
    /// Items that were left out.
    pub skipped: u64,
    /// Items that differ from the source's statements about them, or that the target refused.
    pub refused: u64,
    /// Items for which a server or a disk failed.
    pub failed: u64,
}

impl Summary {
    /// Reports whether every item was moved or deliberately left out.
    pub fn is_whole(&self) -> bool {
        self.refused == 0 && self.failed == 0
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Summary { moved, bytes, present, marked, skipped, refused, failed } = self;
        write!(
            out,
            "moved {moved} ({bytes} bytes), present {present}, marked {marked}, skipped {skipped}, refused {refused}, failed {failed}"
        )
    }
}

/// Collects the lines of a run. Each line is written at once, so that the report of a killed run is
/// complete up to the last item.
#[derive(Debug)]
pub(crate) struct Report {
    state: Mutex<ReportState>,
}

#[derive(Debug)]
struct ReportState {
    file: Option<(BufWriter<File>, PathBuf)>,
    summary: Summary,
    problem: Option<std::io::Error>,
    /// For an export: the files that the folder has now.
    listed: Option<Vec<ExportedFile>>,
}

impl Report {
    /// Creates a report that overwrites this file. Without a file, only the summary is collected.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub(crate) fn to(file: Option<&Path>) -> anyhow::Result<Report> {
        let open = |path: &Path| -> anyhow::Result<(BufWriter<File>, PathBuf)> {
            let file = File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
            Ok((BufWriter::new(file), path.to_owned()))
        };
        let file = file.map(open).transpose()?;
        Ok(Report {
            state: Mutex::new(ReportState { file, summary: Summary::default(), problem: None, listed: None }),
        })
    }

    /// Adds a line. Refused and failed items are also printed to standard error.
    pub(crate) fn add(&self, line: ReportLine) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.count(&line);
        if line.what == "file" && matches!(line.outcome, Some(MoveOutcome::Moved | MoveOutcome::Present)) {
            state.list(&line);
        }
        if matches!(line.outcome, Some(MoveOutcome::Refused | MoveOutcome::Failed)) {
            let of = line.path.as_deref().or(line.package.as_deref()).unwrap_or_default();
            // Errors are ignored: standard error may be closed.
            let _ = writeln!(std::io::stderr(), "{of}: {}", line.reason.as_deref().unwrap_or_default());
        }
        state.write(&line);
    }

    /// Makes the report collect the files of an export.
    pub(crate) fn listing(self) -> Report {
        let mut state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.listed = Some(Vec::new());
        Report { state: Mutex::new(state) }
    }

    /// Lists a file of an export without counting it. The file was already counted under another
    /// name.
    pub(crate) fn list(&self, line: &ReportLine) {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).list(line);
    }

    /// The files that an export has now.
    pub(crate) fn listed(&self) -> Vec<ExportedFile> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .listed
            .clone()
            .unwrap_or_default()
    }

    /// The summary so far.
    pub(crate) fn summary(&self) -> Summary {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).summary
    }

    /// Ends the report and returns the summary.
    ///
    /// # Errors
    /// Fails if a line could not be written.
    pub(crate) fn finish(self) -> anyhow::Result<Summary> {
        let mut state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(problem) = state.problem.take() {
            return Err(problem).context("failed to write the report");
        }
        if let Some((mut file, path)) = state.file {
            file.flush().with_context(|| format!("failed to write {}", path.display()))?;
        }
        Ok(state.summary)
    }
}

impl ReportState {
    fn count(&mut self, line: &ReportLine) {
        let Summary { moved, bytes, present, marked, skipped, refused, failed } = &mut self.summary;
        match (line.outcome, line.what) {
            (Some(MoveOutcome::Moved), "file") => {
                *moved += 1;
                *bytes += line.size.unwrap_or_default();
            }
            (Some(MoveOutcome::Moved), _) => *marked += 1,
            (Some(MoveOutcome::Present), "file") => *present += 1,
            (Some(MoveOutcome::Present) | None, _) => {}
            (Some(MoveOutcome::Skipped), _) => *skipped += 1,
            (Some(MoveOutcome::Refused), _) => *refused += 1,
            (Some(MoveOutcome::Failed), _) => *failed += 1,
        }
    }

    fn list(&mut self, line: &ReportLine) {
        let Some(listed) = &mut self.listed else { return };
        let (Some(path), Some(sha256)) = (&line.path, &line.sha256) else { return };
        listed.push(ExportedFile {
            path: path.clone(),
            package: line.package.clone(),
            version: line.version.clone(),
            sha256: sha256.clone(),
            size: line.size.unwrap_or_default(),
            published_at: line.published_at.clone(),
            state: line.state.clone(),
            reason: line.reason.clone(),
        });
    }

    fn write(&mut self, line: &ReportLine) {
        let Some((file, _)) = &mut self.file else { return };
        let written = serde_json::to_string(line).map_err(std::io::Error::other);
        let written = written.and_then(|text| writeln!(file, "{text}")).and_then(|()| file.flush());
        if let Err(problem) = written {
            self.problem.get_or_insert(problem);
        }
    }
}
