//! The machine: other load, frequency governors, swapping.

use bench_base::number::bytes;
use bench_base::sentence::{counted, listed, percent};

use super::MachineState;
use super::risk::{Announced, Risk, RiskTopic, notice, warning};

/// Shares of the processors' time from which on others' work matters. The shortest look on two processors counts 30 ticks, of
/// which an idle machine uses one or two.
const BUSY: f64 = 0.2;
const STEAL: f64 = 0.05;

/// Bytes per second from which on a machine swaps: a page now and then is none.
const SWAPPING: f64 = 1024.0 * 1024.0;

/// The share of memory in swap that is worth a word.
const SWAP_USED: f64 = 0.1;

/// The risks of a machine.
pub fn risks(machine: &MachineState) -> Vec<Risk> {
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
