//! What sources and documents have to keep to, and whether documents tell of everything that they should: one program, for
//! each links all of the crate.

mod documents;
mod rooms;
mod sources;
mod sql;
