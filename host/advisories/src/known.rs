//! Cache of the advisories about packages and versions. An import invalidates the cache. If no
//! advisories were ever imported, the server does not query the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use packhouse_runtime::{CallError, Description, MAX_COMPARED, Place, Plugin};
use packhouse_store::{AdvisoryState, Store, StoreError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::boxed;
use crate::record::{Advisory, OsvRecord};

/// Size limits in bytes: of the cache of advisories by package, and of the cache of matches by
/// version.
const PACKAGES_BYTES: u64 = 24 << 20;
const VERDICTS_BYTES: u64 = 8 << 20;
/// Overhead of a cache entry in bytes.
const ENTRY_BYTES: u64 = 200;
/// Maximum number of versions that one call of the plugin compares.
const MAX_VERSIONS: usize = 20_000;

/// The advisories about one package.
pub type OfPackage = Arc<[Arc<Advisory>]>;

/// Finds the advisories about packages and versions, with a cache.
pub struct Advisories {
    store: Store,
    blocks_malware: AtomicBool,
    /// Number of the last change of advisories, for which the caches are valid. 0 if there are no
    /// advisories.
    number: AtomicI64,
    /// Time of the last change, in ms since 1970. 0 before the first change.
    changed_at: AtomicI64,
    packages: Cache<String, OfPackage, CacheWeight>,
    /// Indexes of those advisories of a package that affect a version.
    verdicts: Cache<String, Arc<[u32]>, CacheWeight>,
}

impl Advisories {
    /// Creates an empty cache for this store. The cache finds no advisories before the first call
    /// of [`follow`](Advisories::follow).
    pub fn new(store: Store, blocks_malware: bool) -> Arc<Advisories> {
        let cache = |bytes: u64| usize::try_from(bytes / 1_000).unwrap_or(usize::MAX);
        Arc::new(Advisories {
            store,
            blocks_malware: AtomicBool::new(blocks_malware),
            number: AtomicI64::new(0),
            changed_at: AtomicI64::new(0),
            packages: Cache::with_weighter(cache(PACKAGES_BYTES), PACKAGES_BYTES, CacheWeight),
            verdicts: Cache::with_weighter(cache(VERDICTS_BYTES), VERDICTS_BYTES, CacheWeight),
        })
    }

    /// Checks whether advisories have changed since the last call, and clears the caches if so.
    /// Returns true if advisories have changed.
    #[boxed]
    pub async fn follow(&self) -> Result<bool, StoreError> {
        let AdvisoryState { number, changed_at } = self.store.advisory_state().await?;
        self.changed_at.store(changed_at.unwrap_or_default(), Ordering::Relaxed);
        let changed = self.number.swap(number, Ordering::AcqRel) != number;
        if changed {
            self.packages.clear();
            self.verdicts.clear();
        }
        Ok(changed)
    }

    /// Returns the number of the last change. Results that depend on advisories are valid as long
    /// as this number stays the same. It is 0 if there are no advisories.
    pub fn number(&self) -> i64 {
        self.number.load(Ordering::Acquire)
    }

    /// Returns the time of the last import or removal of advisories, in ms since 1970. Returns
    /// `None` if advisories never changed.
    pub fn changed_at(&self) -> Option<i64> {
        Some(self.changed_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Reports whether the server refuses to serve and to accept versions that are malware.
    pub fn blocks_malware(&self) -> bool {
        self.blocks_malware.load(Ordering::Relaxed)
    }

    /// Returns the advisories about any version of a package. `description` is that of the
    /// package's format.
    #[boxed]
    pub async fn of_package(
        &self,
        description: &Description,
        package: &str,
    ) -> Result<OfPackage, StoreError> {
        self.of_named(&description.ecosystem, description.name_folding, package).await
    }

    /// Returns the advisories about any version of a package of this ecosystem. `folding`
    /// normalizes the names of packages.
    #[boxed]
    pub async fn of_named(
        &self,
        ecosystem: &str,
        folding: packhouse_names::Folding,
        package: &str,
    ) -> Result<OfPackage, StoreError> {
        let number = self.number();
        if number == 0 || ecosystem.is_empty() {
            return Ok(Arc::default());
        }
        let key = format!("{number}\0{ecosystem}\0{folding:?}\0{package}");
        if let Some(known) = self.packages.get(&key) {
            return Ok(known);
        }
        let mut found = Vec::new();
        for text in self.store.advisories_of(ecosystem, package).await? {
            match OsvRecord::parse(&text) {
                Ok(record) => found.extend(record.about(ecosystem, package, folding).map(Arc::new)),
                Err(problem) => tracing::warn!(ecosystem, package, %problem, "cannot read an advisory"),
            }
        }
        let found: OfPackage = found.into();
        self.packages.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// Returns the advisories about each of these versions of a package, in the order of
    /// `versions`. If the plugin fails to compare versions, the result contains only the advisories
    /// that match without an order of versions.
    #[boxed]
    pub async fn of_versions(
        &self,
        plugin: &Plugin,
        package: &str,
        versions: &[String],
    ) -> Result<Vec<Vec<Arc<Advisory>>>, StoreError> {
        let known = self.of_package(plugin.description(), package).await?;
        if known.is_empty() {
            return Ok(vec![Vec::new(); versions.len()]);
        }
        Ok(match self.judged(plugin, package, versions, &known).await {
            Ok(judged) => judged,
            Err(error) => {
                warn_not_compared(plugin, package, &error);
                versions.iter().map(|version| without_order(&known, version)).collect()
            }
        })
    }

    /// Returns, for each of these versions, the advisory that declares it malware. Returns only
    /// `None`s if the operator does not block malware. If the plugin fails to compare versions,
    /// every version that a malware advisory may affect is treated as malware.
    #[boxed]
    pub async fn malware(
        &self,
        plugin: &Plugin,
        package: &str,
        versions: &[String],
    ) -> Result<Vec<Option<Arc<Advisory>>>, StoreError> {
        if !self.blocks_malware() {
            return Ok(vec![None; versions.len()]);
        }
        let known = self.of_package(plugin.description(), package).await?;
        let malware: OfPackage = known.iter().filter(|advisory| advisory.malware).cloned().collect();
        if malware.is_empty() {
            return Ok(vec![None; versions.len()]);
        }
        Ok(match self.judged(plugin, package, versions, &known).await {
            Ok(judged) => {
                let first = |of: Vec<Arc<Advisory>>| of.into_iter().find(|advisory| advisory.malware);
                judged.into_iter().map(first).collect()
            }
            Err(CallError::NotOffered(_)) => {
                versions.iter().map(|version| without_order(&malware, version).into_iter().next()).collect()
            }
            Err(error) => {
                warn_not_compared(plugin, package, &error);
                vec![malware.first().cloned(); versions.len()]
            }
        })
    }

    /// Returns the advisories that affect each version, by the plugin's order of versions. The
    /// plugin compares only versions that are not cached.
    async fn judged(
        &self,
        plugin: &Plugin,
        package: &str,
        versions: &[String],
        known: &OfPackage,
    ) -> Result<Vec<Vec<Arc<Advisory>>>, CallError> {
        let number = self.number();
        let key = |version: &str| {
            format!("{number}\0{}\0{}\0{package}\0{version}", plugin.number(), plugin.description().ecosystem)
        };
        let mut all = Vec::with_capacity(versions.len());
        for some in versions.chunks(MAX_VERSIONS) {
            let mut verdicts: Vec<Option<Arc<[u32]>>> =
                some.iter().map(|version| self.verdicts.get(&key(version))).collect();
            if verdicts.iter().any(Option::is_none) {
                let judged = compare(plugin, some, known).await?;
                for ((verdict, judged), version) in verdicts.iter_mut().zip(judged).zip(some) {
                    self.verdicts.insert(key(version), Arc::clone(&judged));
                    *verdict = Some(judged);
                }
            }
            let of = |verdict: Option<Arc<[u32]>>| {
                let places = verdict.unwrap_or_default();
                places.iter().filter_map(|place| known.get(*place as usize).cloned()).collect()
            };
            all.extend(verdicts.into_iter().map(of));
        }
        Ok(all)
    }
}

/// Returns, for each version, the indexes of the advisories that affect it. Calls the plugin once.
async fn compare(
    plugin: &Plugin,
    versions: &[String],
    known: &OfPackage,
) -> Result<Vec<Arc<[u32]>>, CallError> {
    let mut named: Vec<String> = versions.to_vec();
    named.extend(known.iter().flat_map(|advisory| advisory.affected.named()).map(str::to_owned));
    named.sort_unstable();
    named.dedup();
    named.truncate(MAX_COMPARED);
    let places = plugin.compare_versions(&named).await?;
    let places: HashMap<&str, Place> = named.iter().map(String::as_str).zip(places).collect();
    let place = |version: &str| places.get(version).copied().flatten();
    let of = |version: &String| {
        let affected = |(_, advisory): &(u32, &Arc<Advisory>)| advisory.affected.covers(version, place);
        (0..).zip(known.iter()).filter(affected).map(|(at, _)| at).collect()
    };
    Ok(versions.iter().map(of).collect())
}

fn without_order(known: &OfPackage, version: &str) -> Vec<Arc<Advisory>> {
    known.iter().filter(|advisory| advisory.affected.covers_without_order(version)).cloned().collect()
}

fn warn_not_compared(plugin: &Plugin, package: &str, error: &CallError) {
    if !matches!(error, CallError::NotOffered(_)) {
        let format = plugin.description().format.as_str();
        tracing::warn!(format, package, %error, "could not compare versions with those of advisories");
    }
}

/// Weighs cache entries by their approximate size in bytes.
#[derive(Clone)]
struct CacheWeight;

impl Weighter<String, OfPackage> for CacheWeight {
    fn weight(&self, key: &String, known: &OfPackage) -> u64 {
        let of = |advisory: &Arc<Advisory>| {
            let named: usize = advisory.affected.named().map(|version| version.len() + 60).sum();
            named + advisory.summary.len() + advisory.url.len() + advisory.modified.len() + 600
        };
        ENTRY_BYTES + key.len() as u64 + known.iter().map(of).sum::<usize>() as u64
    }
}

impl Weighter<String, Arc<[u32]>> for CacheWeight {
    fn weight(&self, key: &String, places: &Arc<[u32]>) -> u64 {
        ENTRY_BYTES + key.len() as u64 + size_of_val(&**places) as u64
    }
}
