//! Roles and rights: special rights, whose session executes a text, the recorder's own tables, and the switch to another role.

pub mod extension;
pub mod own_tables;
pub mod session_role;
pub mod switch_role;
