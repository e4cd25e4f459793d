//! Import into and export from a repository. Content is verified by digest, and an interrupted run
//! can be continued.
//!
//! All of this is client code. It reads a source by the source's protocol. It talks to a Packhouse
//! server by the protocol of the repository's format and by the management API. No state is stored
//! between runs: each run compares the source with the content of the target. To continue a killed
//! run, the user therefore runs it again. A repeated run adds nothing.
//!
//! # Modules
//!
//! - Values and texts: `secret`, `digests`, `error`, `report`, `percent`, `html`, `body`
//! - Transfer: `client` (HTTP), `allowed_hosts` (limits for redirects), `stream` (verifies bytes
//!   while they pass), `origin` (where a file is read from)
//! - Sources and targets: `folder`, `location`, `server` (a Packhouse server), `export` (the list
//!   of an export), `target` (one run)
//! - Kinds of repositories: `maven`, `python`, `npm`, `oci`
//! - Repository managers: `nexus`, `artifactory`
//! - `source` opens any kind of source

mod allowed_hosts;
mod artifactory;
mod body;
mod client;
mod digests;
mod error;
mod export;
mod folder;
mod html;
mod location;
mod maven;
mod nexus;
mod npm;
mod oci;
mod origin;
mod percent;
mod python;
mod report;
mod secret;
mod server;
mod source;
mod stream;
mod target;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};

use crate::error::MoveError;
use crate::export::ExportHead;
use crate::folder::Folder;
use crate::report::Report;
use crate::server::Server;
use crate::source::Source;
use crate::target::{MoveRun, MoveTarget};

pub use report::Summary;
pub use secret::Credential;
pub use source::{KINDS, SourceOptions};

/// Default number of items that are moved concurrently.
pub const JOBS: usize = 4;

/// Interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// The Packhouse server that is the target of an import or the source of an export.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Address of the management API.
    pub api_url: String,
    /// Login of a member.
    pub login: Credential,
    /// Name of the repository.
    pub repository: String,
}

/// Options of both imports and exports.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Packages to move. If empty, all are moved.
    pub only: Vec<String>,
    /// Number of items that are moved concurrently.
    pub jobs: usize,
    /// File for the report, which gets a line of JSON for each item.
    pub report: Option<PathBuf>,
    /// For an import: true if the time of the import replaces the times of publication at the
    /// source.
    pub without_times: bool,
}

/// Imports a source into a repository.
///
/// # Errors
/// Fails if the run cannot begin or ends early. An item that cannot be moved is not an error: the
/// report names it with the reason, and the summary counts it.
pub async fn import(
    to: &ServerOptions,
    from: &SourceOptions,
    options: &RunOptions,
) -> anyhow::Result<Summary> {
    let report = Report::to(options.report.as_deref())?;
    let server = Arc::new(Server::enter(&to.api_url, &to.login, &to.repository, true).await?);
    let done = async {
        source::hosted(&server)?;
        ensure!(
            server.manages || options.without_times,
            "only a member with manage-repositories can import times of publication, and this member does not have it: sign in as \
             another member, or import without times (--without-times)"
        );
        let source = Source::open(from, &server.format).await?;
        let target = MoveTarget::Server(Arc::clone(&server));
        let (only, times) = (options.only.clone(), !options.without_times);
        let run = MoveRun { only, times, ..MoveRun::new(target, report, options.jobs) };
        let moved = with_progress(&run, source.carry(&run)).await;
        source.leave().await;
        ended(run, moved)
    };
    let done = done.await;
    server.leave().await;
    done
}

/// Exports a repository into a folder, in the layout of its format. An existing export is updated.
///
/// # Errors
/// The same as for [`import`].
pub async fn export(from: &ServerOptions, to: &Path, options: &RunOptions) -> anyhow::Result<Summary> {
    let _mine = enter_folder(to, &from.repository)?;
    let report = Report::to(options.report.as_deref())?.listing();
    let server = Arc::new(Server::enter(&from.api_url, &from.login, &from.repository, false).await?);
    let done = async {
        source::hosted(&server)?;
        let source = Source::of_server(Arc::clone(&server)).await?;
        let target = MoveTarget::Folder(Arc::new(Folder::new(to)));
        let run = MoveRun { only: options.only.clone(), ..MoveRun::new(target, report, options.jobs) };
        let moved = with_progress(&run, source.carry(&run)).await;
        let head = ExportHead::new(&server.format, &server.name);
        if moved.is_ok() {
            export::write(to, &head, run.report.listed())?;
        }
        ended(run, moved)
    };
    let done = done.await;
    server.leave().await;
    done
}

/// Does the work and prints the progress at intervals. Returns after an interruption, so that the
/// caller can close its sessions.
async fn with_progress(
    run: &MoveRun,
    work: impl Future<Output = Result<(), MoveError>>,
) -> Result<(), MoveError> {
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    ticks.tick().await;
    loop {
        tokio::select! {
            done = &mut work => return done,
            Ok(()) = tokio::signal::ctrl_c() => return Err(MoveError::Refused("the run was interrupted".to_owned())),
            // Errors are ignored: standard error may be closed.
            _ = ticks.tick() => drop(writeln!(std::io::stderr(), "{}", run.report.summary())),
        }
    }
}

fn ended(run: MoveRun, moved: Result<(), MoveError>) -> anyhow::Result<Summary> {
    let summary = run.report.summary();
    run.report.finish()?;
    match moved {
        Ok(()) => Ok(summary),
        Err(fault) => {
            Err(anyhow!("{fault}")).context(format!("the run ended before everything was moved ({summary})"))
        }
    }
}

/// Locks the folder of an export. The folder must be empty, missing, or hold an export of the same
/// repository, complete or not. While the returned file is open, no other run writes to the folder.
fn enter_folder(folder: &Path, repository: &str) -> anyhow::Result<File> {
    let name = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("failed to create the folder {name}"))?;
    let mark = folder.join(".packhouse-export");
    let failed = || format!("failed to write {}", mark.display());
    let empty = std::fs::read_dir(folder).with_context(|| format!("failed to read {name}"))?.next().is_none();
    if !empty && !mark.exists() {
        bail!("{name} is not empty and holds no export: choose another folder");
    }
    let mut file = File::options().create(true).read(true).append(true).open(&mark).with_context(failed)?;
    if file.try_lock().is_err() {
        bail!("another run is exporting into {name}");
    }
    let mut of = String::new();
    file.read_to_string(&mut of).with_context(failed)?;
    if of.is_empty() {
        file.write_all(repository.as_bytes()).with_context(failed)?;
    } else if of != repository {
        bail!("{name} holds an export of {of}: choose another folder");
    }
    folder::sweep(folder).with_context(|| format!("failed to remove temporary files from {name}"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_other_files_is_not_changed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("new");
        let held = enter_folder(&folder, "one").unwrap();
        assert!(enter_folder(&folder, "one").unwrap_err().to_string().contains("another run"));
        drop(held);
        std::fs::write(folder.join(".packhouse-part-x"), "half").unwrap();
        drop(enter_folder(&folder, "one").unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        assert!(enter_folder(&folder, "two").unwrap_err().to_string().contains("export of one"));
        assert!(enter_folder(home.path(), "one").is_err());
    }
}
