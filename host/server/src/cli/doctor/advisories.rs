//! The advisories: whether there are some, and whether they are old.

use packhouse_advisories::OsvRecord;
use packhouse_config::Config;
use packhouse_store::{Store, now_ms};

use super::Findings;

/// From when on advisories are old, in days: what is found out about packages since then is not known.
const OLD_DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

/// Says how old the advisories are. That there are none is no fault.
pub(super) async fn examine(config: &Config, findings: &mut Findings) {
    let Ok(store) = Store::open(config.store.clone()).await else { return };
    let state = store.advisory_state().await;
    store.close().await;
    match state.map(|state| state.changed_at) {
        Ok(Some(at)) if now_ms().saturating_sub(at) > OLD_DAYS * DAY_MS => findings.note(format!(
            "advisories: brought in last on {}, more than {OLD_DAYS} days ago; fetch newer ones, and run `packhouse advisories import`",
            OsvRecord::day(at)
        )),
        Ok(Some(at)) => findings.well(format!("advisories: brought in last on {}", OsvRecord::day(at))),
        Ok(None) => {}
        Err(error) => findings.wrong(format!("the advisories cannot be read: {error}")),
    }
}
