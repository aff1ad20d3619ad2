use bench_results::experiment::{AppliedSql, SweepChange};
use bench_results::rehearsal::{ChangedPlan, PhaseErrors, QueuedSession, Rehearsal, RehearsalPlan};
use bench_results::{Document, Samples};

use super::*;

/// An interval: transactions, greatest and median latency in milliseconds.
type Row = (f64, f64, f64);

const PLAN: RehearsalPlan = RehearsalPlan {
    blocker: None,
    blocker_secs: 3.0,
    lock_timeout_secs: None,
    tries: 1,
    pause_secs: 1.0,
    quiet_secs: 2.0,
    wait_limit_secs: 1.0,
    give_up_secs: 60.0,
    change_limit_secs: 600.0,
    undo: bench_results::rehearsal::Undo::Revert,
    better: None,
};

/// A run of intervals of half a second.
fn document(intervals: &[Row]) -> Document {
    let series = |value: &dyn Fn(usize, &Row) -> f64| {
        intervals.iter().enumerate().map(|(place, interval)| Some(value(place, interval))).collect()
    };
    let samples = Samples {
        elapsed: series(&|place, _| (place + 1) as f64 / 2.0),
        secs: series(&|_, _| 0.5),
        transactions: series(&|_, interval| interval.0),
        latency_max_ms: series(&|_, interval| interval.1),
        latency_p50_ms: series(&|_, interval| interval.2),
        ..Samples::default()
    };
    Document { samples, ..Document::default() }
}

/// Two seconds of quiet, a change of one second, and two seconds afterwards.
fn quiet_change_after(change: [Row; 2], after: Row) -> Document {
    let quiet = [(50.0, 8.0, 1.0); 4];
    document(&[&quiet[..], &change, &[after; 4]].concat())
}

fn rehearsal() -> Rehearsal {
    Rehearsal {
        run_id: 7,
        change_begin: 2.0,
        change_end: 3.0,
        back: Some(3.5),
        tries: 1,
        ..Rehearsal::default()
    }
}

/// A client's wait for a lock.
fn queued(secs: f64) -> QueuedSession {
    QueuedSession { session: "client".to_owned(), begin: 2.0, end: 2.0 + secs, ..QueuedSession::default() }
}

fn answer_of(plan: &RehearsalPlan, rehearsal: Rehearsal, document: &Document) -> RehearsalLine {
    let sql = AppliedSql { apply: vec!["ALTER TABLE t ADD c int".to_owned()], revert: Vec::new() };
    let change = SweepChange {
        apply_secs: Some(1.0),
        revert_secs: Some(0.1),
        rehearsal: Some(rehearsal),
        ..SweepChange::default()
    };
    let variant = RehearsedVariant {
        name: CHANGE,
        sql: Some(&sql),
        change: Some(&change),
        document: Some(document),
        ..RehearsedVariant::default()
    };
    line(plan, &variant)
}

fn verdict_of(rehearsal: Rehearsal, document: &Document) -> String {
    answer_of(&PLAN, rehearsal, document).verdict.unwrap()
}

#[test]
fn a_change_that_nobody_feels_is_safe() {
    let document = quiet_change_after([(50.0, 9.0, 1.0); 2], (50.0, 8.0, 1.0));
    let line = answer_of(&PLAN, rehearsal(), &document);
    assert_eq!(line.verdict.as_deref(), Some("safe"));
    assert_eq!((line.longest_wait_ms, line.quiet_longest_ms), (Some(9.0), Some(8.0)));
    assert_eq!((line.transactions, line.secs_without_commit), (Some(300), Some(0.0)));
    assert_eq!((line.tps_before, line.tps_during, line.tps_after), (Some(100.0), Some(100.0), Some(100.0)));
    assert_eq!(line.back_secs, Some(0.5));
}

#[test]
fn clients_that_wait_longer_than_the_limit_are_blocked() {
    let document = quiet_change_after([(0.0, 0.0, 0.0), (100.0, 2000.0, 900.0)], (50.0, 8.0, 1.0));
    assert_eq!(verdict_of(rehearsal(), &document), "blocks clients for 2 s");
    // They waited as long before the change.
    let quiet = [(50.0, 1900.0, 1.0); 4];
    let slow = document_with_quiet(&quiet, &document);
    assert_eq!(verdict_of(rehearsal(), &slow), "safe");
}

fn document_with_quiet(quiet: &[Row], document: &Document) -> Document {
    let mut samples = document.samples.clone();
    for (place, (transactions, longest, median)) in quiet.iter().enumerate() {
        samples.transactions[place] = Some(*transactions);
        samples.latency_max_ms[place] = Some(*longest);
        samples.latency_p50_ms[place] = Some(*median);
    }
    Document { samples, ..document.clone() }
}

#[test]
fn a_transaction_that_ends_after_the_last_interval_counts() {
    let mut document = quiet_change_after([(0.0, 0.0, 0.0); 2], (0.0, 0.0, 0.0));
    document.summary.latency_max_ms = Some(5990.0);
    let line = answer_of(&PLAN, Rehearsal { back: None, queue: vec![queued(2.0)], ..rehearsal() }, &document);
    assert_eq!(line.longest_wait_ms, Some(5990.0));
    assert_eq!(line.verdict.as_deref(), Some("blocks clients for 5.99 s"));
}

#[test]
fn a_change_that_fails_says_with_which_error() {
    let document = quiet_change_after([(50.0, 9.0, 1.0); 2], (50.0, 8.0, 1.0));
    let failed =
        |sqlstate: &str, tries| Rehearsal { sqlstate: Some(sqlstate.to_owned()), tries, ..rehearsal() };
    assert_eq!(verdict_of(failed("55P03", 5), &document), "fails: 55P03 after 5 tries");
    assert_eq!(verdict_of(failed("23505", 1), &document), "fails: 23505");
    let canceled = |by: &str| Rehearsal { canceled_by: Some(by.to_owned()), ..failed("57014", 1) };
    assert_eq!(verdict_of(canceled("change_limit"), &document), "not done within 600 s");
    let blocked = quiet_change_after([(0.0, 0.0, 0.0), (10.0, 60_500.0, 1.0)], (50.0, 8.0, 1.0));
    assert_eq!(verdict_of(canceled("give_up"), &blocked), "blocks clients for 60.5 s, and was canceled");
}

#[test]
fn errors_that_the_change_brings_break_the_application() {
    let document = quiet_change_after([(25.0, 9.0, 1.0); 2], (25.0, 8.0, 1.0));
    let errors = |before, during, after| Rehearsal {
        errors: vec![PhaseErrors { sqlstate: "42703".to_owned(), before, during, after }],
        ..rehearsal()
    };
    assert_eq!(verdict_of(errors(0, 50, 100), &document), "breaks the application: 42703 in 50 %");
    // As many as before.
    assert_eq!(verdict_of(errors(100, 50, 100), &document), "safe");
}

#[test]
fn a_slower_workload_is_told_by_throughput_or_latency() {
    let overloaded = quiet_change_after([(50.0, 9.0, 1.0); 2], (5.0, 3000.0, 2000.0));
    let not_back = Rehearsal { back: None, ..rehearsal() };
    assert_eq!(verdict_of(not_back.clone(), &overloaded), "slows afterwards: −90 %");
    let briefly = Rehearsal { queue: vec![queued(0.05)], ..not_back.clone() };
    assert_eq!(verdict_of(briefly, &overloaded), "slows afterwards: −90 %");
    assert_eq!(
        verdict_of(Rehearsal { queue: vec![queued(2.0)], ..not_back }, &overloaded),
        "blocks clients for 3 s"
    );
    let slow = quiet_change_after([(50.0, 9.0, 1.0); 2], (5.0, 300.0, 200.0));
    assert_eq!(verdict_of(Rehearsal { back: None, ..rehearsal() }, &slow), "slows afterwards: −90 %");
    let late = quiet_change_after([(50.0, 9.0, 1.0); 2], (50.0, 20.0, 5.0));
    assert_eq!(verdict_of(rehearsal(), &late), "slows afterwards: latency 5 times");
    let quiet = [(50.0, 8.0, 1.0), (50.0, 8.0, 1.0), (50.0, 8.0, 5.5), (50.0, 8.0, 1.0)];
    assert_eq!(verdict_of(rehearsal(), &document_with_quiet(&quiet, &late)), "safe");
}

#[test]
fn the_answer_reads_as_sentences() {
    let document = quiet_change_after([(0.0, 0.0, 0.0), (100.0, 2000.0, 900.0)], (50.0, 8.0, 1.0));
    let rehearsal = Rehearsal {
        lock_wait_secs: 0.98,
        held_secs: Some(0.003),
        lock_mode: Some("AccessExclusiveLock".to_owned()),
        locked: Some("t".to_owned()),
        most_queued: 4,
        blocked_by: vec![BlockingSession {
            pid: 42,
            statement: Some("SELECT count(*)\nFROM t".to_owned()),
            age_secs: Some(2.5),
        }],
        plans: vec![ChangedPlan { statement: "SELECT 1".to_owned(), ..ChangedPlan::default() }],
        ..rehearsal()
    };
    let plan = RehearsalPlan { better: Some("CONCURRENTLY".to_owned()), ..PLAN };
    assert_eq!(
        sentences(&answer_of(&plan, rehearsal, &document)),
        [
            "BLOCKS CLIENTS FOR 2 s (0 of 300 transactions waited over 1 s; none failed).",
            "ALTER TABLE t ADD c int took 1 s; waited 980 ms for a lock behind process 42 (\"SELECT count(*) FROM t\", \
             2.5 s old); held AccessExclusiveLock on t for 3 ms; 4 clients queued.",
            "The plan of SELECT 1 changed.",
            "Better: lock_timeout => 0.2, tries => 10: the queue behind it then dissolves.",
        ]
    );
    let pending = line(&PLAN, &RehearsedVariant { name: CHANGE, ..RehearsedVariant::default() });
    assert_eq!(
        (pending.verdict.as_deref(), &sentences(&pending)[..]),
        (None, &["The rehearsal has not ended.".to_owned()][..])
    );
}

#[test]
fn throughput_is_back_after_three_intervals_as_before() {
    let mut recovery = Recovery::default();
    let interval = |end, transactions| Interval { end, secs: 0.25, transactions };
    (1..=8).for_each(|place| recovery.add_quiet(interval(f64::from(place) / 4.0, 400)));
    let mut is_back = |transactions| {
        recovery.add(interval(3.0, transactions));
        recovery.is_back()
    };
    // 400 are expected: 360 are 90 %, and 320 are two standard deviations below that.
    assert_eq!(
        [319, 500, 320, 319, 330, 330, 330].map(&mut is_back),
        [false, false, false, false, false, false, true]
    );
}
