//! The backup commands: backups of a running server, restores into both kinds of storage, damaged
//! backups, kills, encryption and pruning.

mod damage;
mod keys;
mod kills;
mod load;
mod moves;
mod prunes;
mod scale;
mod told;
mod world;
