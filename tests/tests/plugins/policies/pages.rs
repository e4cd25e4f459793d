//! The portal's pages for policies. A person creates, previews and enforces a policy and grants
//! exceptions, with forms alone. Refusals on the pages have reasons.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, MavenRepository, Response, Server};
use serde_json::json;

use super::{POLICIES, denied};

/// Submits the form of an action. Returns the response.
fn submit(person: &mut Person, path: &str, fields: &[(&str, &str)]) -> Response {
    let csrf = person.csrf(path);
    let mut all = vec![("csrf", csrf.as_str())];
    all.extend_from_slice(fields);
    person.post(path, &all)
}

#[test]
fn a_policy_is_created_previewed_enforced_and_given_exceptions_by_forms() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let put = |version: &str| maven.put(&format!("org/example/a/{version}/a-{version}.jar"), "a");
    put("1").expect(201);
    let mut person = Person::owner(&server);
    let path = "/policies";
    let page = person.get(path).expect(200).text();
    assert!(page.contains("No policies yet") && page.contains(">Create policy<"), "{page}");
    assert!(page.contains("as SPDX identifiers"), "the page lists the settings of each component: {page}");
    let mut fields = vec![
        ("sent", "yes"),
        ("name", "ours"),
        ("component", "names"),
        ("settings", "{\"publish\": [\"acme:*\"], \"more\": 1}"),
        ("repositories", maven.id.as_str()),
        ("packages", "org.example:*\n"),
    ];
    let refused = submit(&mut person, path, &fields).expect(400).text();
    assert!(refused.contains("role=\"alert\"") && refused.contains("unknown field `more`"), "{refused}");
    assert!(refused.contains("org.example:*"), "the submitted values are kept: {refused}");
    fields[3].1 = "{\"publish\": [\"acme:*\"]}";
    let made = submit(&mut person, path, &fields).expect(303);
    let one = made.header("location").unwrap().split_once('?').unwrap().0.to_owned();
    let id = one.rsplit_once('/').unwrap().1.to_owned();
    let details = api.call("GET", &format!("{POLICIES}/{id}")).expect(200).json();
    assert_eq!((&details["packages"], &details["mode"]), (&json!(["org.example:*"]), &json!("paused")));
    assert!(person.get(path).expect(200).text().contains(&one));
    let page = person.get(&one).expect(200).text();
    assert!(page.contains(">Preview<") && !page.contains(">Enforce<"), "{page}");
    let previewed = submit(&mut person, &one, &[("do", "preview")]).expect(200).text();
    assert!(previewed.contains("may not be published here: its name must match acme:*"), "{previewed}");
    assert!(previewed.contains(">Enforce<"), "{previewed}");
    submit(&mut person, &one, &[("do", "enforce")]).expect(303);
    denied(&put("2"), "may not be published here");
    // The page of an existing version shows the denial and links to an exception for it.
    let version = "/repositories/jars/packages/org.example%3Aa/versions/1";
    let page = person.get(version).expect(200).text();
    assert!(
        page.contains("may not be published here: its name must match acme:*") && page.contains(">denied<"),
        "{page}"
    );
    let except = format!("{one}?package=org.example%3Aa&amp;version=1#exception");
    assert!(page.contains(&except) && page.contains("for a year at most"), "{page}");
    let filled = person.get(&format!("{one}?package=org.example%3Aa&version=1")).expect(200).text();
    assert!(filled.contains("value=\"org.example:a\""), "{filled}");
    let mut exception =
        vec![("do", "except"), ("package", "org.example:*"), ("version", "2"), ("expires", "2020-01-01")];
    let refused = submit(&mut person, &one, &exception).expect(400).text();
    assert!(refused.contains("role=\"alert\""), "{refused}");
    let soon = api.post(
        &format!("{POLICIES}/{id}/exceptions"),
        &json!({"package": "other", "reason": "x", "until": super::in_an_hour()}),
    );
    soon.expect(201);
    exception[3].1 = "2999-01-01";
    let refused = submit(&mut person, &one, &exception).expect(400).text();
    assert!(refused.contains("within 366 days"), "{refused}");
    // The test submits the date that the form suggests.
    let page = person.get(&one).expect(200).text();
    let proposed = page.split_once("name=\"expires\"").unwrap().1.split_once("value=\"").unwrap().1;
    let proposed = proposed.split_once('"').unwrap().0.to_owned();
    exception[3].1 = &proposed;
    let refused = submit(&mut person, &one, &exception).expect(400).text();
    assert!(refused.contains("`reason` must have"), "{refused}");
    exception.push(("reason", "<i>seen</i>"));
    submit(&mut person, &one, &exception).expect(303);
    let page = person.get(&one).expect(200).text();
    assert!(page.contains("&lt;i&gt;seen") && page.contains(">active<"), "{page}");
    put("2").expect(201);
    denied(&put("3"), "may not be published here");
    let listed = api.call("GET", &format!("{POLICIES}/{id}/exceptions")).expect(200).json();
    let last = listed["items"][1]["id"].as_str().unwrap().to_owned();
    submit(&mut person, &one, &[("do", "end"), ("exception", &last)]).expect(303);
    submit(&mut person, &one, &[("do", "warn")]).expect(303);
    put("3").expect(201);
    submit(&mut person, &one, &[("do", "delete")]).expect(303);
    person.get(&one).expect(404);
}
