//! Who had the processors: nobody left any, the hypervisor, a quota or other processes took some, or the driver's jobs were
//! the limit, which is no limit of the server's.

use bench_base::sentence::{counted, figure, milliseconds, percent};
use bench_results::{Document, Finding, Severity, Topic, Wait};
use serde_json::json;

use crate::intervals::{Intervals, finding};
use crate::nodes::one_sided;

/// The idle share below which processors are saturated.
const SATURATED_IDLE: f64 = 0.05;
/// The stolen share from which on the hypervisor is to be named, not the load.
const MOSTLY_STOLEN: f64 = 0.25;
/// The share of clients' time spent waiting for a processor from which on that is what they mostly do.
const STARVED: f64 = 0.5;
/// Where processors are saturated, the share of clients' time spent waiting for one, and the processors that clients
/// would use if they never had to, as a share of all: otherwise it is not the clients that are short of them.
const SATURATED_RUNNABLE: f64 = 0.1;
const SATURATED_DEMAND: f64 = 0.5;
/// The stolen share of all processors' time worth a word, and that which is grave.
const STEAL_NOTICE: f64 = 0.01;
const STEAL_WARNING: f64 = 0.05;
/// Seconds per second of being throttled worth a word.
const THROTTLED: f64 = 0.01;
/// Processors that are busy and not with the clients: so many, and so large a share of all. The server's own
/// background processes and the kernel's threads are always among them.
const OTHERS_PROCESSORS: f64 = 0.35;
const OTHERS_SHARE: f64 = 0.15;
/// What writing the WAL and the tables takes besides, in processors for each 100 MB per second: checkpointer, walwriter
/// and the kernel's writeback.
const BACKGROUND_PER_100_MB: f64 = 0.3;
/// Intervals below which the means say little.
const LEAST_INTERVALS: usize = 5;

/// The findings on processors.
pub fn findings(document: &Document, intervals: &Intervals) -> Vec<Finding> {
    if intervals.len() < LEAST_INTERVALS {
        return Vec::new();
    }
    let found = [
        throttled(document, intervals),
        steal(intervals),
        others(document, intervals),
        saturated(document, intervals),
    ];
    found.into_iter().flatten().collect()
}

/// The share of the clients' time in a wait event.
fn wait(document: &Document, event: &str) -> Option<f64> {
    let is_it = |wait: &&Wait| wait.wait_event == event || wait.wait_event_type == event;
    let waits = document.merged_waits();
    let shares: Vec<f64> = waits.iter().filter(is_it).map(|wait| wait.share).collect();
    (!shares.is_empty()).then(|| shares.iter().sum())
}

fn saturated(document: &Document, intervals: &Intervals) -> Option<Finding> {
    // Then it was one side of the cluster, and more processors on the other would not help.
    if one_sided(document).is_some() {
        return None;
    }
    // What waits for a disk is idle as well, and what was stolen is not the load's doing.
    let idle = intervals.mean(|samples| &samples.cpu_idle);
    let iowait = intervals.mean(|samples| &samples.cpu_iowait).unwrap_or(0.0);
    let steal = intervals.mean(|samples| &samples.cpu_steal).unwrap_or(0.0);
    let runnable = wait(document, "Runnable");
    let demand =
        (wait(document, "CPU").unwrap_or(0.0) + runnable.unwrap_or(0.0)) * document.all_clients() as f64;
    let demanded = runnable.is_none_or(|runnable| runnable >= SATURATED_RUNNABLE)
        && document.all_processors().is_none_or(|processors| demand >= SATURATED_DEMAND * processors as f64);
    let saturated = idle.filter(|idle| idle + iowait < SATURATED_IDLE && steal < MOSTLY_STOLEN && demanded);
    let starved = runnable.filter(|runnable| *runnable > STARVED);
    let processors = document.all_processors();
    let clients = document.all_clients();
    let on_how_many = processors.map_or(String::new(), |processors| {
        format!(" ({}, {})", counted(clients, "client"), counted(processors, "processor"))
    });
    let what = match (saturated, starved) {
        (None, None) => return None,
        (Some(idle), None) => {
            format!("The processors were saturated: idle for {} of the time", percent(idle))
        }
        (None, Some(runnable)) => {
            format!("Clients waited for a processor for {} of their time", percent(runnable))
        }
        (Some(idle), Some(runnable)) => format!(
            "The processors were saturated: idle for {} of the time, and clients waited for a processor for {} of \
             their time",
            percent(idle),
            percent(runnable)
        ),
    };
    Some(finding(
        Severity::Notice,
        Topic::Processors,
        format!("{what}{on_how_many}."),
        json!({ "idle": idle, "runnable": runnable, "processors": processors, "clients": clients }),
        format!(
            "More clients only raise latency. To measure latency, use fewer clients or a rate. For more throughput, \
             {}use more processors.",
            if document.run.query_mode == "prepared" {
                ""
            } else {
                "save processor time per transaction (query_mode => 'prepared') or "
            }
        ),
    ))
}

fn steal(intervals: &Intervals) -> Option<Finding> {
    let steal = intervals.mean(|samples| &samples.cpu_steal).filter(|steal| *steal >= STEAL_NOTICE)?;
    let worst = intervals.column(|samples| &samples.cpu_steal)?.into_iter().fold(0.0, f64::max);
    Some(finding(
        if steal >= STEAL_WARNING { Severity::Warning } else { Severity::Notice },
        Topic::Steal,
        format!(
            "The hypervisor gave {} of the processor time to other guests, up to {} in one interval.",
            percent(steal),
            percent(worst)
        ),
        json!({ "steal": steal, "steal_max": worst }),
        "Compare only with runs that had as much steal. Dedicated processors, or another time of day, have less.",
    ))
}

fn throttled(document: &Document, intervals: &Intervals) -> Option<Finding> {
    // Seconds of several nodes are added up, and each has a quota of its own.
    let nodes = document.client_nodes();
    let throttled = intervals.column(|samples| &samples.throttled_secs)?.iter().sum::<f64>() / nodes as f64;
    let secs = intervals.measured_secs();
    let tells = throttled >= secs * THROTTLED;
    if !tells {
        return None;
    }
    let quota = document.environment.quota_processors.filter(|_| nodes == 1);
    let each = if nodes == 1 { "" } else { " on the average node" };
    let of_quota = quota.map_or(String::new(), |quota| format!(" of {} processors", figure(quota)));
    Some(finding(
        Severity::Warning,
        Topic::Quota,
        format!(
            "The control group's quota{of_quota} throttled its processes for {} s of {} s{each}.",
            figure(throttled),
            figure(secs)
        ),
        json!({ "throttled_secs": throttled, "secs": secs, "quota_processors": quota }),
        "Raise the quota (cpu.max of the control group, the container's CPU limit), or run fewer clients. \
         Throttling comes in slices of 0.1 s, which show in the latencies.",
    ))
}

fn others(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let environment = &document.environment;
    let processors = f64::from(environment.processors?);
    // Parallel workers and the sessions that serve other nodes of a cluster are not clients, and nothing tells how long
    // they ran.
    if !document.nodes.is_empty()
        || document.statements.iter().any(|statement| statement.workers_launched > 0)
    {
        return None;
    }
    let user = intervals.mean(|samples| &samples.cpu_user)?;
    let system = intervals.mean(|samples| &samples.cpu_system)?;
    let clients = intervals.mean(|samples| &samples.clients)?;
    let secs = intervals.measured_secs();
    let busy = (user + system) * processors;
    let own = wait(document, "CPU")? * clients;
    let coordinator = environment.coordinator_cpu_secs.unwrap_or(0.0) / secs;
    let driver = environment.driver_cpu_secs.unwrap_or(0.0) / secs;
    let wal_bytes =
        intervals.mean(|samples| &samples.wal_bytes).map_or(0.0, |bytes| bytes / intervals.typical_secs());
    let background = wal_bytes / 100e6 * BACKGROUND_PER_100_MB;
    let others = busy - own - driver - coordinator - background;
    let tells = others > OTHERS_PROCESSORS && others > OTHERS_SHARE * processors;
    if !tells {
        return None;
    }
    Some(finding(
        Severity::Warning,
        Topic::Others,
        format!(
            "Processes other than the clients used {} of {}: {} were busy, and the clients used {}.",
            figure(others),
            counted(processors as u64, "processor"),
            figure(busy),
            figure(own)
        ),
        json!({ "others": others, "busy": busy, "clients": own, "coordinator": coordinator, "processors": processors }),
        "Look for other processes on this machine (top), and for other sessions and autovacuum workers in this \
         server. Stop them and run again.",
    ))
}

/// A job that uses a processor for so much of its time has no time left in which to be there when an answer comes.
const SATURATED_JOB: f64 = 0.9;

/// Connections that were ready waited for their job for so much of a transaction's latency.
const LATE_JOB: f64 = 0.25;

/// The findings on the wire driver.
pub fn driver_findings(document: &Document) -> Vec<Finding> {
    let saturated = saturated_job(document);
    if saturated.is_empty() { late_job(document) } else { saturated }
}

fn saturated_job(document: &Document) -> Vec<Finding> {
    let busy = document.environment.driver_busy.filter(|busy| *busy >= SATURATED_JOB);
    let Some(busy) = busy else { return Vec::new() };
    let jobs = document.run.jobs;
    let whose = match jobs {
        Some(1) => "its job".to_owned(),
        Some(jobs) => format!("the busiest of its {}", counted(jobs.into(), "job")),
        None => "one of its jobs".to_owned(),
    };
    vec![finding(
        Severity::Warning,
        Topic::Driver,
        format!("The driver was the limit: {whose} used a processor for {} of the time.", percent(busy)),
        json!({ "busy": busy, "jobs": jobs }),
        "Answers waited for it, and latencies contain that. Use more jobs, or fewer clients.",
    )]
}

/// Of a script with several statements this is less than what its transactions waited.
fn late_job(document: &Document) -> Vec<Finding> {
    let environment = &document.environment;
    let known = environment.driver_wait_avg_us.zip(document.summary.latency_avg_ms);
    let Some((wait_us, latency_ms)) = known.filter(|(wait_us, ms)| *wait_us >= LATE_JOB * ms * 1e3) else {
        return Vec::new();
    };
    let wait_ms = wait_us / 1e3;
    let longest =
        environment.driver_wait_max_ms.map_or(String::new(), |ms| format!(", {} at most", milliseconds(ms)));
    vec![finding(
        Severity::Warning,
        Topic::Driver,
        format!(
            "The driver was late: answers waited {} for their job on average{longest}, of a latency of {}.",
            milliseconds(wait_ms),
            milliseconds(latency_ms)
        ),
        json!({
            "wait_avg_us": wait_us, "wait_max_ms": environment.driver_wait_max_ms,
            "round_max_ms": environment.driver_round_max_ms, "latency_avg_ms": latency_ms, "jobs": document.run.jobs,
        }),
        "Each job serves its connections in turn, and latencies contain the wait. Use more jobs, or fewer clients.",
    )]
}
