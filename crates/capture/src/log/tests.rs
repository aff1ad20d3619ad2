//! On logs that servers of each version wrote (`samples/make`), and on statements made at random.

mod alike;
mod bounds;
mod casts;
mod clock;
mod masks;
mod samples;
mod sessions;
mod statements;
