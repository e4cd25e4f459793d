//! Tells a plugin which proxies policies judge, and which they judge by what is signed of versions: only for those does it ask an upstream for
//! statements, and note which files belong to which version.

use packhouse_runtime::RepositoryView;
use serde_json::{Map, Value};

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;

/// Members of a proxy's settings.
const JUDGED_BY_POLICIES: &str = "judged_by_policies";
const JUDGED_BY_PROVENANCE: &str = "judged_by_provenance";

/// The number of the rules that may reach a proxy among these; none where there is nothing to tell.
pub(crate) fn rules(request: &RepositoryRequest<'_>, repositories: &SelectedRepositories) -> Option<i64> {
    let number = request.principal.facts.policies?;
    repositories.target.iter().chain(&repositories.others).any(is_proxy).then_some(number)
}

/// Adds them to the settings of each proxy that one of the [`rules`] reaches.
pub(crate) async fn tell(
    request: &RepositoryRequest<'_>,
    mut repositories: SelectedRepositories,
    number: i64,
) -> Result<SelectedRepositories, HttpError> {
    let set = request.app.rules_that_hold(request.organization, number).await?;
    for view in repositories.target.iter_mut().chain(&mut repositories.others) {
        if is_proxy(view) && set.reaches(view.id) {
            tell_one(view, set.looks_at_provenance(view.id));
        }
    }
    Ok(repositories)
}

fn is_proxy(view: &RepositoryView) -> bool {
    &*view.kind == "proxy"
}

fn tell_one(view: &mut RepositoryView, by_provenance: bool) {
    let mut settings: Map<String, Value> = serde_json::from_str(&view.settings).unwrap_or_default();
    settings.insert(JUDGED_BY_POLICIES.to_owned(), Value::Bool(true));
    if by_provenance {
        settings.insert(JUDGED_BY_PROVENANCE.to_owned(), Value::Bool(true));
    }
    view.settings = Value::Object(settings).to_string().into();
}

#[cfg(test)]
mod tests {
    use packhouse_store::RepositoryId;

    use super::*;

    #[test]
    fn they_stand_beside_the_other_settings() {
        let view = RepositoryView {
            id: RepositoryId(1),
            revision: 1,
            name: "r".into(),
            kind: "proxy".into(),
            settings: r#"{"offline":true}"#.into(),
        };
        for (by_provenance, expected) in [
            (true, r#"{"judged_by_policies":true,"judged_by_provenance":true,"offline":true}"#),
            (false, r#"{"judged_by_policies":true,"offline":true}"#),
        ] {
            let mut told = view.clone();
            tell_one(&mut told, by_provenance);
            assert_eq!(&*told.settings, expected);
        }
    }
}
