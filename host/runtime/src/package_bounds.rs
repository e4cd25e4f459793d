//! Bounds of the packages that a call's commits may concern, for a credential that may write only
//! some packages. A request's path does not always name the package: the name may be in a form or
//! an archive. So [`PackageBounds::judge`] checks each commit.

use std::sync::Arc;

use packhouse_names::Folding;
use packhouse_store::CatalogChange;

use crate::error::CallError;
use crate::request::{Action, Intent};

/// The reason why a credential is limited to some packages. It decides how a request for other
/// packages is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitKind {
    /// Trusted publishers grant the packages.
    Grant,
    /// The token itself, or the member who signed in, may write only these packages.
    Credential,
    /// The owner of the token may write only these packages.
    Owner,
}

/// One limit of a credential.
#[derive(Clone, Debug)]
pub struct PackageLimit {
    pub kind: LimitKind,
    /// Package names, with `*` for any text.
    pub patterns: Vec<String>,
}

/// The refusal of a write outside the packages of a credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PackageRefusal {
    /// The first limit that excludes the packages.
    pub kind: LimitKind,
    pub action: Action,
    /// Packages of the request or of the commit. Empty if it names none.
    pub packages: Vec<String>,
}

/// Packages that the commits of a call may concern. A package must be within every limit.
#[derive(Clone, Debug)]
pub struct PackageBounds {
    pub limits: Arc<[PackageLimit]>,
    /// Rule for equal spellings of names.
    pub folding: Folding,
    pub action: Action,
    /// True if the request named its package, and that package is allowed. Then a commit need not
    /// name any package, as with a layer of an image.
    pub named: bool,
    /// True if the request publishes, and the plugin declared that it may concern no package. Then
    /// a commit need not name any package either, as with the metadata of a group.
    pub may_name_none: bool,
}

impl PackageBounds {
    /// Creates the bounds for the calls of a request.
    #[must_use]
    pub fn new(limits: Arc<[PackageLimit]>, folding: Folding, intent: &Intent) -> PackageBounds {
        let mut bounds = PackageBounds {
            limits,
            folding,
            action: intent.action,
            named: false,
            may_name_none: intent.many_packages && intent.action == Action::Publish,
        };
        bounds.named = intent.packages.iter().any(|name| bounds.excluding(name).is_none());
        bounds
    }

    /// Refuses a request whose path names only packages outside the limits. A path can stand for
    /// several packages. One package within the limits is enough here, because
    /// [`judge`](Self::judge) checks each commit again. It also judges a request that names no
    /// package yet.
    pub fn judge_request(&self, intent: &Intent) -> Result<(), PackageRefusal> {
        if self.named || self.may_name_none || intent.packages.is_empty() {
            return Ok(());
        }
        let excluding = intent.packages.iter().find_map(|name| self.excluding(name));
        match excluding {
            Some(kind) => Err(self.refusal(kind, intent.packages.clone())),
            None => Ok(()),
        }
    }

    /// Refuses a commit that concerns a package outside the limits. `about` are the packages that
    /// the plugin named although the commit does not list them. Also refuses a commit without
    /// packages, unless the request named one or may concern none.
    pub(crate) fn judge(&self, catalog: &[CatalogChange], about: &[String]) -> Result<(), CallError> {
        let mut names = catalog.iter().map(CatalogChange::package).chain(about.iter().map(String::as_str));
        if let Some((name, kind)) = names.find_map(|name| Some((name, self.excluding(name)?))) {
            return Err(CallError::OtherPackage(self.refusal(kind, vec![name.to_owned()])));
        }
        let names_none = catalog.is_empty() && about.is_empty();
        match self.limits.first().filter(|_| names_none && !self.named && !self.may_name_none) {
            Some(limit) => Err(CallError::OtherPackage(self.refusal(limit.kind, Vec::new()))),
            None => Ok(()),
        }
    }

    /// Returns the first limit that excludes this package.
    fn excluding(&self, name: &str) -> Option<LimitKind> {
        let excludes = |limit: &&PackageLimit| !self.folding.covers(&limit.patterns, name);
        self.limits.iter().find(excludes).map(|limit| limit.kind)
    }

    fn refusal(&self, kind: LimitKind, packages: Vec<String>) -> PackageRefusal {
        PackageRefusal { kind, action: self.action, packages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{BodyPlan, Looked};

    fn hide(name: &str) -> CatalogChange {
        CatalogChange::Hide { name: name.to_owned(), version: "1".to_owned() }
    }

    fn intent(action: Action, packages: &[&str], many_packages: bool) -> Intent {
        Intent {
            action,
            subject: None,
            body: BodyPlan::None,
            limit: None,
            digests: Vec::new(),
            also_read: Vec::new(),
            check: false,
            for_publish: false,
            packages: packages.iter().map(|name| (*name).to_owned()).collect(),
            many_packages,
            for_caller: false,
            looked: Looked::default(),
        }
    }

    fn limit(kind: LimitKind, patterns: &[&str]) -> PackageLimit {
        PackageLimit { kind, patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect() }
    }

    fn bounds(limits: &[PackageLimit], intent: &Intent) -> PackageBounds {
        PackageBounds::new(Arc::from(limits), Folding::Pep503, intent)
    }

    fn refused(judged: Result<(), CallError>) -> Option<(LimitKind, Vec<String>)> {
        match judged {
            Ok(()) => None,
            Err(CallError::OtherPackage(refusal)) => Some((refusal.kind, refusal.packages)),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_commit_may_only_concern_packages_within_the_limit() {
        let limits = [limit(LimitKind::Grant, &["acme-*", "lib"])];
        let none: &[&str] = &[];
        for packages in [none, &["lib"]] {
            let bounds = bounds(&limits, &intent(Action::Delete, packages, false));
            assert!(bounds.judge(&[hide("lib"), hide("Acme_tool")], &[]).is_ok());
            let other = Some((LimitKind::Grant, vec!["other".to_owned()]));
            assert_eq!(refused(bounds.judge(&[hide("lib"), hide("other")], &[])), other);
            assert_eq!(refused(bounds.judge(&[], &["other".to_owned()])), other);
            assert!(bounds.judge(&[], &["LIB".to_owned()]).is_ok());
            let named_none = (LimitKind::Grant, Vec::new());
            assert_eq!(refused(bounds.judge(&[], &[])), packages.is_empty().then_some(named_none));
        }
    }

    #[test]
    fn a_package_must_be_within_every_limit() {
        let limits = [limit(LimitKind::Credential, &["a-*"]), limit(LimitKind::Owner, &["a-b*", "c"])];
        let bounds = bounds(&limits, &intent(Action::Publish, &["c", "a-x"], false));
        assert!(!bounds.named);
        for (name, expected) in [
            ("a-b", None),
            ("a-bc", None),
            ("a-c", Some(LimitKind::Owner)),
            ("c", Some(LimitKind::Credential)),
            ("d", Some(LimitKind::Credential)),
        ] {
            let kind = refused(bounds.judge(&[hide(name)], &[])).map(|(kind, _)| kind);
            assert_eq!(kind, expected, "{name}");
        }
    }

    #[test]
    fn a_path_is_judged_before_the_body() {
        let limits = [limit(LimitKind::Credential, &["lib"])];
        let judge = |intent: &Intent| bounds(&limits, intent).judge_request(intent);
        assert_eq!(judge(&intent(Action::Publish, &[], false)), Ok(()));
        assert_eq!(judge(&intent(Action::Publish, &["other", "lib"], false)), Ok(()));
        let refusal = PackageRefusal {
            kind: LimitKind::Credential,
            action: Action::Delete,
            packages: vec!["other".to_owned()],
        };
        assert_eq!(judge(&intent(Action::Delete, &["other"], false)), Err(refusal.clone()));
        assert_eq!(judge(&intent(Action::Delete, &["other"], true)), Err(refusal));
        assert_eq!(judge(&intent(Action::Publish, &["other"], true)), Ok(()));
    }

    #[test]
    fn only_a_declared_publish_may_concern_no_package() {
        let limits = [limit(LimitKind::Owner, &["lib"])];
        for (action, many, allowed) in [
            (Action::Publish, true, true),
            (Action::Publish, false, false),
            (Action::Delete, true, false),
            (Action::Delete, false, false),
        ] {
            let bounds = bounds(&limits, &intent(action, &["other"], many));
            assert_eq!(bounds.judge(&[], &[]).is_ok(), allowed, "{action:?} {many}");
            assert!(bounds.judge(&[hide("other")], &[]).is_err());
        }
        let nothing = [limit(LimitKind::Credential, &[])];
        let bounds = bounds(&nothing, &intent(Action::Publish, &["lib"], false));
        assert!(bounds.judge(&[hide("lib")], &[]).is_err() && bounds.judge(&[], &[]).is_err());
    }
}
