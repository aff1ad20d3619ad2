//! A server's cumulative counters of WAL, checkpoints and buffers, on whatever views its version has.

use serde::Serialize;

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
