//! Members: who is in an organization and what each may do; invitations and password resets.

mod change;
mod create;
mod invitations;
mod judge;
mod list;
mod me;
mod resets;
mod view;

pub(crate) use change::{__path_remove, __path_set_permissions, remove, set_permissions};
pub(crate) use create::{__path_create, create};
pub(crate) use invitations::{__path_accept, __path_invite, accept, invite};
pub(crate) use judge::repositories_exist;
pub(crate) use list::{__path_list, __path_show, list, show};
pub(crate) use me::{__path_me, me};
pub(crate) use resets::{__path_complete, __path_reset, complete, reset};
pub(crate) use view::MemberView;
