//! Policies over versions: the rules that hold in an organization, kept in memory under the number that each look-up reads, and their
//! judgement.
//!
//! Where no rule holds, the number is null: nothing is asked, and no component runs. Whatever goes wrong with a rule denies what it is
//! about, and is told with the rule.

pub mod facts;
mod judge;
mod recorded;
mod report;
mod rule_set;
mod told;

pub use judge::{AskedFile, Judged, JudgedWhere, Published, Question, Refusal};
pub use rule_set::{Rule, RuleSet};
pub use told::RuleFailure;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use packhouse_names::Folding;
use packhouse_runtime::{MAX_NAMES, PolicyComponent};
use packhouse_store::{NewException, OrganizationId, RuleId, RuleRow, StoreError, now_ms};
use quick_cache::sync::Cache;

use crate::App;
use crate::boxed;

/// Organizations whose rules are kept.
const ORGANIZATIONS: usize = 1_000;
/// For how long (ms) names in use are kept.
const NAMES_MS: i64 = 60_000;

/// What a server keeps of policies.
pub struct Policies {
    sets: Cache<OrganizationId, Arc<RuleSet>>,
    names: Cache<(OrganizationId, String), Arc<KnownNames>>,
    pub(crate) told: told::Told,
    failures: Mutex<HashMap<RuleId, RuleFailure>>,
    writing: recorded::Writing,
}

struct KnownNames {
    read_at: i64,
    names: Vec<String>,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies {
            sets: Cache::new(ORGANIZATIONS),
            names: Cache::new(ORGANIZATIONS),
            told: told::Told::default(),
            failures: Mutex::default(),
            writing: recorded::Writing::default(),
        }
    }
}

impl Policies {
    /// What went wrong with a rule on this server last, if anything did since it was changed.
    pub fn failure(&self, rule: RuleId) -> Option<RuleFailure> {
        self.failures().get(&rule).cloned()
    }

    /// Forgets it: the rule says something else now.
    pub fn forget_failure(&self, rule: RuleId) {
        self.failures().remove(&rule);
    }

    fn note_failure(&self, rule: RuleId, error: &str) {
        let mut failures = self.failures();
        let times = failures.get(&rule).map_or(0, |failure| failure.times);
        let failure = RuleFailure { at: now_ms(), times: times.saturating_add(1), error: error.to_owned() };
        failures.insert(rule, failure);
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<RuleId, RuleFailure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loads the components that rules name, so that no request waits for a compilation.
#[boxed]
pub async fn load(app: Arc<App>) {
    report::announce();
    app.load_policies().await;
}

impl App {
    /// The rules that hold in an organization whose look-up gave this number. No statement where they are known.
    #[boxed]
    pub async fn rules_that_hold(
        &self,
        organization: OrganizationId,
        number: i64,
    ) -> Result<Arc<RuleSet>, StoreError> {
        if let Some(kept) = self.policies.sets.get(&organization).filter(|kept| kept.number == number) {
            return Ok(kept);
        }
        let (rows, exceptions) = self.store.rules_that_hold(organization).await?;
        let recorded = self.store.rules_that_record(organization).await?;
        let mut rules = Vec::with_capacity(rows.len());
        for row in rows {
            let component = self.policy_component(&row.text.component).await?;
            let id = row.id;
            let exceptions = exceptions.iter().filter(|one| one.rule == id).map(|one| one.new.clone());
            let armed = recorded.iter().find(|one| one.rule == row.id).map(recorded::Armed::from);
            rules.push(Rule::new(row, exceptions, component, armed));
        }
        // Of a piece of a list that was made by other rules nobody would tell.
        self.runtime.forget_pieces();
        let set = Arc::new(RuleSet { number, rules });
        self.policies.sets.insert(organization, Arc::clone(&set));
        Ok(set)
    }

    /// One rule as it is, whatever its mode, with these exceptions: for previews.
    #[boxed]
    pub async fn rule_as_it_is(
        &self,
        row: RuleRow,
        exceptions: Vec<NewException>,
    ) -> Result<Rule, StoreError> {
        let component = self.policy_component(&row.text.component).await?;
        let recorded = self.store.rules_that_record(row.organization).await?;
        let armed = recorded.iter().find(|one| one.rule == row.id).map(recorded::Armed::from);
        Ok(Rule::new(row, exceptions, component, armed))
    }

    /// The component of this name or digest, loaded if it has to be. Says why there is none.
    #[boxed]
    pub async fn policy_component(
        &self,
        name_or_digest: &str,
    ) -> Result<Result<Arc<PolicyComponent>, String>, StoreError> {
        let components = self.runtime.policies();
        if !name_or_digest.starts_with("sha256:") {
            let found = components.named(name_or_digest).cloned();
            return Ok(found.ok_or_else(|| format!("there is no policy {name_or_digest} beside the program")));
        }
        let row = self.store.find_policy_component(name_or_digest).await?;
        if let Err(reason) = self.may_run(name_or_digest, row.and_then(|row| row.signed_by).as_deref()) {
            return Ok(Err(reason));
        }
        if let Some(found) = components.find(name_or_digest) {
            return Ok(Ok(found));
        }
        let Some(bytes) = self.store.policy_component_bytes(name_or_digest).await? else {
            return Ok(Err(format!("the policy {name_or_digest} is not installed")));
        };
        Ok(components.load(name_or_digest, bytes).await.map_err(|error| error.reason()))
    }

    /// How a format spells names.
    #[must_use]
    pub fn folding_of(&self, format: &str) -> Folding {
        self.runtime.plugin(format).map(|plugin| plugin.description().name_folding).unwrap_or_default()
    }

    async fn names_in_use(
        &self,
        organization: OrganizationId,
        format: &str,
    ) -> Result<Vec<String>, StoreError> {
        let key = (organization, format.to_owned());
        let is_fresh = |kept: &Arc<KnownNames>| (0..NAMES_MS).contains(&(now_ms() - kept.read_at));
        if let Some(kept) = self.policies.names.get(&key).filter(is_fresh) {
            return Ok(kept.names.clone());
        }
        let most = u32::try_from(MAX_NAMES).unwrap_or(u32::MAX);
        let names = self.store.names_in_use(organization, format, most).await?;
        self.policies.names.insert(key, Arc::new(KnownNames { read_at: now_ms(), names: names.clone() }));
        Ok(names)
    }

    async fn load_policies(&self) {
        let digests = match self.store.rules_components().await {
            Ok(digests) => digests,
            Err(error) => {
                tracing::warn!(%error, "policies are loaded when they are asked for");
                return;
            }
        };
        for digest in digests {
            if let Ok(Err(error)) = self.policy_component(&digest).await {
                tracing::error!(
                    digest,
                    error,
                    "a policy cannot be loaded; rules that name it deny everything"
                );
            }
        }
    }
}
