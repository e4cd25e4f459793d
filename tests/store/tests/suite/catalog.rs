//! The catalog of packages: publishing, hiding and searching them.

use packhouse_store::{
    Algorithm, CatalogChange, Change, Commit, Digest, Expectation, Outcome, PackageName, Version, VersionFile,
};

use crate::support::{World, applied, commit, in_both, put};

in_both! {
    files_are_added_and_replaced, hidden_versions_are_gone, a_version_without_files_is_gone,
    order_within_one_commit_counts, a_package_is_held_while_any_record_of_it_exists,
    a_stale_commit_publishes_nothing, every_word_is_found, wildcards_are_ordinary_characters,
    pages_of_a_search,
}

fn version(name: &str, version: &str, files: &[(&str, u64)]) -> Version {
    let file = |(path, size): &(&str, u64)| {
        let digest = Digest { algorithm: Algorithm::Sha256, bytes: vec![1; 32] };
        VersionFile { path: (*path).to_owned(), digest, size: *size }
    };
    let files = files.iter().map(file).collect();
    Version { name: name.to_owned(), version: version.to_owned(), files, ..Version::default() }
}

fn hide(name: &str, version: &str) -> CatalogChange {
    CatalogChange::Hide { name: name.to_owned(), version: version.to_owned() }
}

fn hide_file(name: &str, version: &str, path: &str) -> CatalogChange {
    CatalogChange::HideFile { name: name.to_owned(), version: version.to_owned(), path: path.to_owned() }
}

async fn apply(world: &World, catalog: impl IntoIterator<Item = CatalogChange>) {
    let commit = Commit { catalog: catalog.into_iter().collect(), ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn listed(world: &World, name: &str) -> Vec<(String, Vec<(String, u64)>)> {
    let versions = world.store.versions(world.repository, name).await.unwrap();
    let files = |version: &Version| version.files.iter().map(|file| (file.path.clone(), file.size)).collect();
    versions.iter().map(|version| (version.version.clone(), files(version))).collect()
}

async fn found(world: &World, text: &str) -> Vec<String> {
    world.store.search(world.repository, text, 0, 250).await.unwrap().names
}

async fn files_are_added_and_replaced(world: &World) {
    let mut first = version("lib", "1.0", &[("a", 1), ("b", 2)]);
    first.published = Some(1000);
    first.properties = vec![("licence".to_owned(), "MIT".to_owned())];
    apply(world, [CatalogChange::Show(first)]).await;
    let mut second = version("lib", "1.0", &[("b", 3), ("c", 4)]);
    second.state = "yanked".to_owned();
    apply(world, [CatalogChange::Show(second)]).await;
    let files = [("a", 1), ("b", 3), ("c", 4)].map(|(path, size)| (path.to_owned(), size)).to_vec();
    assert_eq!(listed(world, "lib").await, [("1.0".to_owned(), files)]);
    let versions = world.store.versions(world.repository, "lib").await.unwrap();
    assert_eq!((versions[0].state.as_str(), versions[0].published), ("yanked", Some(1000)));
    assert!(versions[0].properties.is_empty());
}

async fn hidden_versions_are_gone(world: &World) {
    let mut summary = version("lib", "1", &[]);
    summary.summary = "one".to_owned();
    let mut later = version("lib", "2", &[("a", 1)]);
    later.summary = "two".to_owned();
    apply(world, [CatalogChange::Show(summary)]).await;
    apply(world, [CatalogChange::Show(later)]).await;
    assert_eq!(found(world, "two").await, ["lib"]);
    apply(world, [hide("lib", "2"), hide("lib", "3"), hide("other", "1")]).await;
    assert_eq!(listed(world, "lib").await, [("1".to_owned(), vec![])]);
    // A search finds only published packages.
    assert_eq!(found(world, "two").await, Vec::<String>::new());
    assert_eq!(found(world, "one").await, ["lib"]);
    apply(world, [hide("lib", "1")]).await;
    assert_eq!(found(world, "").await, Vec::<String>::new());
}

async fn a_version_without_files_is_gone(world: &World) {
    apply(world, [CatalogChange::Show(version("lib", "1", &[("a", 1), ("b", 2)]))]).await;
    apply(world, [hide_file("lib", "1", "a"), hide_file("lib", "1", "none")]).await;
    assert_eq!(listed(world, "lib").await, [("1".to_owned(), vec![("b".to_owned(), 2)])]);
    apply(world, [hide_file("lib", "1", "b")]).await;
    assert_eq!(listed(world, "lib").await, []);
    assert_eq!(found(world, "").await, Vec::<String>::new());
}

async fn order_within_one_commit_counts(world: &World) {
    let show = |files: &[(&str, u64)]| CatalogChange::Show(version("lib", "1", files));
    apply(world, [show(&[("a", 1)]), hide("lib", "1"), show(&[("b", 2)])]).await;
    assert_eq!(listed(world, "lib").await, [("1".to_owned(), vec![("b".to_owned(), 2)])]);
    apply(
        world,
        [show(&[("c", 3)]), hide_file("lib", "1", "b"), show(&[("b", 4)]), hide_file("lib", "1", "c")],
    )
    .await;
    assert_eq!(listed(world, "lib").await, [("1".to_owned(), vec![("b".to_owned(), 4)])]);
    apply(world, [show(&[("d", 1)]), hide("lib", "1")]).await;
    assert_eq!(listed(world, "lib").await, []);
}

async fn a_stale_commit_publishes_nothing(world: &World) {
    let mut stale = commit([put("a", "", Expectation::Present)]);
    stale.catalog.push(CatalogChange::Show(version("lib", "1", &[])));
    let outcome = world.store.commit(world.repository, stale).await.unwrap();
    assert_eq!(outcome, Outcome::Stale("a".to_owned()));
    assert_eq!(found(world, "").await, Vec::<String>::new());
}

async fn every_word_is_found(world: &World) {
    for (name, summary) in
        [("JSON", "reads"), ("json-fast", "Reads JSON"), ("my-json", "x"), ("xml", "not json"), ("zip", "")]
    {
        let mut version = version(name, "1", &[]);
        version.summary = summary.to_owned();
        apply(world, [CatalogChange::Show(version)]).await;
    }
    assert_eq!(found(world, "json").await, ["JSON", "json-fast", "my-json", "xml"]);
    assert_eq!(found(world, "READS  json").await, ["JSON", "json-fast"]);
    assert_eq!(found(world, "json nothing").await, Vec::<String>::new());
    assert_eq!(found(world, "").await, ["JSON", "json-fast", "my-json", "xml", "zip"]);
}

async fn wildcards_are_ordinary_characters(world: &World) {
    for name in ["a_b", "a%b", "a!b", "a\\b", "a'b", "axb"] {
        apply(world, [CatalogChange::Show(version(name, "1", &[]))]).await;
    }
    for text in ["a_b", "a%b", "a!b", "a\\b", "a'b"] {
        assert_eq!(found(world, text).await, [text]);
    }
}

async fn pages_of_a_search(world: &World) {
    apply(world, (0..300).map(|n| CatalogChange::Show(version(&format!("p{n:03}"), "1", &[])))).await;
    let page = world.store.search(world.repository, "p", 250, 1000).await.unwrap();
    assert_eq!((page.names.len(), page.total), (50, 300));
    assert_eq!(world.store.search(world.repository, "p", 0, 1000).await.unwrap().names.len(), 250);
    let past = world.store.search(world.repository, "", 300, 10).await.unwrap();
    assert_eq!((past.names.len(), past.total), (0, 300));
}

/// Returns the packages among `names` that the repository holds. An empty `prefix` leaves the
/// catalog as the only source; another prefix also names the record keys of each package.
async fn held(world: &World, names: &[&str], prefix: &str) -> Vec<String> {
    let keys = |name: &str| match prefix {
        "" => Vec::new(),
        prefix => vec![format!("{prefix}{name}:")],
    };
    let package = |name: &&str| PackageName { name: (*name).to_owned(), keys: keys(name) };
    let packages: Vec<PackageName> = names.iter().map(package).collect();
    world.store.held_names(&[world.repository], &packages).await.unwrap().into_iter().collect()
}

async fn a_package_is_held_while_any_record_of_it_exists(world: &World) {
    let shows = ["a", "b", "b", "c"].iter().zip(["1", "1", "2", "1"]);
    apply(world, shows.map(|(name, number)| CatalogChange::Show(version(name, number, &[])))).await;
    for prefix in ["", "m/"] {
        assert_eq!(held(world, &["a", "b", "c", "d", "", "a\0", "A"], prefix).await, ["a", "b", "c"]);
    }
    apply(world, [hide("a", "1"), hide("b", "1")]).await;
    assert_eq!(held(world, &["a", "b", "c"], "").await, ["b", "c"]);
    world.put("m/a:1", "").await;
    assert_eq!(held(world, &["a", "b"], "").await, ["b"]);
    assert_eq!(held(world, &["a", "b", "aa", "m/a"], "m/").await, ["a", "b"]);
    let gone = Change::Remove { key: "m/a:1".to_owned(), expect: Expectation::Present };
    applied(world.store.commit(world.repository, commit([gone])).await.unwrap());
    assert!(held(world, &["a"], "m/").await.is_empty());
    let many: Vec<String> = (0..2_500).map(|number| format!("n{number}")).chain(["c".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(held(world, &many, "").await, ["c"]);
    assert_eq!(held(world, &many, "m/").await, ["c"]);
    let none = world.store.held_names(&[], &[]).await.unwrap();
    assert!(none.is_empty());
}
