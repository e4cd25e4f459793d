//! Rows of `meta` that say something of the place where a database is, and nothing of what is in it: no backup holds them.

use super::hold::is_of_a_hold;
use super::tables::Cell;
use crate::bucket_listing::LISTED;
use crate::db::UNFINISHED;
use crate::marker::{IDENTITY, MARK, WHERE};

/// Their names, but for those of holds.
pub(super) const OF_PLACE: [&str; 5] = [IDENTITY, MARK, WHERE, LISTED, UNFINISHED];

/// Whether this is the name of one.
pub(super) fn is_of_place(name: &Cell) -> bool {
    let Cell::Text(name) = name else { return false };
    OF_PLACE.contains(&name.as_str()) || is_of_a_hold(name)
}
