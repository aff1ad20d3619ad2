//! What sources and documents have to keep to, and whether documents tell of everything that they should: one program, for
//! each links all of the crate.

mod help;
mod pgxn_metadata;
mod pointers;
mod qualified_names;
mod rooms;
mod schemas;
mod signatures;
mod sources;
