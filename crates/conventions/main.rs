//! What sources and documents have to keep to, and whether documents tell of everything that they should: one program, for
//! each links all of the crate.

mod compare_schema;
mod help;
mod json_keys;
mod line_length;
mod modules;
mod more_rights;
mod named_arguments;
mod pgxn_metadata;
mod pointers;
mod qualified_names;
mod report_schema;
mod rooms;
mod signatures;
mod sources;
mod sweep_schema;
