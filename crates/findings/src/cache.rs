//! Caches: tables that had to be read from files first, sorts and hashes that did not fit into memory.

use bench_base::sentence::{MEGABYTE, figure, grouped, percent, seconds};
use bench_results::{Document, Finding, Severity, Topic};
use bench_stats::robust::median;
use serde_json::json;

use super::finding::finding;
use super::intervals::Intervals;
use super::waits::is_read;

/// Intervals below which the run's quarters say little.
const LEAST_INTERVALS: usize = 8;
/// The share of clients' time in reads in the first quarter, which has halved at least in the last one.
const LEAST_READS: f64 = 0.2;
/// How many times the throughput of the first quarter the last one has at least.
const LEAST_RISE: f64 = 1.3;
/// Bytes of temporary files worth a word: in all, and for each second.
const LEAST_SPILLED: f64 = 10e6;
const LEAST_SPILLED_PER_SEC: f64 = 1e6;
/// The findings on caches.
pub fn findings(document: &Document, intervals: &Intervals) -> Vec<Finding> {
    [cold(document, intervals), spilled(document, intervals)].into_iter().flatten().collect()
}

fn cold(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let count = intervals.len();
    if count < LEAST_INTERVALS {
        return None;
    }
    let mut reads = vec![0.0; count];
    for (_, shares) in intervals.waits().filter(|(event, _)| is_read(event)) {
        reads.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
    }
    let quarter = count / 4;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (first_reads, last_reads) = (mean(&reads[..quarter]), mean(&reads[count - quarter..]));
    let (before, after) = (median(&intervals.tps[..quarter])?, median(&intervals.tps[count - quarter..])?);
    let was_cold =
        first_reads >= LEAST_READS && last_reads <= first_reads / 2.0 && after >= before * LEAST_RISE;
    if !was_cold {
        return None;
    }
    let last_cold = reads.iter().rposition(|&share| share >= first_reads / 2.0).unwrap_or(0);
    let filled_after = intervals.ends[last_cold];
    Some(finding(
        Severity::Warning,
        Topic::Cache,
        format!(
            "The caches were cold: throughput rose from {} tps in the first {} to {} tps in the last, while clients' time \
             in reads from files fell from {} to {}.",
            grouped(before),
            seconds(intervals.secs[..quarter].iter().sum()),
            grouped(after),
            percent(first_reads),
            percent(last_reads)
        ),
        json!({
            "tps_first": before,
            "tps_last": after,
            "reads_first": first_reads,
            "reads_last": last_reads,
            "filled_after_secs": filled_after,
        }),
        format!(
            "Run again with warmup => {:.0}, or load the tables into memory with pg_prewarm before the run.",
            (document.run.warmed_up_secs() + filled_after).ceil()
        ),
    ))
}

fn spilled(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let sum = |values: Option<Vec<f64>>| values.map(|values| values.iter().sum::<f64>());
    let bytes = sum(intervals.column(|samples| &samples.temp_bytes))?;
    let files = sum(intervals.column(|samples| &samples.temp_files)).filter(|files| *files > 0.0);
    let secs = intervals.measured_secs();
    let tells = bytes >= LEAST_SPILLED && bytes >= LEAST_SPILLED_PER_SEC * secs;
    if !tells {
        return None;
    }
    let work_mem = document.environment.server_settings.iter().find(|setting| setting.name == "work_mem");
    let work_mem = work_mem.map_or("4MB", |setting| &setting.setting);
    let in_files = files.map_or(String::new(), |files| format!(" in {} files", grouped(files)));
    Some(finding(
        Severity::Warning,
        Topic::Temp,
        format!(
            "Queries in this database wrote {} MB of temporary files{in_files}, {} MB per second: their sorts and hashes \
             did not fit into work_mem ({work_mem}).",
            grouped(bytes / MEGABYTE),
            figure(bytes / secs / MEGABYTE)
        ),
        json!({ "bytes": bytes, "files": files, "bytes_per_sec": bytes / secs, "work_mem": work_mem }),
        "Raise work_mem (settings => '{\"work_mem\": \"64MB\"}') and compare. Each sort or hash of each client may use as \
         much; hashes use hash_mem_multiplier times as much.",
    ))
}
