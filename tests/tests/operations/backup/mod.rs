//! Backups from outside: taken beside a running server, restored into either storage, damaged, killed, encrypted, pruned.

mod damage;
mod keys;
mod kills;
mod load;
mod moves;
mod prunes;
mod scale;
mod told;
mod world;
