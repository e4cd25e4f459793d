//! Which packages the commits of a call may be about, where the caller's credential reaches only some. What a request's path does not
//! tell, a form's or an archive's content, is judged here, in the commit.

use std::sync::Arc;

use packhouse_names::Folding;
use packhouse_store::CatalogChange;

use crate::error::CallError;

/// Patterns of packages.
#[derive(Clone, Debug)]
pub struct PackageBounds {
    /// With `*` for any text.
    pub patterns: Arc<[String]>,
    /// Which spellings are the same.
    pub folding: Folding,
    /// Whether the request named its package, and that one is within: then a commit need not show any, as when a layer of an image comes.
    pub named: bool,
}

impl PackageBounds {
    /// Refuses a commit that shows or hides another package, and one of a request that named none and shows none.
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
        | CatalogChange::ShowFile(packhouse_store::ShownFile { name, .. }) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hide(name: &str) -> CatalogChange {
        CatalogChange::Hide { name: name.to_owned(), version: "1".to_owned() }
    }

    #[test]
    fn a_commit_is_about_what_the_patterns_cover_and_nothing_else() {
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
