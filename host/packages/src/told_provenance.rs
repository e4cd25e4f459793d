//! Tells a plugin of the proxies whose versions are judged by what is signed of them: only for those does it ask an upstream for what it would
//! not ask for else.

use packhouse_runtime::RepositoryView;
use serde_json::{Map, Value};

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;

/// The member of a proxy's settings.
const JUDGED_BY_PROVENANCE: &str = "judged_by_provenance";

/// The number of the rules that may reach a proxy among these; none where there is nothing to tell.
pub(crate) fn rules(request: &RepositoryRequest<'_>, repositories: &SelectedRepositories) -> Option<i64> {
    let number = request.principal.facts.policies?;
    repositories.target.iter().chain(&repositories.others).any(is_proxy).then_some(number)
}

/// Adds it to the settings of each proxy that one of the [`rules`] reaches which looks at provenance.
pub(crate) async fn tell(
    request: &RepositoryRequest<'_>,
    mut repositories: SelectedRepositories,
    number: i64,
) -> Result<SelectedRepositories, HttpError> {
    let set = request.app.rules_that_hold(request.organization, number).await?;
    for view in repositories.target.iter_mut().chain(&mut repositories.others) {
        if is_proxy(view) && set.looks_at_provenance(view.id) {
            tell_one(view);
        }
    }
    Ok(repositories)
}

fn is_proxy(view: &RepositoryView) -> bool {
    &*view.kind == "proxy"
}

fn tell_one(view: &mut RepositoryView) {
    let mut settings: Map<String, Value> = serde_json::from_str(&view.settings).unwrap_or_default();
    settings.insert(JUDGED_BY_PROVENANCE.to_owned(), Value::Bool(true));
    view.settings = Value::Object(settings).to_string().into();
}

#[cfg(test)]
mod tests {
    use packhouse_store::RepositoryId;

    use super::*;

    #[test]
    fn it_stands_beside_the_other_settings() {
        let mut view = RepositoryView {
            id: RepositoryId(1),
            revision: 1,
            name: "r".into(),
            kind: "proxy".into(),
            settings: r#"{"offline":true}"#.into(),
        };
        tell_one(&mut view);
        assert_eq!(&*view.settings, r#"{"judged_by_provenance":true,"offline":true}"#);
    }
}
