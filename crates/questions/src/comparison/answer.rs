//! What a comparison says.

use bench_base::error::UserError;
use bench_results::{ComparisonLine, Document};

use super::differences::Difference;
use super::lines::Design;
use super::{checks, differences, lines};

/// What a comparison says.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// TPS first: the verdict is on it, with a 95 % interval. Those of the four metrics of latency are intervals of
    /// 98.75 %, so that all four hold with 95 % (Bonferroni): whoever looks at four at 95 % finds a difference in up
    /// to one of five comparisons of what is the same. Then the processor time, which answers a question of its own
    /// and has an interval of 95 %. Of a mix the mean latency of each script follows, whose intervals hold together.
    pub lines: Vec<ComparisonLine>,
    pub differences: Vec<Difference>,
}

/// Compares two sides of runs, of which run, summary and environment are known. `margin` is a fraction: 0.02 for 2 %.
///
/// # Errors
/// 22023 for a margin out of range, an empty side, pairs without a partner, and a run that is named twice; 55000 for a run that
/// is not completed.
pub fn compare(
    baseline: &[Document],
    candidate: &[Document],
    margin: f64,
    design: Design,
) -> Result<Comparison, UserError> {
    if design == Design::Pairs {
        checks::pairs(baseline.len(), candidate.len())?;
    }
    checks::margin(margin)?;
    checks::runs(baseline, candidate)?;
    Ok(Comparison {
        lines: lines::lines(baseline, candidate, margin, design),
        differences: differences::differences(baseline, candidate),
    })
}
