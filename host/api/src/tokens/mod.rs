//! Repository tokens and service keys.

mod create;
mod judge;
mod list;
mod revoke;
mod rotate;
mod view;

pub use create::{__path_create, create};
pub use judge::{Judged, is_always_there, wanted};
pub use list::{__path_list, list};
pub use revoke::{__path_revoke, revoke};
pub use rotate::{__path_rotate, rotate};
pub use view::Replaced;
