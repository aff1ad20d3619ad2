//! What server and machine were busy with, and what they are.

use bench_base::number;
use bench_base::number::{bytes, finite, mean, sum};
use bench_results::{Document, Environment, Samples, Series};

use super::{Section, Table};

/// Figures in one line, each with its name; `None` where there is none.
fn listed(figures: &[(Option<String>, &str)]) -> Option<String> {
    let known: Vec<_> = figures
        .iter()
        .filter_map(|(value, name)| value.as_ref().map(|value| format!("{value} {name}")))
        .collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// What the server and its machine did while measuring.
pub fn server(document: &Document) -> Section {
    let samples = &document.samples;
    let secs = finite(document.summary.secs).or_else(|| sum(&samples.secs)).filter(|secs| *secs > 0.0);
    let count = |series: &Series| sum(series).map(|sum| number::fixed(Some(sum), 0));
    let size = |series: &Series| {
        let total = sum(series)?;
        let rate = secs.map(|secs| format!(" ({}/s)", bytes(Some(total / secs))));
        Some(bytes(Some(total)) + &rate.unwrap_or_default())
    };
    let share = |series: &Series| mean(series).map(|mean| number::percent(Some(mean)));
    let extreme = |series: &Series, choose: fn(f64, f64) -> f64| {
        series.iter().filter_map(|value| finite(*value)).reduce(choose).map(|value| bytes(Some(value)))
    };
    let note = (document.client_nodes() > 1)
        .then(|| "All nodes that clients ran on; processor shares are the mean of the nodes.".to_owned());
    Section::of_facts("server", "Server and machine")
        .fact(
            "WAL",
            listed(&[
                (size(&samples.wal_bytes), "written"),
                (count(&samples.wal_records), "records"),
                (count(&samples.wal_fpi), "full-page images"),
                (count(&samples.wal_buffers_full), "times buffers full"),
            ]),
        )
        .fact("checkpoints", checkpoints(document))
        .fact(
            "buffers written",
            listed(&[
                (count(&samples.buffers_checkpoint), "by the checkpointer"),
                (count(&samples.buffers_clean), "by the background writer"),
                (count(&samples.buffers_backend), "by backends"),
            ]),
        )
        .fact("buffers read", buffers_read(samples))
        .fact(
            "temporary files",
            listed(&[(count(&samples.temp_files), "files"), (size(&samples.temp_bytes), "in all")]),
        )
        .fact(
            "processors",
            listed(&[
                (share(&samples.cpu_user), "user"),
                (share(&samples.cpu_system), "system"),
                (share(&samples.cpu_iowait), "iowait"),
                (share(&samples.cpu_steal), "steal"),
                (share(&samples.cpu_idle), "idle"),
            ]),
        )
        .fact(
            "memory",
            listed(&[
                (extreme(&samples.memory_available_bytes, f64::min), "available at least"),
                (extreme(&samples.memory_dirty_bytes, f64::max), "not yet on disk at most"),
            ]),
        )
        .fact(
            "disks",
            listed(&[
                (size(&samples.disk_read_bytes), "read"),
                (size(&samples.disk_written_bytes), "written"),
            ]),
        )
        .fact("replay lag", replay_lag(samples))
        .fact(
            "throttled",
            sum(&samples.throttled_secs)
                .filter(|secs| *secs > 0.0)
                .map(|secs| format!("{} throttled by the control group's quota", number::duration(secs))),
        )
        .with_note_if(note)
}

/// How many checkpoints began while measuring, and of what kind.
fn checkpoints(document: &Document) -> Option<String> {
    let begun = sum(&document.samples.checkpoints)?;
    let of_kind = |kind: &str| {
        let of_kind = document.events.iter().filter(|event| {
            event.kind == "checkpoint" && event.started >= 0.0 && event.detail.as_deref() == Some(kind)
        });
        let count = of_kind.count();
        (count > 0).then(|| count.to_string())
    };
    let kinds = listed(&[(of_kind("timed"), "timed"), (of_kind("requested"), "requested")]);
    let kinds = kinds.map(|kinds| format!(" ({kinds})")).unwrap_or_default();
    Some(format!("{} begun{kinds}", number::fixed(Some(begun), 0)))
}

/// How far the standby was behind, on average and at most.
fn replay_lag(samples: &Samples) -> Option<String> {
    let most = |series: &Series| series.iter().filter_map(|value| finite(*value)).reduce(f64::max);
    let of = |series: &Series, shown: fn(f64) -> String| {
        Some(format!("avg {}, max {}", shown(mean(series)?), shown(most(series)?)))
    };
    let ms = of(&samples.replay_lag_ms, |ms| format!("{} ms", number::fixed(Some(ms), 1)));
    let wal = of(&samples.replay_lag_bytes, |wal| bytes(Some(wal)));
    let lags: Vec<String> = ms.into_iter().chain(wal.map(|wal| format!("{wal} of WAL"))).collect();
    (!lags.is_empty()).then(|| lags.join("; "))
}

/// How many buffers were at hand.
fn buffers_read(samples: &Samples) -> Option<String> {
    let (hit, read) = (sum(&samples.blks_hit)?, sum(&samples.blks_read)?);
    let share = (hit + read > 0.0)
        .then(|| format!(" ({} from shared buffers)", number::percent(Some(hit / (hit + read)))));
    let (hit, read) = (number::fixed(Some(hit), 0), number::fixed(Some(read), 0));
    Some(format!("{hit} hit, {read} read{}", share.unwrap_or_default()))
}

/// What the run ran on.
pub fn environment(environment: &Environment) -> Section {
    let size = |value: Option<u64>| value.map(|value| bytes(Some(value as f64)));
    let listed = |map: &std::collections::BTreeMap<String, String>| {
        let pairs: Vec<_> = map.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join(", "))
    };
    let processors = environment.processors.map(|processors| match &environment.processor_model {
        Some(model) => format!("{processors} × {model}"),
        None => processors.to_string(),
    });
    let filesystem = environment.filesystem.as_ref().map(|filesystem| match &environment.mount_options {
        Some(options) => format!("{filesystem} ({options})"),
        None => filesystem.clone(),
    });
    Section::of_facts("environment", "Environment")
        .fact("version", environment.version.clone())
        .fact("processors", processors.or_else(|| environment.processor_model.clone()))
        .fact("quota", finite(environment.quota_processors).map(|quota| format!("{quota} processors")))
        .fact("memory", size(environment.memory_bytes))
        .fact("swap", size(environment.swap_bytes))
        .fact("kernel", environment.kernel.clone())
        .fact("transparent huge pages", environment.transparent_huge_pages.clone())
        .fact("kernel parameters", listed(&environment.kernel_parameters))
        .fact("limits", listed(&environment.limits))
        .fact("filesystem", filesystem)
        .fact("data checksums", environment.data_checksums.map(|on| if on { "on" } else { "off" }.to_owned()))
        .fact(
            "clock reading",
            finite(environment.clock_read_ns).map(|ns| format!("{} ns", number::fixed(Some(ns), 1))),
        )
        .fact(
            "flush of 8 kB",
            finite(environment.fsync_us).map(|us| format!("{} µs", number::fixed(Some(us), 0))),
        )
        .fact(
            "coordinator",
            finite(environment.coordinator_cpu_secs)
                .map(|secs| format!("{} of processor time", number::duration(secs))),
        )
        .fact(
            "wire driver",
            finite(environment.driver_cpu_secs).map(|secs| {
                let busy = finite(environment.driver_busy);
                let busy =
                    busy.map(|busy| format!(", its busiest job {} of its time", number::percent(Some(busy))));
                let wait = finite(environment.driver_wait_avg_us);
                let wait = wait
                    .map(|wait| format!("; answers waited {} µs for it on average", number::us(Some(wait))));
                let told = busy.into_iter().chain(wait).collect::<String>();
                format!("{} of processor time{told}", number::duration(secs))
            }),
        )
        .fact("transaction ids used", environment.xids_used.map(|xids| number::signed(Some(xids))))
        .fact("transaction id age", environment.xid_age.map(|age| number::signed(Some(age))))
        .fact("horizon held back by", environment.horizon_holder.clone())
        .fact(
            "not honoured by sessions",
            (!environment.unsupported_settings.is_empty())
                .then(|| environment.unsupported_settings.join(", ")),
        )
}

/// The server's configuration.
pub fn settings(environment: &Environment) -> Section {
    let table = Table::of(&environment.server_settings)
        .text("parameter", |setting| &setting.name)
        .text("setting", |setting| &setting.setting)
        .text("source", |setting| &setting.source)
        .table();
    Section::of_table("settings", "Configuration not at its defaults", table)
}
