//! `packhouse apply` and `packhouse export-config`: the configuration of a server as documents in a
//! folder. Both work through the API of a server, with an API token.
//!
//! `apply` reads the documents (`documents`, `specs`), reads the state of the server as documents
//! (`state`), compares both (`plan`, `validate`, `prune`) and executes the plan (`execute`,
//! `bodies`). It has no state of its own, so an interrupted run is continued by the next one.

mod bodies;
mod canonical;
mod documents;
mod execute;
mod export;
mod kinds;
mod plan;
mod prune;
mod references;
mod schema;
mod secrets;
mod specs;
mod state;
mod validate;
mod yaml;

pub(crate) use export::ExportConfigArguments;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use clap::Args;

use super::print;
use super::remote::ServerFlags;
use execute::PlanExecutor;
use kinds::DocumentKind;
use plan::{ApplyPlan, plan};
use prune::PruneOptions;
use secrets::UpstreamPasswords;
use state::ServerState;

/// Arguments of `packhouse apply -f FOLDER`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// Folder with the documents, in files whose names end with .yaml
    #[arg(short = 'f', long = "folder", value_name = "FOLDER", required_unless_present = "schema")]
    folder: Option<PathBuf>,
    /// Print the plan without changing anything
    #[arg(long)]
    dry_run: bool,
    /// Delete objects that no document describes, of the kinds that the documents contain;
    /// repositories with packages stay
    #[arg(long)]
    prune: bool,
    /// Delete repositories with packages too; only together with --prune
    #[arg(long, requires = "prune")]
    prune_repositories: bool,
    /// Print the JSON Schema of the documents
    #[arg(long, conflicts_with = "folder")]
    schema: bool,
    #[command(flatten)]
    server: ServerFlags,
}

impl ApplyArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if self.schema {
            return print(&serde_json::to_string_pretty(&schema::schema()?)?);
        }
        let api = self.server.required()?;
        let folder = self.folder.unwrap_or_default();
        let documents = documents::read_folder(&folder)?;
        ensure!(!documents.is_empty(), "the folder {} has no documents", folder.display());
        let kinds: BTreeSet<DocumentKind> = documents.iter().map(|document| document.kind).collect();
        let state = ServerState::read(&api, &kinds).await?;
        let passwords = match self.dry_run {
            true => UpstreamPasswords::default(),
            false => UpstreamPasswords::read(&documents, &folder)?,
        };
        let options = PruneOptions { prune: self.prune, prune_repositories: self.prune_repositories };
        let plan = plan(documents, &state, options)
            .map_err(|problems| anyhow!("nothing was changed: {}", problems.join("\n")))?;
        let text = plan.to_string();
        if !text.is_empty() {
            print(text.trim_end())?;
        }
        if self.dry_run {
            return print(&summary(&plan, ["to create", "to change", "to delete"]));
        }
        let mut executor = PlanExecutor {
            api: &api,
            ids: state.ids,
            passwords,
            folder: &folder,
            prune_repositories: self.prune_repositories,
        };
        executor.run(&plan).await?;
        print(&summary(&plan, ["created", "changed", "deleted"]))
    }
}

/// Returns the last line of the output.
fn summary(plan: &ApplyPlan, [create, change, delete]: [&str; 3]) -> String {
    let ([created, changed, deleted], unchanged, left) =
        (plan.counts(), plan.unchanged, plan.left_alone.len());
    format!(
        "{created} {create}, {changed} {change}, {deleted} {delete}, {unchanged} unchanged, {left} left alone"
    )
}
