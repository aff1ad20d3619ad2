//! Filling a table by the server's bulk path: rows go into it by the batch, a page at a time, instead of one by
//! one through an INSERT's own plan node.

mod batch;
#[cfg_attr(not(since_16), path = "extension_of_15.rs")]
mod extension;
mod free_pages;
mod produced;
mod sink;

pub use sink::BulkRows;
