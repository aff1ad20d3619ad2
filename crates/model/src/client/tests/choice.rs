//! Decks of cards, and clients that wait around their transactions.

use super::*;

const SECOND: f64 = 1e9;

/// TPC-C 5.2.4.2: the cards of a deck, for new order, payment, order status, delivery and stock level.
const CARDS: [u32; 5] = [10, 10, 1, 1, 1];

/// Keying and mean think times in seconds: TPC-C 5.2.5.7.
const TIMES: [(f64, f64); 5] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];

fn terminals() -> ClientWorkload<'static> {
    let mut workload = workload(&["SELECT 1;"; 5], 1);
    for (program, (cards, (keying, think))) in workload.programs.iter_mut().zip(CARDS.into_iter().zip(TIMES))
    {
        program.weight = cards;
        program.pauses = Some(Pauses::of_secs(keying, think));
    }
    workload
}

/// Runs a client whose transactions take so long; the transactions.
fn drive(workload: &ClientWorkload, transactions: u64, each_ns: i64) -> Vec<Transaction> {
    let mut recorder = recorder();
    let mut client = Client::new(workload, beginning(workload, transactions), None, 0);
    let mut step = client.start(&recorder);
    loop {
        step = match step {
            Step::Between => client.next(workload, &mut recorder),
            Step::Wait { until_ns } => {
                assert!(until_ns >= recorder.now_ns);
                recorder.now_ns = until_ns;
                client.due(workload, &mut recorder, true)
            }
            Step::Execute { .. } => {
                recorder.now_ns += each_ns;
                client.executed(workload, &mut recorder, Ok(false))
            }
            Step::End(None) => return recorder.transactions,
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn each_deck_has_all_its_cards() {
    const DECK: usize = 23;
    let mut workload = terminals();
    workload.is_deck = true;
    workload.programs.iter_mut().for_each(|program| program.pauses = None);
    let dealt: Vec<usize> = drive(&workload, 500 * DECK as u64, 1).iter().map(|t| t.script).collect();
    let count = |cards: &[usize], card: usize| cards.iter().filter(|dealt| **dealt == card).count() as u32;
    for deck in dealt.chunks(DECK) {
        assert_eq!(std::array::from_fn::<u32, 5, _>(|card| count(deck, card)), CARDS);
    }
    // Shuffled: the place of the one stock level is uniform. Chi-square of 22 degrees of freedom, 0.999: 48.3.
    let mut places = [0u32; DECK];
    for deck in dealt.chunks(DECK) {
        places[deck.iter().position(|card| *card == 4).expect("the card")] += 1;
    }
    let expected = 500.0 / DECK as f64;
    let chi_square: f64 = places.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!(chi_square < 48.3, "{places:?}");
    assert!(dealt.chunks(DECK).zip(dealt.chunks(DECK).skip(1)).any(|(a, b)| a != b));
}

#[test]
fn pauses_are_no_part_of_a_transaction() {
    let workload = terminals();
    let each_ns = 7 * MS;
    let transactions = drive(&workload, 20_000, each_ns);
    assert!(transactions.iter().all(|t| t.end_ns - t.due_ns == each_ns && t.start_ns == t.due_ns));
    // Between two lie the think time of the first and the keying of the second.
    let mut thought = [(0.0, 0.0, 0.0f64); 5];
    for pair in transactions.windows(2) {
        let (keying, _) = TIMES[pair[1].script];
        let secs = (pair[1].start_ns - pair[0].end_ns) as f64 / SECOND - keying;
        assert!(secs >= -1e-6);
        let (count, sum, most) = &mut thought[pair[0].script];
        (*count, *sum, *most) = (*count + 1.0, *sum + secs, most.max(secs));
    }
    for ((count, sum, most), (_, mean)) in thought.into_iter().zip(TIMES) {
        // The mean of exponential times has their mean's share of a root as its standard error.
        assert!(
            (sum / count / mean - 1.0).abs() < 4.0 / f64::sqrt(count),
            "{count} of {mean}: {}",
            sum / count
        );
        assert!(most <= 10.0 * mean + 1e-6 && most > 4.0 * mean);
    }
}

#[test]
fn think_times_are_cut_off_at_ten_times_the_mean() {
    let mut workload = workload(&["SELECT 1;"], 1);
    workload.programs[0].pauses = Some(Pauses { keying_ns: 0, think_ns: 1000.0 });
    // About 45 in a million are beyond ten times the mean.
    let transactions = drive(&workload, 300_000, 0);
    let pauses: Vec<i64> = transactions.windows(2).map(|pair| pair[1].start_ns - pair[0].end_ns).collect();
    assert_eq!(pauses.iter().max(), Some(&10_000));
    assert!(pauses.iter().filter(|pause| **pause == 10_000).count() < 50);
}

#[test]
fn a_client_that_waits_ends_with_the_run() {
    let workload = terminals();
    let mut recorder = TestRecorder { end_ns: 1000 * MS, ..recorder() };
    let mut client = Client::new(&workload, beginning(&workload, u64::MAX), None, 0);
    let Step::Between = client.start(&recorder) else { panic!("it may begin") };
    let Step::Wait { until_ns } = client.next(&workload, &mut recorder) else { panic!("it waits") };
    assert_eq!(until_ns, recorder.end_ns);
    recorder.now_ns = until_ns;
    assert!(matches!(client.due(&workload, &mut recorder, true), Step::End(None)));
    assert!(recorder.transactions.is_empty() && recorder.errors.is_empty());
}

#[test]
fn arms_take_turns_and_do_the_same() {
    // Two scripts, three to one; each is there for both arms.
    let mut workload = workload(&["SELECT 1;"; 4], 1);
    workload.programs.iter_mut().take(2).for_each(|program| program.weight = 3);
    let mut recorder = recorder();
    let turns = Turns { seed: 7, has_several_clients: false, longest_ns: i64::MAX, first: 0, only: None };
    let beginning = ClientStart { turns: Some(turns), ..beginning(&workload, 40_000) };
    let mut client = Client::new(&workload, beginning, None, 0);
    let mut step = client.start(&recorder);
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    loop {
        step = match step {
            Step::Between => client.next(&workload, &mut recorder),
            Step::Switch { arm } => {
                stretches.push((arm, recorder.transactions.len()));
                recorder.now_ns += 1_000_000;
                client.switched(&workload, &mut recorder)
            }
            Step::Execute { .. } => {
                recorder.now_ns += 100_000;
                client.executed(&workload, &mut recorder, Ok(false))
            }
            Step::End(None) => break,
            other => panic!("{other:?}"),
        };
    }
    let transactions = &recorder.transactions;
    // What a switch takes is no part of a transaction.
    assert!(transactions.iter().all(|t| t.end_ns - t.due_ns == 100_000));
    for (place, (arm, from)) in stretches.iter().enumerate() {
        let until = stretches.get(place + 1).map_or(transactions.len(), |(_, next)| *next);
        assert!(transactions[*from..until].iter().all(|t| t.script % 2 == *arm));
    }
    // Each block has both arms, equally long: here also by transactions, which all take the same time.
    for block in stretches.windows(3).step_by(2) {
        assert_ne!(block[0].0, block[1].0);
        assert_eq!(block[1].1 - block[0].1, block[2].1 - block[1].1);
    }
    let of = |script: usize| transactions.iter().filter(|t| t.script == script).count();
    assert!(
        (of(0) as f64 / of(2) as f64 - 3.0).abs() < 0.2 && (of(1) as f64 / of(3) as f64 - 3.0).abs() < 0.2
    );
}

#[test]
fn a_transaction_is_of_the_arm_in_whose_stretch_its_wait_ends() {
    let workload = workload(&["SELECT 1;"; 2], 1);
    let mut recorder = recorder();
    let turns = Turns { seed: 7, has_several_clients: false, longest_ns: 3_000_000, first: 0, only: None };
    let beginning = ClientStart { turns: Some(turns), ..beginning(&workload, 1_000) };
    // A transaction every two milliseconds, on average.
    let mut client = Client::new(&workload, beginning, Some(Schedule::new(7, 500.0, 0)), 0);
    let mut step = client.start(&recorder);
    let (mut arm, mut switches) = (None, 0);
    loop {
        step = match step {
            Step::Between => client.next(&workload, &mut recorder),
            Step::Wait { until_ns } => {
                recorder.now_ns = recorder.now_ns.max(until_ns);
                client.due(&workload, &mut recorder, true)
            }
            Step::Switch { arm: of_stretch } => {
                arm = Some(of_stretch);
                switches += 1;
                client.switched(&workload, &mut recorder)
            }
            Step::Execute { program, .. } => {
                assert_eq!(Some(program), arm);
                recorder.now_ns += 100_000;
                client.executed(&workload, &mut recorder, Ok(false))
            }
            Step::End(None) => break,
            other => panic!("{other:?}"),
        };
    }
    let transactions = &recorder.transactions;
    assert!(
        transactions.len() > 900 && switches > 300,
        "{} transactions, {switches} switches",
        transactions.len()
    );
    // All transactions that begin within a stretch are of the same arm.
    let mut of_stretch = std::collections::BTreeMap::new();
    for transaction in transactions {
        let known = of_stretch.entry(transaction.start_ns / 3_000_000).or_insert(transaction.script);
        assert_eq!(*known, transaction.script, "{transaction:?}");
    }
}
