//! Dips: how deep, how long, when, and what coincides with them.
//!
//! Dips of one cause are reported in one finding. Of all causes that coincide beyond chance, the strongest is taken and
//! reported with the dips in which it was present; the search continues with the remaining dips.

pub mod announced;
pub mod causes;
pub mod detect;

use std::ops::Range;

use bench_base::sentence::{counted, first_few, grouped, listed, percent, seconds};
use bench_results::{Document, Finding, Severity, Topic};
use bench_stats::rotation::{Candidate, Coincidence, coincidences};
use serde_json::json;

use crate::dips::causes::{Cause, CauseKind, causes, has_witness, rise};
use crate::dips::detect::{Detected, Dip, LEAST_INTERVALS, Unjudged};
use crate::intervals::{Intervals, finding};

/// The p up to which a coincidence is more than chance.
const MOST_P: f64 = 0.05;
/// The p up to which full-page images are more than chance, which need a checkpoint's begin beside it. Neighbouring shifts are as good as the right
/// one where counters are smeared over a second, so that a short run cannot reach less.
const MOST_P_WITH_WITNESS: f64 = 0.15;
/// In fewer intervals hardly any shift can be beyond chance, and what is no wait is judged as full-page images are.
const FEW_INTERVALS: usize = 20;
/// A wait that clients spent so much more of their time in accounts for the dip, and no shift is asked: where the dip is
/// wider than the wait, by whatever else slowed the run at its edge, neighbouring shifts are as good.
const LEAST_RISE_OF_WAIT: f64 = 0.5;
/// What dips of one cause have to cost together, in seconds' worth of transactions and as a share of the run: where a
/// cause is known, and where it is not or clients just waited longer for what they always wait for.
const LEAST_LOST: (f64, f64) = (0.3, 0.005);
const LEAST_LOST_UNKNOWN: (f64, f64) = (0.5, 0.01);
/// The least depth of the latter.
const LEAST_DEPTH_UNKNOWN: f64 = 0.4;
/// From this depth on a dip is told in a run of any length, whatever its cause, if it cost so many seconds' worth of
/// transactions.
const DEEP: f64 = 0.5;
const LEAST_LOST_DEEP_SECS: f64 = 0.25;
/// Coincidences told in one sentence.
const MOST_TOLD: usize = 3;

/// A cause that coincides with some dips.
struct DipCause<'a> {
    cause: &'a Cause,
    seen: Coincidence,
}

/// A finding on some dips, and the cause that comes first in it.
struct Told {
    finding: Finding,
    cause: Option<CauseKind>,
    intervals: Vec<Range<usize>>,
}

/// The findings on dips. Those that turn out to be another level are taken out of what was detected, the low intervals
/// of announced events are added to it.
pub fn findings(document: &Document, intervals: &Intervals, detected: &mut Detected) -> Vec<Finding> {
    let (mut told, mut levels) = by_cause(document, intervals, detected);
    let mut effects = announced::effects(document, intervals, detected);
    effects.retain(|effect| !told.iter().any(|told| explains(told, effect)));
    let (mut findings, lows): (Vec<Finding>, Vec<Vec<Dip>>) =
        effects.iter().map(|effect| effect.told(document, intervals)).unzip();
    let lows: Vec<Dip> = lows.into_iter().flatten().collect();
    if !lows.is_empty() {
        let is_low = |dip: &Dip| lows.iter().any(|low| overlap(&low.intervals, &dip.intervals));
        detected.dips.iter_mut().filter(|dip| is_low(dip)).for_each(|dip| dip.told = true);
        (told, levels) = by_cause(document, intervals, detected);
    }
    findings.extend(told.into_iter().map(|told| told.finding));
    detected.dips.retain(|dip| !levels.contains(dip));
    detected.dips.extend(lows);
    // What cost the most comes first.
    let lost = |finding: &Finding| {
        finding.figures.get("lost_secs").and_then(|lost| lost.as_f64()).unwrap_or(f64::MAX)
    };
    findings.sort_by(|one, other| lost(other).total_cmp(&lost(one)));
    findings
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Whether a finding has the cause of an effect already, or another cause that needs no event.
fn explains(told: &Told, effect: &announced::Effect) -> bool {
    let is_known = told.cause.as_ref().is_some_and(|cause| cause.is_root() || effect.is_behind(cause));
    is_known && told.intervals.iter().any(|dip| effect.low.iter().any(|low| overlap(dip, low)))
}

/// The findings, and those dips that are none.
fn by_cause(document: &Document, intervals: &Intervals, detected: &Detected) -> (Vec<Told>, Vec<Dip>) {
    let all = causes(document, intervals);
    let mut left: Vec<&Dip> = detected.dips.iter().filter(|dip| !dip.told).collect();
    let (mut findings, mut all_levels) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let found = coinciding(document, intervals, &all, &left);
        let Some(main) = found.first() else { break };
        let (with, without): (Vec<&Dip>, Vec<&Dip>) =
            left.iter().partition(|dip| is_there(main.cause, document, intervals, dip));
        if with.is_empty() {
            break;
        }
        let beside = found[1..]
            .iter()
            .filter(|other| with.iter().any(|dip| is_there(other.cause, document, intervals, dip)));
        let told: Vec<&DipCause> = std::iter::once(main).chain(beside).take(MOST_TOLD).collect();
        let (levels, with): (Vec<&Dip>, Vec<&Dip>) =
            with.into_iter().partition(|dip| dip.open && !main.cause.kind.is_root());
        all_levels.extend(levels.into_iter().cloned());
        findings.extend(of_group(document, intervals, detected, &with, &told));
        left = without;
    }
    let (levels, left): (Vec<&Dip>, Vec<&Dip>) = left.into_iter().partition(|dip| dip.open);
    all_levels.extend(levels.into_iter().cloned());
    findings.extend(of_group(document, intervals, detected, &left, &[]));
    (findings, all_levels)
}

/// What coincides with the dips beyond chance, the cause to name first.
fn coinciding<'a>(
    document: &Document,
    intervals: &Intervals,
    all: &'a [Cause],
    dips: &[&Dip],
) -> Vec<DipCause<'a>> {
    let stretches: Vec<Range<usize>> = dips.iter().map(|dip| dip.intervals.clone()).collect();
    let candidates: Vec<Candidate> = all.iter().map(|cause| cause.candidate.clone()).collect();
    let mut found: Vec<DipCause> = all
        .iter()
        .zip(coincidences(intervals.len(), &stretches, &candidates))
        .filter_map(|(cause, seen)| Some(DipCause { cause, seen: seen? }))
        .filter(|found| is_beyond_chance(found, intervals))
        .filter(|found| dips.iter().any(|dip| is_there(found.cause, document, intervals, dip)))
        .collect();
    found.sort_by(|one, other| {
        let rank = |found: &DipCause| (found.cause.kind.is_root(), found.seen.correlation);
        let (one, other) = (rank(one), rank(other));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    found
}

fn is_beyond_chance(found: &DipCause, intervals: &Intervals) -> bool {
    match &found.cause.kind {
        CauseKind::FullPageImages => found.seen.p <= MOST_P_WITH_WITNESS,
        CauseKind::Wait(_) if found.seen.inside - found.seen.outside >= LEAST_RISE_OF_WAIT => true,
        CauseKind::Wait(_) if intervals.len() < FEW_INTERVALS => false,
        _ if intervals.len() < FEW_INTERVALS => found.seen.p <= MOST_P_WITH_WITNESS,
        _ => found.seen.p <= MOST_P,
    }
}

/// Whether a cause shows in one dip.
fn is_there(cause: &Cause, document: &Document, intervals: &Intervals, dip: &Dip) -> bool {
    rise(&cause.candidate.values, &dip.intervals) >= cause.candidate.least_rise
        && has_witness(&cause.kind, document, intervals, dip)
}

/// One finding on dips that belong together; none if they cost too little.
fn of_group(
    document: &Document,
    intervals: &Intervals,
    detected: &Detected,
    dips: &[&Dip],
    told: &[&DipCause],
) -> Option<Told> {
    let depth = dips.iter().map(|dip| dip.depth).fold(0.0, f64::max);
    let lost: f64 = dips.iter().map(|dip| dip.lost_secs).sum();
    let main = told.first().map(|found| &found.cause.kind);
    let known =
        main.is_some_and(|kind| kind.is_root() || matches!(kind, CauseKind::Vacuum | CauseKind::TempFiles));
    let (secs, share) = if known { LEAST_LOST } else { LEAST_LOST_UNKNOWN };
    let costs =
        lost >= secs.max(share * intervals.measured_secs()) && (known || depth >= LEAST_DEPTH_UNKNOWN);
    let deep = depth >= DEEP && lost >= LEAST_LOST_DEEP_SECS;
    if dips.is_empty() || !(costs || deep) {
        return None;
    }
    let why = match told {
        [] => "no observed cause coincides with it".to_owned(),
        _ => {
            let sentences: Vec<String> =
                told.iter().map(|found| found.cause.kind.sentence(&found.seen, document, dips)).collect();
            let which = if dips.len() == 1 { "meanwhile" } else { "in these dips" };
            format!("{which} {}", listed(&sentences))
        }
    };
    let advice = match main {
        Some(kind) => kind.advice().to_owned(),
        None => {
            "Run again. Dips that recur at the same distance have a cause inside, such as a timer; dips that \
                 do not recur came from the machine. Check the server's log and the machine's logs for these \
                 seconds."
                .to_owned()
        }
    };
    let coincide: Vec<_> = told.iter().map(|found| coincidence_figures(found)).collect();
    let finding = finding(
        Severity::Warning,
        Topic::Dip,
        format!("Throughput fell {}; {why}.", shape(dips, depth, detected.median)),
        json!({
            "count": dips.len(),
            "depth": depth,
            "median_tps": detected.median,
            "secs": dips.iter().map(|dip| dip.end - dip.start).sum::<f64>(),
            "lost_secs": lost,
            "at": dips.iter().map(|dip| dip.start).collect::<Vec<f64>>(),
            "until": dips.iter().map(|dip| dip.end).collect::<Vec<f64>>(),
            "coincide": coincide,
        }),
        advice,
    );
    let intervals = dips.iter().map(|dip| dip.intervals.clone()).collect();
    Some(Told { finding, cause: main.cloned(), intervals })
}

fn coincidence_figures(found: &DipCause) -> serde_json::Value {
    json!({
        "cause": found.cause.kind.name(),
        "in_dip": found.seen.inside,
        "otherwise": found.seen.outside,
        "correlation": found.seen.correlation,
        "p": found.seen.p,
    })
}

/// How deep, how long and when.
fn shape(dips: &[&Dip], depth: f64, median: f64) -> String {
    let below = format!("{} below its median of {} tps", percent(depth), grouped(median));
    match dips {
        [only] => {
            format!("up to {below}, for {} from {} on", seconds(only.end - only.start), seconds(only.start))
        }
        _ => {
            let mean = dips.iter().map(|dip| dip.end - dip.start).sum::<f64>() / dips.len() as f64;
            let times: Vec<String> = dips.iter().map(|dip| seconds(dip.start)).collect();
            format!(
                "{} times, up to {below}, for {} on average (at {})",
                dips.len(),
                seconds(mean),
                first_few(&times)
            )
        }
    }
}

/// The shortest sample that a run may have, in seconds.
const SHORTEST_SAMPLE: f64 = 0.1;

/// The finding on dips that were not looked for, so that a run without other findings is not taken for a clean one.
pub fn unjudged_findings(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    // Of a run that did nothing there is worse to say.
    if document.summary.transactions == 0 {
        return None;
    }
    let (why, advice) = match detected.unjudged? {
        Unjudged::FewIntervals => (
            format!(
                "the run has {}, and {LEAST_INTERVALS} are needed",
                counted(intervals.len() as u64, "sample")
            ),
            longer(intervals.measured_secs()),
        ),
        Unjudged::Noise => (
            format!(
                "throughput varies by {} from sample to sample, so only a standstill of several samples stands out",
                percent(detected.sigma)
            ),
            "Use a longer sample_interval, or more clients, to even out the samples, and see whether other processes \
             disturb the machine."
                .to_owned(),
        ),
    };
    Some(finding(
        Severity::Notice,
        Topic::Samples,
        format!("Dips could not be detected: {why}."),
        json!({ "samples": intervals.len(), "needed": LEAST_INTERVALS, "variation": detected.sigma }),
        advice,
    ))
}

/// How to get enough samples.
fn longer(secs: f64) -> String {
    let interval = (secs / LEAST_INTERVALS as f64 * 100.0).floor() / 100.0;
    if interval >= SHORTEST_SAMPLE {
        format!("Measure longer, or use sample_interval => {interval}.")
    } else {
        "Measure longer.".to_owned()
    }
}
