//! Answers that are about many packages: indexes, searches, plugins of a group.

use super::formats::{document, offer, offer_npm, publish_npm, upload};
use super::{World, offer_maven};
use packhouse_tests::Request;
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::upstream::Answer;
use serde_json::{Value, json};

#[test]
fn pythons_index_names_no_project_that_is_withheld() {
    let world = World::new("python");
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
    let strangers = world.strangers();
    strangers.iter().for_each(|(_, client)| assert_eq!(names(client, "all"), ["coming", "theirs"]));
    upload(&world, "coming");
    strangers.iter().for_each(|(_, client)| assert_eq!(names(client, "all"), ["theirs"]));
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    assert_eq!(names(&member, "all"), ["coming", "theirs"]);
}

#[test]
fn an_npm_search_shows_and_tells_no_name_that_is_ours() {
    let world = World::new("npm");
    publish_npm(&world, "@acme/left");
    world.set(&world.group, &json!({"claimed_names": ["left-secret"]}));
    let found = |name: &str| json!({"package": {"name": name, "version": "99.0.0"}});
    let answer =
        json!({"objects": [found("@acme/left"), found("left-secret"), found("left-pad")], "total": 3});
    for text in ["left", "%40acme%2Fleft", "left%20left-secret"] {
        let target = format!("/-/v1/search?text={text}&size=20");
        world.upstream.on(&target, Answer::ok(answer.to_string()));
    }
    for (who, client) in world.strangers() {
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
    assert_eq!(world.asked("acme") + world.asked("secret"), 0, "{:?}", world.upstream.seen());
}

#[test]
fn a_groups_plugins_are_no_upstreams_where_their_names_are_ours() {
    let world = World::new("maven");
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
    for (who, client) in world.strangers() {
        let text = client.get("/repositories/all/org/example/maven-metadata.xml").expect(200).text();
        assert!(text.contains("next-maven-plugin") && !text.contains("ours-maven-plugin"), "{who}: {text}");
    }
    // A prefix that is published here leads where it leads here.
    let path = "/repositories/own/org/example/maven-metadata.xml";
    world.owner.put(path, listed(&[plugin("own", "own-maven-plugin")])).expect(201);
    let member = world.reaching(&[&world.group, &world.hosted, &world.proxy]);
    let text = member.get("/repositories/all/org/example/maven-metadata.xml").expect(200).text();
    assert!(text.contains("own-maven-plugin") && !text.contains("evil"), "{text}");
}

#[test]
fn a_kept_answer_ends_with_what_hides_it() {
    // What a readable member has stays; what a claim of a member that is not readable covers stays hidden.
    let world = World::new("npm");
    offer_npm(&world.upstream, "lib");
    let strangers = world.strangers();
    let see = |status: u16| {
        strangers.iter().for_each(|(_, client)| {
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
