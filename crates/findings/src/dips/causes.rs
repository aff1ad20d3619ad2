//! What may make throughput fall: the words for it, and the series that can coincide with a dip, with how far each has to
//! rise for that to matter.

use std::ops::Range;

use bench_base::sentence::{MEGABYTE, figure, first_few, percent};
use bench_results::{Document, Event, bins};
use bench_stats::rotation::{Candidate, Coincidence};

use crate::dips::detect::Dip;
use crate::intervals::Intervals;
use crate::wait_events::{Waits, waits_for};

/// A kind of cause.
#[derive(Clone, Debug, PartialEq)]
pub enum CauseKind {
    FullPageImages,
    CheckpointWrites,
    Vacuum,
    IoWait,
    Steal,
    Throttled,
    OtherProcesses,
    TempFiles,
    /// What clients spent their time in: a wait event, `CPU` or `Runnable`.
    Wait(String),
}

impl CauseKind {
    /// Whether it is a cause rather than what clients notice of one: told first where it coincides.
    pub fn is_root(&self) -> bool {
        match self {
            CauseKind::FullPageImages
            | CauseKind::CheckpointWrites
            | CauseKind::Steal
            | CauseKind::Throttled => true,
            // Waits for row locks come along with anything that delays whoever holds one.
            CauseKind::Wait(event) => {
                event.starts_with("Lock:") && event != "Lock:transactionid" && event != "Lock:tuple"
            }
            CauseKind::Vacuum | CauseKind::IoWait | CauseKind::OtherProcesses | CauseKind::TempFiles => false,
        }
    }

    /// A name for it among the figures.
    pub fn name(&self) -> String {
        match self {
            CauseKind::FullPageImages => "full-page images".into(),
            CauseKind::CheckpointWrites => "checkpoint writes".into(),
            CauseKind::Vacuum => "vacuum".into(),
            CauseKind::IoWait => "iowait".into(),
            CauseKind::Steal => "steal".into(),
            CauseKind::Throttled => "throttled".into(),
            CauseKind::OtherProcesses => "other processes".into(),
            CauseKind::TempFiles => "temporary files".into(),
            CauseKind::Wait(event) => event.clone(),
        }
    }

    /// What was seen of it in the dips.
    pub fn sentence(&self, seen: &Coincidence, document: &Document, dips: &[&Dip]) -> String {
        let (inside, outside) = (seen.inside, seen.outside.max(0.0));
        let shares = format!("{} of their time instead of {}", percent(inside), percent(outside));
        match self {
            CauseKind::FullPageImages => format!(
                "a checkpoint had begun, and full-page images rose to {} per transaction from {}",
                figure(inside),
                figure(outside)
            ),
            CauseKind::CheckpointWrites => {
                "a checkpoint was writing, and processes waited for the disks".into()
            }
            CauseKind::Vacuum => format!("{} was under way", first_few(&vacuums_during(document, dips))),
            CauseKind::IoWait => format!("the processors waited for the disks for {shares}"),
            CauseKind::Steal => format!("the hypervisor took the processors away for {shares}"),
            CauseKind::Throttled => format!(
                "the quota throttled the server for {} s in every second instead of {} s",
                figure(inside),
                figure(outside)
            ),
            CauseKind::OtherProcesses => format!(
                "processes other than the clients kept {} processors busy instead of {}",
                figure(inside),
                figure(outside)
            ),
            CauseKind::TempFiles => format!(
                "{} MB of temporary files per second were written instead of {} MB",
                figure(inside / MEGABYTE),
                figure(outside / MEGABYTE)
            ),
            CauseKind::Wait(event) if event == "CPU" => {
                format!("clients ran on a processor for {shares}")
            }
            CauseKind::Wait(event) if event == "Runnable" => {
                format!("clients waited for a processor for {shares}")
            }
            CauseKind::Wait(event) => format!("clients waited for {event} for {shares}"),
        }
    }

    /// What to try against it.
    pub fn advice(&self) -> &'static str {
        match self {
            CauseKind::FullPageImages => {
                "The first change of a page after a checkpoint writes the whole page to WAL. Checkpoint less often \
                 (a longer checkpoint_timeout and a larger max_wal_size), and try wal_compression."
            }
            CauseKind::CheckpointWrites => {
                "Spread the checkpoint's writes: raise checkpoint_timeout and max_wal_size, and set \
                 checkpoint_completion_target to 0.9 or more. Try a smaller checkpoint_flush_after or faster \
                 disks."
            }
            CauseKind::Vacuum => {
                "Slow the vacuum down with vacuum_cost_delay or autovacuum_vacuum_cost_limit, or let it run more \
                 often with less work each time. Run again without it to see its cost."
            }
            CauseKind::IoWait => {
                "Find the reads or writes at that time (disk_read_bytes and disk_written_bytes in bench.samples). \
                 The kernel's writeback can come in bursts; checkpoint_flush_after and vm.dirty_background_bytes \
                 smooth them."
            }
            CauseKind::Steal => {
                "Run on a machine, or at a time, without steal, and judge this run without the dips."
            }
            CauseKind::Throttled => "Raise the control group's processor quota, or run fewer clients.",
            CauseKind::OtherProcesses => {
                "Look for other processes at that time (backups, package updates, other databases), stop them and \
                 run again."
            }
            CauseKind::TempFiles => {
                "Raise work_mem so that sorts and hashes stay in memory, or find the query that spilled."
            }
            CauseKind::Wait(event) => wait_advice(event),
        }
    }
}

fn wait_advice(event: &str) -> &'static str {
    if event.starts_with("Lock:") {
        "Find the session that held the lock: log_lock_waits logs it after deadlock_timeout. DDL, an explicit LOCK \
         and long transactions on the same rows take such locks: keep them short and out of the run."
    } else if waits_for(event) == Some(Waits::Wal) {
        "Clients waited for WAL writes. Put pg_wal on a disk of its own or a faster one, check for other users of \
         the disk, and try commit_delay or larger wal_buffers."
    } else if waits_for(event) == Some(Waits::TemporaryFiles) {
        CauseKind::TempFiles.advice()
    } else if event.starts_with("IO:") {
        "Clients waited for file reads or writes. Check for other users of the disk, and whether larger \
         shared_buffers would keep the pages in memory."
    } else if event == "Runnable" {
        "Processors were short. Look for other processes at that time, or run no more clients than there are \
         processors."
    } else if event == "CPU" {
        "Transactions took more processor time. Look for a plan that changed or a table that had grown \
         (bench.statements)."
    } else if event.starts_with("Client:") {
        "The clients waited for their own side, not for the server: look for a delay there."
    } else {
        "Look the wait event up in PostgreSQL's manual under pg_stat_activity, and look for other users of the \
         same resource at that time."
    }
}

/// Whether an event is a vacuum, whoever started it.
pub fn is_vacuum(event: &Event) -> bool {
    event.kind == "vacuum" || event.kind == "autovacuum"
}

fn vacuums_during(document: &Document, dips: &[&Dip]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in document.events.iter().filter(|event| is_vacuum(event)) {
        let ended = event.ended.unwrap_or(f64::INFINITY);
        let during = dips.iter().any(|dip| event.started < dip.end && ended > dip.start);
        let of_what = event.relation.as_ref().map_or(String::new(), |relation| format!(" of {relation}"));
        let name = format!("{}{of_what}{}", event.kind, document.on_node(event.node));
        if during && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

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
