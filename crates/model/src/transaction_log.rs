//! The log of single transactions: clients put theirs into queues in memory that they share with one reader.
//!
//! A queue has one writer, one reader and a fixed number of places. The writer never waits: an entry that finds no place is
//! lost, and counted as lost.

use std::sync::atomic::{AtomicU64, Ordering::*};

use bench_base::words;
use bench_base::words::Word;
use bench_script::Prng;

use crate::tally::Counter;

words! {
    /// How a logged transaction ended, by the words of bench.transactions.
    #[derive(Default)]
    #[repr(u8)]
    pub enum LoggedOutcome {
        #[default]
        Processed = "processed",
        /// Processed, but its script ended within a block, which ended its client.
        LeftOpen = "left open",
        /// Given up at a serialization failure or deadlock, or its connection was lost before it could be committed.
        Failed = "failed",
        /// Another error ended it, and its client.
        Aborted = "aborted",
        /// Not started, because it was too late under a latency limit.
        Skipped = "skipped",
        /// Its connection was lost, and whether it was committed is not known.
        Unknown = "unknown",
    }
}

impl LoggedOutcome {
    fn of(number: u64) -> Self {
        Self::WORDS.get(number as usize).map_or_else(Self::default, |(_, outcome)| *outcome)
    }
}

/// A transaction in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRecord {
    /// Its client, from 0.
    pub client: u32,
    /// Its place among the client's transactions that were measured or skipped, from 1.
    pub transaction: u64,
    /// Its script's place in the mix, from 0.
    pub script: u32,
    /// Tries beyond the first.
    pub retries: u32,
    pub outcome: LoggedOutcome,
    /// When it started, or was skipped, by CLOCK_MONOTONIC.
    pub start_ns: i64,
    /// How much later than it was due.
    pub lag_ns: u64,
    /// From when it was due to its end; 0 if it was skipped.
    pub latency_ns: u64,
}

/// Room for an [`LogRecord`].
#[derive(Default)]
#[repr(C)]
pub struct LogCell([AtomicU64; 6]);

impl LogCell {
    fn set(&self, entry: &LogRecord) {
        let words = [
            entry.transaction,
            u64::from(entry.script) << 32 | u64::from(entry.retries),
            u64::from(entry.client) << 32 | entry.outcome as u64,
            entry.start_ns.cast_unsigned(),
            entry.lag_ns,
            entry.latency_ns,
        ];
        for (place, word) in self.0.iter().zip(words) {
            place.store(word, Relaxed);
        }
    }

    fn get(&self) -> LogRecord {
        let [transaction, script_and_retries, client_and_outcome, start_ns, lag_ns, latency_ns] =
            self.0.each_ref().map(|place| place.load(Relaxed));
        LogRecord {
            client: (client_and_outcome >> 32) as u32,
            transaction,
            script: (script_and_retries >> 32) as u32,
            retries: script_and_retries as u32,
            outcome: LoggedOutcome::of(client_and_outcome & 0xFFFF_FFFF),
            start_ns: start_ns.cast_signed(),
            lag_ns,
            latency_ns,
        }
    }
}

/// What writer and reader share beside the places.
#[derive(Default)]
#[repr(C, align(128))]
pub struct Ends {
    /// Entries written so far.
    written: AtomicU64,
    /// Those that the reader has taken.
    taken: AtomicU64,
    /// Entries for which there was no room.
    pub lost: Counter,
}

/// A queue, as both of its sides see it.
#[derive(Clone, Copy)]
pub struct LogQueue<'a> {
    pub ends: &'a Ends,
    /// At least one.
    pub places: &'a [LogCell],
}

impl<'a> LogQueue<'a> {
    fn place(self, number: u64) -> &'a LogCell {
        &self.places[(number % self.places.len() as u64) as usize]
    }

    /// Writes an entry, if there is room for it. There is one writer.
    pub fn put(self, entry: &LogRecord) {
        let number = self.ends.written.load(Relaxed);
        // Acquire: the reader has read what is written over.
        if number - self.ends.taken.load(Acquire) >= self.places.len() as u64 {
            self.ends.lost.add(1);
            return;
        }
        self.place(number).set(entry);
        // Release: a reader that sees the number sees the entry.
        self.ends.written.store(number + 1, Release);
    }

    /// Hands the entries written so far to `take`, oldest first, at most `most`. There is one reader.
    pub fn take(self, most: usize, mut take: impl FnMut(LogRecord)) {
        let first = self.ends.taken.load(Relaxed);
        let end = self.ends.written.load(Acquire).min(first.saturating_add(most as u64));
        for number in first..end {
            take(self.place(number).get());
        }
        self.ends.taken.store(end, Release);
    }

    /// Entries that are written and not taken.
    pub fn left(self) -> u64 {
        self.ends.written.load(Acquire) - self.ends.taken.load(Relaxed)
    }
}

/// Which of a client's transactions are logged.
#[derive(Clone, Debug)]
pub struct Sampling {
    client: u32,
    random: Prng,
    rate: f64,
    from_ns: u64,
    transactions: u64,
}

impl Sampling {
    /// `rate` is the share of the transactions to log, above 0 and up to 1; `random` decides for each, as pgbench's
    /// `ts_sample_rs` does. Of those that are processed, only those are logged that take at least `from_ns`.
    pub fn new(client: u32, random: Prng, rate: f64, from_ns: u64) -> Self {
        Self { client, random, rate, from_ns, transactions: 0 }
    }

    /// Has the client's next transaction logged if its turn has come (`doLog` in pgbench.c): `complete` is given an entry with
    /// its client and its place, and `log` the complete one.
    #[inline(never)]
    pub fn log(&mut self, complete: impl FnOnce(LogRecord) -> LogRecord, log: impl FnOnce(&LogRecord)) {
        self.transactions += 1;
        if self.random.unit_interval() > self.rate {
            return;
        }
        let entry = LogRecord { client: self.client, transaction: self.transactions, ..LogRecord::default() };
        let entry = complete(entry);
        if entry.outcome != LoggedOutcome::Processed || entry.latency_ns >= self.from_ns {
            log(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    struct Owner {
        ends: Ends,
        places: Vec<LogCell>,
    }

    impl Owner {
        fn new(room: usize) -> Self {
            Self { ends: Ends::default(), places: (0..room).map(|_| LogCell::default()).collect() }
        }

        fn queue(&self) -> LogQueue<'_> {
            LogQueue { ends: &self.ends, places: &self.places }
        }

        fn taken(&self, most: usize) -> Vec<u64> {
            let mut taken = Vec::new();
            self.queue().take(most, |entry| taken.push(entry.transaction));
            taken
        }
    }

    /// A client that logs into a queue.
    struct LogWriter<'a> {
        queue: LogQueue<'a>,
        sampling: Sampling,
    }

    impl LogWriter<'_> {
        fn log(&mut self, entry: LogRecord) {
            let LogRecord { latency_ns, .. } = entry;
            self.sampling.log(|entry| LogRecord { latency_ns, ..entry }, |entry| self.queue.put(entry));
        }
    }

    fn writer(owner: &Owner, rate: f64) -> LogWriter<'_> {
        LogWriter { queue: owner.queue(), sampling: Sampling::new(5, Prng::from_seed(42), rate, 0) }
    }

    #[test]
    fn entries_come_out_as_they_went_in() {
        let owner = Owner::new(8);
        let entries: Vec<LogRecord> = LoggedOutcome::WORDS
            .iter()
            .map(|&(_, outcome)| LogRecord {
                client: u32::MAX - outcome as u32,
                transaction: outcome as u64 + 1,
                script: u32::MAX - 1,
                retries: 7,
                outcome,
                start_ns: i64::MIN + outcome as i64,
                lag_ns: u64::MAX,
                latency_ns: 3,
            })
            .collect();
        entries.iter().for_each(|entry| owner.queue().put(entry));
        let mut taken = Vec::new();
        owner.queue().take(100, |entry| taken.push(entry));
        assert_eq!(taken, entries);
    }

    #[test]
    fn what_finds_no_room_is_counted_as_lost() {
        let owner = Owner::new(3);
        let mut writer = writer(&owner, 1.0);
        let mut log = |count: u64| (0..count).for_each(|_| writer.log(LogRecord::default()));
        log(5);
        assert_eq!((owner.taken(2), owner.ends.lost.get()), (vec![1, 2], 2));
        log(3);
        assert_eq!((owner.taken(100), owner.ends.lost.get()), (vec![3, 6, 7], 3));
        assert!(owner.taken(100).is_empty());
    }

    #[test]
    fn fast_transactions_are_left_out() {
        let owner = Owner::new(8);
        let mut writer =
            LogWriter { queue: owner.queue(), sampling: Sampling::new(5, Prng::from_seed(42), 1.0, 100) };
        [99, 100, 5, 200]
            .into_iter()
            .for_each(|latency_ns| writer.log(LogRecord { latency_ns, ..LogRecord::default() }));
        assert_eq!(owner.taken(100), [2, 4]);
        let fail = |entry| LogRecord { outcome: LoggedOutcome::Failed, ..entry };
        writer.sampling.log(fail, |entry| owner.queue().put(entry));
        assert_eq!(owner.taken(100), [5]);
    }

    #[test]
    fn every_transaction_has_the_same_chance() {
        let owner = Owner::new(100_000);
        let mut writer = writer(&owner, 0.01);
        (0..100_000).for_each(|_| writer.log(LogRecord::default()));
        let taken = owner.taken(usize::MAX);
        // Four standard deviations of a binomial distribution.
        assert!(taken.len().abs_diff(1000) < 126, "{} of 100,000", taken.len());
        let half = taken.iter().filter(|transaction| **transaction <= 50_000).count();
        assert!(half.abs_diff(500) < 90, "{half} of 50,000");
        // The seed decides which.
        let again = Owner::new(100_000);
        let mut writer = self::writer(&again, 0.01);
        (0..100_000).for_each(|_| writer.log(LogRecord::default()));
        assert_eq!(again.taken(usize::MAX), taken);
    }

    #[test]
    fn a_reader_beside_the_writer_misses_nothing_but_what_is_lost() {
        const COUNT: u64 = 100_000;
        let owner = Owner::new(64);
        let mut taken: Vec<LogRecord> = Vec::new();
        thread::scope(|scope| {
            let work = scope.spawn(|| {
                let mut writer = writer(&owner, 1.0);
                for number in 1..=COUNT {
                    writer.log(LogRecord { latency_ns: number, ..LogRecord::default() });
                }
            });
            while !work.is_finished() {
                owner.queue().take(usize::MAX, |entry| taken.push(entry));
            }
        });
        owner.queue().take(usize::MAX, |entry| taken.push(entry));
        assert_eq!(taken.len() as u64 + owner.ends.lost.get(), COUNT);
        assert!(taken.iter().all(|entry| entry.latency_ns == entry.transaction), "entries are whole");
        assert!(taken.iter().all(|entry| entry.client == 5));
        assert!(taken.is_sorted_by_key(|entry| entry.transaction));
    }
}
