//! Detection of servers of earlier versions that share the database.

use super::database::Database;
use super::value::values;
use crate::error::StoreError;

/// Number of the newest change of the schema that servers must know before it may be used. 1 means
/// teams, suspension, and limits of credentials to packages.
pub(crate) const FEATURES: i64 = 1;

/// Name of this program's connections to PostgreSQL. It changes with [`FEATURES`], because an idle
/// server has connections but no lease.
pub(super) const APPLICATION: &str = "packhouse/1";

/// Leases of servers that do not know the feature `$1`, and connections of such servers.
const OLDER: &str = "SELECT id FROM server_leases WHERE features < $1 \
    UNION ALL SELECT CAST(pid AS TEXT) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'packhouse' LIMIT 1";

impl Database {
    /// Returns whether no server of an earlier version uses the database. Such a server cannot
    /// start again, because the schema is newer than it. Always true with SQLite, which has one
    /// server.
    pub(crate) async fn servers_know_features(&self) -> Result<bool, StoreError> {
        if !self.is_shared() {
            return Ok(true);
        }
        Ok(self.fetch_one(OLDER, values![FEATURES]).await?.is_none())
    }
}
