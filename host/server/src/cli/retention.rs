//! `packhouse retention run`: enforced policies now, beside a running server or without one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use packhouse_api::operations::retention::run_due;
use packhouse_app::App;
use packhouse_store::PolicyId;

use super::opened::opened;
use super::{SettingFlags, print, settings};

/// How often it is looked whether a run of a server has ended.
const LOOKED_FOR: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Run enforced policies now, as they run by themselves every hour.
    Run {
        /// Only this policy.
        #[arg(long, value_name = "ID")]
        policy: Option<PolicyId>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
}

pub(crate) async fn run(command: RetentionCommand) -> anyhow::Result<()> {
    let RetentionCommand::Run { policy, settings: flags } = command;
    let app = opened(settings(*flags)?).await?;
    let done = policies(&app, policy).await;
    app.store.close().await;
    done
}

async fn policies(app: &Arc<App>, only: Option<PolicyId>) -> anyhow::Result<()> {
    let wanted = match only {
        None => app.store.enforced_policies().await?,
        Some(id) => match app.store.any_policy(id).await? {
            None => bail!("there is no policy {id}"),
            Some(policy) if !policy.enforced => {
                bail!("the policy {:?} is paused: preview it and enforce it first", policy.name)
            }
            Some(_) => vec![id],
        },
    };
    if *app.live.read_only.get() {
        bail!("`read_only` is set: nothing is deleted");
    }
    let mut failed = 0;
    for id in wanted {
        failed += usize::from(!policy(app, id).await?);
    }
    match failed {
        0 => Ok(()),
        count => bail!("{count} policies could not be run to their end"),
    }
}

/// Runs one; where a server is at it, once that has ended. Whether it came to its end.
async fn policy(app: &Arc<App>, id: PolicyId) -> anyhow::Result<bool> {
    loop {
        let done = run_due(app, Some(id)).await.map_err(packhouse_api::error::ApiError::for_command)?;
        if let Some(claim) = done.into_iter().next() {
            let (policy, run) = (claim.policy, claim.run);
            let skipped: Vec<serde_json::Value> = serde_json::from_str(&run.skipped).unwrap_or_default();
            let skipped = skipped.len();
            print(&format!(
                "{}: deleted {} versions of {} bytes, skipped {skipped}",
                policy.name, run.deleted, run.bytes
            ))?;
            if let Some(error) = &run.error {
                print(&format!("{}: {error}", policy.name))?;
            }
            return Ok(run.error.is_none());
        }
        match app.store.any_policy(id).await? {
            Some(policy) if policy.enforced => tokio::time::sleep(LOOKED_FOR).await,
            _ => return Ok(true),
        }
    }
}
