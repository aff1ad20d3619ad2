//! Runs against runs: what `bench.compare` and `bench.ab` say.

pub mod calibration;
mod checks;
mod differences;
pub mod index_worth;
mod lines;
pub mod screen;
pub mod statements;
#[cfg(test)]
mod tests;

use bench_base::error::UserError;
use bench_results::Document;
use serde::{Deserialize, Serialize};

pub use checks::{margin as check_margin, pairs as check_pairs, runs as check_runs};
pub use differences::differences as differences_of;

/// Something that differs between the two sides beside what is being compared: a setting, a version, the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// `clients`, `variable n`, `setting work_mem` (of the run's own), `server_version`, `processors`,
    /// `kernel parameter vm.swappiness`, `limit open files`, `server setting shared_buffers` …
    pub what: String,
    /// The values on each side; several where the runs of a side differ among themselves. `None`: not there, and for
    /// a server setting at its default.
    pub baseline: Option<String>,
    pub candidate: Option<String>,
}

/// A line of `bench.compare`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonLine {
    /// tps, latency_avg_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, server_cpu_us
    pub metric: &'static str,
    /// The script of a mix whose latency it is; `None`: that of all transactions.
    pub script: Option<String>,
    /// The mean over the side's runs; `None` where a run lacks the metric.
    pub baseline: Option<f64>,
    pub candidate: Option<f64>,
    /// Candidate / baseline, of the geometric means, with its interval; `None` where there is no interval to be had.
    pub ratio: Option<f64>,
    pub ratio_low: Option<f64>,
    pub ratio_high: Option<f64>,
    /// faster, slower, same, inconclusive
    pub verdict: &'static str,
    /// What to do about a verdict that is inconclusive, and why that on TPS may say nothing.
    pub advice: Option<String>,
}

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

/// Whether the runs did not all run the same script: then a ratio says nothing about what else was changed.
pub fn scripts_differ(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.what == "script")
}

/// Compares two groups of runs, of which run, summary and environment are known. `margin` is a fraction: 0.02 for 2 %.
///
/// # Errors
/// 22023 for a margin out of range, an empty side, and a run that is named twice; 55000 for a run that is not
/// completed.
pub fn compare(baseline: &[Document], candidate: &[Document], margin: f64) -> Result<Comparison, UserError> {
    let (baseline, candidate): (Vec<_>, Vec<_>) = (baseline.iter().collect(), candidate.iter().collect());
    conclude(&baseline, &candidate, margin, lines::Design::Groups)
}

/// Compares runs that were made in pairs, (baseline, candidate).
///
/// # Errors
/// As [`compare`].
pub fn compare_pairs(pairs: &[(Document, Document)], margin: f64) -> Result<Comparison, UserError> {
    let (baseline, candidate): (Vec<_>, Vec<_>) = pairs.iter().map(|(one, other)| (one, other)).unzip();
    conclude(&baseline, &candidate, margin, lines::Design::Pairs)
}

fn conclude(
    baseline: &[&Document],
    candidate: &[&Document],
    margin: f64,
    design: lines::Design,
) -> Result<Comparison, UserError> {
    checks::margin(margin)?;
    checks::runs(baseline, candidate)?;
    Ok(Comparison {
        lines: lines::lines(baseline, candidate, margin, design),
        differences: differences::differences(baseline, candidate),
    })
}
