//! What stands behind the handles on repositories, and what a call may do with them.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::request::Action;
use crate::view::RepositoryView;

/// What a call may do with the repositories that it was handed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// Reads alone, whatever the intent was.
    ReadOnly,
    /// What the intent's action allows.
    Intent(Action),
    /// What a read may do, as far as the plugin can tell: what it changes is changed nowhere.
    Aside,
}

/// One repository of the call.
pub struct RepositoryRep {
    pub(crate) view: RepositoryView,
    /// Whether it is the target, or one of the others.
    pub(crate) target: bool,
}

impl RepositoryRep {
    /// Whether its records may be changed: the target by an intent to write; a proxy's, which are its memory of its upstream, also
    /// while it is read.
    pub(crate) fn may_change(&self, access: Access) -> bool {
        match access {
            Access::ReadOnly => false,
            Access::Aside => &*self.view.kind == "proxy",
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
        for access in
            [Access::ReadOnly, Access::Aside, Access::Intent(Action::Read), Access::Intent(Action::Open)]
        {
            assert!(!hosted.may_change(access) && !hosted.may_upload(access), "{access:?}");
        }
    }

    #[test]
    fn a_proxy_remembers_while_it_is_read() {
        for proxy in [repository("proxy", true), repository("proxy", false)] {
            assert!(proxy.may_change(Access::Intent(Action::Read)));
            assert!(!proxy.may_upload(Access::Intent(Action::Read)));
            assert!(!proxy.may_change(Access::ReadOnly));
            assert!(proxy.may_change(Access::Aside) && !proxy.may_upload(Access::Aside));
        }
    }
}
