//! Objects behind the handles of repositories, and the rights of a call to them.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::request::Action;
use crate::view::RepositoryView;

/// Rights of a call to its repositories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// Only reads, whatever the intent was.
    ReadOnly,
    Intent(Action),
}

pub struct RepositoryRep {
    pub(crate) view: RepositoryView,
    /// True for the target, false for the other repositories.
    pub(crate) target: bool,
}

impl RepositoryRep {
    /// Returns true if the call may change the repository's records. The target may be changed by
    /// an intent to write. A proxy's records are a cache of its upstream, so reads may change them
    /// too.
    pub(crate) fn may_change(&self, access: Access) -> bool {
        match access {
            Access::ReadOnly => false,
            Access::Intent(_) if &*self.view.kind == "proxy" => true,
            Access::Intent(action) => self.target && action.writes(),
        }
    }

    pub(crate) fn may_upload(&self, access: Access) -> bool {
        matches!(access, Access::Intent(action) if self.target && action.writes())
    }
}

#[cfg(test)]
mod tests {
    use packhouse_store::RepositoryId;

    use super::*;

    fn repository(kind: &str, target: bool) -> RepositoryRep {
        let view = RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "r".into(),
            kind: kind.into(),
            settings: "{}".into(),
        };
        RepositoryRep { view, target }
    }

    #[test]
    fn handles_match_the_intent() {
        let (hosted, other) = (repository("hosted", true), repository("hosted", false));
        for action in [Action::Publish, Action::Delete] {
            assert!(hosted.may_change(Access::Intent(action)) && hosted.may_upload(Access::Intent(action)));
            assert!(!other.may_change(Access::Intent(action)) && !other.may_upload(Access::Intent(action)));
        }
        for access in [Access::ReadOnly, Access::Intent(Action::Read), Access::Intent(Action::Open)] {
            assert!(!hosted.may_change(access) && !hosted.may_upload(access), "{access:?}");
        }
    }

    #[test]
    fn a_proxy_may_store_records_while_it_is_read() {
        for proxy in [repository("proxy", true), repository("proxy", false)] {
            assert!(proxy.may_change(Access::Intent(Action::Read)));
            assert!(!proxy.may_upload(Access::Intent(Action::Read)));
            assert!(!proxy.may_change(Access::ReadOnly));
        }
    }
}
