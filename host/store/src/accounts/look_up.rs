//! Look-up of everything that a request to a repository needs: in one statement, or from the cache
//! while no relevant data changed.

use std::sync::{Arc, LazyLock};

use tracing::Instrument as _;

use crate::accounts::rows::access_key::{KEY_COLUMNS, key};
use crate::accounts::rows::member::{member, member_columns};
use crate::accounts::rows::repository::{REPOSITORY_COLUMNS, repository};
use crate::accounts::rows::token::{TOKEN_COLUMNS, token};
use crate::accounts::snapshots::{Derived, LookUp, LookUpQuery, Reached};
use crate::accounts::{ChangedFacts, LeasedLookUps};
use crate::boxed;
use crate::db::{Row, Value, columns_of, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::leases::Leases;
use crate::part_span;
use crate::store::Store;

impl Store {
    /// Looks up repository, revision, credential and its owner in one statement. The members of a
    /// group take one more statement. No statement runs if the store knows that nothing relevant
    /// was written since the same look-up (SQLite, and PostgreSQL under a lease).
    #[boxed]
    pub async fn look_up(
        &self,
        organization: OrganizationId,
        repository: &str,
        secret_sha256: Option<&[u8; 32]>,
    ) -> Result<Arc<LookUp>, StoreError> {
        let question = LookUpQuery {
            organization,
            repository: repository.to_owned(),
            secret_sha256: secret_sha256.copied(),
        };
        let generation = self.generation();
        if let Some(answer) = generation.and_then(|now| self.inner.snapshots.get(now, &question)) {
            return Ok(answer);
        }
        let held = || self.inner.leases.as_ref().and_then(Leases::facts);
        let facts = held();
        if let Some(answer) = facts.and_then(|facts| facts.get(&question)) {
            return Ok(answer);
        }
        // Get the lease's cache again after the count: if the lease has ended, there is no cache,
        // and the answer must not be cached.
        let before = facts.map(LeasedLookUps::invalidations);
        let cache = held().zip(before);
        let span = part_span!("store.look_up", otel.kind = "client");
        let answer = match Box::pin(self.query_look_up(&question)).instrument(span).await {
            Ok(answer) => Arc::new(answer),
            Err(failed) => {
                return Err(Box::pin(self.explain_failure(failed, organization, secret_sha256)).await);
            }
        };
        if let Some(generation) = generation {
            self.inner.snapshots.put(generation, question, &answer);
        } else if let Some((facts, before)) = cache {
            facts.put(before, question, &answer);
        }
        Ok(answer)
    }

    /// Drops the leased look-up of this repository. Call this when a read finds a change whose
    /// notice has not arrived yet.
    pub fn invalidate_lookup(&self, repository: RepositoryId) {
        if let Some(facts) = self.inner.leases.as_ref().and_then(Leases::facts) {
            facts.drop_touched(&ChangedFacts::of_repository(repository));
        }
    }

    /// Waits until every server sees the present state of this repository in the database. Call
    /// this if another commit has already made the caller's change: the server that made that
    /// commit may have stopped before all servers saw it. `found` is the newest revision that the
    /// caller saw, if known. The call returns at once if this server knows that every server sees
    /// `found`. `Unavailable` if the database cannot be queried.
    #[boxed]
    pub async fn settle_repository(
        &self,
        repository: RepositoryId,
        found: Option<u64>,
    ) -> Result<(), StoreError> {
        if found.is_some_and(|revision| self.inner.acknowledged.reaches(repository, revision)) {
            return Ok(());
        }
        self.announce_again(format!("r{}", repository.0)).await?;
        if let Some(revision) = found {
            self.inner.acknowledged.raise(repository, revision);
        }
        Ok(())
    }

    /// Announces a change again, as a trigger would write it, and waits until every server has
    /// dropped the affected answers. Does nothing with SQLite.
    pub(crate) async fn announce_again(&self, fact: String) -> Result<(), StoreError> {
        // Announces even if this server knows no other server, because that knowledge is as old as
        // the last lease renewal.
        if self.inner.leases.is_none() {
            return Ok(());
        }
        let mut transaction = self.inner.db.begin().await?;
        let announce = "SELECT CAST(packhouse_announce($1) AS TEXT) AS announced";
        transaction.fetch_one(announce, values![fact]).await?;
        transaction.commit().await
    }

    async fn query_look_up(&self, question: &LookUpQuery) -> Result<LookUp, StoreError> {
        let LookUpQuery { organization, repository, secret_sha256 } = question;
        if repository.contains('\0') {
            return Ok(LookUp::default());
        }
        let secret = secret_sha256.as_ref().map(<[u8; 32]>::as_slice);
        let values = values![organization.0, repository.as_str(), secret];
        let row = self.inner.db.find(LOOK_UP.as_str(), values).await?;
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

    /// Looks up further repositories of a request by name, in one statement, and whether the token
    /// or key of `facts` reaches them. Missing names are left out, and the order is undefined. No
    /// statement runs for an empty list.
    #[boxed]
    pub async fn look_up_others(
        &self,
        organization: OrganizationId,
        names: &[String],
        facts: &LookUp,
    ) -> Result<Vec<Reached>, StoreError> {
        let names = names.iter().filter(|name| !name.contains('\0'));
        let names: Vec<Value> = names.map(|name| Value::from(name.as_str())).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.reached(organization, facts, "r.name", names).await
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
        let rows = self.inner.db.fetch_few(sql, values).await?;
        rows.iter().map(reached).collect()
    }

    /// Lists at most `limit` repositories by creation time, after the identifier `after`. If
    /// `facts` has a token or a key, lists the repositories that it reaches and the public ones;
    /// otherwise lists all.
    #[boxed]
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

/// SQL: not NULL if the token, or the key's owner, has access to the repository.
const REACHES: &str = "COALESCE(x.repository, y.repository, (SELECT z.repository \
    FROM subscriber_groups g JOIN key_owner_repositories z ON z.owner = g.subscriber_group AND z.repository = r.id \
    WHERE g.subscriber = $3 LIMIT 1))";
/// SQL: an organization's repositories with the joins that [`REACHES`] reads.
const AMONG: &str = "FROM repositories r \
    LEFT JOIN token_repositories x ON x.token = $2 AND x.repository = r.id \
    LEFT JOIN key_owner_repositories y ON y.owner = $3 AND y.repository = r.id WHERE r.organization = $1 AND r.deleted_at IS NULL";

/// SQL: selects repositories by one of their key columns, each with whether the token or the key's
/// owner reaches it.
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

/// SQL of the look-up; always returns one row. An access key reaches its owner's repositories. If
/// the owner is a subscriber, the key also reaches the repositories of the subscriber's groups.
pub(crate) static LOOK_UP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, {}, {}, {}, o.name AS key_owner, COALESCE(x.repository, y.repository, (SELECT z.repository FROM subscriber_groups g \
         JOIN key_owner_repositories z ON z.owner = g.subscriber_group AND z.repository = r.id \
         WHERE g.subscriber = k.owner LIMIT 1)) AS reaches, s.settings AS sign_in, f.enabled, \
         (SELECT w.quota_bytes FROM organizations w WHERE w.id = $1) AS organization_quota, \
         (SELECT w.policies FROM organizations w WHERE w.id = $1) AS policies \
         FROM (SELECT 1 AS one) AS q \
         LEFT JOIN repositories r ON r.organization = $1 AND r.name = $2 AND r.deleted_at IS NULL \
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
        member_columns("m"),
        columns_of("k", KEY_COLUMNS),
    )
});

fn look_up(row: &Row) -> Result<LookUp, StoreError> {
    let mut columns = row.columns();
    Ok(LookUp {
        repository: row.joined("r", repository)?,
        token: row.joined("t", token)?,
        owner: row.joined("m", member)?.map(Arc::new),
        key: row.joined("k", key)?,
        key_owner: columns.opt_text("key_owner")?,
        reaches: columns.opt_int("reaches")?.is_some(),
        sign_in: columns.opt_text("sign_in")?,
        enabled: columns.opt_int("enabled")?.map(|enabled| enabled != 0),
        organization_quota: columns
            .opt_int("organization_quota")?
            .and_then(|bytes| u64::try_from(bytes).ok()),
        policies: columns.opt_int("policies")?,
        members: Vec::new(),
        derived: Derived::default(),
    })
}
