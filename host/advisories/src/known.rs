//! What is known of packages and versions, remembered until advisories are brought in again. Where none ever were, nothing is asked of the
//! database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use packhouse_runtime::{CallError, Description, MAX_COMPARED, Place, Plugin};
use packhouse_store::{AdvisoryState, Store, StoreError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::boxed;
use crate::record::{Advisory, OsvRecord};

/// Bytes of what is remembered of packages, and judgements on versions.
const PACKAGES_BYTES: u64 = 24 << 20;
const VERDICTS_BYTES: u64 = 8 << 20;
/// What an entry costs besides what is in it.
const ENTRY_BYTES: u64 = 200;
/// Versions that are judged at once.
const MAX_VERSIONS: usize = 20_000;

/// The advisories about one package.
pub type OfPackage = Arc<[Arc<Advisory>]>;

/// See the module.
pub struct Advisories {
    store: Store,
    /// Whether malware is blocked.
    blocks_malware: AtomicBool,
    /// The number of changes that is followed; 0 where there are no advisories.
    number: AtomicI64,
    /// When the last change was made, in ms since 1970; 0 where there was none.
    changed_at: AtomicI64,
    packages: Cache<String, OfPackage, Weight>,
    /// Which of a package's advisories a version has, as their places.
    verdicts: Cache<String, Arc<[u32]>, Weight>,
}

impl Advisories {
    /// Those of this store, of which none are known before they are [followed](Advisories::follow).
    pub fn new(store: Store, blocks_malware: bool) -> Arc<Advisories> {
        let cache = |bytes: u64| usize::try_from(bytes / 1_000).unwrap_or(usize::MAX);
        Arc::new(Advisories {
            store,
            blocks_malware: AtomicBool::new(blocks_malware),
            number: AtomicI64::new(0),
            changed_at: AtomicI64::new(0),
            packages: Cache::with_weighter(cache(PACKAGES_BYTES), PACKAGES_BYTES, Weight),
            verdicts: Cache::with_weighter(cache(VERDICTS_BYTES), VERDICTS_BYTES, Weight),
        })
    }

    /// Sees whether advisories were changed since, forgets what was known if so, and says it.
    ///
    /// # Errors
    /// The store's.
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

    /// The number of changes that is followed: what was made of advisories holds as long as it stays. 0 where there are none.
    pub fn number(&self) -> i64 {
        self.number.load(Ordering::Acquire)
    }

    /// When advisories were last brought in or taken away, in ms since 1970; none where there were none.
    pub fn changed_at(&self) -> Option<i64> {
        Some(self.changed_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Whether versions that are malware are neither offered nor taken in.
    pub fn blocks_malware(&self) -> bool {
        self.blocks_malware.load(Ordering::Relaxed)
    }

    /// The advisories about a package of the format that this describes, whichever of its versions they are about.
    ///
    /// # Errors
    /// The store's.
    #[boxed]
    pub async fn of_package(
        &self,
        description: &Description,
        package: &str,
    ) -> Result<OfPackage, StoreError> {
        self.of_named(&description.ecosystem, description.name_folding, package).await
    }

    /// The same by the name of the ecosystem, in which names are spelt so.
    ///
    /// # Errors
    /// The store's.
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
                Err(problem) => tracing::warn!(ecosystem, package, %problem, "an advisory cannot be read"),
            }
        }
        let found: OfPackage = found.into();
        self.packages.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// The advisories about each of these versions of a package, in their order. Where the plugin fails to compare versions, those that
    /// can be told without are told.
    ///
    /// # Errors
    /// The store's.
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
                told(plugin, package, &error);
                versions.iter().map(|version| without_order(&known, version)).collect()
            }
        })
    }

    /// Of each of these versions the advisory that says it is malware, where malware is blocked. Where the plugin fails to compare versions,
    /// every version that one may be about counts.
    ///
    /// # Errors
    /// The store's.
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
                told(plugin, package, &error);
                vec![malware.first().cloned(); versions.len()]
            }
        })
    }

    /// By the plugin's order, of which only versions are asked that were not judged before.
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

/// For each version the places of the advisories that are about it, by one call of the plugin's.
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

fn told(plugin: &Plugin, package: &str, error: &CallError) {
    if !matches!(error, CallError::NotOffered(_)) {
        let format = plugin.description().format.as_str();
        tracing::warn!(format, package, %error, "versions could not be compared with those of advisories");
    }
}

/// In bytes, about.
#[derive(Clone)]
struct Weight;

impl Weighter<String, OfPackage> for Weight {
    fn weight(&self, key: &String, known: &OfPackage) -> u64 {
        let of = |advisory: &Arc<Advisory>| {
            let named: usize = advisory.affected.named().map(|version| version.len() + 60).sum();
            named + advisory.summary.len() + advisory.url.len() + advisory.modified.len() + 600
        };
        ENTRY_BYTES + key.len() as u64 + known.iter().map(of).sum::<usize>() as u64
    }
}

impl Weighter<String, Arc<[u32]>> for Weight {
    fn weight(&self, key: &String, places: &Arc<[u32]>) -> u64 {
        ENTRY_BYTES + key.len() as u64 + size_of_val(&**places) as u64
    }
}
