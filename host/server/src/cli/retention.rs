//! `packhouse retention run`: runs enforced retention policies now, with or without a running
//! server.

mod remote;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use packhouse_api::operations::retention::run_due;
use packhouse_app::App;
use packhouse_store::PolicyId;

use super::opened::open_app;
use super::remote::ServerFlags;
use super::{SettingFlags, print, settings};

/// How often to check whether a server has finished running the policy.
const LOOKED_FOR: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Run enforced retention policies now; a server runs them every hour
    Run {
        /// Run only the policy with this id
        #[arg(long, value_name = "ID")]
        policy: Option<PolicyId>,
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
}

pub(crate) async fn run(command: RetentionCommand) -> anyhow::Result<()> {
    let RetentionCommand::Run { policy, server, settings: flags } = command;
    if let Some(api) = server.connect(&flags)? {
        return remote::run(&api, policy).await;
    }
    let app = open_app(settings(*flags)?).await?;
    let done = policies(&app, policy).await;
    app.store.close().await;
    done
}

async fn policies(app: &Arc<App>, only: Option<PolicyId>) -> anyhow::Result<()> {
    let ids = match only {
        None => app.store.enforced_policies().await?,
        Some(id) => match app.store.any_policy(id).await? {
            None => bail!("there is no policy {id}"),
            Some(policy) if !policy.enforced => {
                bail!("the policy {:?} is paused: preview and enforce it first", policy.name)
            }
            Some(_) => vec![id],
        },
    };
    if *app.live.read_only.get() {
        bail!("`read_only` is set: nothing is deleted");
    }
    let mut failed = 0;
    for id in ids {
        failed += usize::from(!policy(app, id).await?);
    }
    match failed {
        0 => Ok(()),
        count => bail!("{count} policies did not run to completion"),
    }
}

/// Prints the result of a run: the numbers of deleted versions, of their bytes, and of skipped
/// versions.
fn report(policy: &str, [deleted, bytes, skipped]: [u64; 3], error: Option<&str>) -> anyhow::Result<()> {
    print(&format!("{policy}: deleted {deleted} versions of {bytes} bytes, skipped {skipped}"))?;
    match error {
        Some(error) => print(&format!("{policy}: {error}")),
        None => Ok(()),
    }
}

/// Runs a policy. If a server is already running the policy, waits until that run has ended.
/// Returns false if the run failed.
async fn policy(app: &Arc<App>, id: PolicyId) -> anyhow::Result<bool> {
    loop {
        let done = run_due(app, Some(id)).await.map_err(packhouse_api::error::ApiError::for_command)?;
        if let Some(claim) = done.into_iter().next() {
            let (policy, run) = (claim.policy, claim.run);
            let skipped: Vec<serde_json::Value> = serde_json::from_str(&run.skipped).unwrap_or_default();
            let totals = [run.deleted, run.bytes, skipped.len() as u64];
            report(&policy.name, totals, run.error.as_deref())?;
            return Ok(run.error.is_none());
        }
        match app.store.any_policy(id).await? {
            Some(policy) if policy.enforced => tokio::time::sleep(LOOKED_FOR).await,
            _ => return Ok(true),
        }
    }
}
