//! Checks how old the imported security advisories are.

use packhouse_advisories::OsvRecord;
use packhouse_config::Config;
use packhouse_store::{Store, now_ms};

use super::Findings;

/// Age in days from which advisories count as old, because newer vulnerabilities are missing.
const OLD_DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

/// Reports how old the advisories are. A server without advisories is not a problem.
pub(super) async fn examine(config: &Config, findings: &mut Findings) {
    let Ok(store) = Store::open(config.store.clone()).await else { return };
    let state = store.advisory_state().await;
    store.close().await;
    match state.map(|state| state.changed_at) {
        Ok(Some(at)) if now_ms().saturating_sub(at) > OLD_DAYS * DAY_MS => findings.note(format!(
            "advisories: last import on {}, more than {OLD_DAYS} days ago; download newer ones and run `packhouse advisories import`",
            OsvRecord::day(at)
        )),
        Ok(Some(at)) => findings.ok(format!("advisories: last import on {}", OsvRecord::day(at))),
        Ok(None) => {}
        Err(error) => findings.wrong(format!("the advisories cannot be read: {error}")),
    }
}
