//! The final check: reads everything from every server, waits for garbage collection, and counts
//! the remaining objects and rows.

use crate::cluster::{Cluster, GRACE, LEASE};
use crate::formats::Format;
use crate::history::{Operation, Outcome, Way};
use crate::load::Load;
use crate::tokens::Tokens;
use packhouse_tests::Client;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Reads every version and every index, and uses every revoked token, on each server.
pub fn read_all(load: &Load<'_>, tokens: &Tokens<'_>, servers: usize) {
    let known = load.known();
    let packages: BTreeSet<(Format, &str)> =
        known.iter().map(|known| (known.format, &*known.package)).collect();
    std::thread::scope(|scope| {
        for server in 0..servers {
            let (known, packages) = (&known, &packages);
            scope.spawn(move || {
                known.iter().for_each(|known| drop(load.read(known, Way::Server(server), true)));
                for (format, package) in packages {
                    load.index(*format, package, Way::Server(server), true);
                }
                tokens.show_revoked(server);
            });
        }
    });
}

/// Waits until the servers have collected unreferenced blobs, or until a time limit. Then counts
/// the storage.
///
/// Servers remove the unfinished writes of a killed server one day later, when no server can still
/// be writing. Deleted versions stay in the trash for a week. This function ends both periods
/// early.
pub fn count_storage(cluster: &Cluster, load: &Load<'_>) {
    cluster.postgres.sql("update strays set due = 1 where due > 1");
    cluster.postgres.sql("delete from trash");
    let began = Instant::now();
    let most = LEASE + GRACE + Duration::from_secs(25);
    loop {
        let now = load.history.now();
        let storage = counted(cluster);
        if clean(&storage) || began.elapsed() > most {
            load.history.record(now, Way::Balanced, storage, Outcome::Done, true);
            return;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Counts the storage now.
pub fn counted(cluster: &Cluster) -> Operation {
    let number = |sql: &str| cluster.postgres.query(sql).parse().expect("a number");
    let named = "exists (select 1 from record_blobs where blob = blobs.id)";
    let places = cluster.postgres.query("select place from blobs where place is not null");
    let places: BTreeSet<String> = places.lines().map(str::to_owned).collect();
    let objects = objects(cluster);
    Operation::Storage {
        missing: places.difference(&objects).count() as u64,
        orphans: objects.difference(&places).count() as u64,
        unnamed: number(&format!("select count(*) from blobs where not {named}")),
        unfinished: cluster.s3.unfinished() as u64,
    }
}

fn clean(storage: &Operation) -> bool {
    matches!(storage, Operation::Storage { missing: 0, orphans: 0, unnamed: 0, unfinished: 0 })
}

/// The keys of objects with bytes of blobs, listed page by page.
fn objects(cluster: &Cluster) -> BTreeSet<String> {
    let client = Client::new(cluster.s3.endpoint());
    let (mut found, mut last) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/bucket?list-type=2&prefix=blobs/&start-after={last}");
        let listed = client.get(&path).expect(200).text();
        let key = |part: &str| part.split_once("</Key>").map(|(key, _)| key.to_owned());
        let keys: Vec<String> = listed.split("<Key>").skip(1).filter_map(key).collect();
        let blobs = keys.iter().filter_map(|key| key.strip_prefix("blobs/"));
        found.extend(blobs.filter(|key| !key.starts_with("canary/")).map(str::to_owned));
        match keys.last() {
            Some(key) if listed.contains("<IsTruncated>true") => last = key.clone(),
            _ => return found,
        }
    }
}
