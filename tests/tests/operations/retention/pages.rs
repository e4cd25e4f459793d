//! The portal's pages for retention. A person creates, previews, enforces and runs a policy and
//! undoes its deletions, with forms alone.

use packhouse_tests::person::Person;
use packhouse_tests::server::{PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::json;

use super::{POLICIES, runs};

/// Submits the form of an action. Returns the page to which the response redirects.
fn submit(person: &mut Person, path: &str, fields: &[(&str, &str)]) -> packhouse_tests::Response {
    let csrf = person.csrf(path);
    let mut all = vec![("csrf", csrf.as_str())];
    all.extend_from_slice(fields);
    person.post(path, &all)
}

#[test]
fn a_policy_is_made_previewed_enforced_and_undone_by_forms() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    for version in ["1", "2"] {
        maven.put(&format!("org/example/a/{version}/a-{version}.jar"), "a").expect(201);
    }
    let mut person = Person::owner(&server);
    let path = "/retention";
    let page = person.get(path).expect(200).text();
    assert!(page.contains("No retention policies yet") && page.contains(">Create policy<"), "{page}");
    let mut fields = vec![
        ("sent", "yes"),
        ("name", "<b>old</b> \u{202e}"),
        ("repositories", maven.id.as_str()),
        ("packages", "org.example:*\n"),
        ("newest", "1"),
        ("max_deletes", "100"),
    ];
    // The page shows the API's sentence and keeps the submitted values.
    let refused = submit(&mut person, path, &fields).expect(400).text();
    assert!(refused.contains("role=\"alert\"") && refused.contains("org.example:*"), "{refused}");
    fields[1].1 = "<b>old</b>";
    let refused = submit(&mut person, path, &fields).expect(400).text();
    assert!(refused.contains("`delete` must have at least one condition"), "{refused}");
    fields.push(("published_before_days", "0"));
    let made = submit(&mut person, path, &fields).expect(303);
    let one = made.header("location").unwrap().split_once('?').unwrap().0.to_owned();
    let id = one.rsplit_once('/').unwrap().1.to_owned();
    let details = api.call("GET", &format!("{POLICIES}/{id}")).expect(200).json();
    assert_eq!(
        (&details["match"], &details["keep"], &details["delete"]),
        (
            &json!({"packages": ["org.example:*"]}),
            &json!({"newest": 1}),
            &json!({"published_before_days": 0})
        )
    );
    for listed in ["/repositories/jars/settings", path] {
        let page = person.get(listed).expect(200).text();
        assert!(page.contains("&lt;b&gt;old") && page.contains(&one), "{listed}: {page}");
    }
    let page = person.get(&one).expect(200).text();
    assert!(page.contains(">Preview<") && !page.contains(">Enforce<"), "{page}");
    let refused = submit(&mut person, &one, &[("do", "enforce")]).expect(409).text();
    assert!(refused.contains("role=\"alert\""), "{refused}");
    let preview = submit(&mut person, &one, &[("do", "preview")]).expect(200).text();
    assert!(
        preview.contains("org.example:a") && preview.contains(">Enforce<") && preview.contains("1</strong>")
            || preview.contains("1 version"),
        "{preview}"
    );
    submit(&mut person, &one, &[("do", "enforce")]).expect(303);
    // Changing only the name does not pause a policy.
    let named = [fields.clone(), vec![("do", "save")]].concat();
    submit(&mut person, &one, &named).expect(303);
    submit(&mut person, &one, &[("do", "run")]).expect(303);
    eventually("the run has ended", || {
        runs(&api, &id).first().is_some_and(|run| run["ended_at"].is_i64()).then_some(())
    });
    assert!(person.get(&one).expect(200).text().contains("Run now"));
    maven.get("org/example/a/1/a-1.jar").expect(404);
    let trash = person.get("/repositories/jars/trash").expect(200).text();
    assert!(trash.contains("org.example:a") && trash.contains("&lt;b&gt;old"), "{trash}");
    let entry = super::trash(&api, &maven.id)[0]["id"].as_str().unwrap().to_owned();
    submit(&mut person, "/repositories/jars/trash", &[("entry", &entry)]).expect(303);
    maven.get("org/example/a/1/a-1.jar").expect(200);
    submit(&mut person, &one, &[("do", "pause")]).expect(303);
    submit(&mut person, &one, &[("do", "delete")]).expect(303);
    person.get(&one).expect(404);
    // A member who may not manage repositories does not see the pages.
    let rights = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
    api.post("/v1/members", &json!({"email": "m@example.com", "password": PASSWORD, "permissions": rights}))
        .expect(201);
    let mut reader = Person::signed_in(&server, "m@example.com", PASSWORD);
    reader.get(path).expect(403);
    reader.get("/repositories/jars/trash").expect(403);
}
