//! The server: other sessions, checkpoints, what holds back vacuum and WAL, settings; and its machine: other load, frequency
//! governors, swapping.

use bench_base::number::bytes;
use bench_base::sentence::{counted, first_few, grouped, listed, percent, seconds};
use bench_model::spec::Before;

use crate::preflight::situation::{
    Announced, Checkpoint, Holder, MachineState, PlannedRun, ReplicationSlot, Risk, RiskTopic, Situation,
    notice, warning,
};

/// Seconds from which on a transaction is old, and transaction ids for one whose begin the role may not see: as many as a
/// busy server assigns in a second.
const OLD_SECS: f64 = 1.0;
const OLD_XIDS: f64 = 1000.0;

/// The state of a slot that nobody follows.
const UNUSED: &str = "inactive";

/// Share of the WAL between two checkpoints from which on the next is near.
const MOST_WAL: f64 = 0.75;

/// The risks of a server.
pub fn risks(situation: &Situation) -> Vec<Risk> {
    let (plan, server) = (&situation.plan, &situation.server);
    let mut risks = Vec::new();
    risks.extend(server.holders.as_ref().and_then(|holders| horizon(plan, holders)));
    risks.extend(server.checkpoint.as_ref().and_then(|checkpoint| checkpoint_risk(plan, checkpoint)));
    let most_wal = server.checkpoint.as_ref().map(|checkpoint| checkpoint.max_wal_bytes);
    risks.extend(server.slots.as_ref().zip(most_wal).and_then(|(slots, most)| retained(slots, most)));
    risks.extend(server.statement_timeout_secs.and_then(|limit| timeout(plan, limit)));
    risks.extend(server.runs.and_then(other_runs));
    risks.extend(server.active.and_then(others));
    risks.extend(safety(situation));
    risks
}

fn timeout(plan: &PlannedRun, limit: f64) -> Option<Risk> {
    let secs = plan.secs.filter(|&secs| secs >= limit)?;
    Some(warning(
        RiskTopic::Timeout,
        format!(
            "The session's statement_timeout ({}) ends a call that waits for the {} of the run.",
            seconds(limit),
            seconds(secs)
        ),
        "Use bench.start, which does not wait, or SET statement_timeout = 0.",
        Announced::Always,
    ))
}

fn other_runs(runs: i64) -> Option<Risk> {
    (runs > 0).then(|| {
        let verb = if runs == 1 { "is" } else { "are" };
        warning(
            RiskTopic::Load,
            format!("{} {verb} under way.", counted(runs.unsigned_abs(), "other run")),
            "They share the server, and none measures what it does alone. See bench.progress, and wait for their end.",
            Announced::Always,
        )
    })
}

fn others(active: i64) -> Option<Risk> {
    (active > 0).then(|| {
        let sessions = counted(active.unsigned_abs(), "other session");
        let verb = if active == 1 { "executes a statement" } else { "execute statements" };
        warning(
            RiskTopic::Load,
            format!("{sessions} {verb}."),
            "See pg_stat_activity (state = 'active'), and bench.progress for other runs. Wait for their end.",
            Announced::Always,
        )
    })
}

impl Holder {
    /// Whether it is more than a transaction that ends in a moment. A slot's horizon moves with its standby, if it is
    /// followed; a prepared transaction waits for somebody's command.
    pub(crate) fn is_old(&self) -> bool {
        self.state.as_deref() == Some(UNUSED)
            || self.secs.map_or(self.age >= OLD_XIDS, |secs| secs >= OLD_SECS)
    }

    fn describe(&self) -> String {
        let name = match self.kind.as_str() {
            "session" => format!("the session with pid {}", self.name),
            kind => format!("{kind} \"{}\"", self.name),
        };
        let details: Vec<String> = self
            .state
            .clone()
            .into_iter()
            .chain(self.secs.map(|secs| format!("since {}", seconds(secs))))
            .chain((self.age > 0.0).then(|| format!("{} transactions old", grouped(self.age))))
            .collect();
        if details.is_empty() { name } else { format!("{name} ({})", details.join(", ")) }
    }
}

fn horizon(plan: &PlannedRun, holders: &[Holder]) -> Option<Risk> {
    if !plan.writes {
        return None;
    }
    let mut old: Vec<&Holder> = holders.iter().filter(|holder| holder.is_old()).collect();
    old.sort_by(|a, b| b.age.total_cmp(&a.age).then_with(|| a.name.cmp(&b.name)));
    let described: Vec<String> = old.iter().map(|holder| holder.describe()).collect();
    let verb = if old.len() == 1 { "holds" } else { "hold" };
    (!old.is_empty()).then(|| {
        warning(
            RiskTopic::Horizon,
            format!(
                "{} {verb} back the xmin horizon: rows that the run updates or deletes cannot be removed.",
                capitalized(&first_few(&described))
            ),
            "End the old transaction or prepared transaction, or drop the replication slot, before the run. Tables \
             bloat as long as it exists.",
            Announced::Always,
        )
    })
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn checkpoint_risk(plan: &PlannedRun, checkpoint: &Checkpoint) -> Option<Risk> {
    const SAME: &str = "Use before => 'checkpoint', so that every run starts right after one, or run for several times \
                        checkpoint_timeout.";
    // It waits for the one under way, and starts the time and the WAL to the next one anew.
    if plan.does(Before::Checkpoint) {
        return None;
    }
    if checkpoint.is_under_way {
        let text =
            "A checkpoint is under way: its writes overlap with this run, and other runs may not have them.";
        return Some(warning(RiskTopic::Checkpoint, text.to_owned(), SAME, Announced::if_so(plan.writes)));
    }
    // Without writes there is nothing that it would have to write.
    let secs = plan.secs.filter(|_| plan.writes)?;
    let Checkpoint { since_secs, timeout_secs, wal_bytes, max_wal_bytes, completion_target, .. } =
        *checkpoint;
    // As CalculateCheckpointSegments in xlog.c.
    let distance = max_wal_bytes / (1.0 + completion_target);
    // A run as long as the interval has one in any case.
    let finding = if secs >= timeout_secs {
        None
    } else if since_secs >= timeout_secs {
        Some(format!(
            "The last checkpoint began {} ago, which is more than checkpoint_timeout ({}), because the server was \
             idle: the next one may begin during the run.",
            seconds(since_secs),
            seconds(timeout_secs)
        ))
    } else if since_secs + secs >= timeout_secs {
        Some(format!(
            "A checkpoint is due in {} (checkpoint_timeout), within the {} of the run.",
            seconds(timeout_secs - since_secs),
            seconds(secs)
        ))
    } else if since_secs + secs + plan.further_secs >= timeout_secs {
        Some(format!(
            "A checkpoint is due in {} (checkpoint_timeout), which is within the run if its warm-up takes longer than {}.",
            seconds(timeout_secs - since_secs),
            seconds(timeout_secs - since_secs - secs)
        ))
    } else {
        None
    };
    let finding = finding.or_else(|| {
        (wal_bytes >= MOST_WAL * distance && distance > 0.0).then(|| {
            format!(
                "The next checkpoint begins at about {} of WAL (max_wal_size), of which {} are written.",
                bytes(Some(distance)),
                bytes(Some(wal_bytes))
            )
        })
    })?;
    Some(Risk { announced: Announced::InLongRuns, ..notice(RiskTopic::Checkpoint, finding, SAME) })
}

fn retained(slots: &[ReplicationSlot], max_wal_bytes: f64) -> Option<Risk> {
    let mut large: Vec<&ReplicationSlot> =
        slots.iter().filter(|slot| slot.wal_bytes > max_wal_bytes).collect();
    large.sort_by(|a, b| b.wal_bytes.total_cmp(&a.wal_bytes).then_with(|| a.name.cmp(&b.name)));
    let described: Vec<String> = large
        .iter()
        .map(|slot| {
            let inactive = if slot.active { "" } else { " (inactive)" };
            format!("\"{}\"{inactive} {}", slot.name, bytes(Some(slot.wal_bytes)))
        })
        .collect();
    (!large.is_empty()).then(|| {
        warning(
            RiskTopic::Slot,
            format!(
                "Replication slots retain more WAL than max_wal_size ({}): {}.",
                bytes(Some(max_wal_bytes)),
                first_few(&described)
            ),
            "Segments that are retained are not recycled: each new one is created and zeroed, and the disk can fill up. \
             Drop slots that nobody uses, or see why their consumer lags.",
            Announced::Always,
        )
    })
}

/// Settings with which commits cost less than where data has to be safe.
fn safety(situation: &Situation) -> Option<Risk> {
    let Situation { plan, server, .. } = situation;
    let settings = server.settings.as_ref().filter(|_| plan.writes)?;
    let off: Vec<String> = ["fsync", "full_page_writes", "synchronous_commit"]
        .into_iter()
        // What the run sets itself is meant.
        .filter(|name| !plan.settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)))
        .filter(|name| settings.get(*name).is_some_and(|value| value == "off"))
        .map(|name| format!("{name} = off"))
        .collect();
    (!off.is_empty()).then(|| {
        notice(
            RiskTopic::Safety,
            format!("The server has {}: the figures hold only for such a server.", listed(&off)),
            "Turn the setting on to get figures that hold where no committed transaction may be lost.",
        )
    })
}

/// Shares of the processors' time from which on others' work matters. The shortest look on two processors counts 30 ticks, of
/// which an idle machine uses one or two.
const BUSY: f64 = 0.2;
const STEAL: f64 = 0.05;

/// Bytes per second from which on a machine swaps: a page now and then is none.
const SWAPPING: f64 = 1024.0 * 1024.0;

/// The share of memory in swap that is worth a word.
const SWAP_USED: f64 = 0.1;

/// The risks of a machine.
pub fn machine_risks(machine: &MachineState) -> Vec<Risk> {
    let risks = [busy(machine), steal(machine), swapping(machine), swap_used(machine), governor(machine)];
    risks.into_iter().flatten().collect()
}

fn busy(machine: &MachineState) -> Option<Risk> {
    let busy = machine.busy.filter(|&busy| busy >= BUSY)?;
    let of = machine.processors.map_or("the processors".to_owned(), |all| counted(all.into(), "processor"));
    Some(warning(
        RiskTopic::Load,
        format!("Other work uses {} of {of}.", percent(busy)),
        "Find it with top and wait for its end, or compare server_cpu_us, which depends less on it than tps.",
        Announced::Always,
    ))
}

fn steal(machine: &MachineState) -> Option<Risk> {
    let steal = machine.steal.filter(|&steal| steal >= STEAL)?;
    Some(warning(
        RiskTopic::Load,
        format!("The hypervisor withholds {} of the processors' time (steal).", percent(steal)),
        "Other virtual machines compete for the processors: use a dedicated host, or interleave runs with bench.ab.",
        Announced::Always,
    ))
}

fn swapping(machine: &MachineState) -> Option<Risk> {
    let rate = machine.swapped_per_sec.filter(|&rate| rate >= SWAPPING)?;
    Some(warning(
        RiskTopic::Swap,
        format!("The machine is swapping: {} per second.", bytes(Some(rate))),
        "Free memory before the run: end other programs, or lower shared_buffers.",
        Announced::InLongRuns,
    ))
}

fn swap_used(machine: &MachineState) -> Option<Risk> {
    let (used, memory) = (machine.swap_used_bytes?, machine.memory_bytes?);
    if memory <= 0.0 || used < SWAP_USED * memory {
        return None;
    }
    let finding =
        format!("{} are in swap, {} of the memory's size.", bytes(Some(used)), percent(used / memory));
    let advice =
        "Parts of the server may be read back from disk during the run. Warm it up, or empty the swap.";
    Some(Risk { announced: Announced::InLongRuns, ..notice(RiskTopic::Swap, finding, advice) })
}

fn governor(machine: &MachineState) -> Option<Risk> {
    let all: u32 = machine.governors.values().sum();
    let others: Vec<String> = machine
        .governors
        .iter()
        .filter(|(name, _)| *name != "performance")
        .map(|(name, count)| format!("{name} on {count} of {}", counted(all.into(), "processor")))
        .collect();
    if others.is_empty() {
        return None;
    }
    Some(warning(
        RiskTopic::Governor,
        format!(
            "The frequency governor is {}: processors change their speed with the load.",
            listed(&others)
        ),
        "Choose performance for benchmarks: cpupower frequency-set -g performance.",
        Announced::InLongRuns,
    ))
}
