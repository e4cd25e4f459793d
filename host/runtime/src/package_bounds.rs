//! Bounds of the packages that a call's commits may concern, for a credential with access to only
//! some packages. A request's path does not always name the package: the name may be in a form or
//! an archive. So [`PackageBounds::judge`] checks each commit.

use std::sync::Arc;

use packhouse_names::Folding;
use packhouse_store::CatalogChange;

use crate::error::CallError;

/// Packages that the commits of a call may concern.
#[derive(Clone, Debug)]
pub struct PackageBounds {
    /// Package names, with `*` for any text.
    pub patterns: Arc<[String]>,
    /// Rule for equal spellings of names.
    pub folding: Folding,
    /// True if the request named its package, and that package is allowed. Then a commit need not
    /// show any package, as with a layer of an image.
    pub named: bool,
}

impl PackageBounds {
    /// Refuses a commit that concerns a package outside the patterns. Also refuses a commit without
    /// packages if the request named no package.
    pub(crate) fn judge(&self, catalog: &[CatalogChange]) -> Result<(), CallError> {
        let other = catalog.iter().map(package).find(|name| !self.covers(name));
        match other {
            Some(name) => Err(CallError::OtherPackage(name.to_owned())),
            None if catalog.is_empty() && !self.named => Err(CallError::OtherPackage(String::new())),
            None => Ok(()),
        }
    }

    fn covers(&self, name: &str) -> bool {
        self.folding.covers(&self.patterns, name)
    }
}

fn package(change: &CatalogChange) -> &str {
    match change {
        CatalogChange::Show(packhouse_store::Version { name, .. })
        | CatalogChange::Hide { name, .. }
        | CatalogChange::HideFile { name, .. }
        | CatalogChange::Attest(packhouse_store::SignedStatement { name, .. })
        | CatalogChange::Document(packhouse_store::VersionDocument { name, .. })
        | CatalogChange::ShowFile(packhouse_store::CatalogFile { name, .. }) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hide(name: &str) -> CatalogChange {
        CatalogChange::Hide { name: name.to_owned(), version: "1".to_owned() }
    }

    #[test]
    fn a_commit_may_only_concern_packages_that_the_patterns_cover() {
        let bounds = |named| PackageBounds {
            patterns: Arc::from(["acme-*".to_owned(), "lib".to_owned()]),
            folding: Folding::Pep503,
            named,
        };
        assert!(bounds(false).judge(&[hide("lib"), hide("Acme_tool")]).is_ok());
        for named in [false, true] {
            let refused = bounds(named).judge(&[hide("lib"), hide("other")]);
            assert!(matches!(refused, Err(CallError::OtherPackage(name)) if name == "other"));
        }
        assert!(bounds(true).judge(&[]).is_ok() && bounds(false).judge(&[]).is_err());
    }
}
