//! The right that an operation needs, and the rights that were judged on the way to an answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_identity::permissions::Permission;
use serde::{Deserialize, Serialize};

use super::confirmations::Action;

/// What an operation needs besides the right shape of what is asked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// Nothing, not even a session.
    Anyone,
    /// A session.
    SignedIn,
    /// A session, and this permission in the organization.
    Holds(Permission),
    /// A session, and a right in what the operation is about, which is judged once that is found.
    OfObject,
}

/// The rights and confirmations that were judged so far. Its clones share one record.
#[derive(Clone, Debug, Default)]
pub struct Judged(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    rights: BTreeSet<Right>,
    confirmed: BTreeSet<Action>,
}

impl Judged {
    /// Records that this right was judged, and is held.
    pub(super) fn note(&self, right: Right) {
        self.record().rights.insert(right);
    }

    /// Records that this action was confirmed.
    pub(super) fn note_confirmed(&self, action: Action) {
        self.record().confirmed.insert(action);
    }

    /// Whether an answer may go out that needs this confirmation.
    pub fn is_confirmed(&self, action: Option<Action>) -> bool {
        action.is_none_or(|action| self.record().confirmed.contains(&action))
    }

    /// Whether an answer may go out that needs this right.
    pub fn covers(&self, right: Right) -> bool {
        match right {
            Right::Anyone | Right::SignedIn => true,
            Right::Holds(_) => self.record().rights.contains(&right),
            // Which permission opens an object depends on the object.
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
    fn a_permission_is_covered_by_itself_alone_and_an_object_by_any_judgement() {
        let holds = Right::Holds(Permission::ManageMembers);
        let judged = Judged::default();
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
