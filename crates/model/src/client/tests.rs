use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64};

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_script::{Symbols, Value, Variables, client_seeds, parse};
use proptest::prelude::*;

use super::*;
use crate::feeder::{Collector, Feeder, FeederValue, MAX_BYTES, RowSource, Stride, unpack};
use crate::schedule::Schedule;
use crate::transaction_log::{LogRecord, LoggedOutcome, Sampling};

const MS: i64 = 1_000_000;

/// A ledger with a clock that others move.
#[derive(Default)]
pub(super) struct TestRecorder {
    now_ns: i64,
    end_ns: i64,
    measure_start_ns: i64,
    limit_ns: i64,
    is_stopped: bool,
    /// How often the clock was read at an end without anything counted since.
    announced: u32,
    transactions: Vec<Transaction>,
    skipped: u64,
    logged: Vec<LogRecord>,
    laps: Vec<(usize, u64)>,
    failed: Vec<(usize, bool)>,
    performed: Vec<(usize, bool)>,
    errors: Vec<(SqlError, Consequence)>,
    connects: u32,
    arrivals: AtomicI64,
    stretch_ns: AtomicI64,
    pub ramp_end_ns: i64,
}

impl TransactionRecorder for TestRecorder {
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }
    fn end_clock(&mut self) -> i64 {
        self.announced += 1;
        self.now_ns
    }
    fn pass(&mut self) {
        self.announced = 0;
    }
    fn end_ns(&self) -> i64 {
        self.end_ns
    }
    fn limit_ns(&self) -> i64 {
        self.limit_ns
    }
    fn arrivals(&self) -> &AtomicI64 {
        &self.arrivals
    }
    fn stretch_ns(&self) -> &AtomicI64 {
        &self.stretch_ns
    }
    fn ramp_end_ns(&self) -> i64 {
        self.ramp_end_ns
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    fn is_measured(&mut self, end_ns: i64) -> bool {
        end_ns >= self.measure_start_ns
    }
    fn record(&mut self, transaction: &Transaction) -> bool {
        assert!(self.announced > 0, "the clock was read without a word");
        self.announced = 0;
        self.transactions.push(*transaction);
        self.is_measured(transaction.end_ns)
    }
    fn skip(&mut self, _: usize, now_ns: i64) -> bool {
        assert!(self.announced > 0, "the clock was read without a word");
        self.announced = 0;
        self.skipped += 1;
        self.is_measured(now_ns)
    }
    fn log(&mut self, entry: &LogRecord) {
        self.logged.push(*entry);
    }
    fn lap(&mut self, place: usize, latency_ns: u64) {
        self.laps.push((place, latency_ns));
    }
    fn command_failed(&mut self, place: usize, again: bool) {
        self.failed.push((place, again));
    }
    fn performed(&mut self, place: usize, succeeded: bool) {
        self.performed.push((place, succeeded));
    }
    fn error(&mut self, error: &SqlError, consequence: Consequence) {
        self.errors.push((error.clone(), consequence));
    }
    fn debug(&mut self, _: &str) {}
}

fn workload(scripts: &[&str], max_tries: u64) -> ClientWorkload<'static> {
    let mut symbols = Symbols::new();
    let mut first_command = 0;
    let mut program = |source: &&str| {
        let script = parse("test", source, &mut symbols).expect("a script");
        let commands = script.commands.len();
        let program = Program {
            script,
            feeds: Vec::new(),
            weight: 1,
            pauses: None,
            sleep_scale: 1.0,
            first_command,
            tolerance: Tolerance::None,
        };
        first_command += commands;
        program
    };
    let programs = scripts.iter().map(&mut program).collect();
    ClientWorkload { programs, is_deck: false, symbols, max_tries }
}

fn beginning(workload: &ClientWorkload, transactions: u64) -> ClientStart {
    ClientStart {
        seeds: client_seeds(42, 1, 0, false),
        variables: Variables::new(workload.symbols.len()),
        own: vec![Vec::new(); workload.programs.len()],
        transactions,
        skips: false,
        log: None,
        reconnects: false,
        turns: None,
        survives: false,
    }
}

pub(super) fn recorder() -> TestRecorder {
    TestRecorder { end_ns: i64::MAX, limit_ns: i64::MAX, ..TestRecorder::default() }
}

/// What a statement comes to, each after a millisecond.
type Answer = Result<bool, &'static str>;

/// Drives the client with these answers, `Ok(false)` when they have run out; the error that ended it, and the statements
/// that were executed.
fn drive(
    workload: &ClientWorkload,
    client: &mut Client,
    recorder: &mut TestRecorder,
    answers: impl IntoIterator<Item = Answer>,
) -> (Option<SqlError>, Vec<(usize, usize)>) {
    let mut answers: VecDeque<Answer> = answers.into_iter().collect();
    let mut executed = Vec::new();
    let mut step = client.start(recorder);
    loop {
        step = match step {
            Step::Between => client.next(workload, recorder),
            Step::Switch { .. } => client.switched(workload, recorder),
            Step::Wait { until_ns } => {
                recorder.now_ns = recorder.now_ns.max(until_ns);
                client.due(workload, recorder, true)
            }
            Step::Connect => {
                assert!(!client.is_connected(), "one connection at a time");
                recorder.connects += 1;
                recorder.now_ns += 10 * MS;
                client.connected(workload, recorder)
            }
            Step::Execute { program, command } => {
                assert!(client.is_connected(), "a statement needs a connection");
                executed.push((program, command));
                recorder.now_ns += MS;
                let answer = answers.pop_front().unwrap_or(Ok(false));
                client.executed(workload, recorder, answer.map_err(|state| SqlError::new(state, "no")))
            }
            Step::Sleep { until_ns } => {
                recorder.now_ns = until_ns;
                client.slept(workload, recorder, true)
            }
            Step::Abort(error) => client.failed(workload, recorder, *error),
            Step::AbortAtEnd => client.left_open(workload, recorder, Ok(())),
            Step::Retry => client.retry(workload, recorder),
            Step::End(error) => return (error.map(|error| *error), executed),
        };
    }
}

#[test]
fn transactions_follow_each_other_without_a_gap() {
    let workload = workload(&["SELECT 1; SELECT 2;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 3), None, 0);
    let mut recorder = recorder();
    let (error, executed) = drive(&workload, &mut client, &mut recorder, []);
    assert_eq!((error, executed.len()), (None, 6));
    let times: Vec<_> =
        recorder.transactions.iter().map(|t| (t.due_ns, t.start_ns, t.end_ns, t.outcome)).collect();
    let of = |n: i64| (2 * n * MS, 2 * n * MS, 2 * (n + 1) * MS, Outcome::Committed);
    assert_eq!(times, [of(0), of(1), of(2)]);
    assert_eq!(recorder.laps, [(0, 1_000_000), (1, 1_000_000)].repeat(3));
}

#[test]
fn a_warmups_transactions_are_not_those_asked_for() {
    let workload = workload(&["SELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 3), None, 0);
    let mut recorder = TestRecorder { measure_start_ns: 5 * MS, ..recorder() };
    drive(&workload, &mut client, &mut recorder, []);
    assert_eq!(recorder.transactions.len(), 4 + 3);
}

#[test]
fn the_clock_ends_the_client() {
    let workload = workload(&["SELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, u64::MAX), None, 0);
    let mut recorder = TestRecorder { end_ns: 7 * MS - 1, ..recorder() };
    let (error, executed) = drive(&workload, &mut client, &mut recorder, []);
    assert_eq!((error, executed.len()), (None, 7));
}

#[test]
fn conditions_lead_to_their_branch() {
    let script = "\\set x 2\n\\if :x = 1\nSELECT 1;\n\\elif :x = 2\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\nSELECT 4;\n";
    let workload = workload(&[script], 1);
    let mut client = Client::new(&workload, beginning(&workload, 1), None, 0);
    let mut recorder = recorder();
    let (error, executed) = drive(&workload, &mut client, &mut recorder, []);
    assert_eq!((error, executed), (None, vec![(0, 4), (0, 8)]));
    assert!(recorder.performed.iter().all(|(_, succeeded)| *succeeded));
}

#[test]
fn sleeping_is_part_of_the_transaction() {
    let workload = workload(&["\\sleep 5 ms\nSELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 1), None, 0);
    let mut recorder = recorder();
    drive(&workload, &mut client, &mut recorder, []);
    assert_eq!(recorder.transactions[0].end_ns, 6 * MS);
    assert_eq!(recorder.laps, [(0, 5_000_000), (1, 1_000_000)]);
}

#[test]
fn sleeps_are_scaled() {
    for (sleep_scale, laps) in [(0.5, [2_500_000, 1_000_000]), (0.0, [0, 1_000_000])] {
        let mut workload = workload(&["\\sleep 5 ms\nSELECT 1;"], 1);
        workload.programs[0].sleep_scale = sleep_scale;
        let mut client = Client::new(&workload, beginning(&workload, 1), None, 0);
        let mut recorder = recorder();
        drive(&workload, &mut client, &mut recorder, []);
        assert_eq!(recorder.laps, [(0, laps[0]), (1, laps[1])]);
    }
}

#[test]
fn another_try_draws_the_same_numbers() {
    let workload = workload(&["\\set x random(1, 1000000000)\nSELECT :x;"], 3);
    let mut client = Client::new(&workload, beginning(&workload, 2), None, 0);
    let mut recorder = recorder();
    let x = workload.symbols.lookup("x").expect("a variable");
    let mut drawn = Vec::new();
    let mut answers = VecDeque::from([Err("40001"), Err("40P01"), Ok(false)]);
    let mut step = client.start(&recorder);
    loop {
        step = match step {
            Step::Between => client.next(&workload, &mut recorder),
            Step::Execute { .. } => {
                drawn.push(client.variables.get(x).map(|value| value.to_text().into_owned()));
                let answer = answers.pop_front().unwrap_or(Ok(false));
                client.executed(&workload, &mut recorder, answer.map_err(|state| SqlError::new(state, "no")))
            }
            Step::Retry => client.retry(&workload, &mut recorder),
            Step::End(None) => break,
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(drawn.len(), 4);
    assert!(drawn[0] == drawn[1] && drawn[1] == drawn[2] && drawn[2] != drawn[3], "{drawn:?}");
    assert_eq!(recorder.transactions.iter().map(|t| t.tries).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(recorder.failed, [(1, true), (1, true)]);
    assert_eq!(recorder.errors.iter().map(|(_, c)| *c).collect::<Vec<_>>(), [Consequence::Retried; 2]);
}

#[test]
fn tries_end_with_max_tries_and_the_client_goes_on() {
    let workload = workload(&["SELECT 1;"], 2);
    let mut client = Client::new(&workload, beginning(&workload, 2), None, 0);
    let mut recorder = recorder();
    let (error, executed) = drive(&workload, &mut client, &mut recorder, [Err("40001"), Err("40001")]);
    assert_eq!((error, executed.len()), (None, 3));
    let outcomes: Vec<_> = recorder.transactions.iter().map(|t| (t.tries, t.outcome)).collect();
    assert_eq!(outcomes, [(2, Outcome::Failed), (1, Outcome::Committed)]);
    assert_eq!(recorder.failed, [(0, true), (0, false)]);
}

#[test]
fn no_try_begins_after_the_end_the_limit_or_a_stop() {
    let workload = workload(&["SELECT 1;"], u64::MAX);
    for given in [
        TestRecorder { end_ns: MS, ..recorder() },
        TestRecorder { limit_ns: MS, ..recorder() },
        TestRecorder { is_stopped: true, ..recorder() },
    ] {
        let mut client = Client::new(&workload, beginning(&workload, 1), None, 0);
        let mut recorder = given;
        drive(&workload, &mut client, &mut recorder, [Err("40001")]);
        assert_eq!(recorder.transactions[0].outcome, Outcome::Failed);
    }
}

#[test]
fn another_error_ends_the_client_with_its_place() {
    let workload = workload(&["SELECT 0;\nSELECT 1;"], 5);
    let mut client = Client::new(&workload, beginning(&workload, 10), None, 0);
    let mut recorder = recorder();
    let (error, _) = drive(&workload, &mut client, &mut recorder, [Ok(true), Err("22012")]);
    let detail = error.and_then(|error| error.detail).unwrap_or_default();
    assert_eq!(detail, "script \"test\", line 2:\nSELECT 1;");
    assert_eq!(recorder.transactions.iter().map(|t| t.outcome).collect::<Vec<_>>(), [Outcome::Aborted]);
    assert_eq!(recorder.errors[0].1, Consequence::Failed);
}

#[test]
fn a_captured_script_loses_a_transaction_to_an_error_of_the_data() {
    let mut workload = workload(&["BEGIN;\nSELECT 1;\nEND;"], 5);
    workload.programs[0].tolerance = Tolerance::Data;
    let mut client = Client::new(&workload, beginning(&workload, 3), None, 0);
    let mut recorder = recorder();
    let answers = [Ok(true), Err("23503"), Ok(true), Ok(true), Ok(false), Ok(true), Err("42P01")];
    let (error, executed) = drive(&workload, &mut client, &mut recorder, answers);
    assert!(error.is_some_and(|error| error.is("42P01")));
    assert_eq!(executed.len(), 7);
    let outcomes: Vec<_> = recorder.transactions.iter().map(|t| (t.tries, t.outcome)).collect();
    assert_eq!(outcomes, [(1, Outcome::Failed), (1, Outcome::Committed), (1, Outcome::Aborted)]);
    assert_eq!(recorder.failed, [(1, false), (1, false)]);
}

#[test]
fn a_client_that_continues_on_errors_ends_by_those_of_meta_commands_alone() {
    let mut workload = workload(&["SELECT 1;\n\\set x 1 / 0"], 5);
    workload.programs[0].tolerance = Tolerance::Statements;
    let mut client = Client::new(&workload, beginning(&workload, 3), None, 0);
    let mut recorder = recorder();
    let (error, executed) =
        drive(&workload, &mut client, &mut recorder, [Err("42P01"), Err("XX000"), Ok(false)]);
    assert!(error.is_some_and(|error| error.is("22012")));
    assert_eq!(executed.len(), 3);
    let outcomes: Vec<_> = recorder.transactions.iter().map(|t| (t.tries, t.outcome)).collect();
    assert_eq!(outcomes, [(1, Outcome::Failed), (1, Outcome::Failed), (1, Outcome::Aborted)]);
}

#[test]
fn what_a_client_cannot_do_with_a_result_ends_it_all_the_same() {
    let mut workload = workload(&["SELECT 1;"], 5);
    workload.programs[0].tolerance = Tolerance::Statements;
    let own: SqlError = UserError::new("21000", "expected one row, got 0").into();
    assert!(!workload.programs[0].outlives(0, &own));
    assert!(workload.programs[0].outlives(0, &SqlError { is_of_client: false, ..own }));
}

#[test]
fn a_cancel_of_a_stopped_client_is_no_error() {
    let workload = workload(&["SELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 10), None, 0);
    let mut recorder = TestRecorder { is_stopped: true, ..recorder() };
    let (error, _) = drive(&workload, &mut client, &mut recorder, [Err("57014")]);
    assert!(error.is_some() && recorder.errors.is_empty());
}

#[test]
fn a_block_left_open_is_processed_and_ends_the_client() {
    let workload = workload(&["BEGIN;\nSELECT 1;"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 10), None, 0);
    let mut recorder = recorder();
    let (error, _) = drive(&workload, &mut client, &mut recorder, [Ok(true), Ok(true)]);
    assert!(error.is_some_and(|error| error.is(sqlstate::ACTIVE_SQL_TRANSACTION)));
    assert_eq!(recorder.transactions.iter().map(|t| t.outcome).collect::<Vec<_>>(), [Outcome::LeftOpen]);
}

#[test]
fn errors_of_meta_commands_end_the_client() {
    let workload = workload(&["SELECT 1;\n\\set x 1 / 0"], 1);
    let mut client = Client::new(&workload, beginning(&workload, 10), None, 0);
    let mut recorder = recorder();
    let (error, _) = drive(&workload, &mut client, &mut recorder, []);
    assert!(error.is_some_and(|error| error.is(sqlstate::DIVISION_BY_ZERO)));
    assert_eq!((recorder.performed, recorder.transactions.len()), (vec![(1, false)], 1));
}

#[test]
fn arrivals_that_are_too_late_are_skipped_and_logged() {
    let workload = workload(&["SELECT 1;"], 1);
    let schedule = Schedule::new(42, 10_000.0, 0);
    let beginning = ClientStart {
        skips: true,
        log: Some(Sampling::new(3, client_seeds(42, 1, 0, false).sample, 1.0, 0)),
        ..beginning(&workload, 1000)
    };
    let mut client = Client::new(&workload, beginning, Some(schedule), 0);
    // Each takes a millisecond, and ten come in that time.
    let mut recorder = TestRecorder { limit_ns: 5 * MS, ..recorder() };
    drive(&workload, &mut client, &mut recorder, []);
    assert_eq!(recorder.transactions.len() as u64 + recorder.skipped, 1000);
    assert!(recorder.skipped > 800, "{}", recorder.skipped);
    assert!(recorder.transactions.iter().all(|t| t.start_ns - t.due_ns <= 5 * MS));
    assert_eq!(recorder.logged.len(), 1000);
    let skipped =
        recorder.logged.iter().filter(|entry| entry.outcome == LoggedOutcome::Skipped).count() as u64;
    assert_eq!(skipped, recorder.skipped);
    assert!(
        recorder.logged.iter().enumerate().all(|(at, e)| e.transaction == at as u64 + 1 && e.client == 3)
    );
}

#[test]
fn what_is_due_and_not_started_is_backlog() {
    let workload = workload(&["SELECT 1;"], 1);
    let schedule = Schedule::new(42, 10_000.0, 0);
    let all = schedule.rest_until(&AtomicI64::new(0), 1000 * MS);
    let mut client = Client::new(&workload, beginning(&workload, u64::MAX), Some(schedule.clone()), 0);
    let mut recorder = TestRecorder { end_ns: 1000 * MS, ..recorder() };
    drive(&workload, &mut client, &mut recorder, []);
    let rest = schedule.rest_until(&recorder.arrivals, recorder.end_ns);
    assert_eq!(client.backlog(recorder.end_ns) + rest + recorder.transactions.len() as u64, all);
}

proptest! {
    /// Whatever statements come to, each transaction is counted once, and no more than were asked for.
    #[test]
    fn every_transaction_is_counted_once(
        answers in prop::collection::vec(
            prop_oneof![6 => Just(Ok(false)), 1 => Just(Ok(true)), 2 => Just(Err("40001")), 1 => Just(Err("XX000"))],
            0..200,
        ),
        max_tries in 1_u64..4,
        transactions in 1_u64..50,
    ) {
        let workload = workload(&["SELECT 1;\nSELECT 2;", "SELECT 3;"], max_tries);
        let mut client = Client::new(&workload, beginning(&workload, transactions), None, 0);
        let mut recorder = recorder();
        let retried = |recorder: &TestRecorder| recorder.errors.iter().filter(|(_, c)| *c == Consequence::Retried).count() as u64;
        let (error, _) = drive(&workload, &mut client, &mut recorder, answers);
        let count = recorder.transactions.len() as u64;
        prop_assert!(count <= transactions);
        prop_assert_eq!(error.is_none(), !recorder.transactions.iter().any(|t| matches!(t.outcome, Outcome::Aborted | Outcome::LeftOpen)));
        prop_assert!(error.is_some() || count == transactions);
        prop_assert_eq!(recorder.transactions.iter().map(|t| t.tries - 1).sum::<u64>(), retried(&recorder));
        prop_assert!(recorder.transactions.iter().all(|t| t.tries <= max_tries && t.start_ns <= t.end_ns));
        prop_assert!(recorder.transactions.is_sorted_by_key(|t| t.end_ns));
    }
}

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

/// Runs a client whose transactions take `each_ns`, and returns them.
fn transactions_of(workload: &ClientWorkload, transactions: u64, each_ns: i64) -> Vec<Transaction> {
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
    let dealt: Vec<usize> =
        transactions_of(&workload, 500 * DECK as u64, 1).iter().map(|t| t.script).collect();
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
    let transactions = transactions_of(&workload, 20_000, each_ns);
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
    let transactions = transactions_of(&workload, 300_000, 0);
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

/// Rows of one column `n`: the numbers below `count`, in sequence.
fn packed(once: bool, count: i64) -> Vec<u8> {
    let feeder = Feeder::new(String::new(), "q".into(), "sequence", once, 100).expect("a feeder");
    let mut collector = Collector::new(&feeder, &["n"], 1, MAX_BYTES).expect("columns");
    for n in 0..count {
        let place = collector.place().expect("room").expect("kept");
        collector.put_cells(place, vec![FeederValue::Integer(n)]).expect("room");
    }
    let mut bytes = Vec::new();
    collector.pack(0, &mut bytes).expect("rows");
    bytes
}

fn fed<'a>(script: &str, max_tries: u64, bytes: &'a [u8], taken: &'a AtomicU64) -> ClientWorkload<'a> {
    let ClientWorkload { mut programs, is_deck, symbols, max_tries } = workload(&[script], max_tries);
    let rows = unpack(bytes).expect("rows").remove(0);
    programs[0].feeds.push(RowSource::new(rows, taken, Stride::WHOLE, |name| symbols.lookup(name)));
    ClientWorkload { programs, is_deck, symbols, max_tries }
}

/// The value of `n` at each execution, while these answers last.
fn values(
    workload: &ClientWorkload,
    client: &mut Client,
    recorder: &mut TestRecorder,
    answers: &[Answer],
) -> Vec<Value> {
    let n = workload.symbols.lookup("n").expect("n is read");
    let mut answers = answers.iter();
    let mut values = Vec::new();
    let mut step = client.start(recorder);
    loop {
        step = match step {
            Step::Between => client.next(workload, recorder),
            Step::Execute { .. } => {
                let Some(answer) = answers.next() else { return values };
                values.extend(client.variables.get(n).cloned());
                let error = |sqlstate: &str| SqlError::new(sqlstate, "refused");
                client.executed(workload, recorder, answer.map_err(error))
            }
            Step::Retry => client.retry(workload, recorder),
            Step::End(_) => return values,
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn each_transaction_takes_the_next_row() {
    let (bytes, taken) = (packed(false, 2), AtomicU64::new(0));
    let workload = fed("SELECT :n;", 1, &bytes, &taken);
    let mut client = Client::new(&workload, beginning(&workload, 5), None, 0);
    let numbers = values(&workload, &mut client, &mut recorder(), &[Ok(false); 9]);
    assert_eq!(numbers, [0, 1, 0, 1, 0].map(Value::Integer));
}

#[test]
fn another_try_has_the_same_row_whatever_the_script_has_made_of_it() {
    let (bytes, taken) = (packed(false, 9), AtomicU64::new(0));
    let workload = fed("SELECT :n;\n\\set n :n + 100\nSELECT :n;", 3, &bytes, &taken);
    let mut client = Client::new(&workload, beginning(&workload, 2), None, 0);
    let answers =
        [Ok(false), Err("40001"), Ok(false), Err("40P01"), Ok(false), Ok(false), Ok(false), Ok(false)];
    let numbers = values(&workload, &mut client, &mut recorder(), &answers);
    assert_eq!(numbers, [0, 100, 0, 100, 0, 100, 1, 101].map(Value::Integer));
}

#[test]
fn a_client_ends_where_each_row_has_been_taken() {
    let (bytes, taken) = (packed(true, 3), AtomicU64::new(0));
    let workload = fed("SELECT :n;", 1, &bytes, &taken);
    let new = || Client::new(&workload, beginning(&workload, u64::MAX), None, 0);
    let (mut one, mut other) = (new(), new());
    let mut recorder = recorder();
    assert_eq!(values(&workload, &mut one, &mut recorder, &[Ok(false); 9]).len(), 3);
    assert_eq!(values(&workload, &mut other, &mut recorder, &[Ok(false); 9]).len(), 0, "over all clients");
    assert_eq!(recorder.transactions.len(), 3);
    assert!(recorder.errors.is_empty());
}
