//! Upstream versions without a publication time. The server computes their age from the time when
//! it first saw them. It does so in lists and for files, and a restart does not change the age.

use super::npm_upstream::{self, Part, packument};

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Server, digests};
use serde_json::json;

/// Minimum age that the proxies require, in seconds.
const DAY: i64 = 86_400;
const MINUTE: i64 = 60;

/// A format whose lists may lack publication times, with one package.
struct FormatLists {
    name: &'static str,
    /// Offers these versions at an upstream. The upstream states no publication time that the
    /// server uses.
    lay: fn(&Upstream, &[&str]),
    /// Path of the list.
    list: &'static str,
    /// Path of the file of a version.
    file: fn(&str) -> String,
}

const FORMATS: [FormatLists; 3] = [
    FormatLists {
        name: "go",
        lay: lay_modules,
        list: "example.com/lib/@v/list",
        file: |version| format!("example.com/lib/@v/v{version}.zip"),
    },
    FormatLists {
        name: "npm",
        lay: lay_packument,
        list: "lib",
        file: |version| Part::new("lib", version).path(),
    },
    FormatLists {
        name: "cargo",
        lay: lay_index,
        list: "li/br/library",
        file: |version| format!("api/v1/crates/library/{version}/download"),
    },
];

/// Offers modules whose authors claim an old date. The server does not use this date as the
/// publication time.
fn lay_modules(upstream: &Upstream, versions: &[&str]) {
    let list: String = versions.iter().map(|version| format!("v{version}\n")).collect();
    upstream.on("/example.com/lib/@v/list", Answer::ok(list));
    for version in versions {
        let at = format!("/example.com/lib/@v/v{version}");
        let info = json!({"Version": format!("v{version}"), "Time": "2015-01-05T10:00:00Z"});
        upstream.on(&format!("{at}.info"), Answer::ok(info.to_string()));
        upstream.on(&format!("{at}.mod"), Answer::ok("module example.com/lib\n"));
        upstream.on(&format!("{at}.zip"), Answer::ok(format!("zip of {version}")));
    }
}

fn lay_packument(upstream: &Upstream, versions: &[&str]) {
    let parts: Vec<Part> = versions.iter().map(|version| Part::new("lib", version)).collect();
    npm_upstream::offer(upstream, &parts);
    let mut document = packument(&parts, |part| format!("{}/{}", upstream.url(), part.path()));
    document.as_object_mut().unwrap().remove("time");
    npm_upstream::show(upstream, &document);
}

fn lay_index(upstream: &Upstream, versions: &[&str]) {
    let config = json!({"dl": format!("{}/files", upstream.url())});
    upstream.on("/config.json", Answer::ok(config.to_string()));
    let mut lines = String::new();
    for version in versions {
        let bytes = format!("crate of {version}");
        let line = json!({
            "name": "library", "vers": version, "deps": [], "features": {}, "yanked": false,
            "cksum": digests::sha256(bytes.as_bytes()),
        });
        lines += &format!("{line}\n");
        upstream.on(&format!("/files/library/{version}/download"), Answer::ok(bytes));
    }
    upstream.on("/li/br/library", Answer::ok(lines));
}

/// A proxy with its own upstream.
struct ProxyFixture {
    format: FormatLists,
    upstream: Upstream,
    repository: FormatRepository,
}

impl ProxyFixture {
    fn create(server: &Server, format: FormatLists) -> Self {
        let upstream = Upstream::start();
        let settings = json!({"min_release_age_s": DAY, "metadata_ttl_s": 0, "negative_ttl_s": 0});
        let repository =
            FormatRepository::proxy(server, format.name, format.name, &upstream.url(), &settings);
        Self { format, upstream, repository }
    }

    /// Fails unless the proxy lists and serves the offered versions, and neither lists nor serves
    /// the withheld ones.
    #[track_caller]
    fn offers(&self, offered: &[&str], withheld: &[&str]) {
        let list = self.repository.get(self.format.list);
        let listed = if list.status == 200 { list.text() } else { String::new() };
        for (versions, there) in [(offered, true), (withheld, false)] {
            for version in versions {
                let name = self.format.name;
                assert_eq!(listed.contains(version), there, "{name} {version}: {listed}");
                self.repository.get(&(self.format.file)(version)).expect(if there { 200 } else { 404 });
            }
        }
    }
}

#[test]
fn without_a_stated_time_the_age_counts_from_the_first_sight() {
    let clock = JumpingClock::new();
    let mut server =
        Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").clock(&clock).start();
    let proxies = FORMATS.map(|format| ProxyFixture::create(&server, format));
    let lay =
        |versions: &[&str]| proxies.iter().for_each(|proxy| (proxy.format.lay)(&proxy.upstream, versions));
    let offer = |offered: &[&str], withheld: &[&str]| {
        proxies.iter().for_each(|proxy| proxy.offers(offered, withheld));
    };
    lay(&["1.2.3"]);
    offer(&[], &["1.2.3"]);
    server.kill9();
    server.restart();
    clock.set(DAY - 10 * MINUTE);
    lay(&["1.2.3", "1.3.7"]);
    offer(&[], &["1.2.3", "1.3.7"]);
    clock.set(DAY + MINUTE);
    offer(&["1.2.3"], &["1.3.7"]);
    clock.set(2 * DAY + MINUTE);
    offer(&["1.2.3", "1.3.7"], &[]);
    let info = proxies[0].repository.get("example.com/lib/@v/v1.2.3.info").expect(200).json();
    assert_eq!(info["Time"], "2015-01-05T10:00:00Z", "the author's time is passed on");
}
