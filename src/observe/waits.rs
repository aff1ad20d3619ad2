//! What the clients wait for, sampled from their entries in the server's process array, as
//! pg_stat_activity reads it, and their processor time.
//!
//! A sample stands for half of the time since the one before and half of the time until the next. Even so a
//! sampler that gets no processor wakes when a client has let go of one, and so sees clients running too rarely.
//! How long they ran is therefore not sampled: their processor time tells it. Of the rest, the time without a wait
//! event is that of waiting for a processor.

use std::collections::BTreeMap;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::server::process::cpu_ns;
use crate::shm::{ClientSession, Segment};

/// Of how many connections context switches are read, in equal steps over all of them: the kernel writes a text each time.
const SWITCHES_OF: usize = 100;

/// Key of the time in which a client ran on a processor.
const CPU: &str = "CPU";
/// Key of the time in which it waited for one.
const RUNNABLE: &str = "Runnable";

/// Number of the time of clients that ended before they were looked at; no wait event has it.
const UNOBSERVED: u32 = u32::MAX;

/// The most names of another server's wait events that are told apart, several times as many as any version has. The time
/// of others is that of sessions that were not observed.
const MOST_NAMES: usize = 1000;

/// Clients' time by what they waited for, nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct WaitTimes {
    /// By the server's number of the wait event; 0: they waited for nothing.
    by_event: BTreeMap<u32, i64>,
    /// By the names that another server has for them.
    by_name: BTreeMap<String, i64>,
    /// In a duel: by event, of each arm's clients.
    of_arms: [BTreeMap<u32, i64>; 2],
    cpu_ns: i64,
    /// Whether the processor time of any client could not be read.
    cpu_unknown: bool,
    /// Context switches of some connections' backends.
    pub switches: Switches,
}

impl WaitTimes {
    fn add(&mut self, event: u32, ns: i64) {
        add(&mut self.by_event, event, ns);
    }

    /// Adds the time of sessions of another server, by what they were seen to wait for. How much of the rest they waited for
    /// a processor is not known of them.
    pub fn add_remote(&mut self, sessions: BTreeMap<String, i64>, ns: i64) {
        self.cpu_unknown = true;
        for (event, count) in sessions {
            let ns = ns.saturating_mul(count.max(0));
            if event == CPU {
                self.add(0, ns);
            } else {
                self.add_named(event, ns);
            }
        }
    }

    fn add_named(&mut self, event: String, ns: i64) {
        if ns <= 0 {
        } else if let Some(sum) = self.by_name.get_mut(&event) {
            *sum = sum.saturating_add(ns);
        } else if self.by_name.len() < MOST_NAMES {
            self.by_name.insert(event, ns);
        } else {
            self.add(UNOBSERVED, ns);
        }
    }

    /// Adds other times.
    pub fn merge(&mut self, other: &WaitTimes) {
        other.by_event.iter().for_each(|(&event, &ns)| self.add(event, ns));
        for (event, &ns) in &other.by_name {
            self.add_named(event.clone(), ns);
        }
        for (arm, other) in self.of_arms.iter_mut().zip(&other.of_arms) {
            other.iter().for_each(|(&event, &ns)| add(arm, event, ns));
        }
        self.cpu_ns += other.cpu_ns;
        self.cpu_unknown |= other.cpu_unknown;
        self.switches.merge(other.switches);
    }

    /// Processor time of all clients; `None` where that of any could not be read.
    pub fn cpu_ns(&self) -> Option<i64> {
        (!self.cpu_unknown).then_some(self.cpu_ns)
    }

    /// Shares of the clients' time, which add up to 1, the greatest first; none where nothing was sampled.
    pub fn shares(&self) -> Vec<(String, f64)> {
        shares(&self.by_event, &self.by_name, self.cpu_ns())
    }

    /// The same of each arm of a duel, where its processor time in nanoseconds is known.
    pub fn shares_of_arms(&self, cpu_ns: [Option<i64>; 2]) -> [Vec<(String, f64)>; 2] {
        [0, 1].map(|arm| shares(&self.of_arms[arm], &BTreeMap::new(), cpu_ns[arm]))
    }
}

fn add(times: &mut BTreeMap<u32, i64>, event: u32, ns: i64) {
    if ns > 0 {
        let sum = times.entry(event).or_default();
        *sum = sum.saturating_add(ns);
    }
}

/// Shares of times by event and by name, which add up to 1, the greatest first. Without the processor time, what has no
/// event is all of it.
fn shares(
    by_event: &BTreeMap<u32, i64>,
    by_name: &BTreeMap<String, i64>,
    cpu_ns: Option<i64>,
) -> Vec<(String, f64)> {
    let total_ns = by_event.values().chain(by_name.values()).fold(0_i64, |sum, &ns| sum.saturating_add(ns));
    if total_ns <= 0 {
        return Vec::new();
    }
    let without_event_ns = by_event.get(&0).copied().unwrap_or_default();
    let cpu_ns = cpu_ns.map_or(without_event_ns, |cpu_ns| cpu_ns.clamp(0, total_ns));
    let runnable_ns = (without_event_ns - cpu_ns).max(0);
    let total = total_ns as f64;
    let mut shares =
        vec![(CPU.to_owned(), cpu_ns as f64 / total), (RUNNABLE.to_owned(), runnable_ns as f64 / total)];
    // What was seen running too rarely was seen waiting too often.
    let waiting_ns = total_ns - without_event_ns;
    let scale = (total_ns - cpu_ns - runnable_ns) as f64 / waiting_ns.max(1) as f64;
    let events = by_event.iter().filter(|&(&event, _)| event != 0);
    shares.extend(events.map(|(&event, &ns)| (name(event), ns as f64 * scale / total)));
    let named = by_name.iter();
    shares.extend(named.map(|(event, &ns)| (event.clone(), ns as f64 * scale / total)));
    shares.retain(|(_, share)| *share > 0.0);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// The type and the name of a wait event from its key in bench.samples.
pub fn split(key: &str) -> (&str, &str) {
    key.split_once(':').unwrap_or((key, key))
}

/// A wait event as pg_stat_activity shows it.
fn name(event: u32) -> String {
    if event == UNOBSERVED {
        return "Unobserved".to_owned();
    }
    // SAFETY: both functions know every number, and return constants or palloc'd texts.
    unsafe {
        let text = |pointer: *const std::ffi::c_char| {
            if pointer.is_null() { "???".into() } else { CStr::from_ptr(pointer).to_string_lossy() }
        };
        let kind = text(pg_sys::pgstat_get_wait_event_type(event));
        format!("{kind}:{}", text(pg_sys::pgstat_get_wait_event(event)))
    }
}

/// Looks at the clients of one run.
pub struct WaitSampler<'a> {
    segment: &'a Segment,
    clients: Vec<Watched>,
    /// When they were last looked at.
    looked_ns: i64,
    times: WaitTimes,
}

/// A client under observation.
struct Watched {
    /// Its entry in the process array, which lasts as long as the server; NULL: it has ended.
    process: *const pg_sys::PGPROC,
    pid: i32,
    /// What it waited for when it was last looked at; `None` before the first look, when it may still have
    /// stood at the gate.
    event: Option<u32>,
    /// Its processor time at the last cut; `None` where it cannot be read.
    cpu_ns: Option<i64>,
    /// Its context switches and its transactions at the last cut; `None` where they are not read.
    switches: Option<(i64, u64)>,
}

impl<'a> WaitSampler<'a> {
    /// A sampler of clients that need not have started.
    pub fn new(segment: &'a Segment) -> Self {
        Self { segment, clients: Vec::new(), looked_ns: 0, times: WaitTimes::default() }
    }

    /// Begins, or begins anew: what was sampled before is forgotten.
    pub fn begin(&mut self, now_ns: i64) {
        self.looked_ns = now_ns;
        self.times = WaitTimes::default();
        self.clients = self.segment.sessions().map(|session| Watched::new(&session)).collect();
        // A client of the engine counts its own.
        if self.segment.shape().connections > 0 {
            let step = self.clients.len().div_ceil(SWITCHES_OF).max(1);
            let watched = self.clients.iter_mut().zip(self.segment.sessions()).step_by(step);
            watched.for_each(|(client, session)| client.read_switches(&session));
        }
    }

    /// Looks at every client.
    pub fn look(&mut self, now_ns: i64) {
        let gap_ns = now_ns - self.looked_ns;
        for (client, session) in self.clients.iter_mut().zip(self.segment.sessions()) {
            if session.pid != client.pid && session.pid != 0 {
                let reads_switches = client.switches.is_some();
                *client = Watched::new(&session);
                if reads_switches {
                    client.read_switches(&session);
                }
                // The processor time of the session before ended with it.
                self.times.cpu_unknown = true;
            }
            if client.process.is_null() {
                continue;
            }
            match client.look().filter(|_| !session.is_over()) {
                Some(event) => {
                    // Its stretches are shorter than the gap: it is the arm of this look that the time is of.
                    if let Some(times) = session.arm.and_then(|arm| self.times.of_arms.get_mut(arm)) {
                        add(times, event, gap_ns);
                    }
                    self.times.add(client.event.unwrap_or(event), gap_ns / 2);
                    self.times.add(event, gap_ns - gap_ns / 2);
                    client.event = Some(event);
                }
                None => {
                    let ended_ns = session.ended_ns;
                    let ended_ns = if ended_ns == 0 { now_ns } else { ended_ns.min(now_ns) };
                    self.times.add(client.event.unwrap_or(UNOBSERVED), ended_ns - self.looked_ns);
                    client.process = std::ptr::null();
                }
            }
        }
        self.looked_ns = now_ns;
    }

    /// What was sampled since the last cut.
    pub fn cut(&mut self) -> WaitTimes {
        for (client, session) in self.clients.iter_mut().zip(self.segment.sessions()) {
            if let Some((count, transactions)) = client.switches {
                client.read_switches(&session);
                if let Some((now, ended)) = client.switches {
                    self.times.switches.add(now - count, ended - transactions);
                }
            }
            let Some(before_ns) = client.cpu_ns else {
                self.times.cpu_unknown |= !client.process.is_null();
                continue;
            };
            // One that has ended has left its own.
            let of_ended = session.cpu_ns;
            let now_ns = if of_ended > 0 { Some(of_ended) } else { cpu_ns(client.pid) };
            let now_ns = now_ns.unwrap_or(before_ns);
            self.times.cpu_ns += now_ns - before_ns;
            client.cpu_ns = Some(now_ns);
        }
        std::mem::take(&mut self.times)
    }
}

/// Sessions of which is watched whether they wait for heavyweight locks.
pub struct LockWatch(Vec<Watched>);

impl LockWatch {
    /// Watches the clients of a run, and another session.
    pub fn new(run: &Segment, other: i32) -> Self {
        let clients = run.sessions().map(|session| Watched::new(&session));
        Self(clients.chain([Watched::of_backend(other)]).collect())
    }

    /// Whether any of them waits for a lock.
    pub fn anyone_waits(&self) -> bool {
        // The highest byte is the class of the wait event.
        self.0
            .iter()
            .any(|watched| watched.look().is_some_and(|event| event & 0xFF00_0000 == pg_sys::PG_WAIT_LOCK))
    }
}

impl Watched {
    /// Begins to watch a backend.
    fn of_backend(pid: i32) -> Self {
        // SAFETY: searches the shared process array.
        let process = unsafe { pg_sys::BackendPidGetProc(pid) };
        Self { process, pid, event: None, cpu_ns: None, switches: None }
    }

    /// Begins to watch a client.
    fn new(session: &ClientSession) -> Self {
        let pid = session.pid;
        let process = if session.is_over() {
            std::ptr::null_mut()
        } else {
            // SAFETY: searches the shared process array.
            unsafe { pg_sys::BackendPidGetProc(pid) }
        };
        Self { process, pid, event: None, cpu_ns: cpu_ns(pid), switches: None }
    }

    /// Reads its context switches anew. One that has ended has left its own; where it has not, it is left out from here on.
    fn read_switches(&mut self, session: &ClientSession) {
        let left = session.switches;
        let count = if left > 0 { Some(left) } else { of_process(self.pid) };
        self.switches = count.map(|count| (count, session.attempts));
    }

    /// What it waits for; `None` when it has ended.
    fn look(&self) -> Option<u32> {
        // SAFETY: entries of the process array are never freed; another process may have taken this one, which
        // its pid tells, and the number is read whole, as pg_stat_activity reads it.
        unsafe {
            let process = self.process.as_ref()?;
            let pid = (&raw const process.pid).read_volatile();
            let event = (&raw const process.wait_event_info).read_volatile();
            (pid == self.pid).then_some(event)
        }
    }
}

// Context switches of processes, on platforms that provide them.

/// Context switches of a process so far, voluntary or not, as /proc/PID/status has them (proc(5)); `None` where there is no
/// such process, or the platform does not tell.
pub fn of_process(pid: i32) -> Option<i64> {
    if pid == 0 {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let count = |key: &str| -> Option<i64> {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    };
    Some(count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?)
}

/// Context switches, and the transactions that had ended with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    count: i64,
    transactions: u64,
}

impl Switches {
    /// Adds others.
    pub fn add(&mut self, count: i64, transactions: u64) {
        self.count += count;
        self.transactions += transactions;
    }

    /// Adds those of another time.
    pub fn merge(&mut self, other: Self) {
        self.add(other.count, other.transactions);
    }

    /// For each transaction; `None` without one.
    pub fn per_transaction(self) -> Option<f64> {
        (self.transactions > 0).then(|| self.count as f64 / self.transactions as f64)
    }
}
