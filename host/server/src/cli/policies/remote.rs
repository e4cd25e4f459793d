//! `packhouse policies record` and `recordings`, through the API of a server.

use crate::cli::json::Members as _;
use serde_json::{Value, json};

use super::{RECORDING, only};
use crate::cli::accounts::CommandOutput;
use crate::cli::print;
use crate::cli::remote::{RemoteContext, pick, text};

/// Makes every server of the database record calls from now on.
pub(super) async fn record(server: &RemoteContext, policy: &str, count: u32) -> anyhow::Result<Value> {
    let rule = rule(server, policy).await?;
    let segments = ["policies", text(&rule, "id"), "recordings"];
    let made = server.api.post(&segments, &json!({"count": count})).await?;
    Ok(json!({"policy": rule.at("id"), "count": made.at("count"), "armed_until": made.at("armed_until")}))
}

/// Lists the recordings of a policy, or prints one.
pub(super) async fn recordings(
    server: &RemoteContext,
    policy: &str,
    id: Option<String>,
) -> anyhow::Result<()> {
    let rule = rule(server, policy).await?;
    let segments = ["policies", text(&rule, "id"), "recordings"];
    if let Some(id) = id {
        return print(&server.api.get_text(&[&segments[..], &[id.as_str()]].concat()).await?);
    }
    let found = server.api.list(&segments).await?;
    let items = found.iter().map(|recording| pick(recording, RECORDING)).collect();
    server.finish(RECORDING, CommandOutput::List(items))
}

/// Finds the policy with this id, or the only one with this name.
async fn rule(server: &RemoteContext, named: &str) -> anyhow::Result<Value> {
    let mut found = server.api.list(&["policies"]).await?;
    found.retain(|rule| text(rule, "name") == named || text(rule, "id") == named);
    only(found, named, |rule| text(rule, "id").to_owned(), &server.api.address())
}
