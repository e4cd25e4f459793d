//! Crashes, full disks, silent storage, floods, races, attacks.

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod wheel;

mod bombs;
mod bounds;
mod clocks;
mod cluster;
mod crash;
mod durability;
mod faults;
mod file_limit;
mod integrity;
mod large_python_pages;
mod lost_bytes;
mod maven_race;
mod memory;
mod npm_race;
mod parallel;
mod power_cut;
mod proxy_crowd;
mod python_memory;
mod python_race;
mod read_while_deleted;
mod repository_removal;
mod resource_bounds;
mod rolling;
mod slow;
mod stalls;
mod storage_away;
mod storage_in_use;
mod strangers;
mod unavailable;
