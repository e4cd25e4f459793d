//! What became of each thing: a line of JSON each, and a summary.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;

use crate::export::Exported;

/// What became of a thing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It is there now, and was not before.
    Moved,
    /// It was there, the same.
    Present,
    /// It was left out, for a reason.
    Skipped,
    /// It was not moved, because it is not what the source says, or the target refuses it.
    Refused,
    /// It was not moved, because something did not answer or broke.
    Failed,
}

/// A line of the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) outcome: Option<Outcome>,
    /// `file`, `state`, `tag`, `package`.
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
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Line {
    /// About one file.
    pub(crate) fn file(package: &str, path: &str) -> Line {
        let path = Some(path.to_owned());
        Line { path, ..Line::of("file", package) }
    }

    /// About something of a package.
    pub(crate) fn of(what: &'static str, package: &str) -> Line {
        Line {
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

    /// Of this version.
    pub(crate) fn version(self, version: &str) -> Line {
        Line { version: Some(version.to_owned()), ..self }
    }

    /// Published at this time.
    pub(crate) fn published(self, at: Option<jiff::Timestamp>) -> Line {
        Line { published_at: at.map(|at| at.to_string()), ..self }
    }

    /// With what became of it, and why.
    pub(crate) fn ended(self, outcome: Outcome, reason: impl Into<String>) -> Line {
        let reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        Line { outcome: Some(outcome), reason: reason.or(self.reason), ..self }
    }
}

/// How many things came to which end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Files that are there now, and were not before.
    pub moved: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already.
    pub present: u64,
    /// States and tags that were set.
    pub marked: u64,
    /// What was left out.
    pub skipped: u64,
    /// What the source or the target does not give or take.
    pub refused: u64,
    /// What broke.
    pub failed: u64,
}

impl Summary {
    /// Whether everything that was to be moved is there.
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

/// Gathers the lines. They are written as they come, so that a run that is killed has told what it did.
#[derive(Debug)]
pub(crate) struct Report {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Option<(BufWriter<File>, PathBuf)>,
    summary: Summary,
    problem: Option<std::io::Error>,
    /// Of an export: the files that are there now.
    listed: Option<Vec<Exported>>,
}

impl Report {
    /// Writes to this file, which is begun anew; without one only the figures are kept.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn to(file: Option<&Path>) -> anyhow::Result<Report> {
        let open = |path: &Path| -> anyhow::Result<(BufWriter<File>, PathBuf)> {
            let file = File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
            Ok((BufWriter::new(file), path.to_owned()))
        };
        let file = file.map(open).transpose()?;
        Ok(Report {
            state: Mutex::new(State { file, summary: Summary::default(), problem: None, listed: None }),
        })
    }

    /// Takes a line up. What did not end well is said on standard error too.
    pub(crate) fn add(&self, line: Line) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.count(&line);
        if line.what == "file" && matches!(line.outcome, Some(Outcome::Moved | Outcome::Present)) {
            state.list(&line);
        }
        if matches!(line.outcome, Some(Outcome::Refused | Outcome::Failed)) {
            let of = line.path.as_deref().or(line.package.as_deref()).unwrap_or_default();
            // Whoever started this may have closed it.
            let _ = writeln!(std::io::stderr(), "{of}: {}", line.reason.as_deref().unwrap_or_default());
        }
        state.write(&line);
    }

    /// The same, which keeps what an export lists.
    pub(crate) fn listing(self) -> Report {
        let mut state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.listed = Some(Vec::new());
        Report { state: Mutex::new(state) }
    }

    /// Lists a file of an export that is not counted, because it was counted under another name.
    pub(crate) fn list(&self, line: &Line) {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).list(line);
    }

    /// What an export holds now.
    pub(crate) fn listed(&self) -> Vec<Exported> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .listed
            .clone()
            .unwrap_or_default()
    }

    /// What there is so far.
    pub(crate) fn summary(&self) -> Summary {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).summary
    }

    /// Ends the report.
    ///
    /// # Errors
    /// Where it could not be written.
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

impl State {
    fn count(&mut self, line: &Line) {
        let Summary { moved, bytes, present, marked, skipped, refused, failed } = &mut self.summary;
        match (line.outcome, line.what) {
            (Some(Outcome::Moved), "file") => {
                *moved += 1;
                *bytes += line.size.unwrap_or_default();
            }
            (Some(Outcome::Moved), _) => *marked += 1,
            (Some(Outcome::Present), "file") => *present += 1,
            (Some(Outcome::Present) | None, _) => {}
            (Some(Outcome::Skipped), _) => *skipped += 1,
            (Some(Outcome::Refused), _) => *refused += 1,
            (Some(Outcome::Failed), _) => *failed += 1,
        }
    }

    fn list(&mut self, line: &Line) {
        let Some(listed) = &mut self.listed else { return };
        let (Some(path), Some(sha256)) = (&line.path, &line.sha256) else { return };
        listed.push(Exported {
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

    fn write(&mut self, line: &Line) {
        let Some((file, _)) = &mut self.file else { return };
        let written = serde_json::to_string(line).map_err(std::io::Error::other);
        let written = written.and_then(|text| writeln!(file, "{text}")).and_then(|()| file.flush());
        if let Err(problem) = written {
            self.problem.get_or_insert(problem);
        }
    }
}
