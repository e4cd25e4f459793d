//! Answers about many packages, and what is said of a version after it was published: a change of any of them is a change of these.

use super::formats::Format;
use super::place::Place;
use super::play;
use packhouse_tests::images::{MANIFEST, digest};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::{Client, Request};
use serde_json::{Value, json};

const VIEWS: [&str; 2] = ["one", "all"];

/// What `read` finds in the repository and in the group, twice through each server.
#[track_caller]
fn finds(place: &Place<'_>, expected: &[&str], read: impl Fn(&Client, &str) -> Vec<String>) {
    finds_in(&VIEWS, place, expected, read);
}

#[track_caller]
fn finds_in(
    views: &[&str],
    place: &Place<'_>,
    expected: &[&str],
    read: impl Fn(&Client, &str) -> Vec<String>,
) {
    for _ in 0..2 {
        for (reader, view) in
            place.readers().iter().flat_map(|reader| views.iter().map(move |view| (reader, view)))
        {
            let mut found = read(reader, &place.called(view));
            found.sort();
            assert_eq!(found, expected, "{:?} {view}", place.format);
        }
    }
}

fn words<'a>(list: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    list.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn pythons_index_names_each_project_at_once() {
    play(&[Format::Python], |place| {
        let read = |client: &Client, repository: &str| {
            let request = Request::new("GET", &format!("/repositories/{repository}/simple/"));
            let index = client.send(request.header("Accept", SIMPLE_JSON)).expect(200).json();
            words(index["projects"].as_array().unwrap().iter().map(|project| &project["name"]))
        };
        finds(place, &[], read);
        place.publish("lib", "1@one");
        finds(place, &["lib"], read);
        place.publish("alib", "1@one");
        finds(place, &["alib", "lib"], read);
        place.delete("lib", "1@one");
        finds(place, &["alib"], read);
    });
}

#[test]
fn npms_search_finds_each_package_at_once() {
    play(&[Format::Npm], |place| {
        let nothing = json!({"objects": [], "total": 0}).to_string();
        place.upstream.on("/-/v1/search?text=lib&size=20", packhouse_tests::upstream::Answer::ok(nothing));
        let read = |client: &Client, repository: &str| {
            let path = format!("/repositories/{repository}/-/v1/search?text=lib&size=20");
            let found = client.get(&path).expect(200).json();
            words(found["objects"].as_array().unwrap().iter().map(|one| &one["package"]["name"]))
        };
        finds(place, &[], read);
        place.publish("lib", "1@one");
        finds(place, &["lib"], read);
        place.publish("lib-two", "1@one");
        finds(place, &["lib", "lib-two"], read);
        place.delete("lib", "1@one");
        finds(place, &["lib-two"], read);
    });
}

#[test]
fn mavens_folders_list_each_file_at_once() {
    play(&[Format::Maven], |place| {
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
        finds_in(&["one"], place, &[], read);
        place.publish("lib", "1@one");
        finds_in(&["one"], place, &["lib"], read);
        place.publish("libs", "1@one");
        finds_in(&["one"], place, &["lib", "libs"], read);
        place.delete("lib", "1@one");
        finds_in(&["one"], place, &["libs"], read);
    });
}

/// What a client puts of a group's plugins is joined to what is known of them.
#[test]
fn mavens_plugins_are_known_at_once() {
    play(&[Format::Maven], |place| {
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
            let path = format!("/repositories/{}/org/example/maven-metadata.xml", place.called("one"));
            place.writer().put(&path, text).expect(201);
        };
        finds(place, &[], read);
        place.publish("lib", "1@one");
        put("lib", "first");
        finds(place, &["first"], read);
        place.publish("libs", "1@one");
        put("libs", "second");
        finds(place, &["first", "second"], read);
        place.delete("lib", "1@one");
        finds(place, &["second"], read);
    });
}

#[test]
fn what_refers_to_an_image_is_listed_at_once() {
    play(&[Format::Images], |place| {
        place.publish("lib", "1@one");
        let subject = place.format.content("lib", &super::formats::versions("1@one")[0]);
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
                place.called("one"),
                digest(manifest.as_bytes())
            );
            let request = Request::new("PUT", &path).header("Content-Type", MANIFEST).body(manifest);
            place.writer().send(request).expect(201);
            path
        };
        finds(place, &[], read);
        let first = refer("application/vnd.example.first");
        finds(place, &["application/vnd.example.first"], read);
        refer("application/vnd.example.second");
        finds(place, &["application/vnd.example.first", "application/vnd.example.second"], read);
        place.writer().send(Request::new("DELETE", &first)).expect(202);
        finds(place, &["application/vnd.example.second"], read);
    });
}

#[test]
fn a_mark_and_a_tag_show_at_once_and_so_does_their_end() {
    play(&[Format::Npm], |place| {
        place.publish("lib", "1@one 2@one");
        let packument = |client: &Client, repository: &str| {
            let document = client.get(&format!("/repositories/{repository}/lib")).expect(200).json();
            let mark = document["versions"]["1.0.0"]["deprecated"].as_str().unwrap_or("none").to_owned();
            let tag = document["dist-tags"]["next"].as_str().unwrap_or("none").to_owned();
            vec![format!("{tag} {mark}")]
        };
        let state = format!("/v1/repositories/{}/packages/lib/versions/1.0.0/state", place.id("one"));
        let tag = format!("/repositories/{}/-/package/lib/dist-tags/next", place.called("one"));
        let mark = |body: &Value| drop(place.api.send("PUT", &state, body).expect(200));
        finds(place, &["none none"], packument);
        mark(&json!({"state": "deprecated", "reason": "old"}));
        finds(place, &["none old"], packument);
        let request = Request::new("PUT", &tag).header("Content-Type", "application/json");
        let status = place.writer().send(request.body("\"2.0.0\"")).status;
        assert!(status == 200 || status == 201, "{status}");
        finds(place, &["2.0.0 old"], packument);
        mark(&json!({"state": ""}));
        finds(place, &["2.0.0 none"], packument);
        let status = place.writer().send(Request::new("DELETE", &tag)).status;
        assert!(status == 200 || status == 204, "{status}");
        finds(place, &["none none"], packument);
    });
    play(&[Format::Python], |place| {
        place.publish("lib", "1@one");
        let yanked = |client: &Client, repository: &str| {
            let page = place.format.ask(client, repository, "lib").expect(200).json();
            vec![page["files"][0]["yanked"].as_str().unwrap_or("no").to_owned()]
        };
        let state = format!("/v1/repositories/{}/packages/lib/versions/1.0.0/state", place.id("one"));
        let mark = |body: &Value| drop(place.api.send("PUT", &state, body).expect(200));
        finds(place, &["no"], yanked);
        mark(&json!({"state": "yanked", "reason": "broken"}));
        finds(place, &["broken"], yanked);
        mark(&json!({"state": ""}));
        finds(place, &["no"], yanked);
    });
}

#[test]
fn a_tag_that_moves_leads_to_its_new_image_at_once() {
    play(&[Format::Images], |place| {
        place.publish("lib", "1@one 2@one");
        let [first, second] =
            [0, 1].map(|at| place.format.content("lib", &super::formats::versions("1@one 2@one")[at]));
        let read = |client: &Client, repository: &str| {
            let path = format!("/v2/repositories/{repository}/lib/manifests/moving");
            vec![client.get(&path).expect(200).text()]
        };
        for manifest in [&first, &second, &first] {
            let path = format!("/v2/repositories/{}/lib/manifests/moving", place.called("one"));
            let request = Request::new("PUT", &path).header("Content-Type", MANIFEST);
            place.writer().send(request.body(manifest.clone())).expect(201);
            finds(place, &[std::str::from_utf8(manifest).unwrap()], read);
        }
    });
}
