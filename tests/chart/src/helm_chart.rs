//! The Helm chart as helm renders it. It is read back into Kubernetes' own types without unknown
//! fields. Its objects refer to each other correctly, its containers have minimal privileges, and
//! the server knows every variable that it gets.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::go::Go;
use packhouse_tests::server::program;
use packhouse_tests::{checkout, skip};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::process::Command;

/// Several servers with every option enabled.
const WHOLE: &[&str] = &[
    "storage=external",
    "replicas=3",
    "database.urlSecret.name=database",
    "blobs.urlSecret.name=bucket",
    "sealingKey.secret.name=keys",
    "owner.passwordSecret.name=owner",
    "smtp.urlSecret.name=mail",
    "trustedProxies=10.0.0.0/8",
    "ingress.enabled=true",
    "ingress.className=nginx",
    "ingress.packages.tlsSecret=packages-tls",
    "metrics.serviceMonitor.enabled=true",
    "metrics.serviceMonitor.labels.release=prometheus",
    "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
    "networkPolicy.egress[0].to[0].ipBlock.cidr=10.1.0.0/16",
    "topologySpreadConstraints[0].maxSkew=1",
    "topologySpreadConstraints[0].topologyKey=kubernetes.io/hostname",
    "topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
    "imagePullSecrets[0].name=registry",
    "podLabels.team=build",
    "priorityClassName=high",
    "nodeSelector.disk=ssd",
    "settings=audit_days = 30",
];

fn helm() -> Option<Go> {
    match Go::client("helm") {
        Ok(helm) => Some(helm),
        Err(reason) => {
            skip("Helm chart", &reason);
            None
        }
    }
}

fn chart() -> String {
    checkout().join("deploy/helm/packhouse").display().to_string()
}

fn render(helm: &Go, set: &[&str]) -> ProgramOutput {
    let chart = chart();
    let mut words = vec!["template", "releases", &chart, "--kube-version", "1.33", "--namespace", "tools"];
    set.iter().for_each(|value| words.extend(["--set", value]));
    helm.run(&words)
}

/// Every rendered object.
fn objects(helm: &Go, set: &[&str]) -> Vec<Value> {
    let text = render(helm, set).success().text;
    let found: Vec<Value> =
        serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    found.into_iter().filter(|object| !object.is_null()).collect()
}

fn kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn only<'a>(objects: &'a [Value], of: &str) -> &'a Value {
    let found = kind(objects, of);
    assert_eq!(found.len(), 1, "{of}");
    found[0]
}

/// Reads an object as `T` and writes it again. A value that is missing afterwards is not a field of
/// `T`.
fn strictly<T: Serialize + DeserializeOwned>(object: &Value) {
    let typed: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object:#}"));
    assert_same_fields(object, &serde_json::to_value(&typed).unwrap(), &object["kind"].to_string());
}

fn assert_same_fields(from: &Value, back: &Value, at: &str) {
    match (from, back) {
        (Value::Object(from), Value::Object(back)) => {
            for (name, value) in from {
                let at = format!("{at}.{name}");
                assert_same_fields(
                    value,
                    back.get(name).unwrap_or_else(|| panic!("{at} is not a field")),
                    &at,
                );
            }
        }
        (Value::Array(from), Value::Array(back)) => {
            assert_eq!(from.len(), back.len(), "{at}");
            from.iter().zip(back).for_each(|(from, back)| assert_same_fields(from, back, at));
        }
        _ => assert_eq!(from, back, "{at}"),
    }
}

fn all_strictly(objects: &[Value]) {
    for object in objects {
        match object["kind"].as_str().unwrap_or_default() {
            "ConfigMap" => strictly::<ConfigMap>(object),
            "Deployment" => strictly::<Deployment>(object),
            "Ingress" => strictly::<Ingress>(object),
            "NetworkPolicy" => strictly::<NetworkPolicy>(object),
            "PersistentVolumeClaim" => strictly::<PersistentVolumeClaim>(object),
            "PodDisruptionBudget" => strictly::<PodDisruptionBudget>(object),
            "Service" => strictly::<Service>(object),
            "ServiceAccount" => strictly::<ServiceAccount>(object),
            "ServiceMonitor" => {}
            "StatefulSet" => {
                strictly::<StatefulSet>(object);
                let claims = object["spec"]["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
                claims.iter().for_each(strictly::<PersistentVolumeClaim>);
            }
            other => panic!("no type for the kind {other}"),
        }
    }
}

/// Returns true if the labels match the selector.
fn selected(selector: &Value, labels: &Value) -> bool {
    selector.as_object().unwrap().iter().all(|(name, value)| labels[name] == *value)
}

/// Asserts that every reference leads to an existing object.
fn hangs_together(objects: &[Value], server: &Value) {
    let pod = &server["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    assert!(selected(&server["spec"]["selector"]["matchLabels"], labels));
    let container = &pod["spec"]["containers"][0];
    let ports: Vec<&str> =
        container["ports"].as_array().unwrap().iter().filter_map(|port| port["name"].as_str()).collect();
    for service in kind(objects, "Service") {
        assert!(selected(&service["spec"]["selector"], labels), "{service:#}");
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(ports.contains(&port["targetPort"].as_str().unwrap()), "{port}");
        }
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert!(ports.contains(&container[probe]["httpGet"]["port"].as_str().unwrap()), "{probe}");
    }
    let volumes = pod["spec"]["volumes"].as_array().unwrap().iter();
    let claims = server["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    let names: Vec<&Value> =
        volumes.map(|volume| &volume["name"]).chain(claims.map(|claim| &claim["metadata"]["name"])).collect();
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(names.contains(&&mount["name"]), "{mount}");
    }
    for ingress in kind(objects, "Ingress") {
        let backend = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
        let there = kind(objects, "Service").into_iter().any(|service| {
            let ports = service["spec"]["ports"].as_array().unwrap();
            service["metadata"]["name"] == backend["name"]
                && ports.iter().any(|port| port["name"] == backend["port"]["name"])
        });
        assert!(there, "{ingress:#}");
    }
    for of in ["NetworkPolicy", "PodDisruptionBudget"] {
        for object in kind(objects, of) {
            let selector =
                object["spec"].get("podSelector").or_else(|| object["spec"].get("selector")).unwrap();
            assert!(selected(&selector["matchLabels"], labels), "{of}");
        }
    }
    let account = &pod["spec"]["serviceAccountName"];
    assert_eq!(only(objects, "ServiceAccount")["metadata"]["name"], *account);
    let settings =
        pod["spec"]["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "settings");
    assert_eq!(settings.unwrap()["configMap"]["name"], only(objects, "ConfigMap")["metadata"]["name"]);
}

/// Asserts that the pod meets the "restricted" policy of a cluster and has a read-only root.
fn may_do_little(server: &Value) {
    let pod = &server["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["enableServiceLinks"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["securityContext"]["runAsUser"], 0);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
    }
    for name in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod.get(name).is_none(), "{name}");
    }
}

/// Asserts that the server accepts the pod's variables and settings, and that no value of a secret
/// is written out.
fn the_program_understands(objects: &[Value], server: &Value) {
    let home = tempfile::TempDir::new().unwrap();
    let file = home.path().join("packhouse.toml");
    std::fs::write(&file, only(objects, "ConfigMap")["data"]["packhouse.toml"].as_str().unwrap()).unwrap();
    let mut command = Command::new(program());
    command.args(["config", "show", "--config"]).arg(&file).env_clear();
    for variable in server["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        let value = match name {
            "PACKHOUSE_DATABASE_URL" => "postgres://packhouse:of-a-secret@database/packhouse",
            "PACKHOUSE_BLOBS" => "s3://bucket?endpoint=http://minio:9000&access_key_id=a&secret_access_key=b",
            "PACKHOUSE_SEALING_KEY" | "PACKHOUSE_OWNER_PASSWORD" => "a value out of a secret",
            "PACKHOUSE_SMTP_URL" => "smtps://user:password@mail",
            _ => variable["value"].as_str().unwrap_or_else(|| panic!("{name} has no value")),
        };
        assert_eq!(variable["value"].is_null(), variable["valueFrom"]["secretKeyRef"].is_object(), "{name}");
        command.env(name, value);
    }
    run(&mut command).success();
}

#[test]
fn helm_lint_reports_no_problem() {
    let Some(helm) = helm() else { return };
    helm.run(&["lint", "--strict", &chart()]).success();
    let set = WHOLE.join(",");
    helm.run(&["lint", "--strict", &chart(), "--set", &set]).success();
}

#[test]
fn one_server_over_a_volume() {
    let Some(helm) = helm() else { return };
    let objects = objects(&helm, &[]);
    all_strictly(&objects);
    let server = only(&objects, "StatefulSet");
    hangs_together(&objects, server);
    may_do_little(server);
    the_program_understands(&objects, server);
    assert_eq!(server["spec"]["replicas"], 1);
    assert!(kind(&objects, "PodDisruptionBudget").is_empty(), "a budget over one server holds up its node");
    let existing = self::objects(&helm, &["persistence.existingClaim=mine"]);
    all_strictly(&existing);
    assert!(only(&existing, "StatefulSet")["spec"].get("volumeClaimTemplates").is_none());
    hangs_together(&existing, only(&existing, "StatefulSet"));
}

#[test]
fn several_servers_with_all_options() {
    let Some(helm) = helm() else { return };
    let objects = objects(&helm, WHOLE);
    all_strictly(&objects);
    let server = only(&objects, "Deployment");
    hangs_together(&objects, server);
    may_do_little(server);
    the_program_understands(&objects, server);
    assert_eq!(server["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    assert_eq!(only(&objects, "PodDisruptionBudget")["spec"]["maxUnavailable"], 1);
    assert_eq!(kind(&objects, "Ingress").len(), 2, "one for each host");
    assert_eq!(only(&objects, "NetworkPolicy")["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    let wait = server["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(wait > 10 + 30, "drain and shutdown both end before the kill: {wait} s");
}

#[test]
fn the_documented_commands_render_a_consistent_chart() {
    let Some(helm) = helm() else { return };
    let page = std::fs::read_to_string(checkout().join("docs/guides/install.md")).unwrap();
    let (_, below) = page.split_once("\n## Kubernetes\n").unwrap();
    let text = below.split_once("\n## ").unwrap().0.replace("\\\n", " ");
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("helm install ")).collect();
    assert_eq!(commands.len(), 2, "{text}");
    for command in commands {
        let mut words: Vec<&str> = command.split_whitespace().skip(2).collect();
        let chart = chart();
        assert!(words[1].starts_with("packhouse-chart-"), "{command}");
        words[1] = &chart;
        let output = helm.run(&[&["template"], &words[..], &["--kube-version", "1.33"]].concat()).success();
        let found: Vec<Value> = serde_saphyr::from_multiple(&output.text).unwrap();
        all_strictly(&found.into_iter().filter(|object| !object.is_null()).collect::<Vec<_>>());
    }
}

#[test]
fn prometheus_finds_the_metrics_and_nothing_else() {
    let Some(helm) = helm() else { return };
    let objects = objects(&helm, WHOLE);
    let monitor = only(&objects, "ServiceMonitor");
    assert_eq!(monitor["apiVersion"], "monitoring.coreos.com/v1");
    assert_eq!(
        monitor["spec"]["endpoints"],
        json!([{"port": "metrics", "path": "/metrics", "interval": "30s"}])
    );
    let selector = &monitor["spec"]["selector"]["matchLabels"];
    let found: Vec<&Value> = kind(&objects, "Service")
        .into_iter()
        .filter(|service| selected(selector, &service["metadata"]["labels"]))
        .collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["spec"]["ports"][0]["name"], "metrics");
}

#[test]
fn invalid_values_are_refused_with_a_reason() {
    let Some(helm) = helm() else { return };
    let table: &[(&[&str], &str)] = &[
        (&["replicas=2"], "several servers need PostgreSQL and S3; set storage to external"),
        (&["storage=external"], "storage external needs the name of a secret"),
        (&["database.urlSecret.name=x"], "storage volume does not use this secret; set storage to external"),
        (&["replica=2"], "additional properties 'replica' not allowed"),
        (&["ingress.host=x"], "additional properties 'host' not allowed"),
        (&["storage=both"], "value must be one of 'volume', 'external'"),
        (&["image.digest=latest"], "does not match pattern"),
        (&["metrics.port=0"], "minimum"),
        (&["persistence.size=much"], "does not match pattern"),
    ];
    for (set, words) in table {
        render(&helm, set).refused(words);
    }
}

#[test]
fn every_value_is_in_the_schema_and_has_a_default() {
    let folder = checkout().join("deploy/helm/packhouse");
    let values = std::fs::read_to_string(folder.join("values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&values).unwrap();
    let schema = std::fs::read_to_string(folder.join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    same_names(&values, &schema, "");
}

fn same_names(values: &Value, schema: &Value, at: &str) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for name in values.as_object().unwrap().keys() {
        assert!(properties.contains_key(name), "{at}{name} is not in the schema");
    }
    // `claims` of resources, and the values that a parent chart may set.
    for (name, schema) in properties.iter().filter(|(name, _)| !["claims", "global"].contains(&name.as_str()))
    {
        let value = values.get(name).unwrap_or_else(|| panic!("{at}{name} has no default"));
        same_names(value, schema, &format!("{at}{name}."));
    }
}

#[test]
fn with_a_certificate_both_listeners_and_all_probes_use_tls() {
    let Some(helm) = helm() else { return };
    let objects = objects(&helm, &["tls.secretName=certificate"]);
    all_strictly(&objects);
    let server = only(&objects, "StatefulSet");
    hangs_together(&objects, server);
    let pod = &server["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["scheme"], "HTTPS", "{probe}");
    }
    let mounts = container["volumeMounts"].as_array().unwrap();
    let folder = mounts.iter().find(|mount| mount["name"] == "tls").unwrap()["mountPath"].as_str().unwrap();
    for (name, file) in [("PACKHOUSE_TLS_CERT", "tls.crt"), ("PACKHOUSE_TLS_KEY", "tls.key")] {
        let variables = container["env"].as_array().unwrap();
        let variable = variables.iter().find(|variable| variable["name"] == name).unwrap();
        assert_eq!(variable["value"], format!("{folder}/{file}"), "{name}");
    }
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == "tls").unwrap();
    assert_eq!(volume["secret"]["secretName"], "certificate");
}
