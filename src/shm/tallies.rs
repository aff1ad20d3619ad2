//! What a client counts of each command, and the plans of the commands.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

use bench_stats::Histogram;
use bench_stats::histogram::{BUCKETS, bucket_of};

use super::{Counter, Text};

/// One command of one script as one client executed it, over all phases.
#[derive(Default)]
#[repr(C, align(128))]
pub struct CommandCounters {
    /// Executions that ended without an error.
    pub executions: Counter,
    /// Executions that ended with one.
    pub errors: Counter,
    /// Rows inserted, updated, deleted or returned.
    pub rows: Counter,
    /// Index scans that the plans stood for, while every plan was simple enough to tell.
    pub index_scans: Counter,
    /// 1 when a plan was not.
    pub index_scans_unknown: AtomicU32,
    /// Why its rows or scans need not be those that the server counts: bits of [`unclear`].
    pub unclear: AtomicU32,
    /// What the statement does: a `CmdType` of the server's; 0: unknown or a utility.
    pub command_type: AtomicU32,
    /// The server's query identifier, where it computes one.
    pub query_id: AtomicU64,
    /// The one that it has once its plan was made anew.
    pub later_query_id: AtomicU64,
    /// Executions by a generic plan.
    pub generic_plans: Counter,
    /// Executions by a plan made for the values at hand.
    pub custom_plans: Counter,
    /// How often the plan was of another form than the time before, the step from custom to generic apart.
    pub plan_changes: Counter,
    /// Parallel workers that plans asked for.
    pub workers_planned: Counter,
    /// Those that there were.
    pub workers_launched: Counter,
    /// Executions that were to insert, update, delete or merge rows.
    pub writes: Counter,
    /// Those of them that affected no row.
    pub empty_writes: Counter,
    /// The generic plan that was last looked at: where it is, and its generation; 0: none.
    pub seen_plan: AtomicU64,
    /// The form of the last plan, its lowest bit set where it was generic; 0: none yet.
    pub plan_form: AtomicU64,
}

impl CommandCounters {
    /// Takes over what can be told of the statement, from another slot's counters of the command.
    pub fn copy_traits(&self, from: &CommandCounters) {
        self.unclear.store(from.unclear.load(Relaxed), Relaxed);
        self.command_type.store(from.command_type.load(Relaxed), Relaxed);
        self.query_id.store(from.query_id.load(Relaxed), Relaxed);
        self.later_query_id.store(from.later_query_id.load(Relaxed), Relaxed);
    }

    /// The identifiers under which the server counts the statement; none where it computes none.
    pub fn query_ids(&self) -> impl Iterator<Item = i64> {
        [&self.query_id, &self.later_query_id]
            .map(|id| id.load(Relaxed).cast_signed())
            .into_iter()
            .filter(|&id| id != 0)
    }

    /// Notes one more reason, a bit of [`unclear`]. The client is the only writer.
    #[inline]
    pub fn add_unclear(&self, bit: u32) {
        self.unclear.store(self.unclear.load(Relaxed) | bit, Relaxed);
    }
}

/// Bits of [`CommandCounters::unclear`].
pub mod unclear {
    /// The statement touches a relation that is not a table of the fixture, or changes rows in several ways.
    pub const OUTSIDE: u32 = 1;
    /// It inserts rows and takes some of them back.
    pub const TAKES_BACK: u32 = 2;
    /// It may move rows from partition to partition.
    pub const MOVES: u32 = 4;
    /// Planning it may look up the ends of an index.
    pub const LOOKS_AT_ENDS: u32 = 8;
}

/// What the server does not count of the clients' sessions: bits of [`Header::untracked`](super::Header::untracked).
pub mod untracked {
    /// track_counts is off.
    pub const COUNTS: u32 = 1;
    /// pg_stat_statements.track is none.
    pub const CALLS: u32 = 2;
}

/// Bytes that are kept of a plan's text.
const PLAN_BYTES: usize = 3584;

/// How many forms of one command's plan are kept.
const PLAN_FORMS: usize = 6;

/// The forms that a command's plan has had, over all clients, in no order.
#[repr(C)]
pub struct CommandPlans {
    forms: [PlanForm; PLAN_FORMS],
}

/// One form of a plan.
#[repr(C)]
pub struct PlanForm {
    /// What tells it from others, its lowest bit set where it is generic; 0: free.
    form: AtomicU64,
    /// When it was first seen, by CLOCK_MONOTONIC.
    pub first_ns: AtomicI64,
    /// As EXPLAIN shows it, without costs.
    pub text: Text<PLAN_BYTES>,
}

impl CommandPlans {
    /// A place for this form, if nobody has taken one and there is one left.
    pub fn claim(&self, form: u64) -> Option<&PlanForm> {
        for place in &self.forms {
            match place.form.compare_exchange(0, form, AcqRel, Acquire) {
                Ok(_) => return Some(place),
                Err(taken) if taken == form => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Those that have been described: when each was first seen, and its text, by preference the generic one.
    pub fn described(&self) -> Vec<(i64, String)> {
        let mut forms: Vec<(u64, i64, String)> = Vec::new();
        for place in &self.forms {
            let Some(mut text) = place.text.get() else { continue };
            // Cut, but for what a character may need.
            if text.len() > PLAN_BYTES - 4 {
                text.push('…');
            }
            let (form, first_ns) = (place.form.load(Relaxed), place.first_ns.load(Relaxed));
            match forms.iter_mut().find(|(other, ..)| other & !1 == form & !1) {
                None => forms.push((form, first_ns, text)),
                Some(other) => {
                    other.1 = other.1.min(first_ns);
                    if form & 1 == 1 {
                        other.2 = text;
                    }
                }
            }
        }
        let mut forms: Vec<(i64, String)> =
            forms.into_iter().map(|(_, first_ns, text)| (first_ns, text)).collect();
        forms.sort();
        forms
    }
}

/// How many buckets of a run's histogram make one of [`CommandTimes`], which so is at most 1.6 % wide.
const COARSENESS: usize = 2;

/// One command of one script as one client executed it while measuring.
#[repr(C, align(128))]
pub struct CommandTimes {
    /// Executions that ended without an error.
    pub count: Counter,
    /// Tries that ended at this command and were followed by another one.
    pub retried: Counter,
    /// Transactions that were given up at this command.
    pub failed: Counter,
    latency_sum_ns: Counter,
    /// Of a duel: executions whose processor time is known, and nanoseconds of them together.
    pub timed: Counter,
    pub cpu_sum_ns: Counter,
    histogram: [AtomicU32; BUCKETS / COARSENESS],
}

impl CommandTimes {
    /// Counts an execution.
    #[inline]
    pub fn record(&self, latency_ns: u64) {
        self.count.add(1);
        self.latency_sum_ns.add(latency_ns);
        let bucket = &self.histogram[bucket_of(latency_ns) / COARSENESS];
        bucket.store(bucket.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Nanoseconds of all executions together.
    pub fn latency_sum_ns(&self) -> u64 {
        self.latency_sum_ns.get()
    }

    /// Adds the latencies to a histogram, in the middle of where they may lie.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (bucket, count) in self.histogram.iter().enumerate() {
            let count = count.load(Relaxed);
            if count > 0 {
                histogram.add(bucket * COARSENESS + COARSENESS / 2, count.into());
            }
        }
    }
}
