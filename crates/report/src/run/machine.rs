//! Where a run ran: the server, its machine, the nodes of a cluster and the database, what they are and what they were busy
//! with.

use bench_base::number;
use bench_base::number::{MISSING, bytes, finite, mean, ms, signed, sum};
use bench_results::{Document, Environment, Event, Node, Relation, Samples, Series};

use crate::section::{Section, Table, or_missing};

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

/// A row for each node, those that only served statements too; nothing where none is listed.
pub fn nodes(document: &Document) -> Section {
    let all_tps: f64 = document.nodes.iter().filter_map(|node| finite(node.tps)).sum();
    let share = |node: &Node| node.tps.filter(|_| all_tps > 0.0).map(|tps| tps / all_tps);
    let table = Table::of(&document.nodes)
        .text("node", Node::label)
        .text("coordinator", |node| if node.is_coordinator { "yes" } else { "no" })
        .number("clients", |node| node.clients)
        .number("tps", |node| number::tps(node.tps))
        .number("share", |node| number::percent(share(node)))
        .number("avg ms", |node| ms(node.latency_avg_ms))
        .number("p99 ms", |node| ms(node.latency_p99_ms))
        .number("idle", |node| number::percent(node.cpu_idle))
        .number("start ms", |node| ms(node.start_offset_ms))
        .number("stuck", |node| node.clients_stuck.len())
        .text("status", status)
        .table();
    let idle = ["tps", "share", "avg ms", "p99 ms", "idle", "start ms", "stuck", "status"];
    Section::of_table("nodes", "Nodes", table.without_idle(&idle)).with_note(
        "Shares are of the nodes' tps and, idle, of a node's processors over the whole run; start is the delay of \
         its clients' start after the agreed time.",
    )
}

/// How its part ended, where that is not as it should.
fn status(node: &Node) -> &str {
    node.status.as_deref().filter(|status| *status != "completed").unwrap_or(MISSING)
}

/// How many events are listed: a soak of a day has thousands of vacuums, and all of them are in the plots.
const EVENTS: usize = 40;

/// How many relations are listed: a table may have thousands of partitions.
const RELATIONS: usize = 60;

fn listed_relations(document: &Document) -> &[Relation] {
    &document.relations[..document.relations.len().min(RELATIONS)]
}

/// The nodes of the relations that are listed.
fn with_nodes(document: &Document, table: Table) -> Table {
    let nodes: Vec<i32> = listed_relations(document).iter().map(|relation| relation.node).collect();
    table.with_nodes(document, &nodes)
}

/// What is said under a table of relations.
fn note(document: &Document, text: &str) -> String {
    match document.relations.len().saturating_sub(RELATIONS) {
        0 => text.to_owned(),
        more => format!(
            "{text} The first {RELATIONS}; {} more are in bench.relations and in the JSON.",
            number::count(more as u64)
        ),
    }
}

/// Sizes and rows before and after.
pub fn sizes(document: &Document) -> Section {
    let size = |bytes: Option<i64>| number::bytes(bytes.map(|bytes| bytes as f64));
    let table = Table::of(listed_relations(document))
        .text("relation", |relation| &relation.relation)
        .text("kind", |relation| &relation.kind)
        .number("size before", |relation| size(relation.bytes_before))
        .number("size after", |relation| size(relation.bytes_after))
        .number("growth", growth)
        .number("rows before", |relation| signed(relation.live_before))
        .number("rows after", |relation| signed(relation.live))
        .table();
    let table = with_nodes(document, table.without_idle(&["rows before", "rows after"]));
    Section::of_table("relations", "Relations", table)
        .with_note(note(document, "Live rows, as the server estimates them."))
}

/// By how much a relation grew.
fn growth(relation: &Relation) -> String {
    match (relation.bytes_before, relation.bytes_after) {
        (Some(before), Some(after)) if before > 0 => {
            let growth = number::fixed(Some((after as f64 / before as f64 - 1.0) * 100.0), 1);
            let sign = if growth.starts_with('-') || growth == "0.0" { "" } else { "+" };
            format!("{sign}{growth} %")
        }
        _ => MISSING.to_owned(),
    }
}

/// Rows changed and read.
pub fn changes(document: &Document) -> Section {
    let hot = |relation: &Relation| match (relation.hot_updated, relation.updated) {
        (Some(hot), Some(updated)) if updated > 0 => number::percent(Some(hot as f64 / updated as f64)),
        _ => MISSING.to_owned(),
    };
    let table = Table::of(listed_relations(document))
        .text("relation", |relation| &relation.relation)
        .number("inserted", |relation| signed(relation.inserted))
        .number("updated", |relation| signed(relation.updated))
        .number("HOT", hot)
        .number("deleted", |relation| signed(relation.deleted))
        .number("seq scans", |relation| signed(relation.seq_scan))
        .number("rows by seq", |relation| signed(relation.seq_tup_read))
        .number("idx scans", |relation| signed(relation.idx_scan))
        .table();
    Section::of_table("changes", "Changes", with_nodes(document, of_figures(table)))
        .with_note(note(document, "Rows and scans of the run, all phases; HOT is of the updates."))
}

/// Dead rows and what was done about them.
pub fn upkeep(document: &Document) -> Section {
    let table = Table::of(listed_relations(document))
        .text("relation", |relation| &relation.relation)
        .number("dead before", |relation| signed(relation.dead_before))
        .number("dead after", |relation| signed(relation.dead))
        .number("to analyze", |relation| signed(relation.mod_since_analyze))
        .number("vacuums", |relation| signed(relation.vacuums))
        .number("autovacuums", |relation| signed(relation.autovacuums))
        .number("analyzes", |relation| signed(relation.analyzes))
        .number("autoanalyzes", |relation| signed(relation.autoanalyzes))
        .table();
    let text = "Dead rows, and rows changed since the last analyze, as the server estimates them.";
    Section::of_table("upkeep", "Vacuum and analyze", with_nodes(document, of_figures(table)))
        .with_note(note(document, text))
}

/// A table of names and figures without the columns that say nothing, and without any row when none does.
fn of_figures(table: Table) -> Table {
    let figures: Vec<String> = table.columns.iter().skip(1).map(|(name, _)| name.clone()).collect();
    let table = table.without_idle(&figures.iter().map(String::as_str).collect::<Vec<_>>());
    let rows = if table.columns.len() > 1 { table.rows } else { Vec::new() };
    Table { rows, ..table }
}

/// Checkpoints, vacuums and other events.
pub fn events(document: &Document) -> Section {
    let subject = |event: &Event| event.relation.clone().or_else(|| event.detail.clone());
    let table = Table::of(document.events.iter().take(EVENTS))
        .text("event", |event| &event.kind)
        .text("of", |event| or_missing(&subject(event)).to_owned())
        .number("from s", |event| number::fixed(Some(event.started), 1))
        .number("to s", |event| number::fixed(event.ended, 1))
        .number("took", took)
        .table();
    let others = document.events.len().saturating_sub(EVENTS);
    let others = (others > 0).then(|| {
        format!("The first {EVENTS}; {} more are in the plots and in the JSON.", number::count(others as u64))
    });
    let nodes: Vec<i32> = document.events.iter().take(EVENTS).map(|event| event.node).collect();
    let table = table.with_nodes(document, &nodes);
    Section::of_table("events", "Checkpoints, vacuums and other events", table).with_note_if(others)
}

/// How long an event took, with a word for one that outlasted the run.
fn took(event: &Event) -> String {
    match number::finite(event.ended) {
        Some(ended) => number::duration(((ended - event.started) * 10.0).round() / 10.0),
        None => "not ended".to_owned(),
    }
}
