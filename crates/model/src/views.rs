//! What a server's statistics views say, this one's and a target's: the queries, in each version of the server, and their
//! answers.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of a server's statistics a role can read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Views {
    /// The server's server_version_num.
    pub version: i32,
    /// Views of pg_catalog that it has and does not show to the role.
    pub unreadable: Vec<String>,
}

/// What is asked of a target.
pub struct ViewsQuery {
    whole: String,
    /// What is said of waits, up to the processes.
    waits: String,
}

/// What one question is answered with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ViewsAnswer {
    counters: Option<Vec<Option<i64>>>,
    pub replication: Option<Replication>,
    /// Sessions by what they wait for, `type:event`, or `CPU` for those that wait for nothing.
    pub waits: Option<BTreeMap<String, i64>>,
}

impl ViewsAnswer {
    /// Reads an answer; `None` for what is none.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The server's counters, where they were asked for.
    pub fn server_counters(&self) -> Option<ServerCounters> {
        self.counters.as_ref().map(|values| ServerCounters::new(values.iter().copied()))
    }
}

impl ViewsQuery {
    /// Of a server with these views. `application_name` is that of the run's sessions, as a literal of SQL.
    pub fn new(views: &Views, application_name: &str) -> Self {
        let may = |view: &str| !views.unreadable.iter().any(|name| name == view);
        let replication = match may("pg_stat_replication") {
            true => format!("({})", replication_query()),
            false => "NULL".to_owned(),
        };
        let counters = counters_query(views.version, &views.unreadable);
        let waits = match may("pg_stat_activity") {
            true => format!(
                "'waits', (SELECT json_object_agg(w.event, w.sessions) FROM ( \
                     SELECT coalesce(a.wait_event_type || ':' || a.wait_event, 'CPU') AS event, count(*) AS sessions \
                     FROM pg_stat_activity a \
                     WHERE a.usename = session_user AND a.application_name = {application_name} \
                       AND a.state IS NOT NULL AND a.pid = ANY ('{{"
            ),
            false => String::new(),
        };
        let whole = format!("'counters', to_json(({counters})), 'replication', {replication}");
        Self { whole, waits }
    }

    /// The text of the question: what these processes wait for, and with `whole` everything else. `None` where there is
    /// nothing to ask.
    pub fn text(&self, whole: bool, pids: &[i32]) -> Option<String> {
        let asks_waits = !self.waits.is_empty() && !pids.is_empty();
        if !whole && !asks_waits {
            return None;
        }
        let mut text = "SELECT json_build_object(".to_owned();
        if whole {
            text.push_str(&self.whole);
        }
        if asks_waits {
            text.push_str(if whole { ", " } else { "" });
            text.push_str(&self.waits);
            for (place, pid) in pids.iter().enumerate() {
                // Writing into a text does not fail.
                let _ = write!(text, "{}{pid}", if place == 0 { "" } else { "," });
            }
            text.push_str("}'::int4[]) GROUP BY 1) w)");
        }
        text.push(')');
        Some(text)
    }
}

macro_rules! counters {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// One reading, or what lies between two; `None`: what the server does not have or does not show. As JSON, columns of
        /// bench.samples.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct ServerCounters {
            $($(#[$about])* pub $name: Option<i64>,)*
        }

        impl ServerCounters {
            fn fields(&mut self) -> impl Iterator<Item = &mut Option<i64>> {
                [$(&mut self.$name,)*].into_iter()
            }
        }
    };
}

counters! {
    wal_bytes,
    wal_records,
    wal_fpi,
    wal_buffers_full,
    blks_hit,
    blks_read,
    temp_files,
    temp_bytes,
    #[serde(skip)]
    checkpoints_timed,
    #[serde(skip)]
    checkpoints_requested,
    buffers_checkpoint,
    buffers_clean,
    buffers_backend,
    /// Times that WAL was flushed to disk.
    wal_syncs,
}

impl ServerCounters {
    /// From the array of [`counters_query`]; what is missing at its end is not known.
    pub fn new(values: impl IntoIterator<Item = Option<i64>>) -> Self {
        let mut counters = Self::default();
        counters.fields().zip(values).for_each(|(field, value)| *field = value);
        counters
    }

    /// What has happened since an earlier reading. A reset of the statistics shows as nothing.
    pub fn since(mut self, mut before: Self) -> Self {
        for (now, then) in self.fields().zip(before.fields()) {
            *now = now.zip(*then).map(|(now, then)| now.saturating_sub(then).max(0));
        }
        self
    }

    /// Adds what came after.
    pub fn merge(&mut self, mut later: Self) {
        for (sum, more) in self.fields().zip(later.fields()) {
            *sum = match (*sum, *more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (known, None) | (None, known) => known,
            };
        }
    }

    /// Checkpoints of both kinds.
    pub fn checkpoints(&self) -> Option<i64> {
        self.checkpoints_timed.zip(self.checkpoints_requested).map(|(timed, requested)| timed + requested)
    }
}

/// Pages that sessions wrote or extended tables and indexes by. PostgreSQL 15 has one counter of both. That of 16 takes an
/// extension by several pages for one, 17 has none, but from 16 on there is pg_stat_io, which counts bytes since 18.
const BY_SESSIONS: &str = "(SELECT sum(i.writes) + sum(i.extends) FROM pg_stat_io i \
    WHERE i.object = 'relation' AND i.backend_type NOT IN ('checkpointer', 'background writer'))";
const BY_SESSIONS_SINCE_18: &str = "(SELECT div(sum(i.write_bytes) + sum(i.extend_bytes), \
    current_setting('block_size')::numeric) FROM pg_stat_io i \
    WHERE i.object = 'relation' AND i.backend_type NOT IN ('checkpointer', 'background writer'))";

/// Flushes of WAL: from 18 on they are counted beside those of relations.
const SYNCS_SINCE_18: &str = "(SELECT sum(i.fsyncs) FROM pg_stat_io i WHERE i.object = 'wal')";

/// The query of the counters, an array in the order of [`ServerCounters`], of the whole server, and buffers found and temporary
/// files of the session's database. `version` is server_version_num; views of these names are left out, with NULL in
/// their places.
pub fn counters_query(version: i32, unreadable: &[String]) -> String {
    let may = |view: &str, since: i32| version >= since && !unreadable.iter().any(|name| name == view);
    let of = |view: &str, since: i32, column: &str| match may(view, since) {
        true => format!("(SELECT v.{column} FROM {view} v)"),
        false => "NULL".to_owned(),
    };
    let syncs = match version {
        ..180_000 => of("pg_stat_wal", 140_000, "wal_sync"),
        _ if !may("pg_stat_io", 160_000) => "NULL".to_owned(),
        _ => SYNCS_SINCE_18.to_owned(),
    };
    let wal = |column| of("pg_stat_wal", 140_000, column);
    let written = |column| of("pg_stat_bgwriter", 0, column);
    let [timed, requested, checkpointer] = if version >= 170_000 {
        ["num_timed", "num_requested", "buffers_written"].map(|column| of("pg_stat_checkpointer", 0, column))
    } else {
        ["checkpoints_timed", "checkpoints_req", "buffers_checkpoint"].map(written)
    };
    let by_sessions = match version {
        ..160_000 => written("buffers_backend"),
        _ if !may("pg_stat_io", 160_000) => "NULL".to_owned(),
        160_000..180_000 => BY_SESSIONS.to_owned(),
        _ => BY_SESSIONS_SINCE_18.to_owned(),
    };
    format!(
        "SELECT ARRAY[{}, {}, {}, {}, pg_stat_get_db_blocks_hit(d.oid), \
             pg_stat_get_db_blocks_fetched(d.oid) - pg_stat_get_db_blocks_hit(d.oid), \
             pg_stat_get_db_temp_files(d.oid), pg_stat_get_db_temp_bytes(d.oid), \
             {timed}, {requested}, {checkpointer}, {}, {by_sessions}, {syncs}]::int8[] \
         FROM pg_database d WHERE d.datname = current_database()",
        wal("wal_bytes"),
        wal("wal_records"),
        wal("wal_fpi"),
        wal("wal_buffers_full"),
        written("buffers_clean"),
    )
}

/// How far replay is behind; `None`: not known, or nothing replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// Milliseconds.
    pub ms: Option<f64>,
    /// Bytes of WAL.
    pub bytes: Option<i64>,
}

impl Lag {
    /// The greater of both, figure by figure.
    pub fn max(self, other: Self) -> Self {
        let ms = self.ms.into_iter().chain(other.ms).reduce(f64::max);
        Self { ms, bytes: self.bytes.max(other.bytes) }
    }
}

/// A row of pg_stat_replication: a standby, or another receiver of WAL, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Standby {
    /// The WAL sender's process.
    pub pid: i32,
    /// Its application_name.
    pub name: String,
    pub state: Option<String>,
    pub sync_state: Option<String>,
    /// Milliseconds.
    pub write_lag_ms: Option<f64>,
    /// Milliseconds.
    pub flush_lag_ms: Option<f64>,
    /// Milliseconds.
    pub replay_lag_ms: Option<f64>,
    /// Bytes of WAL sent and not yet replayed.
    pub replay_lag_bytes: Option<i64>,
}

impl Standby {
    /// The server forgets the times of a standby that has replayed everything when no more WAL comes: then they are 0.
    fn lag(&self) -> Lag {
        let bytes = self.replay_lag_bytes.map(|bytes| bytes.max(0));
        Lag { ms: self.replay_lag_ms.map(|ms| ms.max(0.0)).or((bytes == Some(0)).then_some(0.0)), bytes }
    }
}

/// The answer to [`replication_query`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replication {
    /// The server is a standby.
    pub is_standby: bool,
    /// Of a standby: bytes of WAL received and not yet replayed, below 0 where it replays from an archive; `None` where it has
    /// received nothing since its start.
    pub behind_bytes: Option<i64>,
    /// Of a standby: the age of the last commit that it has replayed, milliseconds.
    pub replayed_ms: Option<f64>,
    /// Those that receive WAL from this server, as far as the role may see them.
    pub standbys: Option<Vec<Standby>>,
}

impl Replication {
    /// Of a standby its own lag: the bytes received and not replayed, and the age of the last replayed commit, which is 0 if
    /// all that was received is replayed. That age has the difference of the two servers' clocks in it, and counts from the
    /// last commit even if the WAL behind it is of a transaction that goes on. Of a primary, the lag of the standby that is
    /// furthest behind.
    pub fn lag(&self) -> Lag {
        if self.is_standby {
            let bytes = self.behind_bytes.map(|bytes| bytes.max(0));
            let ms = match bytes {
                None => None,
                Some(0) => Some(0.0),
                Some(_) => self.replayed_ms.map(|ms| ms.max(0.0)),
            };
            return Lag { ms, bytes };
        }
        self.standbys.iter().flatten().map(Standby::lag).fold(Lag::default(), Lag::max)
    }
}

/// The query of what replicates, as JSON. Standbys that the role may not see are left out.
pub fn replication_query() -> String {
    let ms = |column: &str| format!("date_part('epoch', r.{column}) * 1000");
    format!(
        "SELECT json_build_object( \
             'is_standby', pg_is_in_recovery(), \
             'behind_bytes', CASE WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff( \
                 pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) END, \
             'replayed_ms', CASE WHEN pg_is_in_recovery() THEN date_part('epoch', \
                 clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 END, \
             'standbys', (SELECT json_agg(json_build_object( \
                     'pid', r.pid, 'name', r.application_name, 'state', r.state, 'sync_state', r.sync_state, \
                     'write_lag_ms', {}, 'flush_lag_ms', {}, 'replay_lag_ms', {}, \
                     'replay_lag_bytes', pg_wal_lsn_diff(r.sent_lsn, r.replay_lsn)) ORDER BY r.pid) \
                 FROM pg_stat_replication r WHERE r.state IS NOT NULL))",
        ms("write_lag"),
        ms("flush_lag"),
        ms("replay_lag"),
    )
}

/// The query of a session's search_path and its parameters that are not at their defaults, as JSON: asked under that path, which
/// is one of them.
pub const SETTINGS_QUERY: &str = "SELECT /* pgbench_ext */ pg_catalog.json_build_object( \
     'search_path', pg_catalog.current_setting('search_path'), \
     'settings', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object( \
             'name', s.name, 'setting', pg_catalog.current_setting(s.name), 'source', s.source) ORDER BY s.name) \
         FROM pg_catalog.pg_settings s \
         WHERE NOT s.source OPERATOR(pg_catalog.=) ANY (ARRAY['default', 'override']) \
           AND coalesce(s.setting OPERATOR(pg_catalog.<>) s.boot_val, true)))";

/// The answer to [`SETTINGS_QUERY`].
#[derive(Deserialize)]
pub struct SettingsAnswer {
    /// As SHOW shows it.
    pub search_path: String,
    /// `None`: all are at their defaults.
    pub settings: Option<Vec<ServerSetting>>,
}

/// A configuration parameter that is not at its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSetting {
    /// The parameter.
    pub name: String,
    /// Its value as SHOW shows it, with its unit.
    pub setting: String,
    /// Where it was set, as in pg_settings.
    pub source: String,
}
