//! Tells plugins for which proxies policies judge versions, and for which proxies policies look at
//! signed statements. Plugins record which files belong to which version only for the former. They
//! request signed statements from upstreams only for the latter.

use packhouse_runtime::RepositoryView;
use serde_json::{Map, Value};

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;

/// Keys that the host adds to the settings of a proxy.
const JUDGED_BY_POLICIES: &str = "judged_by_policies";
const JUDGED_BY_PROVENANCE: &str = "judged_by_provenance";

/// Returns the number of the organization's policy rules. Returns `None` if no rule can apply:
/// there are no rules, or none of these repositories is a proxy.
pub(crate) fn rules(request: &RepositoryRequest<'_>, repositories: &SelectedRepositories) -> Option<i64> {
    let number = request.principal.facts.policies?;
    repositories.target.iter().chain(&repositories.others).any(is_proxy).then_some(number)
}

/// Adds the keys to the settings of each proxy to which the [`rules`] apply.
pub(crate) async fn add_flags(
    request: &RepositoryRequest<'_>,
    mut repositories: SelectedRepositories,
    number: i64,
) -> Result<SelectedRepositories, HttpError> {
    let set = request.app.rules_that_hold(request.organization, number).await?;
    for view in repositories.target.iter_mut().chain(&mut repositories.others) {
        if is_proxy(view) && set.reaches(view.id) {
            add_flags_to(view, set.looks_at_provenance(view.id));
        }
    }
    Ok(repositories)
}

fn is_proxy(view: &RepositoryView) -> bool {
    &*view.kind == "proxy"
}

fn add_flags_to(view: &mut RepositoryView, by_provenance: bool) {
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
    fn flags_are_added_to_the_other_settings() {
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
            let mut flagged = view.clone();
            add_flags_to(&mut flagged, by_provenance);
            assert_eq!(&*flagged.settings, expected);
        }
    }
}
