//! What the store promises of blobs, over a folder, over memory and over S3: one suite, every test in all that can take it.

mod collection;
mod damage;
mod holding;
mod parts;
mod round_trips;
mod support;
mod uploads;
