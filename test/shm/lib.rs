//! The shared segment on its own. Threads are the processes; each attaches by itself, as they do.
#![cfg(test)]

#[path = "../../src/shm/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what the rest of the library uses")]
mod shm;

mod error {
    use bench_base::error::{UserError, sqlstate};

    pub fn internal(message: impl Into<String>) -> UserError {
        UserError::new(sqlstate::INTERNAL_ERROR, message)
    }
}

/// What src/shm asks the server for.
mod server {
    pub mod database {
        pub fn oid() -> pgrx::pg_sys::Oid {
            pgrx::pg_sys::Oid(5)
        }
    }

    pub mod process {
        use std::sync::LazyLock;
        use std::time::Instant;

        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

        pub fn now_ns() -> i64 {
            BEGIN.elapsed().as_nanos() as i64
        }
        pub fn own_cpu_ns() -> i64 {
            now_ns()
        }
        pub fn own_switches() -> i64 {
            0
        }
        pub fn cpu_ns(_pid: i32) -> Option<i64> {
            Some(0)
        }
        pub fn own_minor_faults() -> i64 {
            0
        }
        pub fn current_timestamp() -> i64 {
            0
        }
        pub fn is_backend(pid: i32) -> bool {
            pid != 0
        }
        pub fn wake(_pid: i32) {}
        pub fn cancel(_pid: i32) -> bool {
            false
        }

        #[derive(Clone, Copy, Default)]
        pub struct Usage {
            pub blocks: u64,
            pub wal_bytes: u64,
        }

        impl Usage {
            pub fn of_session() -> Self {
                Self::default()
            }
        }
    }
}

mod tests {
    use std::sync::atomic::Ordering::*;
    use std::thread;

    use bench_base::error::{SqlError, UserError};
    use bench_model::client::{Outcome, Transaction, TransactionRecorder};
    use bench_model::timeline::Timeline;
    use bench_model::transaction_log::LogRecord;
    use bench_stats::Histogram;

    use crate::server::process::now_ns;
    use crate::shm::*;

    const SHAPE: SegmentShape = SegmentShape {
        slots: 3,
        connections: 0,
        scripts: 2,
        commands: 5,
        ring: 4,
        nodes: 1,
        log: 4,
        feeders: 2,
        batches: 3,
        spec_bytes: 0,
        fed_bytes: 0,
    };

    /// Each part of the segment, to its last byte.
    fn touch(segment: &Segment) {
        let shape = segment.shape();
        for slot in 0..shape.slots {
            segment.slot(slot).totals[3].retries.add(1);
            segment.commands(slot).iter().for_each(|command| command.executions.add(1));
            segment.times(slot).iter().for_each(|times| times.record(u64::MAX));
            segment.intervals(slot).misplaced.add(1);
            segment.arms(slot).iter().flatten().for_each(|sums| sums.rows.add(u64::MAX));
            segment.tallies(slot).iter().for_each(|tally| tally.commit(u64::MAX));
            if let Some(queue) = segment.log(slot) {
                (0..=queue.places.len()).for_each(|_| queue.put(&LogRecord::default()));
                assert_eq!(queue.ends.lost.get(), 1);
                queue.take(usize::MAX, |entry| assert_eq!(entry, LogRecord::default()));
            }
            if shape.connections > 0 {
                segment.connects(slot).commit(1);
            }
        }
        for client in 0..shape.connections {
            segment.connection(client).set_state(ClientState::Running);
            assert!(!segment.session(client).is_over());
        }
        for feeder in 0..shape.feeders {
            segment.taken(feeder).fetch_add(1, Relaxed);
        }
        segment.nodes().for_each(|node| node.fail(&UserError::new("XX000", "x".repeat(5000))));
        segment.ring().tallies.iter().for_each(|tally| tally.lag(u64::MAX));
        for plans in segment.plans() {
            for form in 0..9 {
                plans.claim(form);
            }
            plans.described();
        }
        segment.header().fail(&UserError::new("XX000", "é".repeat(5000)).hint("x".repeat(5000)));
        assert!(segment.header().failure().is_some());
    }

    #[test]
    fn every_part_of_every_shape_is_inside() {
        let mut number = 0;
        for slots in [0, 1, 2, 3] {
            for (scripts, commands) in [(0, 0), (1, 1), (2, 3)] {
                for (connections, log, nodes, feeders) in [(0, 0, 0, 0), (1, 1, 1, 1), (5, 3, 2, 3)] {
                    number += 1;
                    // Miri takes minutes for one.
                    if cfg!(miri) && number % 7 != 1 {
                        continue;
                    }
                    let shape = SegmentShape {
                        slots,
                        connections,
                        scripts,
                        commands,
                        log,
                        nodes,
                        feeders,
                        batches: log,
                        ..SHAPE
                    };
                    let segment = Segment::create(shape, "{\"é\": 1}", &[7; 13]);
                    touch(&segment);
                    assert_eq!((segment.spec(), segment.fed()), ("{\"é\": 1}", &[7; 13][..]));
                    segment.detach();
                }
            }
        }
    }

    #[test]
    fn what_is_no_segment_of_this_build_is_left_alone() {
        assert!(Segment::attach(9_999).is_none());
        let segment = Segment::create(SegmentShape::LEADER, "", &[]);
        let handle = segment.handle();
        segment.header().build.store(1, Relaxed);
        assert!(Segment::attach(handle).is_none());
        assert!(build::refuse(handle).is_err());
        segment.header().build.store(build::own(), Relaxed);
        // Its own word for its length does not make it longer.
        segment.header().commands.store(1_000_000, Relaxed);
        segment.header().slots.store(1_000, Relaxed);
        assert!(Segment::attach(handle).is_none());
        segment.detach();
        assert!(Segment::attach(handle).is_none());
    }

    #[test]
    fn callbacks_come_before_the_memory_goes() {
        static COUNT: DetachCallback =
            DetachCallback(|segment| segment.header().request_stop(StopReason::Requested));
        static NEVER: DetachCallback = DetachCallback(|_| panic!("it was taken back"));
        let segment = Segment::create(SHAPE, "", &[]);
        let other = Segment::attach(segment.handle()).expect("it is there");
        other.on_detach(&COUNT);
        other.on_detach(&NEVER);
        other.cancel_on_detach(&NEVER);
        other.detach();
        assert_eq!(segment.header().stop(), StopReason::Requested);
        segment.detach();
    }

    /// A run of each client in a thread of its own, whose intervals and log the leader takes meanwhile.
    #[test]
    fn a_run_counts_each_transaction_once() {
        const TRANSACTIONS: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let segment = Segment::create(SHAPE, "spec", &[]);
        let handle = segment.handle();
        let begin = now_ns();
        // Moving a tally is thousands of accesses, which Miri takes a second for.
        let interval_ns = if cfg!(miri) { 2_000_000_000 } else { 500_000 };
        segment.header().timeline.store(&Timeline::new(begin, 0, None, interval_ns));
        let clients: Vec<_> = (0..SHAPE.slots)
            .map(|slot| {
                thread::spawn(move || {
                    let segment = Segment::attach(handle).expect("a segment");
                    let mut recorder = ClientCounters::new(&segment, slot, Some(0.001));
                    recorder.begin();
                    for number in 0..TRANSACTIONS {
                        recorder.begin_stretch(MeasuredSession::Own, (number % 2) as usize, false);
                        let start_ns = recorder.now_ns();
                        let end_ns = recorder.end_clock();
                        let transaction = Transaction {
                            script: (number % 2) as usize,
                            due_ns: start_ns,
                            start_ns,
                            end_ns,
                            tries: 1,
                            outcome: Outcome::Committed,
                        };
                        recorder.record(&transaction);
                        recorder.end_stretch();
                        recorder.log(&LogRecord {
                            client: slot,
                            transaction: number + 1,
                            ..LogRecord::default()
                        });
                        recorder.performed((number % 5) as usize, true);
                        segment.taken(1).fetch_add(1, Relaxed);
                        if number % 10 == 0 {
                            let error =
                                SqlError { message: format!("error {number}"), ..SqlError::default() };
                            segment.slot(slot).count_error(
                                &error,
                                1,
                                bench_model::client::Consequence::Retried,
                            );
                        }
                    }
                    segment.slot(slot).set_state(ClientState::Done);
                    segment.header().request_stop(StopReason::Requested);
                    segment.detach();
                })
            })
            .collect();

        let (mut next, mut counted, mut logged) = (0, 0, 0);
        let mut last = vec![0; SHAPE.slots as usize];
        let mut histogram = Histogram::new();
        loop {
            let over = segment.slots().all(ClientSlot::is_over);
            let now = segment.header().timeline.load().bounds(next).1 <= now_ns();
            for slot in 0..SHAPE.slots {
                segment.log(slot).expect("a log").take(2, |entry| {
                    assert_eq!(entry.client, slot);
                    assert!(entry.transaction > last[slot as usize]);
                    last[slot as usize] = entry.transaction;
                    logged += 1;
                });
            }
            let ring = segment.ring();
            if over || now && (0..SHAPE.slots).all(|slot| ring.collect(segment.intervals(slot), next)) {
                if over {
                    // Whatever is left, in whichever interval.
                    (0..SHAPE.slots)
                        .for_each(|slot| assert!(ring.collect_rest(segment.intervals(slot), u32::MAX - 1)));
                }
                for tally in
                    if over { ring.tallies } else { std::slice::from_ref(&ring.tallies[next as usize % 4]) }
                {
                    counted += tally.transactions();
                    tally.add_to(&mut histogram);
                    tally.clear();
                }
                next += 1;
                ring.closed.store(next, Release);
            }
            if over {
                break;
            }
            thread::yield_now();
        }
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
        let all = TRANSACTIONS * u64::from(SHAPE.slots);
        assert_eq!((counted, histogram.count(), segment.taken(1).load(Relaxed)), (all, all, all));
        assert_eq!(segment.slots().map(|slot| slot.totals[2].committed.get()).sum::<u64>(), all);
        let arms = (0..SHAPE.slots).flat_map(|slot| segment.arms(slot)).flatten();
        assert_eq!(arms.map(|sums| sums.transactions.get() + sums.timed.get()).sum::<u64>(), 2 * all);
        let lost: u64 = (0..SHAPE.slots).map(|slot| segment.log(slot).expect("a log").ends.lost.get()).sum();
        let left: u64 = (0..SHAPE.slots).map(|slot| segment.log(slot).expect("a log").left()).sum();
        assert_eq!(logged + lost + left, all);
        segment.detach();
    }
}
