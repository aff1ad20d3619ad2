mod choice;
mod connecting;
mod feeding;

use std::collections::VecDeque;
use std::sync::atomic::AtomicI64;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_script::{Symbols, Value, Variables, client_seeds, parse};
use proptest::prelude::*;

use super::*;
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
        log: Some(Sampling::new(3, client_seeds(42, 1, 0, false).sample, 1.0)),
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
