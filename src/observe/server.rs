//! The server's cumulative counters of WAL, checkpoints and buffers, on whatever views its version has.

use bench_core::error::UserError;

use crate::server::database;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;

/// Checkpoints timed and requested, buffers written by the checkpointer and by the background writer, where the server's
/// version has them.
#[cfg(any(feature = "pg15", feature = "pg16"))]
macro_rules! checkpoints {
    () => {
        "b.checkpoints_timed, b.checkpoints_req, b.buffers_checkpoint, b.buffers_clean"
    };
}
#[cfg(any(feature = "pg17", feature = "pg18"))]
macro_rules! checkpoints {
    () => {
        "c.num_timed, c.num_requested, c.buffers_written, b.buffers_clean"
    };
}
#[cfg(any(feature = "pg15", feature = "pg16"))]
macro_rules! views {
    () => {
        "pg_catalog.pg_stat_wal w, pg_catalog.pg_stat_bgwriter b"
    };
}
#[cfg(any(feature = "pg17", feature = "pg18"))]
macro_rules! views {
    () => {
        "pg_catalog.pg_stat_wal w, pg_catalog.pg_stat_bgwriter b, pg_catalog.pg_stat_checkpointer c"
    };
}

/// Pages that sessions wrote or extended tables and indexes by. PostgreSQL 15 has one counter of both. That of 16 takes an
/// extension by several pages for one, 17 has none, but from 16 on there is pg_stat_io, which counts bytes since 18.
#[cfg(feature = "pg15")]
macro_rules! by_sessions {
    () => {
        "b.buffers_backend"
    };
}
#[cfg(any(feature = "pg16", feature = "pg17"))]
macro_rules! by_sessions {
    () => {
        "(SELECT pg_catalog.sum(i.writes) + pg_catalog.sum(i.extends) FROM pg_catalog.pg_stat_io i \
          WHERE i.object = 'relation' AND i.backend_type NOT IN ('checkpointer', 'background writer'))"
    };
}
#[cfg(feature = "pg18")]
macro_rules! by_sessions {
    () => {
        "(SELECT pg_catalog.div(pg_catalog.sum(i.write_bytes) + pg_catalog.sum(i.extend_bytes), \
                                pg_catalog.current_setting('block_size')::pg_catalog.numeric) \
          FROM pg_catalog.pg_stat_io i \
          WHERE i.object = 'relation' AND i.backend_type NOT IN ('checkpointer', 'background writer'))"
    };
}

/// In the order of [`ServerCounters::fields`].
const COUNTERS: &str = concat!(
    "SELECT ARRAY[w.wal_bytes, w.wal_records, w.wal_fpi, w.wal_buffers_full, \
         pg_catalog.pg_stat_get_db_blocks_hit($1), \
         pg_catalog.pg_stat_get_db_blocks_fetched($1) - pg_catalog.pg_stat_get_db_blocks_hit($1), \
         pg_catalog.pg_stat_get_db_temp_files($1), pg_catalog.pg_stat_get_db_temp_bytes($1), ",
    checkpoints!(),
    ", ",
    by_sessions!(),
    "]::pg_catalog.int8[] FROM ",
    views!()
);

/// One reading, or what lies between two.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerCounters {
    pub wal_bytes: i64,
    pub wal_records: i64,
    pub wal_fpi: i64,
    pub wal_buffers_full: i64,
    pub blks_hit: i64,
    pub blks_read: i64,
    pub temp_files: i64,
    pub temp_bytes: i64,
    pub checkpoints_timed: i64,
    pub checkpoints_requested: i64,
    pub buffers_checkpoint: i64,
    pub buffers_clean: i64,
    pub buffers_backend: i64,
}

impl ServerCounters {
    fn fields(&mut self) -> [&mut i64; 13] {
        [
            &mut self.wal_bytes,
            &mut self.wal_records,
            &mut self.wal_fpi,
            &mut self.wal_buffers_full,
            &mut self.blks_hit,
            &mut self.blks_read,
            &mut self.temp_files,
            &mut self.temp_bytes,
            &mut self.checkpoints_timed,
            &mut self.checkpoints_requested,
            &mut self.buffers_checkpoint,
            &mut self.buffers_clean,
            &mut self.buffers_backend,
        ]
    }

    /// What has happened since an earlier reading. A reset of the statistics shows as nothing.
    pub fn since(mut self, mut before: Self) -> Self {
        self.fields().into_iter().zip(before.fields()).for_each(|(now, then)| *now = (*now - *then).max(0));
        self
    }

    /// Adds what came after.
    pub fn merge(&mut self, mut later: Self) {
        self.fields().into_iter().zip(later.fields()).for_each(|(sum, more)| *sum += *more);
    }
}

/// Reads the counters: of the whole server, buffers found and temporary files of this database.
pub fn read() -> Result<ServerCounters, UserError> {
    let values = transaction(|| {
        let database = database::oid();
        fetch::<Vec<Option<i64>>>(COUNTERS, &[database.into()])
    })?;
    let mut counters = ServerCounters::default();
    let values = values.unwrap_or_default();
    counters.fields().into_iter().zip(values).for_each(|(field, value)| *field = value.unwrap_or_default());
    Ok(counters)
}
