//! How far standbys are behind, as a standby and as its primary say it.

use serde::{Deserialize, Serialize};

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
