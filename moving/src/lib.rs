//! Moving in and out: what a repository holds, from where it is to where it shall be, verified by digest, and again where it broke off.
//!
//! Everything here is a client: of the source by its own protocol, of a Packhouse server by the protocol of the repository's format and
//! by the management API. Nothing is remembered between two runs. What is at the target is asked for, so a run that was killed is simply
//! run again, and a run that has nothing to do adds nothing.
//!
//! # Modules
//!
//! `secret`, `digests`, `fault`, `report`, `percent`, `html`, `body` (values and texts); `client` (HTTP), `stream` (bytes that are verified
//! while they pass), `origin` (where they are read from), `folder` and `place` (folders and servers to read and write), `server` (a Packhouse server), `export` (the list of
//! an export), `target` (one run); a module for each kind of repository (`maven`, `python`, `npm`, `oci`) and for each manager of
//! several (`nexus`, `artifactory`); `source` puts them together.

mod artifactory;
mod body;
mod client;
mod digests;
mod export;
mod fault;
mod folder;
mod html;
mod maven;
mod nexus;
mod npm;
mod oci;
mod origin;
mod percent;
mod place;
mod python;
mod reach;
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

use crate::export::Head;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::report::Report;
use crate::server::Server;
use crate::source::Source;
use crate::target::{Run, Target};

pub use report::Summary;
pub use secret::Credential;
pub use source::{KINDS, SourceOptions};

/// How much is moved at once unless somebody says otherwise.
pub const JOBS: usize = 4;

/// How often a run says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// The server of ours that something is moved to or from.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The management API's address.
    pub api_url: String,
    /// Who signs in there.
    pub login: Credential,
    /// The repository's name.
    pub repository: String,
}

/// What is the same for both directions.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Packages to move; all where there are none.
    pub only: Vec<String>,
    /// How many things are moved at once.
    pub jobs: usize,
    /// Where a line of JSON goes for each thing.
    pub report: Option<PathBuf>,
    /// Of an import: everything is published now, whenever it was published at the source.
    pub without_times: bool,
}

/// Moves a source into a repository.
///
/// # Errors
/// Where nothing can be moved at all. What was not moved, and why, is in the report and counted in the summary.
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
            "times of publication are kept for a member with manage-repositories, which this one does not hold: sign in as another, or \
             leave them out with --without-times"
        );
        let source = Source::open(from, &server.format).await?;
        let target = Target::Server(Arc::clone(&server));
        let (only, times) = (options.only.clone(), !options.without_times);
        let run = Run { only, times, ..Run::new(target, report, options.jobs) };
        let moved = told(&run, source.carry(&run)).await;
        source.leave().await;
        ended(run, moved)
    };
    let done = done.await;
    server.leave().await;
    done
}

/// Moves a repository into a folder, in the layout of its format. A folder that holds an export of it is brought up to date.
///
/// # Errors
/// As for [`import`].
pub async fn export(from: &ServerOptions, to: &Path, options: &RunOptions) -> anyhow::Result<Summary> {
    let _mine = enter_folder(to, &from.repository)?;
    let report = Report::to(options.report.as_deref())?.listing();
    let server = Arc::new(Server::enter(&from.api_url, &from.login, &from.repository, false).await?);
    let done = async {
        source::hosted(&server)?;
        let source = Source::of_server(Arc::clone(&server)).await?;
        let target = Target::Folder(Arc::new(Folder::new(to)));
        let run = Run { only: options.only.clone(), ..Run::new(target, report, options.jobs) };
        let moved = told(&run, source.carry(&run)).await;
        let head = Head::new(&server.format, &server.name);
        if moved.is_ok() {
            export::write(to, &head, run.report.listed())?;
        }
        ended(run, moved)
    };
    let done = done.await;
    server.leave().await;
    done
}

/// Does the work, and says now and then how far it is. Interrupted, it ends what it has begun at the servers.
async fn told(run: &Run, work: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(TOLD_EVERY);
    ticks.tick().await;
    loop {
        tokio::select! {
            done = &mut work => return done,
            Ok(()) = tokio::signal::ctrl_c() => return Err(Fault::Refused("it was interrupted".to_owned())),
            // Whoever started this may have closed it.
            _ = ticks.tick() => drop(writeln!(std::io::stderr(), "{}", run.report.summary())),
        }
    }
}

fn ended(run: Run, moved: Result<(), Fault>) -> anyhow::Result<Summary> {
    let summary = run.report.summary();
    run.report.finish()?;
    match moved {
        Ok(()) => Ok(summary),
        Err(fault) => Err(anyhow!("{fault}")).context(format!("it was not moved to its end ({summary})")),
    }
}

/// The folder is empty, not there, or holds an export of the same repository, whole or not. As long as what is answered is held, no
/// other run writes there.
fn enter_folder(folder: &Path, repository: &str) -> anyhow::Result<File> {
    let name = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make the folder {name}"))?;
    let mark = folder.join(".packhouse-export");
    let said = || format!("failed to write {}", mark.display());
    let empty = std::fs::read_dir(folder).with_context(|| format!("failed to read {name}"))?.next().is_none();
    if !empty && !mark.exists() {
        bail!("{name} is not empty and holds no export: name another folder");
    }
    let mut file = File::options().create(true).read(true).append(true).open(&mark).with_context(said)?;
    if file.try_lock().is_err() {
        bail!("another run exports into {name} at present");
    }
    let mut of = String::new();
    file.read_to_string(&mut of).with_context(said)?;
    if of.is_empty() {
        file.write_all(repository.as_bytes()).with_context(said)?;
    } else if of != repository {
        bail!("{name} holds an export of {of}: name another folder");
    }
    folder::sweep(folder).with_context(|| format!("failed to tidy up {name}"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_else_in_it_is_left_alone() {
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
