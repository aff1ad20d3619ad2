//! Wait events that something is known to do about, by the names that each version of the server has for them.
//!
//! Other wait events go by the server's own name. PostgreSQL 17 makes names of one kind out of its list of them
//! (utils/activity/wait_event_names.txt), which changed the case of some.

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// WAL that is written or flushed, or has to make room.
    Wal,
    /// Files of tables and indexes.
    Tables,
    /// Temporary files of sorts, hashes and other sets of rows that exceed work_mem.
    TemporaryFiles,
}

/// A wait event.
#[derive(Clone, Copy, Debug)]
pub struct WaitEvent {
    /// Its type, as in pg_stat_activity.
    pub class: &'static str,
    /// Its name in PostgreSQL 15 and 16.
    pub before_17: &'static str,
    /// Its name from 17 on.
    pub since_17: &'static str,
    /// What it is.
    pub waits: Waits,
}

const fn named(
    class: &'static str,
    before_17: &'static str,
    since_17: &'static str,
    waits: Waits,
) -> WaitEvent {
    WaitEvent { class, before_17, since_17, waits }
}

/// All of them. `test/faults/wait_events.sh` holds the names against each server's own, and reads them here: one event a line.
#[rustfmt::skip]
const WAIT_EVENTS: [WaitEvent; 19] = [
    named("IO", "WALInitSync", "WalInitSync", Waits::Wal),
    named("IO", "WALInitWrite", "WalInitWrite", Waits::Wal),
    named("IO", "WALSync", "WalSync", Waits::Wal),
    named("IO", "WALSyncMethodAssign", "WalSyncMethodAssign", Waits::Wal),
    named("IO", "WALWrite", "WalWrite", Waits::Wal),
    named("LWLock", "WALBufMapping", "WALBufMapping", Waits::Wal),
    named("LWLock", "WALInsert", "WALInsert", Waits::Wal),
    named("LWLock", "WALWrite", "WALWrite", Waits::Wal),
    named("IO", "DataFileExtend", "DataFileExtend", Waits::Tables),
    named("IO", "DataFileFlush", "DataFileFlush", Waits::Tables),
    named("IO", "DataFileImmediateSync", "DataFileImmediateSync", Waits::Tables),
    named("IO", "DataFilePrefetch", "DataFilePrefetch", Waits::Tables),
    named("IO", "DataFileRead", "DataFileRead", Waits::Tables),
    named("IO", "DataFileSync", "DataFileSync", Waits::Tables),
    named("IO", "DataFileTruncate", "DataFileTruncate", Waits::Tables),
    named("IO", "DataFileWrite", "DataFileWrite", Waits::Tables),
    named("IO", "BufFileRead", "BuffileRead", Waits::TemporaryFiles),
    named("IO", "BufFileTruncate", "BuffileTruncate", Waits::TemporaryFiles),
    named("IO", "BufFileWrite", "BuffileWrite", Waits::TemporaryFiles),
];

/// What a wait event is, by its key in the samples, `type:event`, whichever version the document is of; `None` for all
/// others.
pub fn waits_for(key: &str) -> Option<Waits> {
    let (class, name) = key.split_once(':')?;
    let is_it =
        |event: &&WaitEvent| event.class == class && [event.before_17, event.since_17].contains(&name);
    WAIT_EVENTS.iter().find(is_it).map(|event| event.waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_name_of_its_own() {
        assert_eq!(waits_for("IO:WALSync"), Some(Waits::Wal));
        assert_eq!(waits_for("IO:WalSync"), Some(Waits::Wal));
        assert_eq!(waits_for("LWLock:WALWrite"), Some(Waits::Wal));
        assert_eq!(waits_for("IO:BufFileWrite"), waits_for("IO:BuffileWrite"));
        for other in ["IO:walsync", "LWLock:WALSync", "IO:", "IO", "CPU", "Lock:relation"] {
            assert_eq!(waits_for(other), None, "{other}");
        }
    }

    /// An event has one line, and no name stands for two.
    #[test]
    fn names_are_of_one_event() {
        for (place, event) in WAIT_EVENTS.iter().enumerate() {
            for other in &WAIT_EVENTS[place + 1..] {
                assert!(
                    event.class != other.class
                        || (event.before_17 != other.before_17 && event.since_17 != other.since_17),
                    "{event:?} and {other:?}"
                );
            }
        }
    }
}
