//! `packhouse retention run` through the API of a server: starts the runs there and waits for their
//! ends.

use crate::cli::json::Members as _;
use anyhow::{Context, bail, ensure};
use packhouse_store::PolicyId;
use serde_json::Value;

use super::{LOOKED_FOR, report};
use crate::cli::remote::{ApiClient, text};

/// Path segment of the API's retention policies.
const POLICIES: &str = "retention-policies";

pub(super) async fn run(api: &ApiClient, only: Option<PolicyId>) -> anyhow::Result<()> {
    let mut policies = api.list(&[POLICIES]).await?;
    match only {
        None => policies.retain(is_enforced),
        Some(id) => {
            policies.retain(|policy| text(policy, "id") == id.to_string());
            let policy = policies.first().with_context(|| format!("there is no policy {id}"))?;
            let name = text(policy, "name");
            ensure!(is_enforced(policy), "the policy {name:?} is paused: preview and enforce it first");
        }
    }
    let mut failed = 0;
    for policy in &policies {
        failed += usize::from(!run_policy(api, policy).await?);
    }
    match failed {
        0 => Ok(()),
        count => bail!("{count} policies did not run to completion"),
    }
}

fn is_enforced(policy: &Value) -> bool {
    text(policy, "mode") == "enforced"
}

/// Runs a policy and waits for the end of the run. Returns false if the run failed.
async fn run_policy(api: &ApiClient, policy: &Value) -> anyhow::Result<bool> {
    let id = text(policy, "id");
    let before = newest_run(api, id).await?;
    api.post_empty(&[POLICIES, id, "runs"]).await?;
    loop {
        let run = newest_run(api, id).await?;
        if run.at("id") != before.at("id") && !run.at("ended_at").is_null() {
            let number = |field: &str| run.at(field).as_u64().unwrap_or_default();
            let skipped = run.at("skipped").as_array().map_or(0, Vec::len) as u64;
            let error = run.at("error").as_str();
            report(text(policy, "name"), [number("deleted"), number("bytes"), skipped], error)?;
            return Ok(error.is_none());
        }
        // A policy that was paused meanwhile does not run.
        if !is_enforced(&api.get(&[POLICIES, id]).await?) {
            return Ok(true);
        }
        tokio::time::sleep(LOOKED_FOR).await;
    }
}

/// Returns the newest run of a policy, or null.
async fn newest_run(api: &ApiClient, id: &str) -> anyhow::Result<Value> {
    let mut page = api.get_with(&[POLICIES, id, "runs"], &[("limit", "1")]).await?;
    Ok(page.pointer_mut("/items/0").map(Value::take).unwrap_or_default())
}
