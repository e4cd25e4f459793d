//! All that a request to a repository needs to know, in one statement, or in none while nothing was written.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::accounts::access_keys::{KEY_COLUMNS, key};
use crate::accounts::members::{MEMBER_COLUMNS, member};
use crate::accounts::repositories::{REPOSITORY_COLUMNS, repository};
use crate::accounts::tokens::{TOKEN_COLUMNS, token};
use crate::accounts::{AccessKeyRow, MemberRow, RepositoryRow, TokenRow};
use crate::db::{Generation, Row, Value, columns_of, values};
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
    /// Of a group: its members that are there, in order.
    pub members: Vec<Reached>,
}

/// A repository beside the one that was looked up, and whether the same token or key reaches it.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The repository, with its revision.
    pub row: RepositoryRow,
    /// Whether the token names it, or the key's owner was given it.
    pub reaches: bool,
}

impl LookUp {
    fn repositories(&self) -> impl Iterator<Item = &RepositoryRow> {
        self.repository.iter().chain(self.members.iter().map(|member| &member.row))
    }

    fn repositories_mut(&mut self) -> impl Iterator<Item = &mut RepositoryRow> {
        self.repository.iter_mut().chain(self.members.iter_mut().map(|member| &mut member.row))
    }
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
        let newer = |row: &RepositoryRow| revisions.get(&row.id).copied().filter(|now| *now > row.revision);
        if answer.repositories().any(|row| newer(row).is_some()) {
            for row in Arc::make_mut(answer).repositories_mut() {
                row.revision = newer(row).unwrap_or(row.revision);
            }
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
    /// Repository, revision, credential and its owner, in one statement; a group's members in one more. Where the store can
    /// tell that nothing was written since the same was asked (SQLite), no statement runs at all.
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

    /// A commit wrote nothing that a look-up answers (what is [`noted`](crate::noted)): the answers stay good.
    /// `before` was taken in its transaction, while nobody else could write.
    pub(crate) fn nothing_changed_since(&self, before: Option<Generation>) {
        if let (Some(before), Some(after)) = (before, self.generation()) {
            self.inner.snapshots.carry(before, after, &Revisions::new());
        }
    }

    async fn ask(&self, (organization, repository, secret_sha256): &Question) -> Result<LookUp, StoreError> {
        if repository.contains('\0') {
            return Ok(LookUp::default());
        }
        let secret = secret_sha256.as_ref().map(<[u8; 32]>::as_slice);
        let values = values![organization.0, repository.as_str(), secret];
        let row = self.inner.db.fetch_one(LOOK_UP.as_str(), values).await?;
        let mut found = row.map_or_else(|| Ok(LookUp::default()), |row| look_up(&row))?;
        let members = found.repository.as_ref().map(|row| row.members.as_slice()).unwrap_or_default();
        if !members.is_empty() {
            let ids: Vec<Value> = members.iter().map(|id| Value::from(id.0)).collect();
            let rows = self.reached(*organization, &found, "r.id", ids).await?;
            let find = |id: &RepositoryId| rows.iter().find(|one| one.row.id == *id).cloned();
            found.members = members.iter().filter_map(find).collect();
        }
        Ok(found)
    }

    /// The repositories of these names that are there, in no order, and whether the token or key of `facts` reaches them: what a
    /// request reads from besides its own repository. One statement, none for no names.
    pub async fn look_up_others(
        &self,
        organization: OrganizationId,
        names: &[String],
        facts: &LookUp,
    ) -> Result<Vec<Reached>, StoreError> {
        let names = names.iter().filter(|name| !name.contains('\0'));
        let names: Vec<Value> = names.map(|name| Value::from(name.as_str())).collect();
        match names.is_empty() {
            true => Ok(Vec::new()),
            false => self.reached(organization, facts, "r.name", names).await,
        }
    }

    async fn reached(
        &self,
        organization: OrganizationId,
        facts: &LookUp,
        column: &'static str,
        among: Vec<Value>,
    ) -> Result<Vec<Reached>, StoreError> {
        let sql = reached_sql(column, among.len());
        let token = facts.token.as_ref().map(|token| token.id.0);
        let owner = facts.key.as_ref().map(|key| key.owner.0);
        let mut values = values![organization.0, token, owner];
        values.extend(among);
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(reached).collect()
    }

    /// Repositories in the order of their making, after the identifier `after`, at most `limit`: where `facts` has a token or a key,
    /// those that it reaches and those that anyone may read, else all.
    pub async fn list_reached(
        &self,
        organization: OrganizationId,
        facts: &LookUp,
        after: Option<RepositoryId>,
        limit: u32,
    ) -> Result<Vec<Reached>, StoreError> {
        let token = facts.token.as_ref().map(|token| token.id.0);
        let owner = facts.key.as_ref().map(|key| key.owner.0);
        let sql = list_reached_sql(token.is_some() || owner.is_some());
        let after = after.map_or(i64::MIN, |after| after.0);
        let values = values![organization.0, token, owner, after, i64::from(limit)];
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(reached).collect()
    }
}

fn reached(row: &Row) -> Result<Reached, StoreError> {
    let reaches = row.columns().opt_int("reaches")?.is_some();
    Ok(Reached { row: repository(&mut row.columns_of("r"))?, reaches })
}

/// Something where the token or the key's owner reaches a repository.
const REACHES: &str = "COALESCE(x.repository, y.repository, (SELECT z.repository \
    FROM subscriber_groups g JOIN key_owner_repositories z ON z.owner = g.subscriber_group AND z.repository = r.id \
    WHERE g.subscriber = $3 LIMIT 1))";
/// An organization's repositories with what [`REACHES`] is about.
const AMONG: &str = "FROM repositories r \
    LEFT JOIN token_repositories x ON x.token = $2 AND x.repository = r.id \
    LEFT JOIN key_owner_repositories y ON y.owner = $3 AND y.repository = r.id WHERE r.organization = $1";

/// Repositories by one of their keys, each with whether the token or the key's owner reaches it.
pub(crate) fn reached_sql(column: &str, count: usize) -> String {
    let places: Vec<String> = (4..count + 4).map(|at| format!("${at}")).collect();
    let columns = columns_of("r", REPOSITORY_COLUMNS);
    format!("SELECT {columns}, {REACHES} AS reaches {AMONG} AND {column} IN ({})", places.join(","))
}

fn list_reached_sql(reached_alone: bool) -> String {
    let alone =
        if reached_alone { format!("AND (r.public = 1 OR {REACHES} IS NOT NULL)") } else { String::new() };
    let columns = columns_of("r", REPOSITORY_COLUMNS);
    format!("SELECT {columns}, {REACHES} AS reaches {AMONG} AND r.id > $4 {alone} ORDER BY r.id LIMIT $5")
}

/// One row, whatever is there. A key reaches what its owner has, and where that is a subscriber, what the groups have that it
/// is in.
pub(crate) static LOOK_UP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, {}, {}, {}, o.name AS key_owner, COALESCE(x.repository, y.repository, (SELECT z.repository FROM subscriber_groups g \
         JOIN key_owner_repositories z ON z.owner = g.subscriber_group AND z.repository = r.id \
         WHERE g.subscriber = k.owner LIMIT 1)) AS reaches, s.settings AS sign_in, f.enabled \
         FROM (SELECT 1 AS one) AS q \
         LEFT JOIN repositories r ON r.organization = $1 AND r.name = $2 \
         LEFT JOIN tokens t ON t.secret_sha256 = $3 AND t.organization = $1 \
         LEFT JOIN members m ON m.id = t.owner \
         LEFT JOIN token_repositories x ON x.token = t.id AND x.repository = r.id \
         LEFT JOIN access_keys k ON k.secret_sha256 = $3 AND k.organization = $1 \
         LEFT JOIN key_owners o ON o.id = k.owner \
         LEFT JOIN key_owner_repositories y ON y.owner = k.owner AND y.repository = r.id \
         LEFT JOIN sso_settings s ON s.organization = $1 \
         LEFT JOIN formats f ON f.organization = r.organization AND f.format = r.format",
        columns_of("r", REPOSITORY_COLUMNS),
        columns_of("t", TOKEN_COLUMNS),
        columns_of("m", MEMBER_COLUMNS),
        columns_of("k", KEY_COLUMNS),
    )
});

fn look_up(row: &Row) -> Result<LookUp, StoreError> {
    let mut columns = row.columns();
    Ok(LookUp {
        repository: row.joined("r", repository)?,
        token: row.joined("t", token)?,
        owner: row.joined("m", member)?,
        key: row.joined("k", key)?,
        key_owner: columns.opt_text("key_owner")?,
        reaches: columns.opt_int("reaches")?.is_some(),
        sign_in: columns.opt_text("sign_in")?,
        enabled: columns.opt_int("enabled")?.map(|enabled| enabled != 0),
        members: Vec::new(),
    })
}
