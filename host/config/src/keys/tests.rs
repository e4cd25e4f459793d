//! Tests that check every row of the tables of settings.

use super::*;
use crate::key::nearest;

#[test]
fn the_nearest_name_is_the_one_with_fewest_changes() {
    let names = || keys().map(|key| key.name);
    assert_eq!(nearest("packges_listen", names()), Some("packages_listen"));
    assert_eq!(nearest("limits.api_body_byte", names()), Some("limits.api_body_bytes"));
}

#[test]
fn a_variable_is_its_key_in_capitals() {
    for key in keys().filter(|key| key.name != "plugins.dir") {
        let expected = format!("PACKHOUSE_{}", key.name.replace('.', "_").to_uppercase());
        assert_eq!(key.env, expected);
    }
}
