//! Transaction ids: a soak uses up what the server has of them in hours, and the server stops assigning any when its oldest
//! database is two billion behind.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};

use crate::server::database;
use crate::server::process::now_ns;
use crate::server::transaction::transaction;
use crate::shm::Header;
use crate::store;

/// The age from which on a run says that it is time to act.
const WARN: i64 = 1_000_000_000;

/// The age at which a run ends: before the server's own last resorts, of which the first changes how it vacuums
/// (vacuum_failsafe_age) and the last is to refuse all writing.
const LIMIT: i64 = 1_800_000_000;

/// How often the databases' ages are read; between, only the next id is.
const READ_EVERY_NS: i64 = 60_000_000_000;
const LOOK_EVERY_NS: i64 = 500_000_000;

/// The age of the oldest database, watched while a run goes on.
#[derive(Default)]
pub struct XidWatch {
    age: i64,
    /// The next id when `age` was read.
    next: u64,
    read_ns: i64,
    looked_ns: i64,
}

impl XidWatch {
    /// Looks, if it is time to; whether the run may go on.
    ///
    /// # Errors
    /// 54000 when it may not.
    pub fn look(&mut self, header: &Header) -> Result<(), UserError> {
        let now = now_ns();
        if now - self.looked_ns < LOOK_EVERY_NS {
            return Ok(());
        }
        self.looked_ns = now;
        if self.read_ns == 0 || now - self.read_ns >= READ_EVERY_NS {
            self.read(now);
        }
        let mut age = self.age + database::next_xid().wrapping_sub(self.next).cast_signed();
        if age >= LIMIT {
            // It may have been vacuumed meanwhile.
            self.read(now);
            age = self.age;
        }
        if age >= WARN {
            header.xid_age.store(age, Relaxed);
        }
        if age < LIMIT { Ok(()) } else { Err(running_out(age)) }
    }

    fn read(&mut self, now: i64) {
        self.read_ns = now;
        self.next = database::next_xid();
        // What cannot be read is tried again in a minute.
        if let Ok(Some(age)) = transaction(store::oldest_age) {
            self.age = age;
        }
    }
}

fn running_out(age: i64) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "transaction ids are running out")
        .detail(format!("The oldest database is {age} transactions old; runs end at {LIMIT}."))
        .hint("VACUUM FREEZE the oldest tables (age(relfrozenxid) in pg_class) of the oldest database (age(datfrozenxid) in pg_database), and find out what holds back autovacuum: old transactions, prepared transactions or replication slots.")
}
