//! How long a run warms up: for a given time, or until its throughput is steady.

use bench_base::error::{UserError, sqlstate};

use super::options::MAX_SECS;
use super::{RunOptions, invalid};
use crate::cluster::Nodes;

/// The longest samples that such a warm-up is judged by, in seconds.
const JUDGED_SECS: f64 = 0.25;

/// The seconds given; `None`: until throughput is steady.
///
/// # Errors
/// 22023 for a value out of range; 0A000 where steady throughput cannot be waited for.
pub(super) fn parse(warmup: Option<f64>, nodes: Nodes) -> Result<Option<f64>, UserError> {
    match warmup {
        Some(secs) if !(0.0..=MAX_SECS).contains(&secs) => {
            Err(invalid(format!("warmup must be between 0 and {MAX_SECS} seconds, not {secs}")))
        }
        None if nodes != Nodes::Local => Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("warmup => NULL with nodes => '{}' is not supported", nodes.as_str()),
        )
        .hint("Set warmup to a number of seconds. bench.runs.warmup_took of a run with nodes => 'local' shows one.")),
        warmup => Ok(warmup),
    }
}

impl RunOptions {
    /// The length of the warm-up's samples, in seconds. Where its end is not given, throughput is judged by them.
    pub fn warmup_interval_secs(&self) -> f64 {
        match self.warmup_secs {
            Some(_) => self.sample_interval_secs,
            None => self.sample_interval_secs.min(JUDGED_SECS),
        }
    }
}
