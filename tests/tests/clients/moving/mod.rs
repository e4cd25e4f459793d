//! Moving in and out, by the built program: from trees, indexes, registries and managers into a repository, out of it into a folder and back,
//! with real clients on both sides; damaged, refused, killed, and run again.

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
