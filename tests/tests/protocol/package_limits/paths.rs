//! Ways to change a package other than a publish. None of them changes a package outside the
//! credential's packages.

use super::publishing::{FormatCase, jar};
use super::{EMAIL, LimitedRepository, LimitedServer, PASSWORD, is_refused};
use crate::chart;
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::{Client, Request, Response};
use serde_json::json;

/// A repository of one format that contains both packages of its case, and a limited member.
struct PublishedCase {
    world: LimitedServer,
    owner: Client,
    limited: Client,
}

impl PublishedCase {
    fn of(format: &str) -> Self {
        let world = LimitedServer::start(&[format]);
        world.limited_member();
        let (owner, limited) = (world.owner_client(), world.password_client());
        let published = Self { world, owner, limited };
        let LimitedRepository { case, name, .. } = published.repository();
        for package in [case.own, case.other] {
            let answer = (case.publish)(&published.owner, name, package);
            assert!(answer.status < 300, "{package}: {} {}", answer.status, answer.text());
        }
        published
    }

    fn repository(&self) -> &LimitedRepository {
        &self.world.repositories[0]
    }

    fn case(&self) -> &'static FormatCase {
        self.repository().case
    }

    fn path(&self, below: &str) -> String {
        format!("/repositories/{}/{below}", self.repository().name)
    }

    /// Sends a request of the limited member without a body.
    fn call(&self, method: &str, below: &str) -> Response {
        self.limited.send(Request::new(method, &self.path(below)))
    }

    fn put(&self, below: &str, body: impl Into<Vec<u8>>) -> Response {
        self.limited.put(&self.path(below), body)
    }

    /// Checks that the member may not do this with the package outside its pattern.
    #[track_caller]
    fn refuses(&self, answer: Response, verb: &str) {
        is_refused(self.case(), answer, verb, self.case().other);
    }

    /// Checks that the repository still lists both packages.
    #[track_caller]
    fn has_both(&self) {
        let mut names = vec![self.case().own, self.case().other];
        names.sort_unstable();
        let mut listed = self.world.packages(self.repository());
        listed.sort_unstable();
        assert_eq!(listed, names);
    }
}

#[test]
fn mavens_files_metadata_and_folders_are_limited() {
    let published = PublishedCase::of("maven");
    let (own, other) = (jar(published.case().own), jar(published.case().other));
    // Reads are not limited.
    published.call("GET", &other).expect(200);
    published.refuses(published.put(&format!("{other}.sha1"), "0"), "publish");
    published.refuses(published.put("com/acme/other/lib/1.0/lib-1.0-sources.jar", "x"), "publish");
    published.refuses(published.call("DELETE", &other), "delete");
    for folder in ["com/acme/other/lib/1.0/", "com/acme/other/lib/", "com/acme/other/", "com/acme/"] {
        assert_eq!(published.call("DELETE", folder).status, 403, "{folder}");
    }
    published.has_both();
    published.owner.get(&published.path(&other)).expect(200);

    let of_artifact = |group: &str| {
        format!(
            "<metadata><groupId>{group}</groupId><artifactId>lib</artifactId><versioning><versions>\
             <version>1.0</version></versions></versioning></metadata>"
        )
    };
    published.put("com/acme/lib/maven-metadata.xml", of_artifact("com.acme")).expect(201);
    let of_other = of_artifact("com.acme.other");
    published.refuses(published.put("com/acme/other/lib/maven-metadata.xml", of_other), "publish");
    // The metadata of a group belongs to no package.
    let of_group = "<metadata><plugins><plugin><name>Acme</name><prefix>acme</prefix>\
                    <artifactId>acme-maven-plugin</artifactId></plugin></plugins></metadata>";
    for file in ["com/acme/maven-metadata.xml", "com/maven-metadata.xml"] {
        published.put(file, of_group).expect(201);
        published.put(&format!("{file}.sha1"), "0").expect(201);
    }
    // In the folder of an artifact, such a document belongs to the artifact.
    published.refuses(published.put("com/acme/other/lib/maven-metadata.xml", of_group), "publish");
    assert_eq!(published.call("DELETE", "com/acme/maven-metadata.xml").status, 403);
    assert_eq!(published.put("archetype-catalog.xml", "<archetype-catalog/>").status, 403);
    published.call("DELETE", "com/acme/lib/1.0/").expect(204);
    published.owner.get(&published.path(&own)).expect(404);
    published.owner.get(&published.path(&other)).expect(200);
}

#[test]
fn a_signature_of_another_chart_is_refused() {
    let published = PublishedCase::of("helm");
    let sign = |name: &str| {
        let file = format!("{name}-1.0.0.tgz");
        let signature = chart::provenance(&file, &chart::chart(name, "1.0.0", ""));
        let request = Request::new("POST", &published.path("api/prov")).body(signature);
        published.limited.send(request)
    };
    published.refuses(sign(published.case().other), "publish");
    published.owner.get(&published.path("charts/other-app-1.0.0.tgz.prov")).expect(404);
    sign(published.case().own).expect(201);
    published.refuses(published.call("DELETE", "api/charts/other-app/1.0.0"), "delete");
    published.refuses(published.call("DELETE", "charts/other-app-1.0.0.tgz"), "delete");
    published.has_both();
    published.call("DELETE", "api/charts/acme-app/1.0.0").expect(200);
}

#[test]
fn npms_tags_deprecations_and_removals_are_limited() {
    let published = PublishedCase::of("npm");
    published.refuses(published.put("-/package/@acme2%2flib/dist-tags/beta", "\"1.0.0\""), "publish");
    published.refuses(published.call("DELETE", "-/package/@acme2%2flib/dist-tags/latest"), "publish");
    let versions = json!({"1.0.0": {"name": "@acme2/lib", "version": "1.0.0", "deprecated": "old"}});
    let deprecation = json!({"_id": "@acme2/lib", "name": "@acme2/lib", "versions": versions});
    published.refuses(published.put("@acme2%2flib", deprecation.to_string()), "publish");
    published.refuses(published.call("DELETE", "@acme2%2flib/-rev/1"), "delete");
    published.has_both();
    published.put("-/package/@acme%2flib/dist-tags/beta", "\"1.0.0\"").expect(201);
}

#[test]
fn images_are_limited_by_manifest_tag_and_mount() {
    let published = PublishedCase::of("docker");
    let name = &published.repository().name;
    let at = |rest: &str| format!("/v2/repositories/{name}/{rest}");
    let text = manifest(&[b"a layer"]);
    let put = |reference: &str| {
        let request = Request::new("PUT", &at(&format!("other/app/manifests/{reference}")));
        published.limited.send(request.header("Content-Type", MANIFEST).body(text.clone()))
    };
    published.refuses(put(&digest(text.as_bytes())), "publish");
    published.refuses(put("latest"), "publish");
    let layer = digest(b"a layer");
    let mount = format!("other/app/blobs/uploads/?mount={layer}&from=repositories/{name}/acme/app");
    published.refuses(published.limited.send(Request::new("POST", &at(&mount))), "publish");
    let delete = |reference: &str| {
        let request = Request::new("DELETE", &at(&format!("other/app/manifests/{reference}")));
        published.limited.send(request)
    };
    published.refuses(delete("1.0"), "delete");
    published.refuses(delete(&digest(text.as_bytes())), "delete");
    published.has_both();

    // A bearer token has the limits of the credential for which it was issued.
    let scope = |image: &str| {
        let scope = format!("repository:repositories/{name}/{image}:pull,push");
        let path = format!("/v2/token?service=x&scope={scope}");
        let client = published.world.server.anonymous().basic(EMAIL, PASSWORD);
        let bearer = client.get(&path).expect(200).field("token");
        published.world.server.anonymous().with("Authorization", &format!("Bearer {bearer}"))
    };
    let upload = |image: &str| {
        let target = at(&format!("{image}/blobs/uploads/?digest={}", digest(b"more")));
        scope(image).send(Request::new("POST", &target).body("more"))
    };
    published.refuses(upload("other/app"), "publish");
    upload("acme/app").expect(201);
}

#[test]
fn deletions_and_states_are_limited_in_the_other_formats() {
    let python = PublishedCase::of("python");
    let file = "packages/other-lib/1.0.0/other_lib-1.0.0-py3-none-any.whl";
    python.refuses(python.call("DELETE", file), "delete");
    python.refuses(python.put("projects/other-lib/status", r#"{"status": "archived"}"#), "publish");
    python.refuses(python.call("DELETE", "packages/other-lib/2.0/none-2.0.tar.gz"), "delete");
    python.put("projects/Acme.Lib/status", r#"{"status": "archived"}"#).expect(200);
    python.has_both();

    let cargo = PublishedCase::of("cargo");
    cargo.refuses(cargo.call("DELETE", "api/v1/crates/other-lib/1.0.0/yank"), "publish");
    cargo.call("DELETE", "api/v1/crates/acme_lib/1.0.0/yank").expect(200);

    let gems = PublishedCase::of("rubygems");
    let yank = |gem: &str| gems.call("DELETE", &format!("api/v1/gems/yank?gem_name={gem}&version=1.0.0"));
    gems.refuses(yank("other-lib"), "delete");
    gems.refuses(gems.call("DELETE", "gems/other-lib-1.0.0.gem"), "delete");
    yank("acme-lib").expect(200);
    gems.has_both();

    let composer = PublishedCase::of("composer");
    composer.refuses(composer.call("DELETE", "packages/other/lib/1.0.0"), "delete");
    composer.has_both();

    let generic = PublishedCase::of("generic");
    generic.refuses(generic.call("DELETE", "other/app/a.txt"), "delete");
    generic.refuses(generic.call("DELETE", "other/"), "delete");
    generic.has_both();
    generic.call("DELETE", "acme/").expect(204);
}
