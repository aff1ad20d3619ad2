//! Roles and rights: whose objects a session with special rights may touch, and the switch to another role.

pub mod client_role;
pub mod extension;
pub mod other_extensions;
pub mod own_tables;
pub mod parameters;
pub mod planner_hook;
pub mod rights;
pub mod session_role;
pub mod switch_role;
pub mod trust;
