//! What is computed of an experiment's runs: figures by number of clients and variant, and the scalability of each variant;
//! and the experiment that two sides of runs are.

use std::collections::{BTreeMap, BTreeSet};

use bench_base::number::{finite, mean};
use bench_questions::comparison::Comparison;
use bench_questions::statements::StatementLine;
use bench_results::experiment::{
    ExperimentDocument, ExperimentRun, RunFigures, SCHEMA_VERSION, Sweep, SweepSetup, Variant,
};
use bench_stats::scalability::{Scalability, fit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::experiment::sides;
use crate::experiment::sides::{
    BASELINE, CANDIDATE, Collected, ComparedSides, by_share, hot_updates, plan_differences, wait_differences,
};

/// The values that the range of tps is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RangeOf {
    /// The tps of the runs.
    Runs,
    /// The tps of one run's intervals.
    Intervals,
}

/// Figures of the completed runs of a variant with a number of clients.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RungResult {
    /// The rung.
    pub clients: u32,
    /// The variant's name.
    pub variant: String,
    /// Runs that completed.
    pub rounds: u32,
    /// Mean of the runs' TPS; null, as the others, without a completed run.
    pub tps_avg: Option<f64>,
    /// `runs`: range of the runs' TPS; `intervals`: range of the TPS of the run's intervals, if no rung has more than
    /// one completed run. The same in all results of a sweep.
    pub range_of: RangeOf,
    #[serde(flatten)]
    pub figures: RunFigures,
}

/// The universal scalability law fitted to a variant's completed runs: TPS = λN / (1 + σ(N − 1) + κN(N − 1)) with N
/// clients.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VariantScalability {
    /// The variant's name.
    pub variant: String,
    /// Completed runs; the law is fitted to their means by number of clients.
    pub runs: usize,
    #[serde(flatten)]
    pub law: Scalability,
}

/// An experiment and its runs, as `bench.sweep_report(sweep_id, 'json')` and
/// `bench.compare_report(baseline, candidate, 'json')` return it. A rung is a number of clients. `results` and
/// `scalability` are computed of `runs`; for a search, whose trials are not rungs, they are empty. Every key is always
/// present; unknown values are null or missing from a list. Readers should ignore keys that they do not know. A
/// timestamp is a string in ISO 8601 with its offset from UTC, a share is a number from 0 to 1, TPS is committed
/// transactions per second, and latency is the time from a transaction's start (with a `rate`, from its due time) to
/// its end, retries included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Experiment {
    #[serde(flatten)]
    pub document: ExperimentDocument,
    /// Figures of the completed runs, one object for each variant and rung, variant by variant. Those of several runs are their
    /// means, unless the description says otherwise.
    pub results: Vec<RungResult>,
    /// The universal scalability law fitted to the completed runs, one object for each variant; empty if there is only
    /// one rung.
    pub scalability: Vec<VariantScalability>,
    /// The two sides beside each other; null for a sweep.
    pub comparison: Option<ComparedSides>,
}

impl Experiment {
    /// With what is computed of the runs.
    pub fn new(document: ExperimentDocument, comparison: Option<ComparedSides>) -> Self {
        // The trials of a search are no rungs.
        let (results, scalability) = match document.sweep.search {
            Some(_) => (Vec::new(), Vec::new()),
            None => (results(&document), scalability(&document)),
        };
        Self { document, results, scalability, comparison }
    }
}

/// Each value once, in the order of first appearance.
pub(crate) fn distinct<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.filter(|value| seen.insert(*value)).collect()
}

/// The numbers of clients, as asked for.
pub fn rungs(document: &ExperimentDocument) -> Vec<u32> {
    distinct(document.sweep.setup.clients.iter().copied().chain(document.runs.iter().map(|run| run.clients)))
}

/// The variants' names in their order; one that is empty where there are no variants.
pub fn variants(document: &ExperimentDocument) -> Vec<&str> {
    let asked_for = document.sweep.setup.variants.iter().map(|variant| variant.name.as_str());
    distinct(asked_for.chain(document.runs.iter().map(|run| run.variant.as_str())))
}

/// The table of the sweep: one result for each number of clients and variant, variant by variant, with the figures
/// of the completed runs. Least and greatest tps are those of the runs, or, where none has more than one, those of
/// the run's intervals.
pub fn results(document: &ExperimentDocument) -> Vec<RungResult> {
    let mut completed: BTreeMap<(&str, u32), Vec<&ExperimentRun>> = BTreeMap::new();
    for run in document.runs.iter().filter(|run| run.is_completed()) {
        completed.entry((&run.variant, run.clients)).or_default().push(run);
    }
    let range_of =
        if completed.values().any(|runs| runs.len() > 1) { RangeOf::Runs } else { RangeOf::Intervals };
    let rungs = rungs(document);
    let result = |variant, clients| {
        result(variant, clients, completed.get(&(variant, clients)).map_or(&[], Vec::as_slice), range_of)
    };
    let of_variant = |variant| rungs.iter().map(move |clients| result(variant, *clients));
    variants(document).into_iter().flat_map(of_variant).collect()
}

/// A figure of a run.
type RunFigure = fn(&ExperimentRun) -> Option<f64>;

/// The figures of some runs.
fn result(variant: &str, clients: u32, runs: &[&ExperimentRun], range_of: RangeOf) -> RungResult {
    let all = |figure: RunFigure| runs.iter().map(|run| figure(run)).collect::<Vec<_>>();
    let of_all = |figure| finite(mean(&all(figure)));
    let (least, greatest): (RunFigure, RunFigure) = match range_of {
        RangeOf::Runs => (|run| run.tps, |run| run.tps),
        RangeOf::Intervals => (|run| run.figures.tps_min, |run| run.figures.tps_max),
    };
    let extreme =
        |figure, choose: fn(f64, f64) -> f64| all(figure).into_iter().filter_map(finite).reduce(choose);
    RungResult {
        clients,
        variant: variant.to_owned(),
        rounds: runs.len() as u32,
        tps_avg: of_all(|run| run.tps),
        range_of,
        figures: RunFigures {
            tps_min: extreme(least, f64::min),
            tps_max: extreme(greatest, f64::max),
            latency_avg_ms: of_all(|run| run.figures.latency_avg_ms),
            latency_p50_ms: of_all(|run| run.figures.latency_p50_ms),
            latency_p95_ms: of_all(|run| run.figures.latency_p95_ms),
            latency_p99_ms: of_all(|run| run.figures.latency_p99_ms),
            cpu_idle: of_all(|run| run.figures.cpu_idle),
            server_cpu_us: of_all(|run| run.figures.server_cpu_us),
            driver_cpu_us: of_all(|run| run.figures.driver_cpu_us),
            connect_avg_ms: of_all(|run| run.figures.connect_avg_ms),
            nopm: of_all(|run| run.figures.nopm),
            failed: runs.iter().map(|run| run.figures.failed).fold(0, u64::saturating_add),
        },
    }
}

/// The scalability of each variant; nothing of a sweep with a single number of clients, which has none.
pub fn scalability(document: &ExperimentDocument) -> Vec<VariantScalability> {
    if rungs(document).len() < 2 {
        return Vec::new();
    }
    let of_variant = |variant: &str| {
        let points = document.points(variant);
        VariantScalability { variant: variant.to_owned(), runs: points.len(), law: fit(&points) }
    };
    variants(document).into_iter().map(of_variant).collect()
}

/// The result with the most tps among those of a variant; the first one of several.
pub fn peak<'a>(results: &'a [RungResult], variant: &str) -> Option<&'a RungResult> {
    let known = results.iter().filter(|result| result.variant == variant && result.tps_avg.is_some());
    known.reduce(|best, next| if next.tps_avg > best.tps_avg { next } else { best })
}

impl Experiment {
    /// The experiment that was `compared`, with the details of both sides' runs, and their statements.
    pub fn of_sides(
        compared: Comparison,
        margin: f64,
        paired: bool,
        [baseline, candidate]: [Collected; 2],
        statements: Vec<StatementLine>,
    ) -> Experiment {
        let Comparison { lines, mut differences } = compared;
        // What was done differently, not what was set.
        let arm = sides::arm(&differences);
        differences.extend(hot_updates(&baseline, &candidate));
        let runs = (baseline.runs.len(), candidate.runs.len());
        let sides = ComparedSides {
            conclusion: sides::conclusion(lines.first(), margin, paired, runs, &arm),
            verdict: lines.first().map_or("inconclusive", |tps| &tps.verdict).to_owned(),
            advice: lines.first().and_then(|tps| tps.advice.clone()),
            margin,
            paired,
            metrics: lines,
            differences,
            waits: wait_differences(&baseline, &candidate),
            plans: plan_differences(&baseline.plans, &candidate.plans),
            baseline_latencies: baseline.latencies(),
            candidate_latencies: candidate.latencies(),
            statements,
        };
        Experiment::new(document(baseline, candidate), Some(sides))
    }
}

/// The document of an experiment whose variants are two sides.
fn document(baseline: Collected, candidate: Collected) -> ExperimentDocument {
    let unreplayed = baseline.unreplayed.into_iter().chain(candidate.unreplayed).max_by(by_share);
    let of_variant = |variant: &'static str, runs: Vec<ExperimentRun>| {
        let numbered = (1..).zip(runs);
        numbered.map(move |(round, run)| ExperimentRun { variant: variant.to_owned(), round, ..run })
    };
    let both = of_variant(BASELINE, baseline.runs).chain(of_variant(CANDIDATE, candidate.runs));
    let runs: Vec<ExperimentRun> =
        (1..).zip(both).map(|(place, run)| ExperimentRun { place, ..run }).collect();
    let variant = |name: &str| Variant { name: name.to_owned(), ..Variant::default() };
    let setup = SweepSetup {
        workload: distinct(runs.iter().map(|run| run.workload.as_str())).join(", "),
        clients: distinct(runs.iter().map(|run| run.clients)),
        rounds: runs.iter().map(|run| run.round).max().unwrap_or_default(),
        variants: vec![variant(BASELINE), variant(CANDIDATE)],
        ..SweepSetup::default()
    };
    let sweep = Sweep { setup, ..Sweep::default() };
    ExperimentDocument { schema_version: SCHEMA_VERSION, sweep, runs, unreplayed, ..Default::default() }
}
