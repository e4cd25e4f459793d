//! What a rule would do to all that is there: the very judgement that requests meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use packhouse_app::policies::{JudgedWhere, Question, facts};
use packhouse_identity::access::Kind;
use packhouse_runtime::{MAX_BATCH, PolicyFacts, PolicyPurpose, RequestHead};
use packhouse_store::{FactsPlace, RepositoryRow, RuleMode, VersionFactsRow, now_ms};

use super::{Rule, find, reach_of};
use crate::error::ApiError;
use crate::operations::repositories::may_read;
use crate::operations::retention::reached;
use crate::operations::{Actor, loaded};

/// Versions that are told.
const ITEMS: usize = 1_000;
/// Exceptions that are looked at.
const EXCEPTIONS: u32 = 10_000;

/// What a rule would do.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// Versions that do not pass, or pass with a warning, where the actor may read: the first 1,000.
    pub items: Vec<PreviewItem>,
    /// How many more there are in repositories that the actor may not read.
    pub hidden: u64,
    /// Versions that it is about.
    pub versions: u64,
    /// How many of them by what becomes of them: `denied`, `held`, `warned`, `policy_unavailable`.
    pub counts: BTreeMap<&'static str, u64>,
    /// Whether there are more than are told.
    pub truncated: bool,
}

/// A version that does not pass, or with a warning.
#[derive(Clone, Debug)]
pub struct PreviewItem {
    /// The repository's id.
    pub repository: String,
    /// Its name.
    pub repository_name: String,
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    pub ruling: &'static str,
    /// Why.
    pub because: String,
    /// From when on it may be judged otherwise, in ms since 1970.
    pub until: Option<i64>,
}

/// What the rule of this id would do now. From then on it may be enforced as it is.
pub async fn preview(actor: &Actor, id: &str) -> Result<Preview, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    loaded::all(&actor.app)?;
    let (organization, digest) = (row.organization, row.text.digest.clone());
    let (rule_id, reach) = (row.id, reach_of(&row.text));
    let (app, now) = (&actor.app, now_ms());
    let exceptions = app.store.list_exceptions(organization, rule_id, None, EXCEPTIONS).await?;
    let exceptions = exceptions.into_iter().map(|one| one.new).collect();
    // As if it were enforced: what it only warns of is no denial else.
    let row = packhouse_store::RuleRow { mode: RuleMode::Enforced, ..row };
    let rule = app.rule_as_it_is(row, exceptions).await?;
    let mut found = Preview::default();
    for repository in reached(app, organization, &reach).await? {
        if Kind::of(&repository.kind) == Kind::Group {
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
                if let Some((ruling, because)) = refusal.or(warning) {
                    let item = PreviewItem {
                        repository: repository.id.to_string(),
                        repository_name: repository.name.clone(),
                        package,
                        version,
                        ruling,
                        because,
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

    /// How many versions become this.
    #[must_use]
    pub fn count(&self, ruling: &str) -> u64 {
        self.counts.get(ruling).copied().unwrap_or_default()
    }
}

pub(super) fn question(repository: &RepositoryRow, now: i64) -> Question {
    Question {
        place: JudgedWhere {
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
