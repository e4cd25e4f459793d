//! Import and export by the built program. Sources are trees, indexes, registries and repository
//! managers; exports go into a folder and back, with real clients on both sides. The tests also
//! damage, refuse, kill and repeat imports and exports.

mod clock;
mod images;
mod js;
mod kills;
mod managers;
mod maven;
mod page;
mod peers;
mod python;
mod refusals;
mod scale;
mod world;
