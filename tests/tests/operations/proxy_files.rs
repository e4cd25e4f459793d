//! What OPERATING.md promises of each file in `deploy/proxies`, read in the file itself. `one_address` runs the one of nginx.

use packhouse_tests::checkout;
use std::collections::BTreeSet;
use std::fs;

/// A file, with what keeps its promises: settings that it has, and words of settings that would break one.
struct Proxy {
    file: &'static str,
    /// Bodies of any size, passed on as they come, however long that takes.
    bodies: &'static [&'static str],
    /// The name and the scheme that the client asked, never as the client itself claims them.
    site: &'static [&'static str],
    /// Nobody reads the metrics through it.
    metrics: &'static [&'static str],
    /// By default this proxy keeps a promise; these would change that.
    lacks: &'static [&'static str],
}

const PROXIES: [Proxy; 4] = [
    Proxy {
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
    Proxy {
        file: "Caddyfile",
        bodies: &["flush_interval -1"],
        site: &["header_up -Forwarded", "header_up -X-Forwarded-Port"],
        metrics: &["@metrics path /metrics /portal/metrics", "respond @metrics 404"],
        // Caddy bounds and buffers no body, passes `Host` on, and believes forwarding fields of proxies that it trusts alone.
        lacks: &[
            "request_body",
            "_buffers",
            "timeout",
            "header_up Host",
            "X-Forwarded-Host",
            "trusted_proxies",
        ],
    },
    Proxy {
        file: "traefik.yaml",
        bodies: &["flushInterval: -1ms"],
        site: &["passHostHeader: true", "Forwarded: \"\""],
        metrics: &["rule: Host(`packages.example`) && !Path(`/metrics`) && !Path(`/portal/metrics`)"],
        lacks: &["buffering", "BodyBytes", "X-Forwarded-"],
    },
    Proxy {
        file: "ingress-nginx.yaml",
        bodies: &[
            "nginx.ingress.kubernetes.io/proxy-body-size: \"0\"",
            "nginx.ingress.kubernetes.io/proxy-request-buffering: \"off\"",
            "nginx.ingress.kubernetes.io/proxy-buffering: \"off\"",
            "nginx.ingress.kubernetes.io/proxy-read-timeout: \"300\"",
            "nginx.ingress.kubernetes.io/proxy-send-timeout: \"300\"",
        ],
        // The controller passes `Host` on and writes the forwarding fields itself. Behind it the server refuses the metrics.
        site: &[],
        metrics: &[],
        lacks: &["upstream-vhost", "x-forwarded-prefix", "rewrite-target", "use-regex"],
    },
];

/// The lines of a file that are no comments, without the space around them.
fn settings(file: &str) -> Vec<String> {
    let text = fs::read_to_string(checkout().join("deploy/proxies").join(file)).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn each_file_for_a_proxy_keeps_what_is_promised_of_it() {
    for Proxy { file, bodies, site, metrics, lacks } in PROXIES {
        let settings = settings(file);
        for wanted in bodies.iter().chain(site).chain(metrics) {
            assert!(settings.iter().any(|line| line == wanted), "{file} lacks {wanted}");
        }
        for word in lacks {
            let line = settings.iter().find(|line| line.contains(word));
            assert_eq!(line, None, "{file}: {word}");
        }
    }
}

#[test]
fn each_file_for_a_proxy_is_known_to_this_test_and_to_the_page() {
    let entries = fs::read_dir(checkout().join("deploy/proxies")).unwrap();
    let files: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<String> = PROXIES.map(|proxy| proxy.file.to_owned()).into_iter().collect();
    assert_eq!(files, known);
    let page = fs::read_to_string(checkout().join("docs/OPERATING.md")).unwrap();
    for file in files {
        assert!(page.contains(&format!("(../deploy/proxies/{file})")), "OPERATING.md does not name {file}");
    }
}
