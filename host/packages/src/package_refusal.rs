//! Error responses for credentials that have no access to a package.

use packhouse_runtime::{Action, LimitKind, PackageRefusal};
use packhouse_wire::catalogue;

use crate::error_response::HttpError;

impl From<PackageRefusal> for HttpError {
    fn from(refusal: PackageRefusal) -> Self {
        match refusal.kind {
            LimitKind::Grant => other_package(&refusal.packages),
            LimitKind::Credential => out_of_scope(&refusal),
            LimitKind::Owner => Self::of(&catalogue::REVOKED_AUTHORITY_CLAMP).of_credential(),
        }
    }
}

/// Creates a 403 for a credential of a trusted publisher that has no access to these packages. If
/// no package is given, the message names none, and says that the request is outside the
/// credential's packages.
pub(crate) fn other_package(packages: &[String]) -> HttpError {
    let about = match packages {
        [] => "anything outside the packages to which it has access".to_owned(),
        named => format!("the package {}, to which it has no access", named.join(" or ")),
    };
    HttpError::with(&catalogue::PACKAGE_NOT_REACHED, &about).of_credential()
}

/// Creates a 403 for a credential that may write only other packages than these.
fn out_of_scope(refusal: &PackageRefusal) -> HttpError {
    let verb = if refusal.action == Action::Delete { "delete" } else { "publish" };
    let packages = match refusal.packages.as_slice() {
        [] => "anything outside its packages".to_owned(),
        named => named.join(" or "),
    };
    HttpError::with(&catalogue::PACKAGE_OUT_OF_SCOPE, &format!("{verb} {packages}")).of_credential()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: LimitKind, action: Action, packages: &[&str]) -> HttpError {
        let packages = packages.iter().map(|name| (*name).to_owned()).collect();
        HttpError::from(PackageRefusal { kind, action, packages })
    }

    #[test]
    fn a_refusal_has_the_code_and_the_sentence_of_its_limit() {
        let of_limit = |kind| refusal(kind, Action::Publish, &["lib"]);
        assert!(of_limit(LimitKind::Grant).is_of(&catalogue::PACKAGE_NOT_REACHED));
        assert!(of_limit(LimitKind::Owner).is_of(&catalogue::REVOKED_AUTHORITY_CLAMP));
        for (action, packages, sentence) in [
            (Action::Publish, vec!["lib"], "This credential may not publish lib here."),
            (Action::Delete, vec!["lib"], "This credential may not delete lib here."),
            (Action::Delete, vec!["a", "b"], "This credential may not delete a or b here."),
            (Action::Publish, vec![], "This credential may not publish anything outside its packages here."),
        ] {
            let refused = refusal(LimitKind::Credential, action, &packages);
            assert!(refused.is_of(&catalogue::PACKAGE_OUT_OF_SCOPE));
            assert_eq!(refused.credential_code(), Some("scope_mismatch_package"));
            let text = format!("{refused:?}");
            assert!(text.contains(sentence), "{text}");
        }
    }
}
