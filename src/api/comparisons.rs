//! bench.compare, bench.compare_report, bench.ab, bench.scalability and bench.change_points: what several runs say together.

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use bench_questions::comparison::{
    Comparison, Difference, check_margin, compare as compare_groups, compare_pairs, differences_of,
    scripts_differ,
};
use bench_questions::sweep::SweepArguments;
use bench_report::Format;
use bench_report::compare::schema;
use bench_stats::change_points::change_points as changes_of;
use bench_stats::{Estimate, scalability as usl};
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use super::sides::{calibrated, compared_report, format_of_two, side};
use crate::error::{OrRaise, for_client, notice, warn};
use crate::server::jsonb::Jsonb;
use crate::{experiment, store};

type ComparisonRow = (
    String,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    String,
    Option<String>,
    Option<pgrx::JsonB>,
    Option<String>,
);

/// What differs as JSON; none where nothing does.
fn json_of(differences: Vec<Difference>) -> Option<pgrx::JsonB> {
    Some(differences)
        .filter(|all| !all.is_empty())
        .and_then(|all| serde_json::to_value(all).ok())
        .map(pgrx::JsonB)
}

/// A row for each line; what else differs stands beside the first one's verdict.
fn rows(comparison: Comparison) -> Vec<ComparisonRow> {
    let Comparison { lines, differences } = comparison;
    let mut differences = json_of(differences);
    lines
        .into_iter()
        .map(|line| {
            let differences = differences.take();
            (
                line.metric.to_owned(),
                line.baseline,
                line.candidate,
                line.ratio,
                line.ratio_low,
                line.ratio_high,
                line.verdict.to_owned(),
                line.advice.map(for_client),
                differences,
                line.script,
            )
        })
        .collect()
}

/// Compares two groups of runs. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn bench_compare(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    margin: Option<f64>,
) -> TableIterator<
    'static,
    (
        name!(metric, String),
        name!(baseline, Option<f64>),
        name!(candidate, Option<f64>),
        name!(ratio, Option<f64>),
        name!(ratio_low, Option<f64>),
        name!(ratio_high, Option<f64>),
        name!(verdict, String),
        name!(advice, Option<String>),
        name!(differences, Option<pgrx::JsonB>),
        name!(script, Option<String>),
    ),
> {
    let compared = (|| {
        let margin = required("margin", margin)?;
        let (baseline, candidate) = (side("baseline", baseline)?, side("candidate", candidate)?);
        let compared = compare_groups(&baseline, &candidate, margin)?;
        let runs = baseline.len().min(candidate.len());
        let baseline: Vec<i64> = baseline.iter().map(|run| run.run.run_id).collect();
        calibrated(compared, &baseline, (runs, false), margin)
    })()
    .or_raise();
    if scripts_differ(&compared.differences) {
        warn(
            "the runs did not all run the same script",
            "See the column differences. Name runs of the same workload on both sides.",
        );
    }
    TableIterator::new(rows(compared))
}

/// A report of two sides of runs. See the COMMENT ON.
#[pg_extern(sql = false)]
fn compare_report(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    format: Option<String>,
    margin: Option<f64>,
    paired: Option<bool>,
) -> String {
    (|| {
        let format = format_of_two(format)?;
        if format == Some(Format::Schema) {
            return Ok(schema());
        }
        let margin = required("margin", margin)?;
        let paired = required("paired", paired)?;
        let (baseline, candidate) = (side("baseline", baseline)?, side("candidate", candidate)?);
        compared_report(baseline, candidate, format, margin, paired)
    })()
    .or_raise()
}

run_function! {
    /// Runs a workload under two kinds of settings in turn, and compares. See the COMMENT ON.
    bench_ab(
        workload: [Option<String>], a: [Option<Jsonb>], b: [Option<Jsonb>], rounds: [Option<i32>], margin: [Option<f64>],
        clients: [Option<i32>]
    ) -> [TableIterator<
        'static,
        (
            name!(metric, String),
            name!(baseline, Option<f64>),
            name!(candidate, Option<f64>),
            name!(ratio, Option<f64>),
            name!(ratio_low, Option<f64>),
            name!(ratio_high, Option<f64>),
            name!(verdict, String),
            name!(advice, Option<String>),
            name!(differences, Option<pgrx::JsonB>),
            name!(script, Option<String>),
        ),
    >] = |workload, a, b, rounds, margin, clients, run| {
        let run = RunArguments { workload, ..run };
        TableIterator::new(rows(paired(a, b, rounds, margin, clients, run).or_raise()))
    }
}

/// Makes pairs of runs, which are kept as a sweep, and compares within them.
fn paired(
    a: Option<Jsonb>,
    b: Option<Jsonb>,
    rounds: Option<i32>,
    margin: Option<f64>,
    clients: Option<i32>,
    run: RunArguments,
) -> Result<Comparison, UserError> {
    let margin = required("margin", margin)?;
    check_margin(margin)?;
    let pairs = make_pairs(a, b, rounds, clients, run)?;
    let baseline: Vec<i64> = pairs.iter().map(|pair| pair.0).collect();
    let pairs = pairs
        .into_iter()
        .map(|(a, b)| Ok((store::visible_headline(a)?, store::visible_headline(b)?)))
        .collect::<Result<Vec<_>, UserError>>()?;
    calibrated(compare_pairs(&pairs, margin)?, &baseline, (pairs.len(), true), margin)
}

/// Makes pairs of runs, which are kept as a sweep; those that have completed.
pub(super) fn make_pairs(
    a: Option<Jsonb>,
    b: Option<Jsonb>,
    rounds: Option<i32>,
    clients: Option<i32>,
    run: RunArguments,
) -> Result<Vec<(i64, i64)>, UserError> {
    let spec = experiment::launch::plan(SweepArguments {
        clients: Some(vec![clients]),
        rounds,
        variants: Some(json!({"a": required("a", a)?.0, "b": required("b", b)?.0})),
        run,
        search: None,
        paired: true,
        asked: None,
    })?;
    let sweep_id = experiment::launch::run_to_the_end(spec)?;
    let pairs = store::sweep_pairs(sweep_id, "a", "b")?;
    let ids = |side: fn(&(i64, i64)) -> i64| {
        pairs.iter().map(|pair| side(pair).to_string()).collect::<Vec<_>>().join(",")
    };
    notice(
        format!("the runs belong to sweep {sweep_id}"),
        format!(
            "For a report: SELECT bench.compare_report('{{{}}}', '{{{}}}', paired => true).",
            ids(|pair| pair.0),
            ids(|pair| pair.1)
        ),
    );
    Ok(pairs)
}

/// The universal scalability law, fitted to each variant of a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn scalability(
    sweep_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(variant, String),
        name!(lambda, Option<f64>),
        name!(sigma, Option<f64>),
        name!(kappa, Option<f64>),
        name!(peak_clients, Option<f64>),
        name!(peak_tps, Option<f64>),
        name!(r2, Option<f64>),
        name!(verdict, String),
        name!(lambda_low, Option<f64>),
        name!(lambda_high, Option<f64>),
        name!(sigma_low, Option<f64>),
        name!(sigma_high, Option<f64>),
        name!(kappa_low, Option<f64>),
        name!(kappa_high, Option<f64>),
        name!(peak_clients_low, Option<f64>),
        name!(peak_clients_high, Option<f64>),
        name!(peak_tps_low, Option<f64>),
        name!(peak_tps_high, Option<f64>),
    ),
> {
    let document = required("sweep_id", sweep_id).and_then(store::sweep_document).or_raise();
    let value = |estimate: Option<Estimate>| estimate.map(|e| e.value);
    let low = |estimate: Option<Estimate>| estimate.map(|e| e.low);
    let high = |estimate: Option<Estimate>| estimate.map(|e| e.high);
    let fits: Vec<_> = document
        .sweep
        .variants
        .iter()
        .map(|variant| {
            let fit = usl::fit(&document.points(&variant.name));
            (
                variant.name.clone(),
                value(fit.lambda),
                value(fit.sigma),
                value(fit.kappa),
                value(fit.peak_clients),
                value(fit.peak_tps),
                fit.r2,
                fit.verdict.as_str().to_owned(),
                low(fit.lambda),
                high(fit.lambda),
                low(fit.sigma),
                high(fit.sigma),
                low(fit.kappa),
                high(fit.kappa),
                low(fit.peak_clients),
                high(fit.peak_clients),
                low(fit.peak_tps),
                high(fit.peak_tps),
            )
        })
        .collect();
    TableIterator::new(fits)
}

/// bench.change_points: where runs of the same kind changed their level. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn bench_change_points(
    workload: Option<String>,
    metric: Option<String>,
    tags: Option<Jsonb>,
    margin: Option<f64>,
) -> TableIterator<
    'static,
    (
        name!(run_id, i64),
        name!(at, TimestampWithTimeZone),
        name!(before, f64),
        name!(after, f64),
        name!(change, Option<f64>),
        name!(p, f64),
        name!(change_low, Option<f64>),
        name!(change_high, Option<f64>),
        name!(differences, Option<pgrx::JsonB>),
    ),
> {
    let found = (|| {
        let workload = required("workload", workload)?;
        let metric = required("metric", metric)?;
        let tags = match required("tags", tags)?.0 {
            Value::Object(tags) => tags,
            _ => return Err(UserError::invalid("tags must be a JSON object")),
        };
        let margin = required("margin", margin)?;
        check_margin(margin)?;
        all_changes(&workload, &metric, tags, margin)
    })();
    TableIterator::new(found.or_raise())
}

/// The runs of a series that are looked at, the latest: the search takes time by their square, and seconds for so many.
const LONGEST_SERIES: usize = 1000;

/// The runs of a level, next to its change, whose circumstances are compared: of more, more has changed that has nothing to do
/// with it.
const COMPARED_RUNS: usize = 5;

type ChangePointRow =
    (i64, TimestampWithTimeZone, f64, f64, Option<f64>, f64, Option<f64>, Option<f64>, Option<pgrx::JsonB>);

fn all_changes(
    workload: &str,
    metric: &str,
    tags: Map<String, Value>,
    margin: f64,
) -> Result<Vec<ChangePointRow>, UserError> {
    let mut found = Vec::new();
    // Runs of other options, or with other tags, are other series.
    for series in store::history(workload, metric, tags)?.chunk_by(|a, b| a.group == b.group) {
        let series = &series[series.len().saturating_sub(LONGEST_SERIES)..];
        pgrx::check_for_interrupts!();
        let values: Vec<f64> = series.iter().map(|run| run.value).collect();
        let changes = changes_of(&values, margin);
        for (place, change) in changes.iter().enumerate() {
            let run = &series[change.index];
            let begin = if place == 0 { 0 } else { changes[place - 1].index };
            let end = changes.get(place + 1).map_or(series.len(), |next| next.index);
            let (before, after) = (&series[begin..change.index], &series[change.index..end]);
            let before = &before[before.len().saturating_sub(COMPARED_RUNS)..];
            let after = &after[..after.len().min(COMPARED_RUNS)];
            let documents = |side: &[store::Past]| {
                side.iter().map(|run| store::headline(run.run_id)).collect::<Result<Vec<_>, _>>()
            };
            let (before, after) = (documents(before)?, documents(after)?);
            let differences =
                differences_of(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>());
            found.push((
                run.run_id,
                run.started_at,
                change.before,
                change.after,
                change.change.map(|e| e.value),
                change.p,
                change.change.map(|e| e.low),
                change.change.map(|e| e.high),
                json_of(differences),
            ));
        }
    }
    found.sort_by_key(|change| change.0);
    Ok(found)
}
