//! What the coordinator observes beside the clients' own counts, interval by interval.

use bench_base::error::UserError;
use bench_model::spec::{Observation, RunSpec};
use bench_model::timeline::Timeline;
use bench_model::views::{Lag, Replication, ServerCounters, Standby, counters_query, replication_query};
use bench_protocol::foreign_server::Secrets;
use bench_results::Event;
use pgrx::pg_sys;
use serde_json::{Map, Value, json};

use super::events::EventWatch;
use super::machine::{self, MachineReading};
use super::target::{TargetObserved, TargetWatch};
use super::waits::{WaitSampler, WaitTimes};
use crate::server::jsonb::{json_of, merged};
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::shm::Segment;

/// In each stretch of this length there is one look at what the clients wait for: a hundred in a second.
const LOOK_NS: i64 = 10_000_000;

/// Of few clients each look tells little, and costs little: then there are more of them, up to four hundred in a
/// second, so that their states seen in a second are as many as those of this number of clients.
const MANY_CLIENTS: i64 = 16;
const LEAST_LOOK_NS: i64 = 2_500_000;

/// Of very many, each look tells much, and costs much: then there are fewer of them, so that their states seen in a second
/// are as many as those of this number of clients at a hundred looks. They leave the one who looks hardly a processor.
const VERY_MANY_CLIENTS: i64 = 64;

/// Where in its stretch each look is: multiples of the golden ratio, without their whole parts, are spread evenly
/// (Weyl's theorem). Looks at equal distances would always meet a workload of a steady rhythm at the same beat.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// Between two looks whether a checkpoint has ended.
const CHECKPOINT_NS: i64 = 100_000_000;

/// What was observed in an interval. What is not known is `None`.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub waits: WaitTimes,
    machine: Option<MachineReading>,
    server: Option<ServerCounters>,
    /// Checkpoints that began.
    checkpoints: Option<i64>,
    /// At the interval's end.
    lag: Lag,
    /// At the interval's end, as far as the run's role may see them.
    pub standbys: Vec<Standby>,
}

impl Observed {
    /// Adds what came after.
    pub fn merge(&mut self, later: &Observed) {
        self.waits.merge(&later.waits);
        if let Some(more) = later.machine {
            self.machine.get_or_insert_default().merge(more);
        }
        if let Some(more) = later.server {
            self.server.get_or_insert_default().merge(more);
        }
        self.checkpoints = match (self.checkpoints, later.checkpoints) {
            (Some(sum), Some(more)) => Some(sum + more),
            (known, None) | (None, known) => known,
        };
        if later.lag != Lag::default() {
            self.lag = later.lag;
            self.standbys.clone_from(&later.standbys);
        }
    }

    /// What was seen of a target.
    fn of_target(seen: TargetObserved) -> Self {
        let checkpoints = seen.counters.and_then(|counters| counters.checkpoints());
        let mut observed = Self { waits: seen.waits, server: seen.counters, checkpoints, ..Self::default() };
        if let Some(replication) = seen.replication {
            observed.set_replication(replication, true);
        }
        observed
    }

    fn set_replication(&mut self, replication: Replication, tells_standbys: bool) {
        self.lag = replication.lag();
        self.standbys = replication.standbys.filter(|_| tells_standbys).unwrap_or_default();
    }

    /// The values of columns of bench.samples, by their names.
    pub fn columns(&self) -> Map<String, Value> {
        let machine = self.machine.unwrap_or_default();
        let share = |of: fn(&machine::CpuTicks) -> u64| {
            machine.cpu.filter(|cpu| cpu.total() > 0).map(|cpu| of(&cpu) as f64 / cpu.total() as f64)
        };
        let waits: Map<String, Value> =
            self.waits.shares().into_iter().map(|(event, share)| (event, share.into())).collect();
        let others = json!({
            "checkpoints": self.checkpoints,
            "cpu_user": share(|cpu| cpu.user),
            "cpu_system": share(|cpu| cpu.system),
            "cpu_iowait": share(|cpu| cpu.iowait),
            "cpu_steal": share(|cpu| cpu.steal),
            "cpu_idle": share(|cpu| cpu.idle),
            "memory_available_bytes": machine.memory_available_bytes,
            "memory_dirty_bytes": machine.memory_dirty_bytes,
            "disk_read_bytes": machine.disk_read_bytes,
            "disk_written_bytes": machine.disk_written_bytes,
            "throttled_secs": machine.throttled_us.map(|us| us as f64 / 1e6),
            "replay_lag_ms": self.lag.ms,
            "replay_lag_bytes": self.lag.bytes,
            "waits": if waits.is_empty() { Value::Null } else { waits.into() },
        });
        merged([json_of(&self.server.unwrap_or_default()), others])
    }
}

/// How long a stretch is, with so many clients.
fn stretch_ns(clients: i64) -> i64 {
    let of_many = LOOK_NS * clients / VERY_MANY_CLIENTS;
    (LOOK_NS * clients / MANY_CLIENTS).clamp(LEAST_LOOK_NS, LOOK_NS).max(of_many)
}

/// The eyes of one run.
pub struct Observer<'a> {
    mode: Observation,
    /// Whether this interval is observed.
    on: bool,
    waits: WaitSampler<'a>,
    events: EventWatch,
    machine: MachineReading,
    server: ServerCounters,
    next_look_ns: i64,
    /// The stretch's length.
    look_ns: i64,
    /// The stretch that the next look is in: when it began, and how far in it is the look, of 1.
    stretch_ns: i64,
    place: f64,
    next_checkpoint_look_ns: i64,
    /// What was observed until the clients ended, once they have.
    ended: Option<Observed>,
    /// Whether a failure to observe has been told.
    complained: bool,
    role_oid: u32,
    /// The run's role may see the standbys of this server.
    tells_standbys: bool,
    /// The run is on another server, which this one watches, if it can.
    is_remote: bool,
    target: Option<TargetWatch<'a>>,
    timeline: Option<Timeline>,
}

impl<'a> Observer<'a> {
    /// An observer of a run that has not begun.
    pub fn new(segment: &'a Segment, spec: &RunSpec) -> Self {
        Self {
            mode: spec.observation,
            on: false,
            waits: WaitSampler::new(segment),
            events: EventWatch::new(spec.tables().map(pgrx::pg_sys::Oid::from).collect()),
            machine: MachineReading::default(),
            server: ServerCounters::default(),
            next_look_ns: i64::MAX,
            look_ns: stretch_ns(spec.options.clients.into()),
            stretch_ns: 0,
            place: 0.0,
            next_checkpoint_look_ns: i64::MAX,
            ended: None,
            complained: false,
            role_oid: spec.owner().oid,
            tells_standbys: false,
            is_remote: spec.target.is_some(),
            target: None,
            timeline: None,
        }
    }

    /// The run's target is to be observed over a connection of its own.
    pub fn watch(&mut self, segment: &'a Segment, spec: &RunSpec, secrets: &Secrets) {
        let Some(target) = spec.target.as_ref().filter(|_| self.mode != Observation::Off) else { return };
        let is_name = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("application_name");
        let application_name = spec.options.settings.iter().find(is_name).map(|(_, value)| value.as_str());
        let watch = TargetWatch::new(segment, target, application_name, secrets);
        self.target = self.tolerate(watch);
    }

    /// Reads what takes its time, before the run begins.
    pub fn prepare(&mut self, now_ns: i64, is_stopped: impl Fn() -> bool) {
        if let Some(target) = &mut self.target {
            target.prepare(is_stopped);
        }
        if self.mode != Observation::Off && !self.is_remote {
            let prepared = self.events.prepare(now_ns);
            self.tolerate(prepared);
            let shows = shows_standbys_to(self.role_oid);
            self.tells_standbys = self.tolerate(shows).unwrap_or_default();
        }
    }

    /// The first interval begins now. `epoch_offset` is what a reading of the clock in seconds lacks to seconds
    /// since 1970.
    pub fn begin(&mut self, now_ns: i64, timeline: &Timeline, epoch_offset: f64) {
        if self.mode != Observation::Off {
            self.timeline = Some(*timeline);
            let origin_ns = timeline.measure_start_ns;
            self.events.begin(now_ns, origin_ns, origin_ns as f64 / 1e9 + epoch_offset);
            self.start(now_ns);
        }
    }

    /// The measurement begins earlier than planned.
    pub fn move_measurement(&mut self, timeline: &Timeline) {
        self.timeline = self.timeline.map(|_| *timeline);
        self.events.move_origin(timeline.measure_start_ns);
        if let Some(target) = &mut self.target {
            target.move_measurement(timeline);
        }
    }

    fn start(&mut self, now_ns: i64) {
        self.on = true;
        if let (Some(target), Some(timeline)) = (&mut self.target, &self.timeline) {
            target.begin(now_ns, timeline);
        }
        if self.is_remote {
            return;
        }
        self.machine = machine::read();
        let counters = read();
        self.server = self.tolerate(counters).unwrap_or_default();
        self.waits.begin(now_ns);
        self.stretch_ns = now_ns;
        self.plan_look(now_ns);
        self.next_checkpoint_look_ns = now_ns;
    }

    /// The next look is in the next stretch that lies ahead, however late this one was.
    fn plan_look(&mut self, now_ns: i64) {
        let passed = ((now_ns - self.stretch_ns) / self.look_ns).max(0);
        self.stretch_ns += self.look_ns * (passed + 1);
        self.place = (self.place + GOLDEN_RATIO).fract();
        self.next_look_ns = self.stretch_ns + (self.place * self.look_ns as f64) as i64;
    }

    /// When [`Observer::look`] has something to do next.
    pub fn next_look_ns(&self) -> i64 {
        if let Some(target) = &self.target {
            return if self.ended.is_none() { target.next_turn_ns() } else { i64::MAX };
        }
        if self.on && self.ended.is_none() { self.next_look_ns } else { i64::MAX }
    }

    /// Looks at the clients.
    pub fn look(&mut self, now_ns: i64) {
        if now_ns < self.next_look_ns() {
            return;
        }
        if let Some(target) = &mut self.target {
            target.turn(now_ns);
            return;
        }
        self.waits.look(now_ns);
        self.plan_look(now_ns);
        self.events.look_for_begins(now_ns);
        if now_ns >= self.next_checkpoint_look_ns {
            self.next_checkpoint_look_ns = now_ns + CHECKPOINT_NS;
            let looked = self.events.look_for_its_end(now_ns);
            self.tolerate(looked);
        }
    }

    /// The measuring ends now: what the clients and the processors do from here on is not of the run.
    pub fn end(&mut self, now_ns: i64) {
        if self.is_remote {
            if self.on && self.ended.is_none() {
                self.ended = self.target.as_mut().map(|target| Observed::of_target(target.end()));
            }
        } else if self.on && self.ended.is_none() {
            self.waits.look(now_ns);
            self.ended = Some(Observed {
                waits: self.waits.cut(),
                machine: Some(self.read_machine()),
                ..Observed::default()
            });
        }
    }

    fn read_machine(&mut self) -> MachineReading {
        let now = machine::read();
        now.since(std::mem::replace(&mut self.machine, now))
    }

    /// What was observed of the interval that ends now.
    pub fn cut(&mut self, now_ns: i64) -> Observed {
        let was_on = self.on;
        let mut observed = Observed::default();
        if self.is_remote {
            if let (Some(target), true) = (&mut self.target, was_on) {
                let ended = self.ended.as_mut().map(std::mem::take);
                observed = ended.unwrap_or_else(|| Observed::of_target(target.cut()));
            }
        } else if was_on {
            observed = match &mut self.ended {
                Some(ended) => std::mem::take(ended),
                None => {
                    self.waits.look(now_ns);
                    let machine = self.read_machine();
                    Observed { waits: self.waits.cut(), machine: Some(machine), ..Observed::default() }
                }
            };
            let counters = read();
            if let Some(now) = self.tolerate(counters) {
                let since = now.since(std::mem::replace(&mut self.server, now));
                self.events.label_checkpoints(&since);
                observed.server = Some(since);
            }
            let replication = replication();
            if let Some(replication) = self.tolerate(replication) {
                observed.set_replication(replication, self.tells_standbys);
            }
            let looked = self.events.look_for_work(now_ns);
            self.tolerate(looked);
            let begun = self.events.take_begun();
            observed.checkpoints = observed.server.map(|_| begun);
        }
        if self.mode == Observation::Alternate && self.ended.is_none() {
            if was_on {
                self.on = false;
            } else {
                self.start(now_ns);
            }
        }
        observed
    }

    /// Of an interval that ended before the last cut, which has had what was observed: what this one would have is not
    /// known, unless it is its turn not to be observed.
    pub fn cut_late(&mut self, now_ns: i64) -> Observed {
        if self.mode == Observation::Alternate { self.cut(now_ns) } else { Observed::default() }
    }

    /// Looks a last time for the ends of what is under way; all events.
    pub fn finish(&mut self, now_ns: i64) -> Vec<Event> {
        if let Some(mut target) = self.target.take() {
            target.close();
        }
        if self.on && !self.is_remote {
            self.events.look_for_begins(now_ns);
            let looked =
                self.events.look_for_its_end(now_ns).and_then(|()| self.events.look_for_work(now_ns));
            self.tolerate(looked);
        }
        self.events.take()
    }

    /// A run does not fail because it cannot be observed.
    pub fn tolerate<T>(&mut self, result: Result<T, UserError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !std::mem::replace(&mut self.complained, true) {
                    let hint =
                        "The results of the run are not affected, but some of its observations are missing.";
                    crate::error::warn(format!("could not observe the server: {}", error.message), hint);
                }
                None
            }
        }
    }
}

// The server's cumulative counters of WAL, checkpoints and buffers, and how far its standbys are behind.

/// Reads the counters: of the whole server, buffers found and temporary files of this database.
pub fn read() -> Result<ServerCounters, UserError> {
    let query = counters_query(pg_sys::PG_VERSION_NUM.cast_signed(), &[]);
    let values = transaction(|| fetch::<Vec<Option<i64>>>(&query, &[]))?;
    Ok(ServerCounters::new(values.unwrap_or_default()))
}

/// Reads what replicates from this server.
pub fn replication() -> Result<Replication, UserError> {
    let query = format!("SELECT ({})::text", replication_query());
    let json = transaction(|| fetch::<String>(&query, &[]))?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

/// Whether a role may read who replicates from this server (pg_stat_replication).
fn shows_standbys_to(role_oid: u32) -> Result<bool, UserError> {
    let sql = "SELECT pg_has_role($1, 'pg_read_all_stats', 'USAGE')";
    Ok(transaction(|| fetch::<bool>(sql, &[pg_sys::Oid::from(role_oid).into()]))?.unwrap_or_default())
}
