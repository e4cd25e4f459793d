//! Pages of a repository, a package and a version over plain HTTP: the table of packages, the
//! commands that install a version, and the states of versions.

use crate::release;

use packhouse_tests::npm::NpmRepository;
use packhouse_tests::person::Person;
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, Server, database};
use release::Release;
use serde_json::json;

/// Returns the names of the packages in the table, in its order.
fn packages(page: &str, repository: &str) -> Vec<String> {
    let begin = format!("<th scope=\"row\"><a href=\"/repositories/{repository}/packages/");
    page.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Returns the position of a text in a page.
#[track_caller]
fn position(page: &str, text: &str) -> usize {
    page.find(text).unwrap_or_else(|| panic!("no {text} in {page}"))
}

fn publish(repository: &NpmRepository, name: &str, version: &str) {
    repository.put(name, &Release::new(name, version).document()).expect(201);
}

#[test]
fn a_repository_lists_its_packages_in_a_table_that_sorts_and_filters() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    for name in ["pear", "apple", "fig"] {
        publish(&repository, name, "1.0.0");
    }
    publish(&repository, "pear", "1.1.0");
    let downloads = format!(
        "INSERT INTO activity (repository, name, day, downloads) VALUES ({}, 'fig', unixepoch() / 86400, 41)",
        repository.id
    );
    database::sqlite(&server, &downloads);
    let mut owner = Person::owner(&server);
    let mut sorted = |order: &str| {
        let page = owner.get(&format!("/repositories/js?sort={order}")).expect(200).text();
        packages(&page, "js").join(" ")
    };
    assert_eq!(sorted(""), "apple fig pear");
    assert_eq!(sorted("-name"), "pear fig apple");
    assert_eq!(sorted("-downloads"), "fig apple pear");
    assert_eq!(sorted("downloads"), "apple pear fig");
    assert_eq!(sorted("-published").split(' ').next(), Some("pear"), "its second version is the newest");
    assert_eq!(sorted("size"), "apple fig pear", "an unknown order changes nothing");
    let page = owner.get("/repositories/js?sort=-downloads").expect(200).text();
    for part in [
        "about fig",
        "<td class=\"num\">41</td>",
        "/repositories/js/packages/pear/versions/1.1.0",
        "aria-sort=\"descending\"><a href=\"/repositories/js?sort=downloads\"",
        "<span>3 packages</span>, <span>4 versions</span>",
        &format!("<code id=\"address\">{}/repositories/js/</code>", server.base_url()),
        "aria-label=\"Copy address\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    owner.get("/repositories/js?sort=name&after=x").expect(400);
    let found = eventually("the names are indexed", || {
        let page = owner.get("/repositories/js?q=p&sort=-name").expect(200).text();
        Some(packages(&page, "js").join(" ")).filter(|found| found.contains("pear"))
    });
    assert!(!found.contains("fig") && found.starts_with("pear"), "{found}");
}

#[test]
fn a_sorted_table_has_pages_and_a_large_repository_is_not_sorted() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let mut owner = Person::owner(&server);
    let fill = |from: u32, to: u32| {
        for columns in [
            "packages (repository, name, search, updated_at) SELECT {id}, printf('p%04d', i), 'p', unixepoch() * 1000",
            "versions (repository, name, version, published, summary, search, properties, state, shown_at, updated_at) \
             SELECT {id}, printf('p%04d', i), '1.0.0', unixepoch() * 1000 - i, '', 'p', '[]', '', unixepoch() * 1000, unixepoch() * 1000",
        ] {
            let columns = columns.replace("{id}", &repository.id);
            let numbers = format!(
                "WITH RECURSIVE n (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to})"
            );
            database::sqlite(&server, &format!("{numbers} INSERT INTO {columns} FROM n"));
        }
    };
    fill(1, 50);
    let page = owner.get("/repositories/js?sort=-name").expect(200).text();
    let first = packages(&page, "js");
    assert_eq!(first.first().map(String::as_str), Some("p0050"));
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let page = owner.get(&next.replace("&amp;", "&")).expect(200).text();
    let second = packages(&page, "js");
    assert_eq!(first.len() + second.len(), 50);
    assert_eq!(second.last().map(String::as_str), Some("p0001"));
    assert!(!page.contains("rel=\"next\""), "{page}");
    fill(51, 501);
    let page = owner.get("/repositories/js?sort=-name").expect(200).text();
    assert_eq!(packages(&page, "js").first().map(String::as_str), Some("p0001"), "the list is by name");
    assert!(page.contains("cannot be sorted") && !page.contains("sort=-published"), "{page}");
}

#[test]
fn a_version_begins_with_what_it_is_and_shows_one_client() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let readme = json!({"readme": "# How to use it", "license": "MIT"});
    let package = json!({"name": "lib", "version": "1.0.0", "description": "Does a thing", "license": "MIT"});
    let release = Release::new("lib", "1.0.0").package_json(&package.to_string());
    let release = release.file("README.md", "# How to use it").manifest_members(&readme);
    repository.put("lib", &release.document()).expect(201);
    let mut owner = Person::owner(&server);
    for path in ["/repositories/js/packages/lib", "/repositories/js/packages/lib/versions/1.0.0"] {
        let page = owner.get(path).expect(200).text();
        let page = page.split_once("<main").unwrap().1;
        assert!(position(page, "Does a thing") < position(page, "npm install lib@1.0.0"), "{page}");
        assert!(position(page, "npm install lib@1.0.0") < position(page, "How to use it"), "{page}");
        assert_eq!(page.matches("type=\"radio\"").count(), 4, "{page}");
        assert_eq!(page.matches(" checked").count(), 1, "one client is visible: {page}");
        for client in ["npm", "pnpm", "yarn", "bun"] {
            assert!(page.contains(&format!("aria-label=\"Copy for {client}\"")), "{client}: {page}");
        }
        for part in
            ["<dt>Licence</dt><dd><bdi>MIT</bdi></dd>", "<dt>Published</dt>", "1 file", "Most on a day: 1"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}

#[test]
fn a_package_shows_the_state_of_each_version_and_recommends_another() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = NpmRepository::create(&server, "js");
    for version in ["1.0.0", "2.0.0"] {
        publish(&repository, "lib", version);
    }
    let mut owner = Person::owner(&server);
    let package = "/repositories/js/packages/lib";
    let second = format!("{package}/versions/2.0.0");
    assert!(owner.get(package).expect(200).text().contains("npm install lib@2.0.0"));
    owner.send_form(&second, &[("do", "deprecated"), ("reason", "a fault")]).expect(303);
    let page = owner.get(package).expect(200).text();
    assert!(page.contains("tag deprecated") && page.contains("npm install lib@1.0.0"), "{page}");
    let page = owner.get(&second).expect(200).text();
    let warning = "This version is <span class=\"tag deprecated\">deprecated</span>: <bdi>a fault</bdi>";
    assert!(position(&page, warning) < position(&page, "npm install lib@2.0.0"), "{page}");
    let rule = json!({"name": "ours", "component": "names", "settings": {"publish": ["acme-*"]}, "repositories": [repository.id]});
    let rule = api.post("/v1/policies", &rule).expect(201).field("id");
    api.call("POST", &format!("/v1/policies/{rule}/preview")).expect(200);
    api.patch(&format!("/v1/policies/{rule}"), &json!({"mode": "enforced"})).expect(200);
    let page = owner.get(package).expect(200).text();
    assert_eq!(page.matches("tag blocked").count(), 2, "{page}");
    let page = owner.get(&second).expect(200).text();
    assert!(page.contains("tag blocked") && page.contains(">denied<"), "{page}");
}
