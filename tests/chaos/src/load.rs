//! The load: workers that publish, read, list and delete in all formats, with a pause between two
//! requests.

use crate::cluster::{Addresses, PATIENCE};
use crate::formats::{FORMATS, Format, PackageVersion, TestRepositories, delete, index, publish, read};
use crate::history::{History, Operation, Outcome, Way};
use crate::random::Random;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Number of versions of a package before workers begin the next package.
const VERSIONS: u64 = 120;
/// Pause between two requests of a worker.
const BREATH: Duration = Duration::from_millis(25);
/// Lengths of files: the first two are stored in the database, the others in S3.
const LENGTHS: [usize; 4] = [200, 3_000, 60_000, 150_000];
/// Formats whose files do not contain the version: the same bytes can be published under another
/// name.
const NAMELESS: [Format; 2] = [Format::Maven, Format::Oci];

/// A version that a worker tried to publish.
#[derive(Clone, Debug)]
pub struct KnownVersion {
    /// Its format.
    pub format: Format,
    /// Its package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// True if the worker made only one attempt to publish, and a server acknowledged it. Workers
    /// delete only such versions, because a late attempt could restore a version after its
    /// deletion.
    clean: bool,
    deleted: bool,
}

impl KnownVersion {
    /// The version of this item, marked so that no worker deletes it.
    fn of(item: &PackageVersion) -> Self {
        Self {
            format: item.format,
            package: item.package.clone(),
            version: item.version.clone(),
            clean: false,
            deleted: false,
        }
    }
}

/// The state that workers share.
#[derive(Debug)]
pub struct Load<'a> {
    /// The cluster's addresses.
    pub addresses: &'a Addresses,
    /// The repositories and the token for them.
    pub shop: &'a TestRepositories,
    /// The history that workers write.
    pub history: &'a History,
    /// True if the workers must end.
    pub stop: AtomicBool,
    /// True if some requests bypass the balancer.
    pub direct: AtomicBool,
    /// Files whose objects were removed, until a publish of the same bytes is acknowledged.
    pub lost: Mutex<Vec<PackageVersion>>,
    seed: u64,
    next: AtomicU64,
    known: Mutex<Vec<KnownVersion>>,
}

impl<'a> Load<'a> {
    /// A load with the random numbers of this seed.
    pub fn new(
        addresses: &'a Addresses,
        shop: &'a TestRepositories,
        history: &'a History,
        seed: u64,
    ) -> Self {
        Self {
            addresses,
            shop,
            history,
            stop: AtomicBool::new(false),
            direct: AtomicBool::new(true),
            lost: Mutex::default(),
            seed,
            next: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    /// Works until `stop` is set.
    pub fn work(&self, worker: u64) {
        let mut random = Random::new(self.seed, worker);
        while !self.stop.load(Ordering::SeqCst) {
            match random.below(100) {
                0..10 if self.has_lost() => self.repair_something(&mut random),
                0..35 => self.publish_something(&mut random),
                35..80 => self.read_something(&mut random),
                80..95 => self.index_something(&mut random),
                _ => self.delete_something(&mut random),
            }
            std::thread::sleep(BREATH);
        }
    }

    /// All versions that workers tried to publish.
    pub fn known(&self) -> Vec<KnownVersion> {
        self.known.lock().unwrap().clone()
    }

    /// Publishes a large file by this way and reads it; returns true if both succeeded.
    pub fn probe(&self, way: Way) -> bool {
        let item = self.item(Format::Maven, LENGTHS[2]);
        self.try_publish(&item, way);
        let known = KnownVersion::of(&item);
        self.known.lock().unwrap().push(known.clone());
        self.read(&known, way, false) == Outcome::Done
    }

    fn way(&self, random: &mut Random, direct: usize) -> Way {
        if self.direct.load(Ordering::SeqCst) && random.percent(direct) {
            Way::Server(random.below(self.addresses.servers.len()))
        } else {
            Way::Balanced
        }
    }

    fn item(&self, format: Format, length: usize) -> PackageVersion {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        // Each format has three packages at a time.
        let package = format!("p{}", number / FORMATS.len() as u64 / VERSIONS * 3 + number % 3);
        PackageVersion::new(format, &package, &format!("1.{number}.0"), self.seed ^ (number << 8), length)
    }

    fn publish_something(&self, random: &mut Random) {
        let format = FORMATS[random.below(FORMATS.len())];
        let length = LENGTHS[[0, 0, 0, 1, 1, 1, 2, 2, 3][random.below(9)]];
        let item = self.item(format, length);
        let way = self.way(random, 30);
        let duel = format.once() && random.percent(10);
        let outcome =
            if duel { self.duel(&item, [way, self.way(random, 50)]) } else { self.try_publish(&item, way) };
        let again = outcome.unknown() && random.percent(50);
        if again {
            let again = self.way(random, 30);
            self.try_publish(&item, again);
        }
        let clean = outcome == Outcome::Done && !duel && !again;
        self.known.lock().unwrap().push(KnownVersion { clean, ..KnownVersion::of(&item) });
    }

    /// Publishes a file that has its own object and whose bytes can be published again. `None` if
    /// it is not acknowledged.
    pub fn publish_object(&self, random: &mut Random) -> Option<PackageVersion> {
        let format = NAMELESS[random.below(NAMELESS.len())];
        let item = self.item(format, LENGTHS[2 + random.below(2)]);
        let way = self.way(random, 30);
        let outcome = self.try_publish(&item, way);
        self.known.lock().unwrap().push(KnownVersion::of(&item));
        (outcome == Outcome::Done).then_some(item)
    }

    /// Returns true if there are lost files to repair.
    pub fn has_lost(&self) -> bool {
        !self.lost.lock().unwrap().is_empty()
    }

    /// Publishes the bytes of a lost file again, at the same path if the format allows that.
    /// Otherwise uses another path in the same or another repository.
    pub fn repair_something(&self, random: &mut Random) {
        let (format, way) = (NAMELESS[random.below(NAMELESS.len())], self.way(random, 30));
        let lost = {
            let lost = self.lost.lock().unwrap();
            (!lost.is_empty()).then(|| lost[random.below(lost.len())].clone())
        };
        let Some(lost) = lost else { return };
        let same_path = format == lost.format && !format.once();
        let item = if same_path {
            lost.clone()
        } else {
            PackageVersion { bytes: lost.bytes.clone(), ..self.item(format, 0) }
        };
        let outcome = self.try_publish(&item, way);
        if !same_path {
            self.known.lock().unwrap().push(KnownVersion::of(&item));
        }
        if outcome == Outcome::Done {
            self.lost.lock().unwrap().retain(|other| other.bytes != lost.bytes);
        }
    }

    fn try_publish(&self, item: &PackageVersion, way: Way) -> Outcome {
        let begun = self.history.now();
        let outcome = publish(&self.shop.by(way, self.addresses), item);
        let what = Operation::Publish { path: item.path(), digest: item.digest(), once: item.format.once() };
        self.history.record(begun, way, what, outcome.clone(), false);
        outcome
    }

    /// Sends two publishes of different bytes to the same path at the same time. Returns the first
    /// outcome if it is unknown, otherwise the second.
    fn duel(&self, item: &PackageVersion, ways: [Way; 2]) -> Outcome {
        let other = PackageVersion::new(
            item.format,
            &item.package,
            &item.version,
            !self.seed,
            item.bytes.len() / 2 + 50,
        );
        std::thread::scope(|scope| {
            let second = scope.spawn(|| self.try_publish(&other, ways[1]));
            let first = self.try_publish(item, ways[0]);
            let second = second.join().expect("the second publisher");
            if first.unknown() { first } else { second }
        })
    }

    /// Picks a version, often one of the newest.
    fn pick(&self, random: &mut Random) -> Option<(usize, KnownVersion)> {
        let known = self.known.lock().unwrap();
        let newest = known.len().min(20);
        let at = match known.len() {
            0 => return None,
            all if random.percent(50) => all - 1 - random.below(newest),
            all => random.below(all),
        };
        Some((at, known[at].clone()))
    }

    fn read_something(&self, random: &mut Random) {
        if let Some((_, known)) = self.pick(random) {
            let way = self.way(random, 60);
            self.read(&known, way, false);
        }
    }

    /// Reads a file from each server.
    pub fn read_everywhere(&self, item: &PackageVersion) {
        for server in 0..self.addresses.servers.len() {
            self.read(&KnownVersion::of(item), Way::Server(server), false);
        }
    }

    /// Reads a version by this way.
    pub fn read(&self, known: &KnownVersion, way: Way, last: bool) -> Outcome {
        let KnownVersion { format, package, version, .. } = known;
        let client = self.shop.by(way, self.addresses);
        let begun = self.history.now();
        let (outcome, digest) = read(&client, *format, package, version);
        let path = format!("{}/{package}/{version}", format.name());
        self.history.record(begun, way, Operation::Read { path, digest }, outcome.clone(), last);
        outcome
    }

    fn index_something(&self, random: &mut Random) {
        if let Some((_, known)) = self.pick(random) {
            let way = self.way(random, 60);
            self.index(known.format, &known.package, way, false);
        }
    }

    /// Reads a package's index by this way.
    pub fn index(&self, format: Format, package: &str, way: Way, last: bool) {
        let client = self.shop.by(way, self.addresses);
        let begun = self.history.now();
        let (outcome, listed) = index(&client, format, package);
        let package = format!("{}/{package}", format.name());
        self.history.record(begun, way, Operation::Index { package, listed }, outcome, last);
    }

    fn delete_something(&self, random: &mut Random) {
        let Some((at, known)) = self.pick(random).filter(|(_, known)| known.clean && !known.deleted) else {
            return;
        };
        self.known.lock().unwrap()[at].deleted = true;
        let KnownVersion { format, package, version, .. } = &known;
        let api = self.shop.api.client().clone().at(self.addresses.api).within(PATIENCE);
        let begun = self.history.now();
        let outcome = delete(&api, self.shop.id(*format), *format, package, version);
        let path = format!("{}/{package}/{version}", format.name());
        self.history.record(begun, Way::Balanced, Operation::Delete { path }, outcome, false);
    }
}
