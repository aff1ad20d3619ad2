//! Whom the code belongs to that runs with the rights of somebody else.
//!
//! [`statement`] judges statements that run because of what happened, and not because somebody typed them.

pub mod names;
pub mod objects;
pub mod statement;
