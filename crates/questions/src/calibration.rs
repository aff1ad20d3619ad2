//! `bench.calibrate`: how much equal runs vary, and which differences comparisons on this machine can therefore show.

#[cfg(test)]
mod tests;

use bench_base::sentence::{figure, grouped, percent};
use bench_results::Document;
use bench_stats::compare::Verdict;
use bench_stats::trend::BATCHES;
use bench_stats::until_steady::truncation;
use bench_stats::variation::{coefficient, drift, serial_correlation};
use bench_stats::{compare, mean, parts, robust};
use serde::{Serialize, Serializer};

use crate::comparison::Comparison;
use crate::comparison::lines::{Design, metrics};

/// Runs needed to estimate a spread.
pub const LEAST_RUNS: usize = 3;

/// Runs of a calibration that later comparisons use.
pub const ENOUGH_RUNS: usize = 5;

/// Runs per side for which detectable differences are listed.
const SIDES: [u32; 4] = [3, 5, 10, 20];

/// Differences for which numbers of runs are advised, as fractions.
const WANTED: [f64; 3] = [0.01, 0.02, 0.05];

/// Runs per side for which lengths are advised, and the longest length advised in seconds.
const ENOUGH_SIDES: [usize; 2] = [5, 10];
const MOST_SECS: f64 = 3600.0;

/// The significance level of drift.
const ALPHA: f64 = 0.05;

fn with_infinity<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.is_infinite() => serializer.serialize_str("Infinity"),
        value => value.serialize(serializer),
    }
}

/// A line of `bench.calibrate`: a metric, and comparisons of so many runs a side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationLine {
    pub metric: &'static str,
    /// Over the runs; `None` where a run lacks the metric.
    pub mean: Option<f64>,
    /// Standard deviation between the runs / mean, with its 95 % interval.
    pub cv: Option<f64>,
    pub cv_low: Option<f64>,
    /// Infinite where so few runs bound it by nothing, which JSON has only as a text.
    #[serde(serialize_with = "with_infinity")]
    pub cv_high: Option<f64>,
    /// Runs a side of a comparison.
    pub rounds: u32,
    /// The least difference that it shows in nine of ten cases, as a fraction.
    pub detectable: Option<f64>,
    /// What to do, and what is wrong with the figures; with a metric's first line.
    pub advice: Option<String>,
}

/// Returns lines for equal runs, given in the order of execution: for each metric one for each number of runs per side.
pub fn calibrate(runs: &[Document]) -> Vec<CalibrationLine> {
    let mut lines = Vec::new();
    for (metric, confidence) in metrics() {
        let value = |run: &Document| (metric.value)(&run.summary).filter(|value| value.is_finite());
        let values = runs.iter().map(value).collect::<Option<Vec<f64>>>().unwrap_or_default();
        let cv = coefficient(&values, 0.95);
        let mean = (!values.is_empty()).then(|| mean(&values));
        let mut advice = Some(advice(metric.name, &values, confidence, runs)).filter(|text| !text.is_empty());
        lines.extend(SIDES.map(|rounds| CalibrationLine {
            metric: metric.name,
            mean,
            cv: cv.map(|cv| cv.value),
            cv_low: cv.map(|cv| cv.low),
            cv_high: cv.map(|cv| cv.high),
            rounds,
            detectable: compare::detectable(&values, rounds as usize, confidence),
            advice: advice.take(),
        }));
    }
    lines
}

/// Adds to the advice of a comparison's undecided lines the difference that its number of `runs` per side, or pairs, can show
/// according to the calibration of a sweep. `margin` is the comparison's.
pub fn tell(
    comparison: &mut Comparison,
    sweep_id: i64,
    equal: &[Document],
    (runs, design): (usize, Design),
    margin: f64,
) {
    if runs < 2 {
        return;
    }
    let several =
        if design == Design::Pairs { format!("{runs} pairs") } else { format!("{runs} runs per side") };
    let undecided = [Verdict::Inconclusive.as_str(), Verdict::Same.as_str()];
    for line in comparison.lines.iter_mut().filter(|line| undecided.contains(&line.verdict.as_str())) {
        let Some((metric, confidence)) = metrics().into_iter().find(|(metric, _)| metric.name == line.metric)
        else {
            continue;
        };
        let values = equal.iter().map(|run| (metric.value)(&run.summary).filter(|value| value.is_finite()));
        let Some(values) = values.collect::<Option<Vec<f64>>>() else { continue };
        let detectable = compare::detectable(&values, runs, confidence);
        let (Some(cv), Some(detectable)) = (coefficient(&values, 0.95), detectable) else { continue };
        let shown = |share: f64| format!("{} %", figure(share * 100.0));
        let varies = format!("equal runs vary by {} (calibration of sweep {sweep_id})", shown(cv.value));
        let statement = if detectable > margin {
            let cannot = format!(
                "This machine cannot show a difference of {} with {several}: {varies}",
                percent(margin)
            );
            // Exact figures above 100 % are of no use.
            if detectable < 1.0 {
                format!("{cannot}. It can show differences of {} or more.", shown(detectable))
            } else {
                format!("{cannot}. It cannot show differences below 100 %.")
            }
        } else {
            format!(
                "On this machine {varies}: {several} can show differences of {} or more.",
                shown(detectable)
            )
        };
        line.advice = Some(match line.advice.take() {
            Some(advice) => format!("{advice} {statement}"),
            None => statement,
        });
    }
}

fn advice(metric: &str, values: &[f64], confidence: f64, runs: &[Document]) -> String {
    if values.is_empty() {
        return format!("Not every run has a {metric}.");
    }
    let mut sentences: Vec<String> = dependence(values).into_iter().collect();
    let wanted: Vec<String> = WANTED
        .iter()
        .map(|&difference| {
            let percent = difference * 100.0;
            match compare::runs_to_detect(values, difference, confidence) {
                Some(runs) => format!("{percent} %: {runs} runs per side"),
                None => format!("{percent} %: more than {} runs per side", compare::MOST_RUNS),
            }
        })
        .collect();
    if compare::detectable(values, 2, confidence).is_some() {
        sentences.push(format!("To show a difference of {}.", wanted.join("; ")));
    }
    if metric == "tps" {
        sentences.extend(advise_length(values, confidence, runs));
        sentences.extend(advise_warmup(runs));
    }
    sentences.join(" ")
}

/// Reports drift or serial correlation of the runs.
fn dependence(values: &[f64]) -> Option<String> {
    let (first, last) = (*values.first()?, *values.last()?);
    if let Some((tau, p)) = drift(values)
        && p < ALPHA
    {
        let way = if tau > 0.0 { "rise" } else { "fall" };
        let change = (last / first - 1.0) * 100.0;
        return Some(format!(
            "The runs {way} from first to last ({change:+.1} %, Kendall's tau {tau:.2}, p = {p:.3}): find what changes \
             between them, or use before => 'reload' or 'vacuum'; until then use bench.ab, whose pairs drift alike."
        ));
    }
    let correlation = serial_correlation(values)?;
    (correlation.value > correlation.high).then(|| {
        format!(
            "Neighboring runs are alike (correlation {:.2}): the spread of more runs is greater than this. Use bench.ab, \
             whose pairs are neighbors.",
            correlation.value
        )
    })
}

/// Advises longer or more runs: longer ones reduce the variation of throughput within runs, but not between runs.
fn advise_length(values: &[f64], confidence: f64, runs: &[Document]) -> Option<String> {
    let between = coefficient(values, 0.95)?.value;
    let secs = robust::median(&runs.iter().filter_map(|run| run.summary.secs).collect::<Vec<_>>())?;
    let squares: Option<Vec<f64>> =
        runs.iter().map(|run| relative_error(run).map(|error| error.powi(2))).collect();
    let squares = squares?;
    let within = mean(&squares).sqrt();
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    Some(if within >= between / 2.0_f64.sqrt() {
        let wanted = WANTED.iter().map(|&difference| enough_secs(values, confidence, secs, difference));
        let wanted: Option<Vec<String>> = wanted.collect();
        let wanted = wanted.map_or(String::new(), |wanted| format!(" To show {}.", wanted.join("; ")));
        format!(
            "Most of the spread ({} of {}) is from within the runs: runs of {} s would vary about half as much.{wanted}",
            percent(within.min(between)),
            percent(between),
            (4.0 * secs).round()
        )
    } else {
        format!(
            "Runs differ by {}, of which throughput within a run explains {}: longer runs would hardly help, more runs do.",
            percent(between),
            percent(within)
        )
    })
}

/// Advises the length of runs that show a difference with 5, or else 10, runs per side, if the variation of runs of `secs`
/// seconds decreases with the square root of their length.
fn enough_secs(values: &[f64], confidence: f64, secs: f64, difference: f64) -> Option<String> {
    let percent = difference * 100.0;
    for runs in ENOUGH_SIDES {
        let shown = compare::detectable(values, runs, confidence)?;
        let needed = (secs * (shown.ln_1p() / difference.ln_1p()).powi(2).max(1.0)).ceil();
        if needed <= MOST_SECS {
            return Some(format!("{percent} %: {runs} runs per side of {} s", grouped(needed)));
        }
    }
    Some(format!("{percent} %: more than {} runs per side of {} s", ENOUGH_SIDES[1], grouped(MOST_SECS)))
}

/// Returns the relative standard error of a run's mean TPS by batch means; `None` with fewer than [`BATCHES`] intervals.
fn relative_error(run: &Document) -> Option<f64> {
    let tps: Vec<f64> = run.samples.tps.iter().flatten().copied().collect();
    if tps.len() < BATCHES {
        return None;
    }
    let means: Vec<f64> = parts(&tps, BATCHES).map(mean).collect();
    Some(coefficient(&means, 0.95)?.value / (BATCHES as f64).sqrt())
}

/// Advises the warm-up that the runs lack, from the mean of all runs' throughput, in which chance averages out.
fn advise_warmup(runs: &[Document]) -> Option<String> {
    /// A beginning that deviates less from the rest, as a share, needs no warm-up.
    const SAME_LEVEL: f64 = 0.05;
    let length = runs.iter().map(|run| run.samples.tps.len()).min()?;
    let interval_mean = |index: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.samples.tps[index]).collect();
        mean(&values)
    };
    let means: Vec<f64> = (0..length).map(interval_mean).collect();
    let cut = truncation(&means);
    let (begin, rest) = means.split_at(cut);
    if begin.is_empty() || (mean(begin) / mean(rest) - 1.0).abs() < SAME_LEVEL {
        return None;
    }
    let elapsed = runs.first()?.samples.elapsed.get(cut - 1).copied().flatten()?;
    let given = runs.first()?.run.warmed_up_secs();
    Some(format!(
        "The first {elapsed:.1} s of the runs are at another level ({:+.0} %): use warmup => {}.",
        (mean(begin) / mean(rest) - 1.0) * 100.0,
        (given + elapsed).ceil()
    ))
}
