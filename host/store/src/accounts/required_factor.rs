//! Organizations that require a second factor, and members who lack it.

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::MemberId;
use crate::store::Store;

/// Second factor that the password of a member needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PasswordFactor {
    /// The password alone authenticates the member.
    NotNeeded,
    /// The organization requires a second factor, and the member has not confirmed one.
    Missing,
    /// The member has confirmed a second factor.
    Confirmed,
}

impl Store {
    /// Returns the second factor that the password of this member needs.
    #[boxed]
    pub async fn password_factor(&self, member: MemberId) -> Result<PasswordFactor, StoreError> {
        let sql = "SELECT (SELECT COUNT(*) FROM totp t WHERE t.member = m.id AND t.confirmed_at IS NOT NULL) AS confirmed, \
                   o.require_second_factor FROM members m JOIN organizations o ON o.id = m.organization WHERE m.id = $1";
        let Some(row) = self.inner.db.find(sql, values![member.0]).await? else {
            return Ok(PasswordFactor::NotNeeded);
        };
        let mut columns = row.columns();
        Ok(match (columns.bool("confirmed")?, columns.bool("require_second_factor")?) {
            (true, _) => PasswordFactor::Confirmed,
            (false, true) => PasswordFactor::Missing,
            (false, false) => PasswordFactor::NotNeeded,
        })
    }

    /// Returns whether the member's organization requires a second factor and the member, who has a
    /// password, has not confirmed one. Members without a password sign in through a provider.
    #[boxed]
    pub async fn lacks_required_factor(&self, member: MemberId) -> Result<bool, StoreError> {
        let sql = "SELECT m.id FROM members m JOIN organizations o ON o.id = m.organization \
                   WHERE m.id = $1 AND o.require_second_factor = 1 AND m.password_hash <> '' AND NOT EXISTS \
                   (SELECT 1 FROM totp t WHERE t.member = m.id AND t.confirmed_at IS NOT NULL)";
        Ok(self.inner.db.find(sql, values![member.0]).await?.is_some())
    }
}
