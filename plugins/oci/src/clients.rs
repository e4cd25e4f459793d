//! What clients of registries are told. The user name beside a token is not looked at; its owner's e-mail address stands there.

use packhouse_sdk::{Client, Install};

const DOCKER: &str = "docker login {host} --username {email} --password {token}";
const PODMAN: &str = "{https}podman login {host} --username {email} --password {token}\n\
                      {http}podman login {host} --username {email} --password {token} --tls-verify=false";
const HELM: &str = "{https}helm registry login {host} --username {email} --password {token}\n\
                    {http}helm registry login {host} --username {email} --password {token} --plain-http";
const CONTAINERD: &str = "{https}server = \"https://{host}\"\n{http}server = \"http://{host}\"\n\n\
                          {https}[host.\"https://{host}\"]\n{http}[host.\"http://{host}\"]\n\
                          \x20 capabilities = [\"pull\", \"resolve\"]";
const KUBERNETES: &str = "kubectl create secret docker-registry {repository} --docker-server={host} \
                          --docker-username={email} --docker-password={token}";
const POD: &str = "imagePullSecrets:\n  - name: {repository}";
const DAEMON: &str = "{http}{{ \"insecure-registries\": [\"{host}\"] }";

/// What to write where.
pub(crate) fn clients() -> Vec<Client> {
    let docker_push = format!(
        "{DOCKER}\ndocker tag IMAGE {{host}}/{{path}}/IMAGE:TAG\ndocker push {{host}}/{{path}}/IMAGE:TAG"
    );
    let podman_push = format!(
        "{PODMAN}\n{{https}}podman push IMAGE {{host}}/{{path}}/IMAGE:TAG\n\
         {{http}}podman push --tls-verify=false IMAGE {{host}}/{{path}}/IMAGE:TAG"
    );
    let helm_push = format!(
        "{HELM}\n{{https}}helm push CHART.tgz oci://{{host}}/{{path}}\n\
         {{http}}helm push --plain-http CHART.tgz oci://{{host}}/{{path}}"
    );
    vec![
        Client::read("docker", DOCKER),
        Client::read("docker", DAEMON).file("/etc/docker/daemon.json", "json"),
        Client::read("podman", PODMAN),
        Client::read("helm", HELM),
        Client::read("containerd", CONTAINERD).file("/etc/containerd/certs.d/{host}/hosts.toml", "toml"),
        Client::read("Kubernetes", KUBERNETES),
        Client::read("Kubernetes", POD).file("pod.yaml", "yaml"),
        Client::publish("docker", &docker_push),
        Client::publish("podman", &podman_push),
        Client::publish("helm", &helm_push),
    ]
}

/// One line for each client.
pub(crate) fn install() -> Vec<Install> {
    let podman = "{https}podman pull {host}/{path}/{name}:{version}\n\
                  {http}podman pull --tls-verify=false {host}/{path}/{name}:{version}";
    let helm = "{https}helm pull oci://{host}/{path}/{name} --version {version}\n\
                {http}helm pull --plain-http oci://{host}/{path}/{name} --version {version}";
    vec![
        Install::shell("docker", "docker pull {host}/{path}/{name}:{version}"),
        Install::shell("docker, by digest", "docker pull {host}/{path}/{name}@{property:digest}"),
        Install::shell("podman", podman),
        Install::shell("helm", helm),
        Install::new("Kubernetes", "yaml", "image: {host}/{path}/{name}:{version}"),
    ]
}
