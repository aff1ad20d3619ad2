//! Connections for each transaction, and connections that are lost.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_connection_for_each_transaction_is_not_part_of_it() {
    let workload = workload(&["SELECT 1; SELECT 2;"], 1);
    let mut client =
        Client::new(&workload, ClientStart { reconnects: true, ..beginning(&workload, 3) }, None, 0);
    let mut recorder = recorder();
    let (error, executed) = drive(&workload, &mut client, &mut recorder, []);
    assert_eq!((error, executed.len(), recorder.connects), (None, 6, 2));
    let times: Vec<_> = recorder.transactions.iter().map(|t| (t.due_ns, t.start_ns, t.end_ns)).collect();
    let of = |n: i64| (12 * n * MS, 12 * n * MS, (12 * n + 2) * MS);
    assert_eq!(times, [of(0), of(1), of(2)]);
}

#[test]
fn another_try_keeps_the_connection_and_a_failed_transaction_does_not() {
    let workload = workload(&["SELECT 1;"], 2);
    let mut client =
        Client::new(&workload, ClientStart { reconnects: true, ..beginning(&workload, 2) }, None, 0);
    let mut recorder = recorder();
    let answers = [Err("40001"), Err("40001"), Err("40001"), Ok(false)];
    let (error, executed) = drive(&workload, &mut client, &mut recorder, answers);
    assert_eq!((error, executed.len(), recorder.connects), (None, 4, 1));
    let outcomes: Vec<_> = recorder.transactions.iter().map(|t| (t.tries, t.outcome)).collect();
    assert_eq!(outcomes, [(2, Outcome::Failed), (2, Outcome::Committed)]);
}

#[test]
fn under_a_rate_a_connection_delays_the_start() {
    let workload = workload(&["SELECT 1;"], 1);
    let schedule = || Schedule::new(42, 100.0, 0);
    let run = |reconnects| {
        let beginning = ClientStart { reconnects, ..beginning(&workload, 5) };
        let mut client = Client::new(&workload, beginning, Some(schedule()), 0);
        let mut recorder = recorder();
        drive(&workload, &mut client, &mut recorder, []);
        recorder
    };
    let (kept, anew) = (run(false), run(true));
    assert_eq!((kept.connects, anew.connects), (0, 4));
    for (kept, anew) in kept.transactions.iter().zip(&anew.transactions).skip(1) {
        assert_eq!(kept.due_ns, anew.due_ns);
        assert!(anew.start_ns >= kept.start_ns + 10 * MS);
    }
}

#[test]
fn an_arrival_without_a_connection_is_of_the_backlog() {
    let workload = workload(&["SELECT 1;"], 1);
    let schedule = Schedule::new(42, 100.0, 0);
    let beginning = ClientStart { reconnects: true, ..beginning(&workload, 9) };
    let mut client = Client::new(&workload, beginning, Some(schedule), 0);
    let mut recorder = recorder();
    let mut step = client.start(&recorder);
    let due_ns = loop {
        step = match step {
            Step::Between => client.next(&workload, &mut recorder),
            Step::Wait { until_ns } => {
                recorder.now_ns = until_ns;
                client.due(&workload, &mut recorder, true)
            }
            Step::Execute { .. } => client.executed(&workload, &mut recorder, Ok(false)),
            Step::Connect => break recorder.now_ns,
            step => panic!("{step:?}"),
        };
    };
    let before = client.backlog(due_ns + 1);
    assert!(matches!(client.unconnected(None), Step::End(None)));
    assert_eq!((before, client.backlog(due_ns + 1)), (0, 1));
}

#[test]
fn back_off_grows_and_is_not_all_clients_at_once() {
    for client in 0..1000 {
        let waits: Vec<_> = (0..8).map(|failures| back_off_ns(failures, client)).collect();
        assert!(waits.is_sorted() && waits[0] >= 25 * MS && waits[0] <= 50 * MS);
        assert!(waits[7] >= 500 * MS && waits[7] <= 1000 * MS && waits[6] == waits[7]);
    }
    let different: BTreeSet<_> = (0..100).map(|client| back_off_ns(5, client)).collect();
    assert!(different.len() > 90);
}

#[test]
fn a_lost_connection_ends_a_client_that_does_not_survive_it() {
    let workload = workload(&["SELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 9), None, 0);
    let mut recorder = recorder();
    let step = client.next(&workload, &mut recorder);
    assert!(matches!(step, Step::Execute { .. }));
    let step = client.lost(&workload, &mut recorder, SqlError::new("57P01", "gone"), true);
    assert!(matches!(step, Step::End(Some(_))));
    assert_eq!(recorder.transactions[0].outcome, Outcome::Aborted);
    assert_eq!(recorder.errors[0].0.sqlstate, SqlError::new("57P01", "").sqlstate);
    assert!(!client.lost_between(&mut recorder, &SqlError::new("57P01", "gone")));
}

proptest! {
    /// At whatever place connections are lost, each transaction is counted once, by what became of it.
    #[test]
    fn losses_are_counted_once(
        // At each place: nothing is lost, it is lost and not in doubt, it is lost and in doubt, it is lost before.
        fates in prop::collection::vec(prop_oneof![5 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3)], 0..300),
        transactions in 1_u64..40,
        reconnects in any::<bool>(),
        rate in any::<bool>(),
    ) {
        let workload = workload(&["SELECT 1;\n\\sleep 1 ms\nSELECT 2;", "SELECT 3;"], 2);
        let schedule = rate.then(|| Schedule::new(42, 100.0, 0));
        let beginning = ClientStart { reconnects, survives: true, ..beginning(&workload, transactions) };
        let mut client = Client::new(&workload, beginning, schedule, 0);
        let mut recorder = recorder();
        let mut fates = fates.into_iter();
        let (mut failed, mut unknown, mut idle, mut connects) = (0, 0, 0, 0);
        let lost = || SqlError::new("08006", "gone");
        let mut step = client.start(&recorder);
        loop {
            let fate = fates.next().unwrap_or(0);
            step = match step {
                Step::Between => client.next(&workload, &mut recorder),
                Step::Wait { until_ns } => {
                    if fate == 3 && client.is_connected() {
                        idle += 1;
                        prop_assert!(client.lost_between(&mut recorder, &lost()));
                    }
                    recorder.now_ns = recorder.now_ns.max(until_ns);
                    client.due(&workload, &mut recorder, true)
                }
                Step::Connect => {
                    prop_assert!(!client.is_connected());
                    connects += 1;
                    recorder.now_ns += MS;
                    client.connected(&workload, &mut recorder)
                }
                Step::Execute { .. } | Step::Sleep { .. } if fate == 1 || fate == 2 => {
                    prop_assert!(client.is_connected());
                    recorder.now_ns += MS;
                    if fate == 1 { failed += 1 } else { unknown += 1 }
                    client.lost(&workload, &mut recorder, lost(), fate == 2)
                }
                Step::Execute { .. } => {
                    recorder.now_ns += MS;
                    client.executed(&workload, &mut recorder, Ok(false))
                }
                Step::Sleep { until_ns } => {
                    recorder.now_ns = until_ns;
                    client.slept(&workload, &mut recorder, true)
                }
                Step::End(error) => {
                    prop_assert!(error.is_none());
                    break;
                }
                step => panic!("{step:?}"),
            };
        }
        let of = |outcome| recorder.transactions.iter().filter(|t| t.outcome == outcome).count();
        prop_assert_eq!(recorder.transactions.len() as u64, transactions);
        prop_assert_eq!((of(Outcome::Failed), of(Outcome::Unknown)), (failed, unknown));
        prop_assert_eq!(of(Outcome::Committed) + failed + unknown, transactions as usize);
        let state = |state| recorder.errors.iter().filter(|(e, _)| e.sqlstate == SqlError::new(state, "").sqlstate).count();
        prop_assert_eq!((state("08006"), state("08007")), (failed + idle, unknown));
        prop_assert!(reconnects || connects <= failed + unknown + idle);
    }
}
