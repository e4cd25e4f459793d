//! Instructions for users of registry clients. The server ignores the user name beside a token. The
//! commands contain the e-mail address of the token's owner as the user name. Clients expect a
//! registry at the root of its host, even if the server's public address has a path. The name of an
//! image therefore begins with `repositories/REPOSITORY/`, as in the paths below `/v2/` that this
//! format serves.

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

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    let docker_push = format!(
        "{DOCKER}\ndocker tag IMAGE {{host}}/repositories/{{repository}}/IMAGE:TAG\ndocker push {{host}}/repositories/{{repository}}/IMAGE:TAG"
    );
    let podman_push = format!(
        "{PODMAN}\n{{https}}podman push IMAGE {{host}}/repositories/{{repository}}/IMAGE:TAG\n\
         {{http}}podman push --tls-verify=false IMAGE {{host}}/repositories/{{repository}}/IMAGE:TAG"
    );
    let helm_push = format!(
        "{HELM}\n{{https}}helm push CHART.tgz oci://{{host}}/repositories/{{repository}}\n\
         {{http}}helm push --plain-http CHART.tgz oci://{{host}}/repositories/{{repository}}"
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

/// Commands that pull an image, one for each client.
pub(crate) fn install() -> Vec<Install> {
    let podman = "{https}podman pull {host}/repositories/{repository}/{name}:{version}\n\
                  {http}podman pull --tls-verify=false {host}/repositories/{repository}/{name}:{version}";
    let helm = "{https}helm pull oci://{host}/repositories/{repository}/{name} --version {version}\n\
                {http}helm pull --plain-http oci://{host}/repositories/{repository}/{name} --version {version}";
    vec![
        Install::shell("docker", "docker pull {host}/repositories/{repository}/{name}:{version}"),
        Install::shell(
            "docker, by digest",
            "docker pull {host}/repositories/{repository}/{name}@{property:digest}",
        ),
        Install::shell("podman", podman),
        Install::shell("helm", helm),
        Install::new("Kubernetes", "yaml", "image: {host}/repositories/{repository}/{name}:{version}"),
    ]
}
