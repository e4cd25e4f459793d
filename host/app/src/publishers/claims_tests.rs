//! Tests with the claims of GitHub and GitLab, each with right and wrong values.

use serde_json::json;

use super::*;

fn github() -> Value {
    json!({
        "iss": "https://token.actions.githubusercontent.com", "sub": "repo:octo-org/octo-repo:environment:release",
        "repository": "octo-org/octo-repo", "repository_owner": "octo-org", "repository_owner_id": "65",
        "repository_id": "74", "event_name": "release", "environment": "release", "workflow": "release",
        "workflow_ref": "octo-org/octo-repo/.github/workflows/release.yml@refs/heads/main",
        "job_workflow_ref": "octo-org/octo-repo/.github/workflows/release.yml@refs/heads/main",
        "sha": "0123456789abcdef0123456789abcdef01234567", "run_id": "42",
    })
}

fn gitlab() -> Value {
    json!({
        "iss": "https://gitlab.example.com", "sub": "project_path:group/sub/project:ref_type:tag:ref:v1",
        "namespace_id": "72", "namespace_path": "group/sub", "project_path": "group/sub/project", "project_id": "20",
        "ci_config_ref_uri": "gitlab.example.com/group/sub/project//.gitlab-ci.yml@refs/tags/v1",
        "environment": "production", "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "pipeline_id": "574",
    })
}

fn with(claims: Value, name: &str, value: Value) -> Map<String, Value> {
    let Value::Object(mut claims) = claims else { panic!("an object") };
    claims.insert(name.to_owned(), value);
    claims
}

fn github_rule() -> PublisherRule {
    let claims = json!({"repository_owner": "Octo-Org", "repository": "octo-repo", "workflow": "release.yml", "environment": "Release"});
    PublisherRule::read(Provider::Github, claims).unwrap()
}

fn gitlab_rule() -> PublisherRule {
    let claims = json!({"namespace": "group/sub", "project": "project", "workflow": ".gitlab-ci.yml", "environment": "production"});
    PublisherRule::read(Provider::Gitlab, claims).unwrap()
}

#[test]
fn a_workflow_is_accepted_and_each_other_claim_is_refused() {
    type Wrong<'a> = (PublisherRule, fn() -> Value, &'a str, &'a [(&'a str, Value)]);
    let wrong: [Wrong<'_>; 2] = [
        (
            github_rule(),
            github,
            "65",
            &[
                ("repository", json!("octo-org/other")),
                ("repository", json!("evil/octo-org/octo-repo")),
                ("repository_owner", json!("evil")),
                ("workflow_ref", json!("octo-org/octo-repo/.github/workflows/test.yml@refs/heads/main")),
                (
                    "workflow_ref",
                    json!("octo-org/octo-repo/.github/workflows/release.yml.yml@refs/heads/main"),
                ),
                ("workflow_ref", json!("evil/octo-repo/.github/workflows/release.yml@refs/heads/main")),
                ("job_workflow_ref", json!("evil/shared/.github/workflows/release.yml@refs/heads/main")),
                ("environment", json!("test")),
                ("environment", Value::Null),
                ("repository_owner_id", json!("66")),
                ("repository_owner_id", Value::Null),
                ("repository_owner_id", json!("")),
            ],
        ),
        (
            gitlab_rule(),
            gitlab,
            "72",
            &[
                ("project_path", json!("group/sub/other")),
                ("project_path", json!("evil/group/sub/project")),
                ("namespace_path", json!("group")),
                ("ci_config_ref_uri", json!("gitlab.example.com/group/sub/project//other.yml@refs/tags/v1")),
                ("ci_config_ref_uri", json!("gitlab.example.com/evil/project//.gitlab-ci.yml@refs/tags/v1")),
                (
                    "ci_config_ref_uri",
                    json!("gitlab.example.com/evil/group/sub/project//.gitlab-ci.yml@refs/tags/v1"),
                ),
                ("ci_config_ref_uri", json!("evil.example/group/sub/project//.gitlab-ci.yml@refs/tags/v1")),
                ("ci_config_ref_uri", Value::Null),
                ("environment", json!("review")),
                ("namespace_id", json!("73")),
                ("namespace_id", Value::Null),
            ],
        ),
    ];
    for (rule, claims, owner, others) in wrong {
        let right = with(claims(), "x", json!(1));
        for known in [None, Some(owner)] {
            assert_eq!(rule.judge(known, &right).unwrap().as_deref(), Some(owner));
        }
        for (name, value) in others {
            let refused = rule.judge(Some(owner), &with(claims(), name, value.clone())).unwrap_err();
            assert!(refused.sentence.contains('`'), "{name} {value}: {}", refused.sentence);
        }
        // After the first match, the recorded owner is required.
        assert!(rule.judge(Some("1"), &right).is_err());
    }
}

#[test]
fn other_claims_are_compared_exactly() {
    let rule = PublisherRule::read(Provider::Oidc, json!({"sub": "a", "protected": true})).unwrap();
    let right = json!({"sub": "a", "protected": true, "more": 1});
    assert_eq!(rule.judge(None, right.as_object().unwrap()).unwrap(), None);
    for wrong in [
        json!({"sub": "a"}),
        json!({"sub": "a", "protected": "true"}),
        json!({"sub": "A", "protected": true}),
    ] {
        assert!(rule.judge(None, wrong.as_object().unwrap()).is_err());
    }
}

#[test]
fn a_rule_that_does_not_identify_a_workflow_is_refused() {
    for (provider, claims) in [
        (Provider::Github, json!({"repository_owner": "o", "repository": "r"})),
        (Provider::Github, json!({"repository_owner": "o", "repository": "r", "workflow": "release"})),
        (Provider::Github, json!({"repository_owner": "o", "repository": "other/r", "workflow": "r.yml"})),
        (Provider::Github, json!({"repository_owner": "", "repository": "r", "workflow": "r.yml"})),
        (Provider::Github, json!({"repository_owner": "o", "repository": "r", "workflow": "a@b.yml"})),
        (
            Provider::Github,
            json!({"repository_owner": "o", "repository": "r", "workflow": "r.yml", "ref": "x"}),
        ),
        (Provider::Gitlab, json!({"namespace": "g", "project": "p"})),
        (Provider::Gitlab, json!({"namespace": "g//h", "project": "p", "workflow": ".gitlab-ci.yml"})),
        (Provider::Oidc, json!({})),
        (Provider::Oidc, json!({"one": "x"})),
        (Provider::Oidc, json!({"aud": "x", "iss": "y"})),
        (Provider::Oidc, json!({"sub": ["a"]})),
        (Provider::Oidc, Value::Null),
    ] {
        assert!(PublisherRule::read(provider, claims.clone()).is_err(), "{provider:?} {claims}");
    }
    let both = json!({"repository_owner": "o", "repository": "O/r", "workflow": ".github/workflows/r.yml", "environment": ""});
    let PublisherRule::Github(rule) = PublisherRule::read(Provider::Github, both).unwrap() else {
        panic!("GitHub")
    };
    assert_eq!((rule.repository.as_str(), rule.workflow.as_str(), rule.environment), ("r", "r.yml", None));
}

#[test]
fn a_run_is_described_by_repository_workflow_commit_and_run() {
    let describe = |claims: Value| describe_workflow(claims.as_object().unwrap());
    assert_eq!(
        describe(github()),
        "octo-org/octo-repo release.yml commit 0123456789abcdef0123456789abcdef01234567 run 42"
    );
    assert_eq!(
        describe(gitlab()),
        "group/sub/project .gitlab-ci.yml commit 714a629c0b401fdce83e847fc9589983fc6f46bc run 574"
    );
    assert_eq!(
        describe(json!({"sub": "system:serviceaccount:ci:builder"})),
        "system:serviceaccount:ci:builder"
    );
}

#[test]
fn workflows_that_run_code_of_outsiders_are_refused() {
    let rule = |event: Value| {
        let mut claims =
            json!({"repository_owner": "octo-org", "repository": "octo-repo", "workflow": "release.yml"});
        claims["event_name"] = event;
        PublisherRule::read(Provider::Github, claims).unwrap()
    };
    for event in ["pull_request_target", "workflow_run"] {
        let claims = with(github(), "event_name", json!(event));
        assert!(refuse_foreign_code(&rule(Value::Null), &claims).is_err());
        assert!(refuse_foreign_code(&rule(json!("push")), &claims).is_err());
        assert!(refuse_foreign_code(&rule(json!(event)), &claims).is_ok());
    }
    assert!(refuse_foreign_code(&rule(Value::Null), &with(github(), "event_name", json!("push"))).is_ok());
}
