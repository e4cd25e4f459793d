//! Preview of a rule: its effect on all existing versions, with the same evaluation as for
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use packhouse_app::policies::{JudgedRepository, Question, facts};
use packhouse_identity::access::RepositoryKind;
use packhouse_runtime::{MAX_BATCH, PolicyFacts, PolicyPurpose, RequestHead};
use packhouse_store::{FactsPlace, RepositoryRow, RuleMode, VersionFactsRow, now_ms};

use super::{Rule, find, reach_of};
use crate::error::ApiError;
use crate::operations::repositories::may_read;
use crate::operations::retention::reached;
use crate::operations::{Actor, loaded};

/// Maximum number of listed versions.
const ITEMS: usize = 1_000;
/// Maximum number of exceptions that are read.
const EXCEPTIONS: u32 = 10_000;

/// Effect of a rule on the existing versions.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// Versions that would be refused or pass with a warning, in repositories that the actor may
    /// read: the first 1,000.
    pub items: Vec<PreviewItem>,
    /// Number of further such versions in repositories that the actor may not read.
    pub hidden: u64,
    /// Number of versions to which it applies.
    pub versions: u64,
    /// Number of these versions by ruling: `denied`, `held`, `warned`, `policy_unavailable`.
    pub counts: BTreeMap<&'static str, u64>,
    /// True if there are more than the listed ones.
    pub truncated: bool,
}

/// A version that would be refused or pass with a warning.
#[derive(Clone, Debug)]
pub struct PreviewItem {
    pub repository: String,
    pub repository_name: String,
    pub package: String,
    pub version: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    pub ruling: &'static str,
    /// Reason, as a text for people.
    pub reason: String,
    /// Time in ms since 1970 from which the ruling may change.
    pub until: Option<i64>,
}

/// Previews a rule. Afterwards it may be enforced with this content.
pub async fn preview(actor: &Actor, id: &str) -> Result<Preview, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    loaded::all(&actor.app)?;
    let (organization, digest) = (row.organization, row.text.digest.clone());
    let (rule_id, reach) = (row.id, reach_of(&row.text));
    let (app, now) = (&actor.app, now_ms());
    let exceptions = app.store.list_exceptions(organization, rule_id, None, EXCEPTIONS).await?;
    let exceptions = exceptions.into_iter().map(|one| one.new).collect();
    // Previewed as enforced, because a rule in the mode `warn` denies nothing.
    let row = packhouse_store::RuleRow { mode: RuleMode::Enforced, ..row };
    let rule = app.rule_as_it_is(row, exceptions).await?;
    let mut found = Preview::default();
    for repository in reached(app, organization, &reach).await? {
        if RepositoryKind::of(&repository.kind) == RepositoryKind::Group {
            continue;
        }
        let may_read = may_read(actor, &repository);
        let question = question(&repository, now);
        let folding = app.folding_of(&repository.format);
        let mut after: Option<FactsPlace> = None;
        loop {
            let rows = app.store.version_facts(repository.id, after.as_ref(), MAX_BATCH as u32).await?;
            after = rows.last().map(VersionFactsRow::place);
            let is_last = rows.len() < MAX_BATCH;
            let about = rows.iter().filter(|row| rule.is_about(folding, &row.version.name));
            let versions: Vec<PolicyFacts> = about.map(facts::of_row).collect();
            found.versions += versions.len() as u64;
            let names: Vec<(String, String)> =
                versions.iter().map(|one| (one.name.clone(), one.version.clone())).collect();
            let judged = app.judge_by(&[&rule], &question, versions).await?;
            for ((package, version), judged) in names.into_iter().zip(judged) {
                let warning = judged.warnings.first().map(|(_, sentence)| ("warned", sentence.clone()));
                let refusal = judged.refusal.map(|refusal| (refusal.word(), refusal.sentence));
                if let Some((ruling, reason)) = refusal.or(warning) {
                    let item = PreviewItem {
                        repository: repository.id.to_string(),
                        repository_name: repository.name.clone(),
                        package,
                        version,
                        ruling,
                        reason,
                        until: judged.until,
                    };
                    found.add(item, may_read);
                }
            }
            if is_last {
                break;
            }
        }
    }
    app.store.mark_rule_previewed(organization, rule_id, &digest).await?;
    Ok(found)
}

impl Preview {
    fn add(&mut self, item: PreviewItem, may_read: bool) {
        *self.counts.entry(item.ruling).or_default() += 1;
        if !may_read {
            self.hidden += 1;
        } else if self.items.len() < ITEMS {
            self.items.push(item);
        } else {
            self.truncated = true;
        }
    }

    /// Number of versions with this ruling.
    #[must_use]
    pub fn count(&self, ruling: &str) -> u64 {
        self.counts.get(ruling).copied().unwrap_or_default()
    }
}

pub(super) fn question(repository: &RepositoryRow, now: i64) -> Question {
    Question {
        place: JudgedRepository {
            organization: repository.organization,
            repository: repository.id,
            name: repository.name.as_str().into(),
            kind: repository.kind.clone(),
            format: repository.format.clone(),
            upstream: repository.upstream.clone(),
        },
        purpose: PolicyPurpose::Preview,
        file: None,
        caller: None,
        head: Arc::new(RequestHead::default()),
        now,
    }
}
