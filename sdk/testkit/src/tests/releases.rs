//! Tests of the judgement of releases by the memory host.

use packhouse_sdk::{Action, Error, Release, ReleaseVerdict, Repository};
use serde_json::json;

use super::{Empty, call, host};
use crate::MemoryHost;

/// Returns a proxy with these settings; the time is 1,000 seconds after 1970.
fn aged(settings: serde_json::Value) -> Repository {
    let host = MemoryHost::new();
    host.set_now(1_000_000);
    host.withhold_version("lib", "9");
    host.mount::<Empty>("r", "proxy", settings);
    call(&host, Some(Action::Read), "r").1
}

#[test]
fn releases_are_judged_by_the_settings() {
    let all = vec![Some(940_000), Some(940_001), None, Some(0)];
    let release = |published: &Option<u64>| Release::of("1", *published, false);
    let minute = aged(json!({"min_release_age_s": 60, "min_release_age_except": ["own-*"]}));
    assert_eq!(minute.offered("lib", all.clone(), release), Ok(vec![Some(940_000), Some(0)]));
    assert_eq!(minute.offered("own-lib", all.clone(), release), Ok(all.clone()));
    assert_eq!((minute.needs_age("lib"), minute.needs_age("own-lib")), (Ok(true), Ok(false)));
    assert_eq!(minute.judge_release("lib", Release::default()), Ok(ReleaseVerdict::FileDecides));

    assert_eq!(minute.judge_release("lib", Release::of("9", Some(0), false)), Ok(ReleaseVerdict::Withheld));
    assert_eq!(minute.judge_release("own-lib", Release::of("9", None, false)), Ok(ReleaseVerdict::Offered));

    let withdrawn = |published: &Option<u64>| Release::of("1", *published, true);
    assert_eq!(minute.offered("lib", all.clone(), withdrawn), Ok(Vec::new()));
    let keeps = aged(json!({"keep_withdrawn": true}));
    assert_eq!(keeps.offered("lib", all.clone(), withdrawn), Ok(all));
}

#[test]
fn a_release_without_a_time_is_as_old_as_its_first_sight() {
    let host = MemoryHost::new();
    host.set_now(1_000_000);
    host.mount::<Empty>("r", "proxy", json!({"min_release_age_s": 60}));
    let proxy = call(&host, Some(Action::Read), "r").1;
    let judge = |version: &str| proxy.judge_release("lib", Release::of(version, None, false));
    assert_eq!(judge("1"), Ok(ReleaseVerdict::FileDecides));
    host.set_now(1_059_999);
    assert_eq!((judge("1"), judge("2")), (Ok(ReleaseVerdict::FileDecides), Ok(ReleaseVerdict::FileDecides)));
    host.set_now(1_060_000);
    assert_eq!((judge("1"), judge("2")), (Ok(ReleaseVerdict::Offered), Ok(ReleaseVerdict::FileDecides)));
    assert_eq!(proxy.needs_age("lib"), Ok(true));
}

#[test]
fn many_releases_are_judged_in_pages_and_only_for_a_proxy() {
    let proxy = aged(json!({"min_release_age_s": 60}));
    let all: Vec<u64> = (0..200_001).map(|at| if at % 2 == 0 { at } else { 1_000_000 }).collect();
    let release = |at: &u64| Release::of("1", Some(*at), false);
    let offered = proxy.offered("lib", all, release).unwrap();
    assert_eq!((offered.len(), offered.first(), offered.last()), (100_001, Some(&0), Some(&200_000)));
    assert!(matches!(proxy.needs_age(&"a".repeat(1_025)), Err(Error::Invalid(_))));
    let (_, hosted) = call(&host(), Some(Action::Read), "r");
    assert_eq!(hosted.needs_age("lib"), Err(Error::Denied));
}
