//! Rows of `meta` that describe the location of the database rather than its content. Backups leave
//! them out.

use super::hold::is_of_a_hold;
use super::tables::Cell;
use crate::bucket_listing::LISTED;
use crate::db::UNFINISHED;
use crate::storage_id::{IDENTITY, MARK, WHERE};

/// Names of these rows, except those of holds.
pub(super) const LOCATION_ROWS: [&str; 5] = [IDENTITY, MARK, WHERE, LISTED, UNFINISHED];

/// True if this is the name of a location row or of a hold's row.
pub(super) fn is_location_row(name: &Cell) -> bool {
    let Cell::Text(name) = name else { return false };
    LOCATION_ROWS.contains(&name.as_str()) || is_of_a_hold(name)
}
