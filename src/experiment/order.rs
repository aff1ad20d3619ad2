//! A run that a sweep is to make.

use bench_model::spec::{Extent, RunArguments, RunSpec};
use bench_questions::sweep::Variant;

/// A run that a sweep is to make.
pub(super) struct Order<'a> {
    pub place: i32,
    pub round: u32,
    pub variant: &'a Variant,
    pub arguments: RunArguments,
    /// A checkpoint is to fall into it.
    pub over_checkpoint: bool,
}

/// A checkpoint begins after this part of a run, so that the rest of it shows what it costs.
const CHECKPOINT_AFTER: i64 = 3;

/// How long after its measuring begins a run is to have a checkpoint.
pub(super) fn checkpoint_ns(spec: &RunSpec) -> Option<i64> {
    match spec.options.extent {
        Extent::Secs(secs) => Some((secs * 1e9) as i64 / CHECKPOINT_AFTER),
        _ => None,
    }
}
