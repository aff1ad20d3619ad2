//! The batches of a duel: what clients count of each arm is read where one ends.

use std::collections::BTreeMap;

use bench_model::spec::RunSpec;
use bench_model::timeline::Timeline;
use bench_results::{DuelCommand, DuelMeasured, DuelWait, UsedAlone};
use bench_script::{Symbols, parse};
use bench_stats::Histogram;
use bench_stats::duel;
use bench_stats::duel::{ArmBatch, BATCHES};

use crate::observe::waits::{self, WaitTimes};
use crate::shm::{Counter, Segment};

/// The batches of a run that have ended.
pub struct DuelWatch {
    /// The run ends as soon as it is decided by this.
    margin: Option<f64>,
    /// Whether the waits of both arms are sampled.
    knows_waits: bool,
    /// Script and place of each command.
    commands: Vec<(u32, u32)>,
    /// What had been counted when the last one ended.
    counted: Counted,
    read: Vec<ReadBatch>,
}

/// What the clients have counted so far.
#[derive(Default)]
struct Counted {
    latencies: [Histogram; 2],
    /// Of each command: executions and nanoseconds of them together, executions whose processor time is known and its nanoseconds.
    commands: Vec<[u64; 4]>,
}

/// What was counted in a batch.
#[derive(Default)]
struct ReadBatch {
    latencies: [BTreeMap<u32, u64>; 2],
    commands: Vec<ArmBatch>,
}

impl DuelWatch {
    /// `None` of a run that is no duel.
    pub fn of(spec: &RunSpec) -> Option<Self> {
        let duel = spec.options.duel.as_ref()?;
        let mut symbols = Symbols::new();
        let mut commands = Vec::new();
        for (script, of) in (0..).zip(&spec.scripts) {
            // It was parsed before the run began.
            let Ok(parsed) = parse(&of.name, &of.source, &mut symbols) else { continue };
            commands.extend((1..).zip(&parsed.commands).map(|(command, _)| (script, command)));
        }
        Some(Self {
            margin: duel.margin,
            // Of two targets that of arm a is watched.
            knows_waits: duel.other_target().is_none(),
            commands,
            counted: Counted::default(),
            read: Vec::new(),
        })
    }

    /// When the batch under way ends.
    pub fn next_ns(&self, timeline: &Timeline) -> i64 {
        let Timeline { measure_start_ns, measure_end_ns, .. } = *timeline;
        let length_ns = (measure_end_ns - measure_start_ns) / BATCHES as i64;
        match self.read.len() {
            of_run if of_run + 1 < BATCHES => measure_start_ns + length_ns * (of_run as i64 + 1),
            // The last one ends with the clients.
            _ => i64::MAX,
        }
    }

    /// Reads the batches that have ended by now; whether the run is decided.
    pub fn look(&mut self, segment: &Segment, timeline: &Timeline, now_ns: i64) -> bool {
        while now_ns >= self.next_ns(timeline) {
            self.read_batch(segment);
            let count = self.read.len();
            if let Some(margin) = self.margin
                && duel::is_look(count)
                && duel::is_decided(&sums(segment)[..count], margin)
            {
                return true;
            }
        }
        false
    }

    fn read_batch(&mut self, segment: &Segment) {
        let mut now = Counted { commands: vec![[0; 4]; self.commands.len()], ..Counted::default() };
        for slot in 0..segment.shape().slots {
            for (script, tally) in segment.tallies(slot).iter().enumerate() {
                tally.add_to(&mut now.latencies[script % 2]);
            }
            for (sum, times) in now.commands.iter_mut().zip(segment.times(slot)) {
                let counts =
                    [times.count.get(), times.latency_sum_ns(), times.timed.get(), times.cpu_sum_ns.get()];
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        let before = std::mem::replace(&mut self.counted, now);
        let since = |arm: usize| {
            let mut known: BTreeMap<usize, u64> = before.latencies[arm].iter_nonzero().collect();
            let counts = self.counted.latencies[arm].iter_nonzero().map(move |(bucket, count)| {
                (bucket as u32, count.saturating_sub(known.remove(&bucket).unwrap_or_default()))
            });
            counts.filter(|(_, count)| *count > 0).collect()
        };
        let none = std::iter::repeat([0; 4]);
        let commands = self.counted.commands.iter().zip(before.commands.iter().copied().chain(none));
        let commands = commands.map(|(now, before)| {
            let [transactions, latency_ns, timed, cpu_ns] =
                std::array::from_fn(|at| now[at].saturating_sub(before[at]));
            let (latency_ms, cpu_us) = (latency_ns as f64 / 1e6, cpu_ns as f64 / 1e3);
            ArmBatch { transactions, latency_ms, timed, cpu_us, ..ArmBatch::default() }
        });
        self.read.push(ReadBatch { latencies: [since(0), since(1)], commands: commands.collect() });
    }

    /// All that was measured, when all clients have ended.
    pub fn finish(&mut self, segment: &Segment, times: &WaitTimes) -> DuelMeasured {
        self.read_batch(segment);
        let mut batches = sums(segment);
        let last = batches.iter().rposition(|arms| arms.iter().any(|arm| !arm.is_empty()));
        batches.truncate(last.map_or(0, |last| last + 1));
        for (place, read) in self.read.iter_mut().enumerate() {
            // What came after the last reading is of the last batch, of which there may be less.
            let Some(last) = batches.len().checked_sub(1) else { break };
            for (arm, latencies) in
                batches[place.min(last)].iter_mut().zip(std::mem::take(&mut read.latencies))
            {
                arm.add(&ArmBatch { latencies, ..ArmBatch::default() });
            }
        }
        let of_command = |(at, &(script, command)): (usize, &(u32, u32))| DuelCommand {
            script,
            command,
            batches: self.read.iter().map(|read| read.commands[at].clone()).collect(),
        };
        let commands = self.commands.iter().enumerate().map(of_command).collect();
        let waits = if self.knows_waits { waits_of(times, &duel::whole(&batches)) } else { Vec::new() };
        DuelMeasured { batches, commands, waits, alone: alone(segment), ..DuelMeasured::default() }
    }
}

/// What a transaction of each arm used in sessions that had executed no other.
fn alone(segment: &Segment) -> [Option<UsedAlone>; 2] {
    [0, 1].map(|arm| {
        let of_slots = (0..segment.shape().slots).map(|slot| &segment.slot(slot).alone[arm]);
        let sums = of_slots.map(|one| {
            let sums = [&one.transactions, &one.cpu_us, &one.cpu_us_squared];
            let [transactions, cpu_us, cpu_us_squared] = sums.map(Counter::get);
            [transactions, cpu_us, cpu_us_squared, one.minor_faults.get(), one.minor_faults_squared.get()]
        });
        let [transactions, cpu_us, cpu_us_squared, faults, faults_squared] = sums
            .reduce(|all, one| std::array::from_fn(|place| all[place] + one[place]))?
            .map(|sum| sum as f64);
        let (cpu_us, cpu_us_error) = mean_and_error(transactions, cpu_us, cpu_us_squared)?;
        let (minor_faults, minor_faults_error) = mean_and_error(transactions, faults, faults_squared)?;
        Some(UsedAlone { cpu_us, cpu_us_error, minor_faults, minor_faults_error })
    })
}

/// The mean of values whose sum and sum of squares are known, and its standard error; `None` of fewer than two.
fn mean_and_error(count: f64, sum: f64, squares: f64) -> Option<(f64, f64)> {
    let mean = sum / count;
    let variance = (squares - sum * mean).max(0.0) / (count - 1.0);
    (count > 1.0).then(|| (mean, (variance / count).sqrt()))
}

/// What each client has counted of each batch, of all of them together.
fn sums(segment: &Segment) -> Vec<[ArmBatch; 2]> {
    let mut all = vec![<[ArmBatch; 2]>::default(); BATCHES];
    for slot in 0..segment.shape().slots {
        for (sums, of_client) in all.iter_mut().zip(segment.arms(slot)) {
            for (sum, one) in sums.iter_mut().zip(of_client) {
                sum.add(&ArmBatch {
                    transactions: one.transactions.get(),
                    latency_ms: one.latency_ns.get() as f64 / 1e6,
                    failed: one.failed.get(),
                    retried: one.retried.get(),
                    timed: one.timed.get(),
                    cpu_us: one.cpu_ns.get() as f64 / 1e3,
                    counted: one.counted.get(),
                    blocks: one.blocks.get(),
                    wal_bytes: one.wal_bytes.get(),
                    rows: one.rows.get(),
                    minor_faults: one.minor_faults.get(),
                    latencies: BTreeMap::new(),
                });
            }
        }
    }
    all
}

/// What the arms' transactions waited for.
fn waits_of(times: &WaitTimes, arms: &[ArmBatch; 2]) -> Vec<DuelWait> {
    let cpu_ns = [0, 1].map(|arm| (arms[arm].timed > 0).then(|| (arms[arm].cpu_us * 1e3) as i64));
    let mut waits: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (arm, shares) in times.shares_of_arms(cpu_ns).into_iter().enumerate() {
        for (event, share) in shares {
            waits.entry(event).or_default()[arm] = share;
        }
    }
    let mut waits: Vec<DuelWait> = waits
        .into_iter()
        .map(|(event, [a, b])| {
            let (wait_event_type, wait_event) = waits::split(&event);
            let (wait_event_type, wait_event) = (wait_event_type.to_owned(), wait_event.to_owned());
            DuelWait { wait_event_type, wait_event, a, b }
        })
        .collect();
    waits.sort_by(|one, other| (other.a + other.b).total_cmp(&(one.a + one.b)));
    waits
}
