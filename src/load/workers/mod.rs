//! A load's workers: its leader, and the loaders that fill the tables.

pub mod leader;
mod loader;
mod tables;
