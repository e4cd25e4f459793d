//! All that a request to a repository needs to know, in one statement, or in none while nothing was written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::accounts::access_keys::{KEY_COLUMNS, key};
use crate::accounts::members::{MEMBER_COLUMNS, member};
use crate::accounts::repositories::{REPOSITORY_COLUMNS, repository};
use crate::accounts::tokens::{TOKEN_COLUMNS, token};
use crate::accounts::{AccessKeyRow, MemberRow, RepositoryRow, TokenRow};
use crate::db::{Generation, Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use crate::writer::Revisions;

/// How many answers are kept. They all go when anything is written, so there is no need to choose which.
const MAX_KEPT: usize = 10_000;

/// What is known of a request's repository and credential.
#[derive(Clone, Default, Debug)]
pub struct LookUp {
    /// The repository of this name, with its revision.
    pub repository: Option<RepositoryRow>,
    /// Whether its organization has switched its format on or off; none: as the settings have it.
    pub enabled: Option<bool>,
    /// The token of this hash in this organization, whatever its state; its list of repositories is not filled in.
    pub token: Option<TokenRow>,
    /// Whether the token names the repository, or the key's owner has it.
    pub reaches: bool,
    /// The token's owner, whose permissions bound it.
    pub owner: Option<MemberRow>,
    /// The access key of this hash in this organization, whatever its state.
    pub key: Option<AccessKeyRow>,
    /// The name of the key's owner.
    pub key_owner: Option<String>,
    /// How members of the organization sign in, as the API's JSON.
    pub sign_in: Option<String>,
}

type Question = (OrganizationId, String, Option<[u8; 32]>);

/// Answers kept while the database is unchanged.
#[derive(Default)]
pub(crate) struct Snapshots {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Of the database when they were asked for, or after commits of this process that changed no more than `revisions`.
    generation: Option<Generation>,
    answers: HashMap<Question, Arc<LookUp>>,
    /// What those commits made of repositories' revisions.
    revisions: HashMap<RepositoryId, u64>,
}

impl Snapshots {
    fn get(&self, generation: Generation, question: &Question) -> Option<Arc<LookUp>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.generation != Some(generation) {
            return None;
        }
        let Kept { answers, revisions, .. } = &mut *kept;
        let answer = answers.get_mut(question)?;
        let asked = answer.repository.as_ref().map(|repository| (repository.id, repository.revision));
        let now = asked.and_then(|(id, revision)| revisions.get(&id).copied().filter(|now| *now > revision));
        if let Some(now) = now
            && let Some(repository) = Arc::make_mut(answer).repository.as_mut()
        {
            repository.revision = now;
        }
        Some(Arc::clone(answer))
    }

    /// `generation` is from before the question was asked: what was written meanwhile makes the answer newer, not older.
    fn put(&self, generation: Generation, question: Question, answer: &Arc<LookUp>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.generation != Some(generation) || kept.answers.len() >= MAX_KEPT {
            if kept.generation.is_some_and(|now| generation.is_older_than(&now)) {
                return;
            }
            *kept = Kept { generation: Some(generation), ..Kept::default() };
        }
        kept.answers.insert(question, Arc::clone(answer));
    }

    /// A commit of records changed these revisions, and nothing else was written between the two generations: the answers
    /// stay good but for that.
    pub(crate) fn carry(&self, before: Generation, after: Generation, revisions: &Revisions) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.generation == Some(before) && after.is_next_after(&before) {
            kept.generation = Some(after);
            kept.revisions.extend(revisions.iter().map(|(id, revision)| (*id, *revision)));
        }
    }
}

impl Store {
    /// Repository, revision, credential and its owner, in one statement. Where the store can tell that nothing was written
    /// since the same was asked (SQLite), no statement runs at all.
    pub async fn look_up(
        &self,
        organization: OrganizationId,
        repository: &str,
        secret_sha256: Option<&[u8; 32]>,
    ) -> Result<Arc<LookUp>, StoreError> {
        let question = (organization, repository.to_owned(), secret_sha256.copied());
        let generation = self.generation();
        if let Some(answer) = generation.and_then(|now| self.inner.snapshots.get(now, &question)) {
            return Ok(answer);
        }
        let answer = match self.ask(&question).await {
            Ok(answer) => Arc::new(answer),
            Err(failed) => return Err(self.why(failed, organization, secret_sha256).await),
        };
        if let Some(before) = generation {
            self.inner.snapshots.put(before, question, &answer);
        }
        Ok(answer)
    }

    async fn ask(&self, (organization, repository, secret_sha256): &Question) -> Result<LookUp, StoreError> {
        if repository.contains('\0') {
            return Ok(LookUp::default());
        }
        let secret = secret_sha256.as_ref().map(<[u8; 32]>::as_slice);
        let values = values![organization.0, repository.as_str(), secret];
        let row = self.inner.db.fetch_one(look_up_sql(), values).await?;
        row.map_or_else(|| Ok(LookUp::default()), |row| look_up(&row))
    }
}

/// One row, whatever is there: each part begins with whether it is. A key reaches what its owner has, and where that is a
/// subscriber, what the groups have that it is in.
pub(crate) fn look_up_sql() -> String {
    format!(
        "SELECT q.one, r.id, {REPOSITORY_COLUMNS}, t.id, {TOKEN_COLUMNS}, m.id, {MEMBER_COLUMNS}, k.id, {KEY_COLUMNS}, \
         o.name, COALESCE(x.repository, y.repository, (SELECT z.repository FROM subscriber_groups g \
         JOIN key_owner_repositories z ON z.owner = g.subscriber_group AND z.repository = r.id \
         WHERE g.subscriber = k.owner LIMIT 1)), s.settings, f.enabled \
         FROM (SELECT 1 AS one) AS q \
         LEFT JOIN repositories r ON r.organization = $1 AND r.name = $2 \
         LEFT JOIN tokens t ON t.secret_sha256 = $3 AND t.organization = $1 \
         LEFT JOIN members m ON m.id = t.owner \
         LEFT JOIN token_repositories x ON x.token = t.id AND x.repository = r.id \
         LEFT JOIN access_keys k ON k.secret_sha256 = $3 AND k.organization = $1 \
         LEFT JOIN key_owners o ON o.id = k.owner \
         LEFT JOIN key_owner_repositories y ON y.owner = k.owner AND y.repository = r.id \
         LEFT JOIN sso_settings s ON s.organization = $1 \
         LEFT JOIN formats f ON f.organization = r.organization AND f.format = r.format"
    )
}

fn look_up(row: &Row) -> Result<LookUp, StoreError> {
    let mut columns = row.columns();
    columns.skip(1);
    Ok(LookUp {
        repository: columns.optional(12, repository)?,
        token: columns.optional(15, token)?,
        owner: columns.optional(7, member)?,
        key: columns.optional(11, key)?,
        key_owner: columns.opt_text()?,
        reaches: columns.opt_int()?.is_some(),
        sign_in: columns.opt_text()?,
        enabled: columns.opt_int()?.map(|enabled| enabled != 0),
    })
}
