//! Protection of the last owner: an organization always has an owner who can sign in.

use crate::accounts::MemberRow;
use crate::accounts::organizations::lock_organization;
use crate::accounts::rows::member::MemberKind;
use crate::db::{Transaction, values};
use crate::error::StoreError;

/// Returns whether this member is an owner, and no other active person is. Concurrent calls wait
/// for each other, so that two removals cannot each rely on the other member. A service account
/// never counts as an owner, because nobody signs in with it.
pub(super) async fn is_last_owner(
    transaction: &mut Transaction,
    read: &MemberRow,
    is_owner: fn(&str) -> bool,
) -> Result<bool, StoreError> {
    if read.kind == MemberKind::Service || !is_owner(&read.permissions) {
        return Ok(false);
    }
    lock_organization(transaction, read.organization).await?;
    let others = "SELECT permissions FROM members WHERE organization = $1 AND kind = 'person' AND id <> $2 \
                  AND active = 1";
    for row in transaction.fetch(others, values![read.organization.0, read.id.0]).await? {
        if is_owner(&row.columns().text("permissions")?) {
            return Ok(false);
        }
    }
    Ok(true)
}
