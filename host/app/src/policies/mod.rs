//! Policies about versions: the active rules of an organization, and how they judge. Cached rules
//! are valid for one revision number, and each look-up reads the current number.
//!
//! If an organization has no active rules, the number is null and no policy component runs. If a
//! rule fails, it denies the versions to which it applies. The API shows the error with the rule.

pub mod facts;
mod judge;
mod recorded;
mod report;
mod reported_rulings;
mod rule_set;

pub use judge::{
    JudgedRepository, PolicyRefusal, PublishedVersions, Question, RequestedFile, VersionJudgement,
};
pub use reported_rulings::RuleFailure;
pub use rule_set::{Rule, RuleSet};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use packhouse_names::Folding;
use packhouse_runtime::{MAX_NAMES, PolicyComponent};
use packhouse_store::{NewException, OrganizationId, RuleId, RuleRow, StoreError, now_ms};
use quick_cache::sync::Cache;

use crate::App;
use crate::boxed;

/// Maximum number of organizations whose rules are cached.
const ORGANIZATIONS: usize = 1_000;
/// Lifetime of the cached package names that an organization uses, in ms.
const NAMES_MS: i64 = 60_000;

/// Policy state that this server caches.
pub struct Policies {
    sets: Cache<OrganizationId, Arc<RuleSet>>,
    names: Cache<(OrganizationId, String), Arc<KnownNames>>,
    pub(crate) reported: reported_rulings::ReportedRulings,
    failures: Mutex<HashMap<RuleId, RuleFailure>>,
    write_permits: recorded::WritePermits,
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
            reported: reported_rulings::ReportedRulings::default(),
            failures: Mutex::default(),
            write_permits: recorded::WritePermits::default(),
        }
    }
}

impl Policies {
    /// Returns the last failure of a rule on this server since the rule last changed.
    pub fn failure(&self, rule: RuleId) -> Option<RuleFailure> {
        self.failures().get(&rule).cloned()
    }

    /// Removes a rule's failure after the rule changed.
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

/// Loads the components of the rules, so that no request has to wait for a compilation.
#[boxed]
pub async fn load(app: Arc<App>) {
    report::announce();
    app.load_policies().await;
}

impl App {
    /// Returns the active rules of an organization. `number` comes from the look-up of the
    /// organization. If the rules are cached, no database statement runs.
    #[boxed]
    pub async fn rules_that_hold(
        &self,
        organization: OrganizationId,
        number: i64,
    ) -> Result<Arc<RuleSet>, StoreError> {
        if let Some(cached) = self.policies.sets.get(&organization).filter(|cached| cached.number == number) {
            return Ok(cached);
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
        // The cached pieces of lists were made under other rules, and nothing else would remove
        // them.
        self.runtime.forget_pieces();
        let set = Arc::new(RuleSet { number, rules });
        self.policies.sets.insert(organization, Arc::clone(&set));
        Ok(set)
    }

    /// Prepares one rule for a preview, whatever its mode, with these exceptions.
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

    /// Returns the policy component with this name or digest, and loads it if necessary. The inner
    /// error states why the component is not available.
    #[boxed]
    pub async fn policy_component(
        &self,
        name_or_digest: &str,
    ) -> Result<Result<Arc<PolicyComponent>, String>, StoreError> {
        let components = self.runtime.policies();
        if !name_or_digest.starts_with("sha256:") {
            let found = components.named(name_or_digest).cloned();
            return Ok(
                found.ok_or_else(|| format!("no policy {name_or_digest} is installed beside the program"))
            );
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

    /// Returns the rules by which a format normalises names.
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
        let is_fresh = |cached: &Arc<KnownNames>| (0..NAMES_MS).contains(&(now_ms() - cached.read_at));
        if let Some(cached) = self.policies.names.get(&key).filter(is_fresh) {
            return Ok(cached.names.clone());
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
                tracing::warn!(%error, "policies are loaded when they are first used");
                return;
            }
        };
        for digest in digests {
            if let Ok(Err(error)) = self.policy_component(&digest).await {
                tracing::error!(digest, error, "could not load a policy; rules that use it deny everything");
            }
        }
    }
}
