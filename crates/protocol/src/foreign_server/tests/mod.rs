//! Options of servers and mappings, and what becomes of them.

mod attributes;
mod hosts;
mod options;
mod properties;

use super::{Secrets, Target};

/// Options as a catalog has them.
pub(super) fn options(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
}

/// A target that has to be good.
pub(super) fn target(server: &[(&str, &str)], mapping: &[(&str, &str)]) -> (Target, Secrets) {
    Target::new(&options(server), &options(mapping), "caller").expect("a target")
}
