//! Data that the portal shows besides the catalog: search, counters, downloads, publishers, and a
//! member's own sessions.

use std::collections::BTreeMap;

use packhouse_store::{
    ACTIVITY_DAYS, ActivityOf, Algorithm, AuditEvent, CatalogChange, Commit, DayOfActivity, Digest,
    Downloaded, Readable, RepositoryId, SearchQuery, SessionRow, Version, VersionFile, now_ms,
};

use crate::support::{World, applied, in_both, member, organization, repository};

in_both! {
    search_follows_the_commits, exact_names_stand_first_and_pages_follow,
    only_readable_repositories_are_searched, counters_equal_a_fresh_count, downloads_are_counted_later,
    days_are_counted_and_forgotten, the_first_to_publish_is_the_publisher,
    sessions_are_listed_and_end_with_a_password, an_organization_is_renamed,
    a_search_among_very_many_is_quick,
}

fn digest(seed: u8) -> Digest {
    Digest { algorithm: Algorithm::Sha256, bytes: vec![seed; 32] }
}

fn version(name: &str, number: &str, summary: &str, files: &[(&str, u64)]) -> Version {
    let file = |(path, size): &(&str, u64)| VersionFile {
        path: (*path).to_owned(),
        digest: digest(*size as u8),
        size: *size,
    };
    Version {
        name: name.to_owned(),
        version: number.to_owned(),
        summary: summary.to_owned(),
        files: files.iter().map(file).collect(),
        ..Version::default()
    }
}

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn show_in(world: &World, repository: RepositoryId, versions: Vec<Version>) {
    let catalog = versions.into_iter().map(CatalogChange::Show).collect();
    let commit = Commit { catalog, ..Commit::default() };
    applied(world.store.commit(repository, commit).await.unwrap());
}

async fn show(world: &World, versions: Vec<Version>) {
    show_in(world, world.repository, versions).await;
}

async fn hide(world: &World, name: &str, number: &str) {
    let change = CatalogChange::Hide { name: name.to_owned(), version: number.to_owned() };
    let commit = Commit { catalog: vec![change], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

fn query(world: &World, text: &str) -> SearchQuery {
    SearchQuery {
        organization: world.organization,
        readable: Readable { all: true, these: Vec::new() },
        text: text.to_owned(),
        format: None,
        repository: None,
        after: None,
        limit: 200,
    }
}

async fn names(world: &World, query: &SearchQuery) -> Vec<String> {
    let found = world.store.search_packages(query).await.unwrap();
    found.into_iter().map(|found| found.place.name).collect()
}

async fn found(world: &World, text: &str) -> Vec<String> {
    names(world, &query(world, text)).await
}

async fn search_follows_the_commits(world: &World) {
    show(
        world,
        vec![
            version("left-pad", "1.0", "Pads texts on the left", &[]),
            version("@scope/Tool", "1.0", "Ärger with 100%_signs", &[]),
        ],
    )
    .await;
    for (text, expected) in [
        ("left-pad", vec!["left-pad"]),
        ("LEFT", vec!["left-pad"]),
        ("pad texts", vec!["left-pad"]),
        ("eft", vec!["left-pad"]),
        ("x", vec!["left-pad"]),
        ("ärger", vec!["@scope/Tool"]),
        ("tool", vec!["@scope/Tool"]),
        ("100%_", vec!["@scope/Tool"]),
        ("0%s", vec![]),
        ("pad nothing", vec![]),
        ("'\"(*) AND", vec![]),
        ("", vec!["@scope/Tool", "left-pad"]),
    ] {
        assert_eq!(found(world, text).await, expected, "{text}");
    }
    let one = world.store.search_packages(&query(world, "left-pad")).await.unwrap().remove(0);
    assert_eq!(
        (one.latest.as_deref(), one.summary.as_str(), one.versions),
        (Some("1.0"), "Pads texts on the left", 1)
    );
    assert_eq!((one.repository_name.as_str(), one.format.as_str()), ("main", "maven"));
    // The words of a newer version replace those of the first one.
    let mut newer = version("left-pad", "2.0", "Something else", &[]);
    newer.state = "yanked".to_owned();
    show(world, vec![newer]).await;
    assert_eq!(found(world, "texts").await, Vec::<String>::new());
    let one = world.store.search_packages(&query(world, "something")).await.unwrap().remove(0);
    assert_eq!((one.latest.as_deref(), one.state.as_str(), one.versions), (Some("2.0"), "yanked", 2));
    hide(world, "left-pad", "1.0").await;
    assert_eq!(found(world, "left").await, ["left-pad"]);
    hide(world, "left-pad", "2.0").await;
    assert_eq!(found(world, "left").await, Vec::<String>::new());
    assert!(world.store.delete_repository(world.organization, world.repository, None).await.unwrap());
    assert_eq!(found(world, "").await, Vec::<String>::new());
    // A search finds a package again that returns under the same name.
    let again = world.another("again").await;
    show_in(world, again, vec![version("left-pad", "1.0", "", &[])]).await;
    assert_eq!(found(world, "left pad").await, ["left-pad"]);
}

async fn exact_names_stand_first_and_pages_follow(world: &World) {
    let mut versions: Vec<Version> =
        (0..40).map(|at| version(&format!("lib-{at:02}"), "1", "one of many", &[])).collect();
    versions.push(version("lib", "1", "", &[]));
    versions.push(version("a-lib", "1", "", &[]));
    versions.push(version("Lib", "1", "", &[]));
    versions.extend((0..30).map(|at| version(&format!("other-{at:02}"), "1", "goes with lib", &[])));
    show(world, versions).await;
    let all = found(world, "lib").await;
    assert_eq!(all.len(), 73);
    assert_eq!(&all[..3], ["Lib", "lib", "lib-00"]);
    assert_eq!((all[41].as_str(), all[42].as_str(), all[43].as_str()), ("lib-39", "a-lib", "other-00"));
    for limit in [1, 7, 42, 43] {
        let (mut paged, mut page) = (Vec::new(), SearchQuery { limit, ..query(world, "lib") });
        loop {
            let found = world.store.search_packages(&page).await.unwrap();
            assert!(found.len() <= limit as usize);
            let Some(last) = found.last() else { break };
            page.after = Some(last.place.clone());
            paged.extend(found.into_iter().map(|found| found.place.name));
        }
        assert_eq!(paged, all, "pages of {limit}");
    }
    let within = SearchQuery { repository: Some(world.repository), ..query(world, "many") };
    assert_eq!(names(world, &within).await.len(), 40);
}

async fn only_readable_repositories_are_searched(world: &World) {
    let (secret, mut open) = (world.another("secret").await, repository("open"));
    open.public = true;
    open.format = "npm".to_owned();
    let open = world.store.create_repository(world.organization, open, None).await.unwrap().unwrap().id;
    let elsewhere = world.store.create_organization(organization("elsewhere"), None).await.unwrap().unwrap();
    let foreign =
        world.store.create_repository(elsewhere.id, repository("main"), None).await.unwrap().unwrap().id;
    for (id, name) in [(world.repository, "mine"), (secret, "hidden"), (open, "public"), (foreign, "foreign")]
    {
        show_in(world, id, vec![version(&format!("lib-{name}"), "1", "", &[])]).await;
    }
    let these = |these: Vec<RepositoryId>| SearchQuery {
        readable: Readable { all: false, these },
        ..query(world, "lib")
    };
    assert_eq!(found(world, "lib").await, ["lib-hidden", "lib-mine", "lib-public"]);
    assert_eq!(names(world, &these(vec![])).await, ["lib-public"]);
    assert_eq!(names(world, &these(vec![world.repository, foreign])).await, ["lib-mine", "lib-public"]);
    let within = |repository| SearchQuery { repository: Some(repository), ..these(vec![world.repository]) };
    assert_eq!(names(world, &within(secret)).await, Vec::<String>::new());
    assert_eq!(names(world, &within(world.repository)).await, ["lib-mine"]);
    let npm = SearchQuery { format: Some("npm".to_owned()), ..query(world, "lib") };
    assert_eq!(names(world, &npm).await, ["lib-public"]);
    let words = SearchQuery { text: "b-h".to_owned(), ..these(vec![world.repository]) };
    assert_eq!(names(world, &words).await, Vec::<String>::new());
}

/// The repository's counters: bytes, packages, versions.
async fn counted(world: &World) -> [u64; 3] {
    let usage = world.store.repository_usage(world.organization, &[world.repository]).await.unwrap();
    let usage = usage[&world.repository];
    [usage.bytes, usage.packages, usage.versions]
}

async fn counters_equal_a_fresh_count(world: &World) {
    assert_eq!(counted(world).await, [0, 0, 0]);
    // A path that two versions share is one file for the counters.
    show(
        world,
        vec![
            version("a", "1", "", &[("a/1", 10), ("shared", 100)]),
            version("a", "2", "", &[("a/2", 20), ("shared", 100)]),
            version("b", "1", "", &[]),
        ],
    )
    .await;
    assert_eq!(counted(world).await, [130, 2, 3]);
    show(world, vec![version("a", "1", "", &[("a/1", 15)])]).await;
    assert_eq!(counted(world).await, [135, 2, 3]);
    hide(world, "a", "1").await;
    assert_eq!(counted(world).await, [120, 2, 2]);
    hide(world, "a", "2").await;
    hide(world, "b", "1").await;
    hide(world, "b", "1").await;
    assert_eq!(counted(world).await, [0, 0, 0]);
    // Changes in any order must give the same counters as a count of the result.
    let mut there: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for step in 0..60_usize {
        let (package, number) = (step * 7 % 5, step * 3 % 4);
        let (name, number_text) = (format!("p{package}"), number.to_string());
        if step % 4 == 3 {
            hide(world, &name, &number_text).await;
            there.remove(&(package, number));
        } else {
            let path = format!("{name}/{number}");
            show(world, vec![version(&name, &number_text, "", &[(&path, step as u64)])]).await;
            there.insert((package, number), step as u64);
        }
    }
    let packages: std::collections::BTreeSet<usize> = there.keys().map(|(package, _)| *package).collect();
    let expected = [there.values().sum::<u64>(), packages.len() as u64, there.len() as u64];
    assert_eq!(counted(world).await, expected);
    let all = world.store.usage(world.organization).await.unwrap();
    assert_eq!((all.len(), all[0].usage.bytes, all[0].name.as_str()), (1, expected[0], "main"));
    assert!(all[0].usage.last_published_at.is_some());
    assert_eq!(world.store.stored_bytes(world.organization).await.unwrap(), 0);
}

async fn downloads_are_counted_later(world: &World) {
    show(
        world,
        vec![
            version("lib", "1", "", &[("lib/1", 1), ("lib/blob", 2)]),
            version("lib", "2", "", &[("lib/2", 3), ("lib/blob", 2)]),
        ],
    )
    .await;
    let mut group = repository("group");
    (group.kind, group.members) = ("group".to_owned(), vec![world.another("empty").await, world.repository]);
    let group = world.store.create_repository(world.organization, group, None).await.unwrap().unwrap().id;
    let got = |repository, path: &str, of_version, at| {
        let what = Downloaded { repository, path: path.into(), sha256: None, token: None };
        world.store.downloaded(what, of_version, at);
    };
    for at in [5000, 3000] {
        got(world.repository, "lib/1", true, at);
    }
    got(group, "lib/1", true, 4000);
    got(world.repository, "lib/blob", false, 6000);
    got(world.repository, "lib/2", true, 7000);
    got(world.repository, "simple/index", true, 8000);
    world.store.write_downloads().await.unwrap();
    let of = async |number| {
        let details = world.store.version_details(world.repository, "lib", number).await.unwrap().unwrap();
        (details.downloads, details.last_downloaded_at, details.file_downloads)
    };
    let (downloads, last, files) = of("1").await;
    assert_eq!((downloads, last, files["lib/1"], files["lib/blob"]), (3, Some(6000), 3, 1));
    let (downloads, last, files) = of("2").await;
    assert_eq!((downloads, last, files["lib/2"], files["lib/blob"]), (1, Some(7000), 1, 1));
    let usage = world.store.repository_usage(world.organization, &[world.repository]).await.unwrap();
    assert_eq!(usage[&world.repository].downloads, 4);
    got(world.repository, "lib/1", true, 9000);
    world.store.write_downloads().await.unwrap();
    world.store.write_downloads().await.unwrap();
    let (downloads, last, files) = of("1").await;
    assert_eq!((downloads, last, files["lib/1"]), (4, Some(9000), 4));
    // Publishing the version again keeps its download counts. The counters include only downloads
    // of files.
    show(world, vec![version("lib", "1", "another", &[("lib/1", 1)])]).await;
    assert_eq!(of("1").await.0, 4);
    assert_eq!(counted(world).await, [6, 1, 2]);
}

/// Returns each day with activity: how many days ago it was, and the numbers of publishes and
/// downloads.
async fn days(world: &World, of: ActivityOf<'_>) -> Vec<(usize, u64, u64)> {
    let days = world.store.activity(of).await.unwrap();
    assert_eq!(days.len() as i64, ACTIVITY_DAYS);
    assert!(days.windows(2).all(|pair| pair[1].begins - pair[0].begins == DAY));
    assert!((0..DAY).contains(&(now_ms() - days.last().unwrap().begins)));
    let counts = |(at, day): (usize, &DayOfActivity)| (at, day.publishes, day.downloads);
    days.iter()
        .rev()
        .enumerate()
        .map(counts)
        .filter(|(_, publishes, downloads)| publishes + downloads > 0)
        .collect()
}

async fn days_are_counted_and_forgotten(world: &World) {
    let (store, own) = (&world.store, world.repository);
    let [of_all, of_own] = [ActivityOf::Organization(world.organization), ActivityOf::Repository(own)];
    assert_eq!(days(world, of_all).await, []);
    let at = |back: i64, name: &str, number: &str| Version {
        published: Some((now_ms() - back * DAY) as u64),
        ..version(name, number, "", &[(&format!("{name}/{number}"), 1)])
    };
    // A version with an old date, such as one from another server, is not recent activity.
    show(
        world,
        vec![
            at(0, "a", "1"),
            at(2, "a", "2"),
            at(2, "b", "1"),
            at(400, "a", "0"),
            version("b", "2", "", &[]),
        ],
    )
    .await;
    let other = world.another("other").await;
    show_in(world, other, vec![version("c", "1", "", &[])]).await;
    // Publishing the same version again is not new activity. After a version is deleted, its
    // publish stays in the activity.
    show(world, vec![at(0, "a", "1")]).await;
    hide(world, "b", "1").await;
    for (path, back, of_version) in [
        ("a/1", 0, true),
        ("a/1", 29, true),
        ("a/1", 29, false),
        ("a/2", 0, true),
        ("b/2", 0, true),
        ("a/1", 30, true),
    ] {
        let what = Downloaded { repository: own, path: path.into(), sha256: None, token: None };
        store.downloaded(what, of_version, now_ms() - back * DAY);
        store.write_downloads().await.unwrap();
    }
    assert_eq!(days(world, of_own).await, [(0, 2, 2), (2, 2, 0), (29, 0, 1)]);
    assert_eq!(days(world, of_all).await, [(0, 3, 2), (2, 2, 0), (29, 0, 1)]);
    assert_eq!(days(world, ActivityOf::Package(own, "a")).await, [(0, 1, 2), (2, 1, 0), (29, 0, 1)]);
    assert_eq!(days(world, ActivityOf::Package(own, "b")).await, [(0, 1, 0)]);
    assert_eq!(
        days(world, ActivityOf::Package(own, "")).await.len(),
        0,
        "the whole repository is not a package"
    );
    // The day before the first listed day has one row for the package and one for the repository.
    assert_eq!((store.forget_activity().await.unwrap(), store.forget_activity().await.unwrap()), (2, 0));
    assert_eq!(days(world, of_own).await, [(0, 2, 2), (2, 2, 0), (29, 0, 1)]);
    assert!(store.delete_repository(world.organization, own, None).await.unwrap());
    assert_eq!(days(world, of_all).await, [(0, 1, 0)]);
    store.remove_deleted().await.unwrap();
    assert_eq!(days(world, of_own).await, []);
}

async fn the_first_to_publish_is_the_publisher(world: &World) {
    let by = |actor: &str| AuditEvent {
        organization: world.organization,
        actor: actor.to_owned(),
        credential: String::new(),
        action: "publish".to_owned(),
        subject: String::new(),
        address: String::new(),
        request_id: String::new(),
        detail: String::new(),
    };
    for (actor, number) in [(Some("a@example.com"), "1"), (Some("b@example.com"), "1"), (None, "2")] {
        let change = CatalogChange::Show(version("lib", number, "", &[]));
        let commit = Commit { catalog: vec![change], audit: actor.map(by), ..Commit::default() };
        applied(world.store.commit(world.repository, commit).await.unwrap());
    }
    let publisher = async |number| {
        world.store.version_details(world.repository, "lib", number).await.unwrap().unwrap().published_by
    };
    assert_eq!((publisher("1").await.as_str(), publisher("2").await.as_str()), ("a@example.com", ""));
    assert!(world.store.version_details(world.repository, "lib", "3").await.unwrap().is_none());
}

async fn sessions_are_listed_and_end_with_a_password(world: &World) {
    let store = &world.store;
    let row = store.create_member(world.organization, member("a@example.com"), None).await.unwrap().unwrap();
    let now = now_ms();
    let session = |seed: u8, created_at, expires_at| SessionRow {
        secret_sha256: [seed; 32],
        organization: world.organization,
        member: row.id,
        created_at,
        expires_at,
    };
    for (seed, created) in [(1, now - 20), (2, now - 10)] {
        store.create_session(session(seed, created, now + 60_000), None).await.unwrap();
    }
    let seeds = async || {
        let rows = store.list_sessions(row.id, now).await.unwrap();
        rows.into_iter().map(|row| row.secret_sha256[0]).collect::<Vec<u8>>()
    };
    assert_eq!(seeds().await, [2, 1]);
    assert!(store.list_sessions(row.id, now + 60_000).await.unwrap().is_empty());
    assert!(
        !store
            .change_own_password(
                &packhouse_store::MemberRow { password_hash: "other".into(), ..row.clone() },
                "new",
                None,
                &[1; 32],
                None
            )
            .await
            .unwrap()
    );
    assert_eq!(seeds().await, [2, 1]);
    assert!(store.change_own_password(&row, "new", Some("Name"), &[1; 32], None).await.unwrap());
    assert_eq!(seeds().await, [1]);
    let changed = store.find_member(world.organization, row.id).await.unwrap().unwrap();
    assert_eq!((changed.password_hash.as_str(), changed.name.as_str()), ("new", "Name"));
    assert!(store.set_member_name(world.organization, row.id, "Other", None).await.unwrap());
    let changed = store.find_member(world.organization, row.id).await.unwrap().unwrap();
    assert_eq!(changed.name, "Other");
}

async fn an_organization_is_renamed(world: &World) {
    let store = &world.store;
    store.create_organization(organization("taken"), None).await.unwrap().unwrap();
    assert!(!store.change_organization(world.organization, "taken", None, None).await.unwrap());
    assert!(store.change_organization(world.organization, "renamed", Some(1 << 40), None).await.unwrap());
    let row = store.organizations().await.unwrap().remove(0);
    assert_eq!((row.name.as_str(), row.quota_bytes), ("renamed", Some(1 << 40)));
}

/// Number of packages in the measurement.
const MANY: usize = 100_000;

/// Duration of a search page with 100,000 packages. Run with `PACKHOUSE_TEST_LONG=1` and
/// `--nocapture`; it prints the times and fails if one is unacceptably long.
async fn a_search_among_very_many_is_quick(world: &World) {
    if std::env::var_os("PACKHOUSE_TEST_LONG").is_none() {
        return;
    }
    let numbers: Vec<usize> = (0..MANY).collect();
    for piece in numbers.chunks(5_000) {
        let of = |at: &usize| {
            let thirtieth = if at.is_multiple_of(30) { " sometimes" } else { "" };
            let rare = if at.is_multiple_of(20_000) { " seldom" } else { "" };
            version(
                &format!("team-{}.lib-{at:06}", at % 97),
                "1.0",
                &format!("common words{thirtieth}{rare}"),
                &[],
            )
        };
        show(world, piece.iter().map(of).collect()).await;
    }
    let begun = std::time::Instant::now();
    while found(world, "lib-099999").await.is_empty() {}
    println!("indexed {MANY} packages in {:?}", begun.elapsed());
    for text in [
        "team-5.lib-000005",
        "team-5",
        "common",
        "sometimes",
        "seldom",
        "ldo",
        "b-09",
        "common seldom",
        "nothing",
        "x",
        "",
    ] {
        let first = SearchQuery { limit: 50, ..query(world, text) };
        let begun = std::time::Instant::now();
        let page = world.store.search_packages(&first).await.unwrap();
        let took = begun.elapsed();
        let after = page.last().map(|last| last.place.clone());
        let begun = std::time::Instant::now();
        world.store.search_packages(&SearchQuery { after, ..first }).await.unwrap();
        println!("{text:?}: {} found in {took:?}, the next page in {:?}", page.len(), begun.elapsed());
        assert!(took < std::time::Duration::from_secs(1), "{text:?} took {took:?}");
    }
}
