//! What may make throughput fall, and the words for it.

use bench_base::sentence::{MEGABYTE, figure, first_few, percent};
use bench_results::{Document, Event};
use bench_stats::rotation::Coincidence;

use super::detect::Dip;
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
