//! Repository tokens and service keys.

mod create;
mod judge;
mod list;
mod revoke;
mod rotate;
mod view;

pub(crate) use create::{__path_create, create};
pub(crate) use judge::{Judged, wanted};
pub(crate) use list::{__path_list, list};
pub(crate) use revoke::{__path_revoke, revoke};
pub(crate) use rotate::{__path_rotate, rotate};
pub(crate) use view::Replaced;
