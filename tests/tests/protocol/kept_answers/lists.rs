//! Responses about many packages, and later changes of a version. The servers cache these
//! responses, and each change must be visible in the next response.

use super::formats::PackageFormat;
use super::place::Repositories;
use super::play;
use packhouse_tests::images::{MANIFEST, digest};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::{Client, Request};
use serde_json::{Value, json};

const VIEWS: [&str; 2] = ["one", "all"];

/// Checks the result of `read` for the repository and for the group, twice through each server.
#[track_caller]
fn finds(repositories: &Repositories<'_>, expected: &[&str], read: impl Fn(&Client, &str) -> Vec<String>) {
    finds_in(&VIEWS, repositories, expected, read);
}

#[track_caller]
fn finds_in(
    views: &[&str],
    repositories: &Repositories<'_>,
    expected: &[&str],
    read: impl Fn(&Client, &str) -> Vec<String>,
) {
    for _ in 0..2 {
        for (reader, view) in
            repositories.readers().iter().flat_map(|reader| views.iter().map(move |view| (reader, view)))
        {
            let mut found = read(reader, &repositories.called(view));
            found.sort();
            assert_eq!(found, expected, "{:?} {view}", repositories.format);
        }
    }
}

fn words<'a>(list: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    list.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn the_python_index_lists_each_project_at_once() {
    play(&[PackageFormat::Python], |repositories| {
        let read = |client: &Client, repository: &str| {
            let request = Request::new("GET", &format!("/repositories/{repository}/simple/"));
            let index = client.send(request.header("Accept", SIMPLE_JSON)).expect(200).json();
            words(index["projects"].as_array().unwrap().iter().map(|project| &project["name"]))
        };
        finds(repositories, &[], read);
        repositories.publish("lib", "1@one");
        finds(repositories, &["lib"], read);
        repositories.publish("alib", "1@one");
        finds(repositories, &["alib", "lib"], read);
        repositories.delete("lib", "1@one");
        finds(repositories, &["alib"], read);
    });
}

#[test]
fn the_npm_search_finds_each_package_at_once() {
    play(&[PackageFormat::Npm], |repositories| {
        let nothing = json!({"objects": [], "total": 0}).to_string();
        repositories
            .upstream
            .on("/-/v1/search?text=lib&size=20", packhouse_tests::upstream::Answer::ok(nothing));
        let read = |client: &Client, repository: &str| {
            let path = format!("/repositories/{repository}/-/v1/search?text=lib&size=20");
            let found = client.get(&path).expect(200).json();
            words(found["objects"].as_array().unwrap().iter().map(|one| &one["package"]["name"]))
        };
        finds(repositories, &[], read);
        repositories.publish("lib", "1@one");
        finds(repositories, &["lib"], read);
        repositories.publish("lib-two", "1@one");
        finds(repositories, &["lib", "lib-two"], read);
        repositories.delete("lib", "1@one");
        finds(repositories, &["lib-two"], read);
    });
}

#[test]
fn maven_folders_list_each_file_at_once() {
    play(&[PackageFormat::Maven], |repositories| {
        let read = |client: &Client, repository: &str| {
            let path = format!("/repositories/{repository}/org/example/");
            let request = Request::new("GET", &path).header("Accept", "application/json");
            let answer = client.send(request);
            if answer.status == 404 {
                return Vec::new();
            }
            let page = answer.expect(200).json();
            words(page["entries"].as_array().unwrap().iter().map(|entry| &entry["name"]))
        };
        finds_in(&["one"], repositories, &[], read);
        repositories.publish("lib", "1@one");
        finds_in(&["one"], repositories, &["lib"], read);
        repositories.publish("libs", "1@one");
        finds_in(&["one"], repositories, &["lib", "libs"], read);
        repositories.delete("lib", "1@one");
        finds_in(&["one"], repositories, &["libs"], read);
    });
}

/// A client uploads the plugin list of a Maven group id. The server merges the list with the
/// plugins of earlier uploads.
#[test]
fn maven_plugins_are_known_at_once() {
    play(&[PackageFormat::Maven], |repositories| {
        let read = |client: &Client, repository: &str| {
            let answer = client.get(&format!("/repositories/{repository}/org/example/maven-metadata.xml"));
            let text = if answer.status == 404 { String::new() } else { answer.expect(200).text() };
            let prefixes = text.split("<prefix>").skip(1).filter_map(|rest| rest.split('<').next());
            prefixes.map(str::to_owned).collect::<Vec<_>>()
        };
        let put = |artifact: &str, prefix: &str| {
            let plugin = format!(
                "<plugin><name>x</name><prefix>{prefix}</prefix><artifactId>{artifact}</artifactId></plugin>"
            );
            let text = format!("<metadata><plugins>{plugin}</plugins></metadata>");
            let path = format!("/repositories/{}/org/example/maven-metadata.xml", repositories.called("one"));
            repositories.writer().put(&path, text).expect(201);
        };
        finds(repositories, &[], read);
        repositories.publish("lib", "1@one");
        put("lib", "first");
        finds(repositories, &["first"], read);
        repositories.publish("libs", "1@one");
        put("libs", "second");
        finds(repositories, &["first", "second"], read);
        repositories.delete("lib", "1@one");
        finds(repositories, &["second"], read);
    });
}

#[test]
fn referrers_of_an_image_are_listed_at_once() {
    play(&[PackageFormat::Images], |repositories| {
        repositories.publish("lib", "1@one");
        let subject = repositories.format.content("lib", &super::formats::versions("1@one")[0]);
        let named = digest(&subject);
        let read = |client: &Client, repository: &str| {
            let path = format!("/v2/repositories/{repository}/lib/referrers/{named}");
            let index = client.get(&path).expect(200).json();
            words(index["manifests"].as_array().unwrap().iter().map(|one| &one["artifactType"]))
        };
        let refer = |kind: &str| {
            let config = json!({"mediaType": kind, "digest": digest(b"{}"), "size": 2});
            let subject = json!({"mediaType": MANIFEST, "digest": named, "size": subject.len()});
            let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind,
                "config": config, "layers": [config], "subject": subject})
            .to_string();
            let path = format!(
                "/v2/repositories/{}/lib/manifests/{}",
                repositories.called("one"),
                digest(manifest.as_bytes())
            );
            let request = Request::new("PUT", &path).header("Content-Type", MANIFEST).body(manifest);
            repositories.writer().send(request).expect(201);
            path
        };
        finds(repositories, &[], read);
        let first = refer("application/vnd.example.first");
        finds(repositories, &["application/vnd.example.first"], read);
        refer("application/vnd.example.second");
        finds(repositories, &["application/vnd.example.first", "application/vnd.example.second"], read);
        repositories.writer().send(Request::new("DELETE", &first)).expect(202);
        finds(repositories, &["application/vnd.example.second"], read);
    });
}

#[test]
fn marks_and_tags_are_visible_at_once_and_so_is_their_removal() {
    play(&[PackageFormat::Npm], |repositories| {
        repositories.publish("lib", "1@one 2@one");
        let packument = |client: &Client, repository: &str| {
            let document = client.get(&format!("/repositories/{repository}/lib")).expect(200).json();
            let mark = document["versions"]["1.0.0"]["deprecated"].as_str().unwrap_or("none").to_owned();
            let tag = document["dist-tags"]["next"].as_str().unwrap_or("none").to_owned();
            vec![format!("{tag} {mark}")]
        };
        let state = format!("/v1/repositories/{}/packages/lib/versions/1.0.0/state", repositories.id("one"));
        let tag = format!("/repositories/{}/-/package/lib/dist-tags/next", repositories.called("one"));
        let mark = |body: &Value| drop(repositories.api.send("PUT", &state, body).expect(200));
        finds(repositories, &["none none"], packument);
        mark(&json!({"state": "deprecated", "reason": "old"}));
        finds(repositories, &["none old"], packument);
        let request = Request::new("PUT", &tag).header("Content-Type", "application/json");
        let status = repositories.writer().send(request.body("\"2.0.0\"")).status;
        assert!(status == 200 || status == 201, "{status}");
        finds(repositories, &["2.0.0 old"], packument);
        mark(&json!({"state": ""}));
        finds(repositories, &["2.0.0 none"], packument);
        let status = repositories.writer().send(Request::new("DELETE", &tag)).status;
        assert!(status == 200 || status == 204, "{status}");
        finds(repositories, &["none none"], packument);
    });
    play(&[PackageFormat::Python], |repositories| {
        repositories.publish("lib", "1@one");
        let yanked = |client: &Client, repository: &str| {
            let page = repositories.format.ask(client, repository, "lib").expect(200).json();
            vec![page["files"][0]["yanked"].as_str().unwrap_or("no").to_owned()]
        };
        let state = format!("/v1/repositories/{}/packages/lib/versions/1.0.0/state", repositories.id("one"));
        let mark = |body: &Value| drop(repositories.api.send("PUT", &state, body).expect(200));
        finds(repositories, &["no"], yanked);
        mark(&json!({"state": "yanked", "reason": "broken"}));
        finds(repositories, &["broken"], yanked);
        mark(&json!({"state": ""}));
        finds(repositories, &["no"], yanked);
    });
}

#[test]
fn a_moved_tag_resolves_to_its_new_image_at_once() {
    play(&[PackageFormat::Images], |repositories| {
        repositories.publish("lib", "1@one 2@one");
        let [first, second] =
            [0, 1].map(|at| repositories.format.content("lib", &super::formats::versions("1@one 2@one")[at]));
        let read = |client: &Client, repository: &str| {
            let path = format!("/v2/repositories/{repository}/lib/manifests/moving");
            vec![client.get(&path).expect(200).text()]
        };
        for manifest in [&first, &second, &first] {
            let path = format!("/v2/repositories/{}/lib/manifests/moving", repositories.called("one"));
            let request = Request::new("PUT", &path).header("Content-Type", MANIFEST);
            repositories.writer().send(request.body(manifest.clone())).expect(201);
            finds(repositories, &[std::str::from_utf8(manifest).unwrap()], read);
        }
    });
}
