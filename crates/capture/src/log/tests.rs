//! On logs that servers of each version wrote (`samples/make`), and on statements made at random.

mod bounds;
mod samples;
mod sessions;
mod statements;
