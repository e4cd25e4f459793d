//! Instructions for users of Helm, and for publishing with curl.

use packhouse_sdk::{Client, Install};

const REPO: &str = "helm repo add {repository} {address} --username {email} --password {token}";
const ARGO: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {repository}\n  namespace: argocd\n  labels:\n    \
                    argocd.argoproj.io/secret-type: repository\nstringData:\n  type: helm\n  name: {repository}\n  url: {address}\n  \
                    username: {email}\n  password: {token}";
const CURL: &str =
    "curl --fail-with-body --user {email}:{token} --data-binary @CHART.tgz {address}api/charts";
const CM_PUSH: &str = "helm repo add {repository} {address} --username {email} --password {token}\n\
                       helm cm-push CHART.tgz {repository}";

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("helm", REPO),
        Client::read("Argo CD", ARGO).file("repository.yaml", "yaml"),
        Client::publish("curl", CURL),
        Client::publish("helm cm-push", CM_PUSH),
    ]
}

/// Commands and files that install a version.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("helm", "helm install {name} {repository}/{name} --version {version}"),
        Install::new(
            "Chart.yaml",
            "yaml",
            "dependencies:\n- name: {name}\n  version: {version}\n  repository: {address}",
        ),
    ]
}
