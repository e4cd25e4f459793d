//! Right that an operation needs, and the record of checked rights.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_identity::permissions::Permission;
use serde::{Deserialize, Serialize};

use super::confirmations::Action;

/// Right that an operation needs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// The operation does not even need a session.
    Anyone,
    /// The operation needs any session.
    SignedIn,
    /// Session with this permission in the organization.
    Holds(Permission),
    /// Session with a right to the object of the operation. It is checked once the object is found.
    OfObject,
}

/// Rights and confirmations that were checked so far. Clones share one record.
#[derive(Clone, Debug, Default)]
pub struct CheckedRights(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    rights: BTreeSet<Right>,
    confirmed: BTreeSet<Action>,
}

impl CheckedRights {
    /// Records that the caller holds this right.
    pub(super) fn note(&self, right: Right) {
        self.record().rights.insert(right);
    }

    /// Records that this action was confirmed.
    pub(super) fn note_confirmed(&self, action: Action) {
        self.record().confirmed.insert(action);
    }

    /// Returns whether the required confirmation was checked.
    pub fn is_confirmed(&self, action: Option<Action>) -> bool {
        action.is_none_or(|action| self.record().confirmed.contains(&action))
    }

    /// Returns whether the required right was checked.
    pub fn covers(&self, right: Right) -> bool {
        match right {
            Right::Anyone | Right::SignedIn => true,
            Right::Holds(_) => self.record().rights.contains(&right),
            // The permission that opens an object depends on the object.
            Right::OfObject => !self.record().rights.is_empty(),
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_needs_its_own_check_and_an_object_any_check() {
        let holds = Right::Holds(Permission::ManageMembers);
        let judged = CheckedRights::default();
        assert!(judged.covers(Right::Anyone) && judged.covers(Right::SignedIn));
        assert!(!judged.covers(holds) && !judged.covers(Right::OfObject));
        judged.note(Right::OfObject);
        assert!(judged.covers(Right::OfObject) && !judged.covers(holds));
        judged.note(holds);
        assert!(judged.is_confirmed(None) && !judged.is_confirmed(Some(Action::ManageMembers)));
        judged.note_confirmed(Action::ManageMembers);
        assert!(
            judged.is_confirmed(Some(Action::ManageMembers))
                && !judged.is_confirmed(Some(Action::CreateToken))
        );
        assert!(judged.covers(holds) && !judged.covers(Right::Holds(Permission::ManageOwnerAccount)));
    }
}
