//! Subscribers and groups of subscribers: who holds access keys, and which repositories they were given. What the two have in
//! common is in `owner`; a group has members besides, and no e-mail address.

mod fields;
mod group;
mod owner;
mod subscriber;
mod view;

pub(crate) use group::{
    __path_change_group, __path_create_group, __path_list_groups, __path_remove_group, __path_show_group,
    change_group, create_group, list_groups, remove_group, show_group,
};
pub(crate) use owner::find;
pub(crate) use subscriber::{
    __path_change_subscriber, __path_create_subscriber, __path_list_subscribers, __path_remove_subscriber,
    __path_show_subscriber, change_subscriber, create_subscriber, list_subscribers, remove_subscriber,
    show_subscriber,
};
