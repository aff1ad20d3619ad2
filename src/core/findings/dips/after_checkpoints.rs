//! Checkpoints after which throughput stays low for so long that a median cannot separate the dip from the rest:
//! full-page images last until every page has been changed once, possibly until the end of the run.
//!
//! Here the checkpoints are known, and throughput before and after each one is compared. As with dips, the fall must be
//! among the largest of those at all other places of the run (see [`crate::stats::rotation`]), and full-page images
//! must have increased.

use serde_json::json;

use super::causes::CauseKind;
use super::detect::Dip;
use super::series::is_off;
use crate::document::{Document, Finding, Severity, Topic};
use crate::findings::finding;
use crate::findings::intervals::Intervals;
use crate::findings::text::{counted, figure, first_few, grouped, percent, seconds};
use crate::stats::robust::median;

/// Seconds before and after a checkpoint that are compared, at most and at least.
const MOST_SECS: f64 = 10.0;
const LEAST_SECS: f64 = 2.0;
/// So many intervals at least.
const LEAST_INTERVALS: usize = 8;
/// The least fall of the median throughput.
const LEAST_DEPTH: f64 = 0.2;
/// The least rise of full-page images per transaction, and its least ratio.
const LEAST_IMAGES: f64 = 0.1;
const LEAST_RATIO: f64 = 2.0;
/// As for the images of dips.
const MOST_P: f64 = super::MOST_P_WITH_WITNESS;
/// Shifts that are tried at most.
const MOST_SHIFTS: usize = 1000;

/// The finding, and the times after the checkpoints as dips.
pub fn after_checkpoints(document: &Document, intervals: &Intervals) -> Option<(Finding, Vec<Dip>)> {
    let images = intervals.column(|samples| &samples.wal_fpi)?;
    if is_off(document, "full_page_writes") {
        return None;
    }
    let (begins, width) = begins(document, intervals)?;
    let count = intervals.len();
    // The sums, or values, of the windows after the begins and before them.
    let after = |series: &[f64], shift: usize| window(series, &begins, shift, width);
    let before = |series: &[f64], shift: usize| window(series, &begins, count + shift - width, width);
    let fall = |shift: usize| {
        let (low, high) = (median(&after(&intervals.tps, shift)), median(&before(&intervals.tps, shift)));
        low.zip(high).map(|(low, high)| 1.0 - low / high).filter(|fall| fall.is_finite()).unwrap_or(0.0)
    };
    let depth = fall(0);
    let shifts = count.min(MOST_SHIFTS);
    let as_deep = (0..shifts).filter(|number| fall(number * count / shifts) >= depth).count();
    let p = as_deep as f64 / shifts as f64;
    let per_transaction = |images: Vec<f64>, transactions: Vec<f64>| {
        images.iter().sum::<f64>() / transactions.iter().sum::<f64>().max(1.0)
    };
    let inside = per_transaction(after(&images, 0), after(&intervals.transactions, 0));
    let outside = per_transaction(before(&images, 0), before(&intervals.transactions, 0));
    let has_images = inside - outside >= LEAST_IMAGES && inside >= outside * LEAST_RATIO;
    if depth < LEAST_DEPTH || p > MOST_P || !has_images {
        return None;
    }
    let (low, high) = (median(&after(&intervals.tps, 0))?, median(&before(&intervals.tps, 0))?);
    let dips: Vec<Dip> = begins
        .iter()
        .map(|&begin| {
            let secs: f64 = intervals.secs[begin..begin + width].iter().sum();
            Dip {
                intervals: begin..begin + width,
                start: intervals.starts[begin],
                end: intervals.ends[begin + width - 1],
                depth,
                lost_secs: depth * secs,
                open: false,
                told: false,
            }
        })
        .collect();
    let times: Vec<String> = dips.iter().map(|dip| seconds(dip.start)).collect();
    let secs = dips[0].end - dips[0].start;
    let told = finding(
        Severity::Warning,
        Topic::Dip,
        format!(
            "After {} (at {}) throughput was {} lower than before, {} instead of {} tps for {} each; meanwhile \
             full-page images rose to {} per transaction from {}.",
            counted(begins.len() as u64, "checkpoint"),
            first_few(&times),
            percent(depth),
            grouped(low),
            grouped(high),
            seconds(secs),
            figure(inside),
            figure(outside)
        ),
        json!({
            "count": begins.len(),
            "depth": depth,
            "tps_before": high,
            "tps_after": low,
            "secs": secs,
            "at": dips.iter().map(|dip| dip.start).collect::<Vec<f64>>(),
            "until": dips.iter().map(|dip| dip.end).collect::<Vec<f64>>(),
            "coincide": [{
                "cause": CauseKind::FullPageImages.name(),
                "in_dip": inside,
                "otherwise": outside,
                "p": p,
            }],
        }),
        CauseKind::FullPageImages.advice(),
    );
    Some((told, dips))
}

/// The first interval of each checkpoint that has enough time before and after it, and how many intervals of both are
/// compared.
fn begins(document: &Document, intervals: &Intervals) -> Option<(Vec<usize>, usize)> {
    let secs = intervals.typical_secs();
    let least = LEAST_INTERVALS.max((LEAST_SECS / secs).ceil() as usize);
    let checkpoints = document.events.iter().filter(|event| event.kind == "checkpoint");
    let mut begins: Vec<usize> = Vec::new();
    for begin in checkpoints.map(|event| intervals.starts.partition_point(|&start| start < event.started)) {
        let since = begins.last().copied().unwrap_or(0);
        let has_room = begin >= since.saturating_add(least) && begin.saturating_add(least) <= intervals.len();
        if has_room {
            begins.push(begin);
        }
    }
    let (first, last) = (*begins.first()?, *begins.last()?);
    let between = begins.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(usize::MAX);
    let most = (MOST_SECS / secs) as usize;
    Some((begins, most.max(least).min(between).min(first).min(intervals.len() - last)))
}

/// The values of a series in the windows from the begins on, all turned by a shift as on a ring.
fn window(series: &[f64], begins: &[usize], shift: usize, width: usize) -> Vec<f64> {
    let mut values = Vec::with_capacity(begins.len() * width);
    for begin in begins {
        values.extend((0..width).map(|step| series[(begin + shift + step) % series.len()]));
    }
    values
}
