//! Responses about many packages: indexes, searches, and the plugins of a Maven group.

use super::formats::{document, offer, offer_npm, publish_npm, upload};
use super::{HiddenNamesFixture, offer_maven};
use packhouse_tests::Request;
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::upstream::Answer;
use serde_json::{Value, json};

#[test]
fn the_python_index_omits_withheld_projects() {
    let world = HiddenNamesFixture::new("python");
    let names = |client: &packhouse_tests::Client, address: &str| {
        let request =
            Request::new("GET", &format!("/repositories/{address}/simple/")).header("Accept", SIMPLE_JSON);
        let list = document(&client.send(request).expect(200).body);
        let projects = list["projects"].as_array().unwrap().iter();
        projects.map(|project| project["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for project in ["coming", "theirs"] {
        offer(&world.upstream, project);
        let file = format!("/repositories/all/packages/{project}/99.0/{project}-99.0-py3-none-any.whl");
        world.server.anonymous().get(&file).expect(200);
    }
    let without_access = world.without_access();
    without_access.iter().for_each(|(_, client)| assert_eq!(names(client, "all"), ["coming", "theirs"]));
    upload(&world, "coming");
    without_access.iter().for_each(|(_, client)| assert_eq!(names(client, "all"), ["theirs"]));
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    assert_eq!(names(&member, "all"), ["coming", "theirs"]);
}

#[test]
fn an_npm_search_neither_returns_nor_sends_hosted_names() {
    let world = HiddenNamesFixture::new("npm");
    publish_npm(&world, "@acme/left");
    world.set(&world.group, &json!({"claimed_names": ["left-secret"]}));
    let found = |name: &str| json!({"package": {"name": name, "version": "99.0.0"}});
    let answer =
        json!({"objects": [found("@acme/left"), found("left-secret"), found("left-pad")], "total": 3});
    for text in ["left", "%40acme%2Fleft", "left%20left-secret"] {
        let target = format!("/-/v1/search?text={text}&size=20");
        world.upstream.on(&target, Answer::ok(answer.to_string()));
    }
    for (who, client) in world.without_access() {
        let search = |text: &str| -> Value {
            let path = format!("/repositories/all/-/v1/search?text={text}&size=20");
            document(&client.get(&path).expect(200).body)
        };
        let answer = search("left");
        let names: Vec<&Value> =
            answer["objects"].as_array().unwrap().iter().map(|one| &one["package"]["name"]).collect();
        assert_eq!((names, &answer["total"]), (vec![&json!("left-pad")], &json!(1)), "{who}");
        for named in ["%40acme%2Fleft", "left%20left-secret"] {
            assert_eq!(search(named)["total"], 0, "{who}: {named}");
        }
    }
    assert_eq!(
        world.upstream_requests("acme") + world.upstream_requests("secret"),
        0,
        "{:?}",
        world.upstream.requests()
    );
}

#[test]
fn plugins_of_a_group_do_not_come_from_upstreams_under_hosted_names() {
    let world = HiddenNamesFixture::new("maven");
    let plugin = |prefix: &str, artifact: &str| {
        format!(
            "<plugin><name>{artifact}</name><prefix>{prefix}</prefix><artifactId>{artifact}</artifactId></plugin>"
        )
    };
    let listed = |plugins: &[String]| format!("<metadata><plugins>{}</plugins></metadata>", plugins.concat());
    let theirs =
        [plugin("ours", "ours-maven-plugin"), plugin("next", "next-maven-plugin"), plugin("own", "evil")];
    world.upstream.on("/org/example/maven-metadata.xml", Answer::ok(listed(&theirs)));
    offer_maven(&world.upstream, "ours-maven-plugin");
    let path = "/repositories/own/org/example/ours-maven-plugin/1.0/ours-maven-plugin-1.0.jar";
    world.owner.put(path, "ours").expect(201);
    for (who, client) in world.without_access() {
        let text = client.get("/repositories/all/org/example/maven-metadata.xml").expect(200).text();
        assert!(text.contains("next-maven-plugin") && !text.contains("ours-maven-plugin"), "{who}: {text}");
    }
    // If the hosted repository publishes a plugin prefix, the group's list names the hosted
    // artifact for it.
    let path = "/repositories/own/org/example/maven-metadata.xml";
    world.owner.put(path, listed(&[plugin("own", "own-maven-plugin")])).expect(201);
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    let text = member.get("/repositories/all/org/example/maven-metadata.xml").expect(200).text();
    assert!(text.contains("own-maven-plugin") && !text.contains("evil"), "{text}");
}

#[test]
fn a_cached_response_ends_when_its_content_is_hidden() {
    // Clients without access see the upstream's package, except while the hosted repository claims
    // the name.
    let world = HiddenNamesFixture::new("npm");
    offer_npm(&world.upstream, "lib");
    let without_access = world.without_access();
    let see = |status: u16| {
        without_access.iter().for_each(|(_, client)| {
            client.get("/repositories/all/lib").expect(status);
            client.get("/repositories/all/lib").expect(status);
        })
    };
    see(200);
    for settings in [json!({"claimed_names": ["lib"]}), json!({"claimed_names": []})] {
        world.set(&world.hosted, &settings);
        see(if settings["claimed_names"] == json!([]) { 200 } else { 404 });
    }
}
