//! The batches of a duel: the clients' counts of each arm are read at the end of each batch.

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
    /// The run ends as soon as it is decided with this margin.
    margin: Option<f64>,
    /// Whether the waits of both arms are sampled.
    knows_waits: bool,
    /// Script and number of each command.
    commands: Vec<(u32, u32)>,
    /// The counts at the end of the last batch.
    counted: Counted,
    read: Vec<ReadBatch>,
}

/// The clients' counts since the begin.
#[derive(Default)]
struct Counted {
    latencies: [Histogram; 2],
    /// For each command: executions and their nanoseconds; executions with processor time and its nanoseconds.
    commands: Vec<[u64; 4]>,
}

/// The counts of one batch.
#[derive(Default)]
struct ReadBatch {
    latencies: [BTreeMap<u32, u64>; 2],
    commands: Vec<ArmBatch>,
}

impl DuelWatch {
    /// Starts watching a run; `None` if it is no duel.
    pub fn of(spec: &RunSpec) -> Option<Self> {
        let duel = spec.options.duel.as_ref()?;
        let mut symbols = Symbols::new();
        let mut commands = Vec::new();
        for (index, script) in (0..).zip(&spec.scripts) {
            // The scripts were parsed without errors before the run.
            let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
            commands.extend((1..).zip(&parsed.commands).map(|(command, _)| (index, command)));
        }
        Some(Self {
            margin: duel.margin,
            // With two targets only arm a's is observed.
            knows_waits: duel.other_target().is_none(),
            commands,
            counted: Counted::default(),
            read: Vec::new(),
        })
    }

    /// Returns the end of the current batch.
    pub fn next_ns(&self, timeline: &Timeline) -> i64 {
        let Timeline { measure_start_ns, measure_end_ns, .. } = *timeline;
        let length_ns = (measure_end_ns - measure_start_ns) / BATCHES as i64;
        match self.read.len() {
            batch if batch + 1 < BATCHES => measure_start_ns + length_ns * (batch as i64 + 1),
            // The last batch ends with the clients.
            _ => i64::MAX,
        }
    }

    /// Reads the batches that have ended by now; returns whether the run is decided.
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

    /// Returns the results after all clients have ended.
    pub fn finish(&mut self, segment: &Segment, times: &WaitTimes) -> DuelMeasured {
        self.read_batch(segment);
        let mut batches = sums(segment);
        let last = batches.iter().rposition(|arms| arms.iter().any(|arm| !arm.is_empty()));
        batches.truncate(last.map_or(0, |last| last + 1));
        for (place, read) in self.read.iter_mut().enumerate() {
            // There may be fewer batches than readings: late counts belong to the last batch.
            let Some(last) = batches.len().checked_sub(1) else { break };
            for (arm, latencies) in
                batches[place.min(last)].iter_mut().zip(std::mem::take(&mut read.latencies))
            {
                arm.add(&ArmBatch { latencies, ..ArmBatch::default() });
            }
        }
        let duel_command = |(at, &(script, command)): (usize, &(u32, u32))| DuelCommand {
            script,
            command,
            batches: self.read.iter().map(|read| read.commands[at].clone()).collect(),
        };
        let commands = self.commands.iter().enumerate().map(duel_command).collect();
        let waits = if self.knows_waits { waits_of(times, &duel::whole(&batches)) } else { Vec::new() };
        DuelMeasured { batches, commands, waits, alone: alone(segment), ..DuelMeasured::default() }
    }
}

/// Returns the usage per transaction of each arm in sessions that had not executed the other arm yet.
fn alone(segment: &Segment) -> [Option<UsedAlone>; 2] {
    [0, 1].map(|arm| {
        let sums = (0..segment.shape().slots).map(|slot| {
            let counters = &segment.slot(slot).alone[arm];
            let sums = [&counters.transactions, &counters.cpu_us, &counters.cpu_us_squared];
            let [transactions, cpu_us, cpu_us_squared] = sums.map(Counter::get);
            let faults = [counters.minor_faults.get(), counters.minor_faults_squared.get()];
            [transactions, cpu_us, cpu_us_squared, faults[0], faults[1]]
        });
        let [transactions, cpu_us, cpu_us_squared, faults, faults_squared] = sums
            .reduce(|all, one| std::array::from_fn(|place| all[place] + one[place]))?
            .map(|sum| sum as f64);
        let (cpu_us, cpu_us_error) = mean_and_error(transactions, cpu_us, cpu_us_squared)?;
        let (minor_faults, minor_faults_error) = mean_and_error(transactions, faults, faults_squared)?;
        Some(UsedAlone { cpu_us, cpu_us_error, minor_faults, minor_faults_error })
    })
}

/// Returns the mean and its standard error from the sum of values and of their squares; `None` for fewer than two values.
fn mean_and_error(count: f64, sum: f64, squares: f64) -> Option<(f64, f64)> {
    let mean = sum / count;
    let variance = (squares - sum * mean).max(0.0) / (count - 1.0);
    (count > 1.0).then(|| (mean, (variance / count).sqrt()))
}

/// Returns the counts of each batch and arm, summed over all clients.
fn sums(segment: &Segment) -> Vec<[ArmBatch; 2]> {
    let mut all = vec![<[ArmBatch; 2]>::default(); BATCHES];
    for slot in 0..segment.shape().slots {
        for (sums, client_batch) in all.iter_mut().zip(segment.arms(slot)) {
            for (sum, one) in sums.iter_mut().zip(client_batch) {
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

/// Returns the wait events of both arms' transactions, those with the largest shares first.
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
