//! Backups from outside: taken beside a running server, restored into either storage, damaged, killed, encrypted, pruned.

mod damage;
mod keys;
mod kills;
mod load;
mod moves;
mod prunes;
use crate::release;
mod scale;
mod told;
use crate::wheel;
mod world;
