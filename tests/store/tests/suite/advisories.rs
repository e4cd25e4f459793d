//! Advisories: a newer advisory replaces an older one, look-ups find advisories by package, and
//! servers notice changes.

use packhouse_store::{AdvisoryFilter, AdvisoryPut, AdvisoryRow, AdvisoryState};

use crate::support::{World, in_both};

in_both! {
    newer_advisories_replace_older_ones, advisories_are_found_by_package, advisories_are_listed_and_removed,
}

fn row(id: &str, modified: i64, packages: &[(&str, &str)]) -> AdvisoryRow {
    AdvisoryRow {
        id: id.to_owned(),
        modified,
        severity: 3,
        summary: format!("about {id}"),
        record: format!("{id} {modified}"),
        packages: packages.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect(),
        ..AdvisoryRow::default()
    }
}

async fn put(world: &World, rows: Vec<AdvisoryRow>) -> (u64, u64, u64) {
    let AdvisoryPut { added, changed, unchanged } = world.store.put_advisories(rows).await.unwrap();
    (added, changed, unchanged)
}

async fn newer_advisories_replace_older_ones(world: &World) {
    assert_eq!(world.store.advisory_state().await.unwrap(), AdvisoryState::default());
    assert_eq!(put(world, vec![row("A", 5, &[("npm", "a"), ("npm", "b")])]).await, (1, 0, 0));
    let first = world.store.advisory_state().await.unwrap();
    assert!(first.number == 1 && first.changed_at.is_some());
    assert_eq!(put(world, vec![row("A", 5, &[]), row("A", 4, &[])]).await, (0, 0, 2));
    assert_eq!(world.store.advisory_state().await.unwrap(), first, "nothing changed");
    assert_eq!(put(world, vec![row("A", 6, &[("npm", "b")]), row("B", 1, &[("npm", "b")])]).await, (1, 1, 0));
    assert_eq!(world.store.advisory_state().await.unwrap().number, 2);
    assert_eq!(world.store.advisories_of("npm", "a").await.unwrap(), [] as [&str; 0]);
    assert_eq!(world.store.advisories_of("npm", "b").await.unwrap(), ["A 6", "B 1"]);
    assert_eq!(world.store.advisory("A").await.unwrap().as_deref(), Some("A 6"));
    assert_eq!(world.store.advisory("C").await.unwrap(), None);
}

async fn advisories_are_found_by_package(world: &World) {
    let withdrawn = AdvisoryRow { withdrawn: Some(1), ..row("W", 1, &[("PyPI", "some-thing")]) };
    let rows = vec![row("A", 1, &[("PyPI", "Some_Thing")]), row("B", 1, &[("npm", "some-thing")]), withdrawn];
    put(world, rows).await;
    assert_eq!(world.store.advisories_of("PyPI", "some.thing").await.unwrap(), ["A 1"]);
    assert_eq!(world.store.advisories_of("npm", "some-thing").await.unwrap(), ["B 1"]);
    assert!(world.store.advisories_of("Go", "some-thing").await.unwrap().is_empty());
}

async fn advisories_are_listed_and_removed(world: &World) {
    let malware = AdvisoryRow { malware: true, ..row("MAL-1", 9, &[("npm", "bad")]) };
    let many = (0..600).map(|number| row(&format!("A-{number:03}"), 1, &[("npm", "lib")]));
    assert_eq!(put(world, many.chain([malware]).collect()).await, (601, 0, 0));
    let totals = world.store.advisory_totals().await.unwrap();
    assert_eq!((totals.advisories, totals.malware, totals.modified), (601, 1, Some(9)));
    let ids = async |package: Option<(&str, &str)>, after: &str| {
        let package = package.map(|(one, other)| (one.to_owned(), other.to_owned()));
        let filter = AdvisoryFilter { package, after: after.to_owned() };
        let listed = world.store.list_advisories(&filter, 2).await.unwrap();
        listed.into_iter().map(|advisory| advisory.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, "").await, ["A-000", "A-001"]);
    assert_eq!(ids(None, "A-598").await, ["A-599", "MAL-1"]);
    assert_eq!(ids(Some(("npm", "lib")), "A-598").await, ["A-599"]);
    let gone = ["A-000".to_owned(), "MAL-1".to_owned(), "none".to_owned()];
    assert_eq!(world.store.remove_advisories(&gone).await.unwrap(), 2);
    assert!(world.store.advisories_of("npm", "bad").await.unwrap().is_empty());
    assert_eq!(ids(None, "").await, ["A-001", "A-002"]);
}
