//! The series that can coincide with a dip, and how far each has to rise for that to matter.

use std::ops::Range;

use bench_results::{Document, Event, bins};
use bench_stats::rotation::Candidate;

use super::causes::{CauseKind, is_vacuum};
use super::detect::Dip;
use crate::intervals::Intervals;

/// Backends report their counters at most once a second (PGSTAT_MIN_INTERVAL), so an interval's own may come so many
/// seconds later.
pub const REPORTED_WITHIN: f64 = 1.0;
/// Seconds after a checkpoint's begin within which a dip may still begin because of it.
const AFTER_CHECKPOINT: f64 = 3.0;

/// A cause and its series.
pub struct Cause {
    pub kind: CauseKind,
    pub candidate: Candidate,
}

/// Full-page images per transaction that are worth a word. It is little, for where they are reported late the second
/// before the dip, with all of its transactions, is counted in.
const LEAST_IMAGES: f64 = 0.03;

/// Everything that may coincide with dips of this run.
pub fn causes(document: &Document, intervals: &Intervals) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut add = |kind: CauseKind, values: Option<Vec<f64>>, least_rise: f64, least_ratio: f64| {
        if let Some(values) = values {
            causes.push(Cause { kind, candidate: Candidate { values, least_rise, least_ratio } });
        }
    };
    let checkpoints: Vec<&Event> =
        document.events.iter().filter(|event| event.kind == "checkpoint").collect();
    let vacuums: Vec<&Event> = document.events.iter().filter(|event| is_vacuum(event)).collect();
    if !checkpoints.is_empty() && !is_off(document, "full_page_writes") {
        add(CauseKind::FullPageImages, images_per_transaction(intervals), LEAST_IMAGES, 2.0);
    }
    if !checkpoints.is_empty() && disks_waited_for(document, intervals).is_some() {
        add(CauseKind::CheckpointWrites, Some(under_way(&checkpoints, intervals)), 0.4, 1.5);
    }
    if !vacuums.is_empty() {
        add(CauseKind::Vacuum, Some(under_way(&vacuums, intervals)), 0.4, 1.5);
    }
    add(CauseKind::IoWait, intervals.column(|samples| &samples.cpu_iowait), 0.05, 1.5);
    add(CauseKind::Steal, intervals.column(|samples| &samples.cpu_steal), 0.05, 1.5);
    // Throttled seconds of several nodes are added up; their mean is wanted.
    let nodes = document.client_nodes() as f64;
    let throttled = per_second(intervals, intervals.column(|samples| &samples.throttled_secs))
        .map(|values| values.into_iter().map(|value| value / nodes).collect());
    add(CauseKind::Throttled, throttled, 0.1, 1.5);
    add(CauseKind::OtherProcesses, other_processes(document, intervals), 0.3, 1.5);
    let temp_bytes = intervals.column(|samples| &samples.temp_bytes);
    add(CauseKind::TempFiles, temp_bytes.map(|values| reported_per_second(intervals, &values)), 1e6, 2.0);
    for (event, shares) in intervals.waits() {
        add(CauseKind::Wait(event.to_owned()), Some(shares), 0.15, 1.2);
    }
    causes
}

/// Whether what a cause needs beside its series was there in a dip: for full-page images a checkpoint that began in it
/// or shortly before, for a checkpoint's writes that the disks were waited for, for other processes that processors
/// became busier, or were all busy: clients that wait leave theirs to nobody.
pub fn has_witness(kind: &CauseKind, document: &Document, intervals: &Intervals, dip: &Dip) -> bool {
    match kind {
        CauseKind::FullPageImages => {
            let before = AFTER_CHECKPOINT.max(intervals.typical_secs() * 2.0);
            document.events.iter().any(|event| {
                event.kind == "checkpoint" && event.started >= dip.start - before && event.started <= dip.end
            })
        }
        CauseKind::CheckpointWrites => {
            let Some(waited) = disks_waited_for(document, intervals) else { return false };
            rise(&waited, &dip.intervals) >= 0.05
        }
        CauseKind::OtherProcesses => {
            let Some(busy) = busy(intervals) else { return false };
            let share = busy[dip.intervals.clone()].iter().sum::<f64>() / dip.intervals.len() as f64;
            rise(&busy, &dip.intervals) >= 0.05 || share >= 0.9
        }
        _ => true,
    }
}

/// How far the mean of a series inside a stretch lies above that outside.
pub fn rise(values: &[f64], stretch: &Range<usize>) -> f64 {
    let within: f64 = values[stretch.clone()].iter().sum();
    let without = values.iter().sum::<f64>() - within;
    within / stretch.len() as f64 - without / (values.len() - stretch.len()).max(1) as f64
}

/// Whether a configuration parameter of the server is off.
pub fn is_off(document: &Document, name: &str) -> bool {
    let mut settings = document.environment.server_settings.iter();
    settings.any(|setting| setting.name == name && setting.setting == "off")
}

/// Full-page images per transaction, around each interval: those reported from its begin on within a second, by the
/// transactions of that second or of the one before, whichever has more. What is reported now may be the images of
/// either, and a stall must not look as if its few transactions had made all images of those before it.
fn images_per_transaction(intervals: &Intervals) -> Option<Vec<f64>> {
    let images = intervals.column(|samples| &samples.wal_fpi)?;
    let secs = intervals.typical_secs();
    // Where intervals last a second or somewhat more, the next one holds what was reported late.
    let width = if secs < REPORTED_WITHIN {
        (REPORTED_WITHIN / secs).ceil() as usize
    } else if secs < 2.0 * REPORTED_WITHIN {
        2
    } else {
        1
    };
    let around = |index: usize| {
        let until = index.saturating_add(width).min(intervals.len());
        let since = index.saturating_sub(width);
        let reported: f64 = images[index..until].iter().sum();
        let before: f64 = intervals.transactions[since..index].iter().sum();
        let after: f64 = intervals.transactions[index..until].iter().sum();
        reported / before.max(after).max(1.0)
    };
    Some((0..intervals.len()).map(around).collect())
}

/// The share of each interval in which some of the events was under way.
fn under_way(events: &[&Event], intervals: &Intervals) -> Vec<f64> {
    let share = |(start, end): (&f64, &f64)| {
        let overlaps = events.iter().map(|event| {
            let ended = event.ended.unwrap_or(f64::INFINITY);
            (ended.min(*end) - event.started.max(*start)).max(0.0)
        });
        (overlaps.sum::<f64>() / (end - start)).min(1.0)
    };
    intervals.starts.iter().zip(&intervals.ends).map(share).collect()
}

/// How far the disks were waited for: by the processors or, as a share of their time, by the clients.
fn disks_waited_for(document: &Document, intervals: &Intervals) -> Option<Vec<f64>> {
    let written: f64 = intervals.column(|samples| &samples.buffers_checkpoint)?.iter().sum();
    if written <= 0.0 || document.events.is_empty() {
        return None;
    }
    let mut waited = intervals.column(|samples| &samples.cpu_iowait).unwrap_or(vec![0.0; intervals.len()]);
    for (_, shares) in intervals.waits().filter(|(event, _)| event.starts_with("IO:")) {
        waited.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
    }
    Some(waited)
}

fn per_second(intervals: &Intervals, values: Option<Vec<f64>>) -> Option<Vec<f64>> {
    Some(values?.iter().zip(&intervals.secs).map(|(value, secs)| value / secs).collect())
}

/// A counter of the backends' as a rate: that of the bin of a second and longer which an interval lies in.
fn reported_per_second(intervals: &Intervals, values: &[f64]) -> Vec<f64> {
    let rate = |bin: Range<usize>| {
        let rate = values[bin.clone()].iter().sum::<f64>() / intervals.secs[bin.clone()].iter().sum::<f64>();
        vec![rate; bin.len()]
    };
    bins(&intervals.secs).into_iter().flat_map(rate).collect()
}

/// Processors that were busy with something else than the clients: the busy share of all less the clients' own time
/// on them. In a cluster sessions that serve other nodes are busy too, and nothing tells how much.
fn other_processes(document: &Document, intervals: &Intervals) -> Option<Vec<f64>> {
    if !document.nodes.is_empty() {
        return None;
    }
    let processors = f64::from(document.environment.processors?);
    let (_, own) = intervals.waits().find(|(event, _)| *event == "CPU")?;
    let user = intervals.column(|samples| &samples.cpu_user)?;
    let system = intervals.column(|samples| &samples.cpu_system)?;
    let clients = intervals.column(|samples| &samples.clients)?;
    let others = (0..intervals.len())
        .map(|index| ((user[index] + system[index]) * processors - own[index] * clients[index]).max(0.0));
    Some(others.collect())
}

/// The share of all processors' time in which they ran something.
fn busy(intervals: &Intervals) -> Option<Vec<f64>> {
    let user = intervals.column(|samples| &samples.cpu_user)?;
    let system = intervals.column(|samples| &samples.cpu_system)?;
    Some(user.iter().zip(&system).map(|(user, system)| user + system).collect())
}
