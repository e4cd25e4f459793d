//! Promises of docs/guides/behind-a-proxy.md about each file in `deploy/proxies`. The tests read
//! the files. `one_address` runs nginx with its file.

use packhouse_tests::checkout;
use std::collections::BTreeSet;
use std::fs;

/// A file, the settings that keep the guide's promises, and words of settings that would break a
/// promise.
struct ProxyPromises {
    file: &'static str,
    /// Settings that let bodies of any size and any duration pass without buffering.
    bodies: &'static [&'static str],
    /// Settings that pass on the host name and the scheme of the request. They drop the forwarding
    /// headers that the client itself sends.
    site: &'static [&'static str],
    /// Settings that hide the metrics.
    metrics: &'static [&'static str],
    /// Words that the file must not contain. The proxy's default keeps a promise, and these
    /// settings would break the promise.
    lacks: &'static [&'static str],
}

const PROXIES: [ProxyPromises; 4] = [
    ProxyPromises {
        file: "nginx.conf",
        bodies: &[
            "client_max_body_size 0;",
            "proxy_request_buffering off;",
            "proxy_buffering off;",
            "proxy_read_timeout 300s;",
            "proxy_send_timeout 300s;",
            "proxy_pass http://127.0.0.1:8080;",
        ],
        site: &[
            "proxy_set_header Host $http_host;",
            "proxy_set_header X-Forwarded-For $remote_addr;",
            "proxy_set_header X-Forwarded-Host $http_host;",
            "proxy_set_header X-Forwarded-Proto $scheme;",
            "proxy_set_header X-Forwarded-Port \"\";",
            "proxy_set_header Forwarded \"\";",
        ],
        metrics: &["location = /metrics { return 404; }", "location = /portal/metrics { return 404; }"],
        lacks: &[],
    },
    ProxyPromises {
        file: "Caddyfile",
        bodies: &["flush_interval -1"],
        site: &["header_up -Forwarded", "header_up -X-Forwarded-Port"],
        metrics: &["@metrics path /metrics /portal/metrics", "respond @metrics 404"],
        // Caddy neither limits nor buffers bodies and passes `Host` on. It accepts forwarding
        // headers only from trusted proxies.
        lacks: &[
            "request_body",
            "_buffers",
            "timeout",
            "header_up Host",
            "X-Forwarded-Host",
            "trusted_proxies",
        ],
    },
    ProxyPromises {
        file: "traefik.yaml",
        bodies: &["flushInterval: -1ms"],
        site: &["passHostHeader: true", "Forwarded: \"\""],
        metrics: &["rule: Host(`packages.example`) && !Path(`/metrics`) && !Path(`/portal/metrics`)"],
        lacks: &["buffering", "BodyBytes", "X-Forwarded-"],
    },
    ProxyPromises {
        file: "ingress-nginx.yaml",
        bodies: &[
            "nginx.ingress.kubernetes.io/proxy-body-size: \"0\"",
            "nginx.ingress.kubernetes.io/proxy-request-buffering: \"off\"",
            "nginx.ingress.kubernetes.io/proxy-buffering: \"off\"",
            "nginx.ingress.kubernetes.io/proxy-read-timeout: \"300\"",
            "nginx.ingress.kubernetes.io/proxy-send-timeout: \"300\"",
        ],
        // The controller passes `Host` on and writes the forwarding headers itself. The server
        // itself refuses requests for its metrics that come through this controller.
        site: &[],
        metrics: &[],
        lacks: &["upstream-vhost", "x-forwarded-prefix", "rewrite-target", "use-regex"],
    },
];

/// Returns the lines of a file without comments and without surrounding space.
fn settings(file: &str) -> Vec<String> {
    let text = fs::read_to_string(checkout().join("deploy/proxies").join(file)).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn each_proxy_file_keeps_the_promises_of_the_guide() {
    for ProxyPromises { file, bodies, site, metrics, lacks } in PROXIES {
        let settings = settings(file);
        for required in bodies.iter().chain(site).chain(metrics) {
            assert!(settings.iter().any(|line| line == required), "{file} lacks {required}");
        }
        for word in lacks {
            let line = settings.iter().find(|line| line.contains(word));
            assert_eq!(line, None, "{file}: {word}");
        }
    }
}

#[test]
fn each_proxy_file_is_in_this_test_and_in_the_guide() {
    let entries = fs::read_dir(checkout().join("deploy/proxies")).unwrap();
    let files: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<String> = PROXIES.map(|proxy| proxy.file.to_owned()).into_iter().collect();
    assert_eq!(files, known);
    let page = fs::read_to_string(checkout().join("docs/guides/behind-a-proxy.md")).unwrap();
    for file in files {
        assert!(page.contains(&format!("(../../deploy/proxies/{file})")), "the guide does not name {file}");
    }
}
