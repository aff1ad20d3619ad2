//! Which messages form a transaction, apart from what the samples have; their times over a change of the clocks, a change of
//! log_timezone, and a clock that was set; and transactions that differ in the numbers of their tables alone, or in values that
//! one statement returned to a later one.

use crate::log::session::LoggedSession;
use crate::log::shapes::{LoggedTransaction, TransactionEnding};
use crate::log::*;

fn entry(at_ms: f64, id: &str, message: &str) -> LogEntry {
    LogEntry {
        at_ms,
        session: "s".into(),
        severity: "LOG".into(),
        virtual_transaction: id.into(),
        message: message.into(),
        ..LogEntry::default()
    }
}

fn error(at_ms: f64, id: &str, query: &str) -> LogEntry {
    LogEntry {
        severity: "ERROR".into(),
        sqlstate: "23505".into(),
        query: query.into(),
        ..entry(at_ms, id, "duplicate key")
    }
}

fn transactions(entries: &[LogEntry]) -> Vec<LoggedTransaction> {
    let mut session = LoggedSession::default();
    let mut finished = Vec::new();
    for entry in entries {
        session.take(entry, &mut finished);
    }
    session.end(1000.0, &mut finished);
    finished
}

fn shown(transaction: &LoggedTransaction) -> Vec<String> {
    transaction.steps.iter().map(|step| step.template.shown(&[])).collect()
}

#[test]
fn statements_of_one_id_belong_together() {
    // As log_min_duration_statement = 250 leaves them: BEGIN and COMMIT are too fast to be logged.
    let found = transactions(&[
        entry(300.0, "3/7", "duration: 300.000 ms  statement: SELECT f(1)"),
        entry(900.0, "3/7", "duration: 300.000 ms  statement: SELECT f(2)"),
        entry(950.0, "3/0", "duration: 10.000 ms  statement: SELECT f(3)"),
        entry(990.0, "3/0", "duration: 10.000 ms  statement: SELECT f(4)"),
    ]);
    let steps: Vec<_> = found.iter().map(|transaction| transaction.steps.len()).collect();
    assert_eq!(steps, [2, 1, 1]);
    assert_eq!(found[0].steps[1].pause_ms, Some(300.0));
    assert_eq!((found[0].start_ms, found[0].end_ms, found[0].busy_ms()), (0.0, 900.0, Some(600.0)));
    assert_eq!(found[2].idle_ms, Some(30.0));
    assert!(found.iter().all(|transaction| transaction.problem.is_none()));
}

#[test]
fn without_durations_there_are_no_pauses() {
    let found = transactions(&[
        entry(1.0, "3/7", "statement: BEGIN"),
        entry(2.0, "3/7", "statement: SELECT 1"),
        entry(9.0, "3/7", "statement: SELECT 2"),
        entry(10.0, "3/7", "statement: COMMIT"),
        entry(11.0, "3/8", "statement: SELECT 3"),
        entry(12.0, "3/9", "statement: SELECT 4"),
    ]);
    assert_eq!(found.len(), 3);
    assert!(found[0].steps.iter().all(|step| step.pause_ms.is_none() && step.duration_ms.is_none()));
    assert_eq!(found[0].busy_ms(), None);
    assert_eq!((found[0].ending, found[0].begin.as_deref()), (TransactionEnding::Commit, Some("BEGIN")));
}

#[test]
fn errors_abort() {
    let found = transactions(&[
        entry(1.0, "3/7", "statement: INSERT INTO t VALUES (1)"),
        error(2.0, "3/7", "INSERT INTO t VALUES (1)"),
        entry(3.0, "3/8", "duration: 0.1 ms  statement: BEGIN"),
        error(4.0, "3/8", "INSERT INTO t VALUES (2)"),
        entry(5.0, "3/0", "duration: 0.1 ms  statement: COMMIT"),
        entry(6.0, "3/0", "duration: 0.1 ms  statement: SELECT 1"),
        error(7.0, "3/10", "SELECT 2"),
    ]);
    let problems: Vec<_> = found
        .iter()
        .map(|t| t.problem.as_ref().map(|(reason, text)| (reason.as_str(), text.as_str())))
        .collect();
    let aborted = "aborted by error 23505";
    assert_eq!(
        problems,
        [
            Some((aborted, "INSERT INTO t VALUES (?)")),
            Some((aborted, "INSERT INTO t VALUES (?)")),
            None,
            Some((aborted, "SELECT ?"))
        ]
    );
}

#[test]
fn an_error_behind_a_savepoint_undoes_what_came_since_and_nothing_else() {
    let statement = |at_ms, text: &str| entry(at_ms, "3/7", &format!("duration: 0.1 ms  statement: {text}"));
    // As psql's ON_ERROR_ROLLBACK, JDBC's autosave and Django's atomic() have it.
    let found = transactions(&[
        statement(1.0, "BEGIN"),
        statement(2.0, "INSERT INTO t VALUES (1)"),
        statement(3.0, "SAVEPOINT a"),
        statement(4.0, "INSERT INTO t VALUES (2)"),
        error(5.0, "3/7", "INSERT INTO t VALUES (1)"),
        statement(6.0, "ROLLBACK TO SAVEPOINT A"),
        statement(7.0, "RELEASE a"),
        statement(8.0, "INSERT INTO t VALUES (3)"),
        statement(9.0, "COMMIT"),
    ]);
    assert_eq!(
        (found.len(), found[0].problem.as_ref(), found[0].ending),
        (1, None, TransactionEnding::Commit)
    );
    let insert = "INSERT INTO t VALUES ($1)";
    assert_eq!(
        shown(&found[0]),
        [insert, "SAVEPOINT s1", "ROLLBACK TO SAVEPOINT s1", "RELEASE SAVEPOINT s1", insert]
    );
    // Without an error, statements that are rolled back are kept: the server has executed them.
    let found = transactions(&[
        statement(1.0, "BEGIN"),
        statement(2.0, "SAVEPOINT \"A\""),
        statement(3.0, "SELECT 1"),
        statement(4.0, "ROLLBACK TO \"A\""),
        statement(5.0, "COMMIT"),
    ]);
    assert_eq!(shown(&found[0]), ["SAVEPOINT s1", "SELECT $1", "ROLLBACK TO SAVEPOINT s1"]);
    // An error before the savepoint, behind one that was released, or behind one of another name stays.
    let aborted = [
        vec![error(2.0, "3/7", "SELECT 1"), statement(3.0, "SAVEPOINT a"), error(5.0, "3/7", "SELECT 2")],
        vec![statement(3.0, "SAVEPOINT a"), statement(4.0, "RELEASE a"), error(5.0, "3/7", "SELECT 2")],
        vec![statement(3.0, "SAVEPOINT \"A\""), error(5.0, "3/7", "SELECT 2")],
    ];
    for middle in aborted {
        let ending = vec![statement(6.0, "ROLLBACK TO a"), statement(7.0, "COMMIT")];
        let found = transactions(&[vec![statement(1.0, "BEGIN")], middle, ending].concat());
        assert_eq!(found[0].problem.as_ref().unwrap().0, "aborted by error 23505");
    }
}

#[test]
fn what_varies_in_a_block_is_no_part_of_the_shape() {
    let transaction = |n: u32| {
        let statement = |at: u32, text: &str| {
            entry(f64::from(10 * n + at), &format!("3/{n}"), &format!("duration: 0.1 ms  statement: {text}"))
        };
        vec![
            statement(1, "BEGIN"),
            statement(2, &format!("SET LOCAL app.tenant = '{n}'")),
            statement(3, &format!("SET LOCAL search_path TO tenant_{n}, \"$user\", 'a b'")),
            statement(4, &format!("SET LOCAL statement_timeout = {n}")),
            statement(5, "SET LOCAL lock_timeout = '5s'"),
            statement(5, "SET LOCAL TIME ZONE -7"),
            statement(6, &format!("SAVEPOINT \"Ann {n}\"")),
            statement(7, &format!("SAVEPOINT b{n}")),
            statement(7, &format!("RELEASE b{n}")),
            statement(8, &format!("ROLLBACK TO \"Ann {n}\"")),
            statement(9, &format!("SET TRANSACTION SNAPSHOT '0000000{n}-1'")),
            statement(9, "COMMIT"),
        ]
    };
    let entries: Vec<LogEntry> = (1..4).flat_map(transaction).collect();
    let captured = |mask: bool| {
        let given = serde_json::json!({ "mask": mask });
        let mut capture = LogCapture::new(LogOptions::new(String::new(), &given).expect("an option"));
        entries.iter().for_each(|entry| capture.take(entry.clone()).expect("within the limits"));
        capture.finish().expect("within the limits").shapes
    };
    let shapes = captured(false);
    assert_eq!((shapes.len(), shapes[0].transactions), (1, 3));
    assert_eq!(
        shapes[0].script,
        "BEGIN;\n\
         SELECT pg_catalog.set_config('app.tenant', :p1, true);\n\
         SELECT pg_catalog.set_config('search_path', :p2, true);\n\
         SELECT pg_catalog.set_config('statement_timeout', :p3, true);\n\
         SET LOCAL lock_timeout = '5s';\n\
         SET LOCAL TIME ZONE -7;\n\
         SAVEPOINT s1;\nSAVEPOINT s2;\nRELEASE SAVEPOINT s2;\nROLLBACK TO SAVEPOINT s1;\nCOMMIT;\n"
    );
    let values: Vec<_> = shapes[0].columns.iter().map(|column| column.value(&shapes[0].rows[0])).collect();
    let expected = ["1", "\"tenant_1\", \"$user\", \"a b\"", "1"].map(|value| Some(value.to_owned()));
    assert_eq!(values, expected);
    let settings: Vec<bool> = shapes[0].columns.iter().map(FeederColumn::is_setting).collect();
    assert_eq!(settings, [false, true, true], "the application's own may have any text");
    assert_eq!(shapes[0].omits.as_deref(), Some("SET TRANSACTION SNAPSHOT is left out"));
    let masked = captured(true);
    assert!(!masked[0].script.contains("5s") && !masked[0].shown.contains("Ann"), "{}", masked[0].script);
    assert_eq!(masked[0].columns.len(), 5);
    // What a query must not set, or has no one value, stays as it is.
    for kept in [
        "SET LOCAL transaction_isolation = 'serializable'",
        "SET LOCAL x.y TO DEFAULT",
        "SET LOCAL TIME ZONE INTERVAL '1' HOUR",
        "SET LOCAL TIME ZONE LOCAL",
        "SET LOCAL SESSION AUTHORIZATION x",
        "SET LOCAL a FROM CURRENT",
        "SET CONSTRAINTS ALL DEFERRED",
    ] {
        let message = format!("duration: 0.1 ms  statement: {kept}");
        assert_eq!(shown(&transactions(&[entry(1.0, "3/7", &message)])[0]), [kept]);
    }
}

#[test]
fn names_of_prepared_statements_may_have_colons() {
    for (message, text) in [
        ("execute S_1: SELECT 1", "SELECT $1"),
        ("execute a: b/c: d:  SELECT ': SELECT 2'", "SELECT $1"),
        ("execute : : (SELECT 3)", "(SELECT $1)"),
    ] {
        let found = transactions(&[entry(1.0, "3/7", &format!("duration: 3.0 ms  {message}"))]);
        assert_eq!(shown(&found[0]), [text], "{message}");
    }
}

#[test]
fn prepare_transaction_ends_its_block_and_deallocate_is_passed_over() {
    let found = transactions(&[
        entry(1.0, "3/7", "duration: 0.1 ms  statement: BEGIN"),
        entry(2.0, "3/7", "duration: 0.1 ms  statement: SELECT 1"),
        entry(3.0, "3/7", "duration: 0.1 ms  statement: DEALLOCATE ALL"),
        entry(4.0, "3/7", "duration: 0.1 ms  statement: SELECT 2"),
        entry(5.0, "3/0", "duration: 0.1 ms  statement: PREPARE TRANSACTION 'x'"),
        entry(6.0, "3/0", "duration: 0.1 ms  statement: DEALLOCATE ALL"),
        entry(7.0, "3/8", "duration: 0.1 ms  statement: BEGIN"),
        entry(8.0, "3/8", "duration: 0.1 ms  statement: SELECT 3"),
        entry(9.0, "3/8", "duration: 0.1 ms  statement: DEALLOCATE ALL"),
        entry(10.0, "3/0", "duration: 0.1 ms  statement: COMMIT"),
    ]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].problem.as_ref().unwrap().0, "a two-phase commit");
    assert_eq!((found[1].problem.as_ref(), shown(&found[1])), (None, vec!["SELECT $1".to_owned()]));
}

#[test]
fn a_session_may_end_in_a_block() {
    let begin = entry(1.0, "3/7", "duration: 0.1 ms  statement: BEGIN");
    let fatal = LogEntry { severity: "FATAL".into(), ..entry(2.0, "3/7", "terminating connection") };
    for end in [
        fatal,
        entry(2.0, "", "disconnection: session time: 0:00:01"),
        entry(2.0, "3/8", "duration: 1 ms  statement: BEGIN"),
    ] {
        let found = transactions(&[begin.clone(), end]);
        assert_eq!(found[0].problem.as_ref().unwrap().0, "its end is not in the log");
    }
}

#[test]
fn plans_of_auto_explain_and_others_are_no_statements() {
    let found = transactions(&[
        entry(1.0, "3/7", "duration: 0.1 ms  plan:\nQuery Text: SELECT 1"),
        entry(1.0, "3/7", "temporary file: path \"x\", size 1"),
        entry(1.0, "3/7", "duration: 0.1 ms  parse a: SELECT $1"),
        LogEntry { severity: "WARNING".into(), ..entry(1.0, "3/7", "statement: SELECT 1") },
    ]);
    assert_eq!(found, []);
}

#[test]
fn several_statements_in_one_message() {
    let found = transactions(&[
        entry(1.0, "3/0", "duration: 3.0 ms  statement: BEGIN; SELECT ';'; SELECT (2); COMMIT;"),
        entry(2.0, "3/0", "duration: 0.1 ms  statement: SELECT 3;;"),
    ]);
    assert_eq!(found.len(), 2);
    assert_eq!(shown(&found[0]), ["SELECT $1", "SELECT ($1)"]);
    assert_eq!(found[0].busy_ms(), Some(3.0));
}

#[test]
fn portals_read_in_parts_are_cursors() {
    let found = transactions(&[
        entry(1.0, "3/7", "duration: 3.0 ms  execute S_1: BEGIN"),
        entry(2.0, "3/7", "duration: 3.0 ms  execute S_2/C_3: SELECT 1"),
        entry(3.0, "3/7", "duration: 3.0 ms  execute fetch from S_2/C_3: SELECT 1"),
        entry(4.0, "3/0", "duration: 3.0 ms  execute S_4: COMMIT"),
    ]);
    assert_eq!(found[0].problem.as_ref().unwrap().0, "a cursor");
}

#[test]
fn parameters_that_are_not_there() {
    let found = transactions(&[
        entry(1.0, "3/7", "duration: 3.0 ms  execute a: SELECT $1"),
        LogEntry {
            detail: "Parameter: 1".into(),
            ..entry(1.0, "3/8", "duration: 3.0 ms  execute a: SELECT $1")
        },
        LogEntry {
            detail: "Parameters: $1 = NULL".into(),
            ..entry(1.0, "3/9", "duration: 3.0 ms  execute a: SELECT $1")
        },
    ]);
    assert_eq!(
        found[0].problem.as_ref().unwrap().0,
        "parameters are not in the log (log_parameter_max_length = 0)"
    );
    assert_eq!(found[1].problem.as_ref().unwrap().0, "parameters are not as servers write them");
    assert_eq!(found[2].problem, None);
    assert_eq!(found[2].steps[0].constants[0].value, None);
}

/// Central European Time, and the time of New York in winter.
fn offset_of(zone: &str, _: f64) -> Option<i32> {
    match zone {
        "CET" => Some(3600),
        "CEST" => Some(7200),
        "EST" => Some(-18_000),
        _ => None,
    }
}

/// A log with a transaction of two statements between BEGIN and COMMIT, at these times.
fn captured_at(times: [&str; 4]) -> CapturedLog {
    let options = serde_json::json!({ "writes": true });
    let options = LogOptions::new("shop".to_owned(), &options).expect("known options");
    let mut capture = LogCapture::new(options).with_zones(offset_of);
    for (time, statement) in times.into_iter().zip(["BEGIN", "SELECT 1", "SELECT 2", "COMMIT"]) {
        let line = serde_json::json!({
            "timestamp": time, "dbname": "shop", "session_id": "s", "vxid": "3/7", "error_severity": "LOG",
            "message": format!("duration: 0.000 ms  statement: {statement}"),
        });
        capture.take(from_json(&line.to_string()).expect("a line")).expect("a message");
    }
    capture.finish().expect("a capture")
}

fn secs(times: [&str; 4]) -> f64 {
    captured_at(times).figures.secs
}

#[test]
fn zones_change() {
    let autumn = ["02:59:00 CEST", "02:00:00 CET", "02:30:00 CET", "02:39:00 CET"];
    assert_eq!(secs(autumn.map(|time| format!("2026-10-25 {time}")).each_ref().map(String::as_str)), 2400.0);
    let spring = ["01:59:59.000 CET", "03:00:00.000 CEST", "03:00:01.000 CEST", "03:00:02.000 CEST"];
    let spring = spring.map(|time| format!("2026-03-29 {time}"));
    let spring = captured_at(spring.each_ref().map(String::as_str));
    assert_eq!((spring.figures.secs, spring.figures.long_pauses), (3.0, 0));
    assert_eq!(spring.shapes[0].pause_ms, 3000.0);
    let moved = ["17:00:00 UTC", "12:00:33 EST", "12:01:06 EST", "20:01:39 +03"];
    assert_eq!(secs(moved.map(|time| format!("2026-11-30 {time}")).each_ref().map(String::as_str)), 99.0);
}

#[test]
fn steps_and_unknown_zones_are_told() {
    let noted = |times: [&str; 4]| {
        let figures = captured_at(times).figures;
        (figures.steps_back, figures.long_pauses, figures.unknown_zones)
    };
    let one = [
        "2026-11-30 17:00:00 MOON",
        "2026-11-30 17:00:01 MOON",
        "2026-11-30 17:00:02 MOON",
        "2026-11-30 17:00:03 MOON",
    ];
    assert_eq!(noted(one), (0, 0, Vec::<String>::new()));
    let two = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 17:00:01 MOON",
        "2026-11-30 17:00:02 MOON",
        "2026-11-30 17:00:03 MOON",
    ];
    assert_eq!(noted(two), (0, 0, vec!["MOON".to_owned()]));
    let back = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 16:00:01 UTC",
        "2026-11-30 16:00:02 UTC",
        "2026-11-30 16:00:03 UTC",
    ];
    assert_eq!(noted(back).0, 1);
    let forward = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 18:00:01 UTC",
        "2026-11-30 18:00:02 UTC",
        "2026-11-30 18:00:03 UTC",
    ];
    assert_eq!(noted(forward).1, 1);
}

/// A session of its own for each transaction, one after the other.
fn captured(transactions: &[Vec<String>]) -> CapturedLog {
    let options = LogOptions::new("d".to_owned(), &serde_json::json!({ "writes": true })).unwrap();
    let mut capture = LogCapture::new(options);
    for (number, statements) in transactions.iter().enumerate() {
        for (line, statement) in statements.iter().enumerate() {
            let entry = LogEntry {
                at_ms: (100 * number + line) as f64,
                session: format!("s{number}"),
                database: "d".into(),
                user: "u".into(),
                severity: "LOG".into(),
                virtual_transaction: format!("{number}/1"),
                message: format!("duration: 0.5 ms  statement: {statement}"),
                query_id: 7,
                ..LogEntry::default()
            };
            capture.take(entry).unwrap();
        }
    }
    capture.finish().unwrap()
}

fn block(statements: &[String]) -> Vec<String> {
    let mut block = vec!["BEGIN".to_owned()];
    block.extend_from_slice(statements);
    block.push("COMMIT".to_owned());
    block
}

/// A transaction with table `sbtest` of one number twice and of another one once.
fn of_tables(one: usize, other: usize) -> Vec<String> {
    block(&[
        format!("SELECT c FROM sbtest{one} WHERE id = 5"),
        format!("SELECT c, \"sbtest{one}\".k FROM \"sbtest{one}\""),
        format!("UPDATE sbtest{other} SET k = k + 1 WHERE sbtest{other}.id = {}", 10 + other),
    ])
}

#[test]
fn tables_that_differ_in_their_number_are_one_shape() {
    let log = captured(&[of_tables(1, 2), of_tables(3, 2), of_tables(3, 1), of_tables(3, 3)]);
    let [shape] = &log.shapes[..] else { panic!("{:?}", log.shapes) };
    let expected = r#"BEGIN;
\if :p_table1 = 1
SELECT c FROM sbtest3 WHERE id = 5;
SELECT c, "sbtest3".k FROM "sbtest3";
\elif :p_table1 = 2
SELECT c FROM sbtest1 WHERE id = 5;
SELECT c, "sbtest1".k FROM "sbtest1";
\endif
\if :p_table3 = 1
UPDATE sbtest2 SET k = k + 1 WHERE sbtest2.id = :p3::integer;
\elif :p_table3 = 2
UPDATE sbtest1 SET k = k + 1 WHERE sbtest1.id = :p3::integer;
\elif :p_table3 = 3
UPDATE sbtest3 SET k = k + 1 WHERE sbtest3.id = :p3::integer;
\endif
COMMIT;
"#;
    assert_eq!(shape.script, expected);
    assert_eq!((shape.transactions, shape.statements, &shape.omits), (4, 3, &None));
    assert_eq!(shape.query_ids, [vec![(7, 1), (7, 3)], vec![(7, 1), (7, 3)], vec![(7, 2), (7, 1), (7, 1)]]);
    let names: Vec<&str> = shape.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["p_table1", "p_table3", "p3"]);
    let rows: Vec<Vec<String>> = (shape.rows.iter())
        .map(|row| shape.columns.iter().map(|column| column.value(row).unwrap()).collect())
        .collect();
    assert_eq!(rows, [["2", "1", "12"], ["1", "1", "12"], ["1", "2", "11"], ["1", "3", "13"]]);
    assert_eq!(
        shape.shown,
        "SELECT c FROM sbtest* WHERE id = $1; SELECT c, \"sbtest*\".k FROM \"sbtest*\"; UPDATE sbtest* SET k = k + $1 WHERE sbtest*.id = $2"
    );
}

#[test]
fn a_table_by_itself_keeps_its_name() {
    let log = captured(&[of_tables(1, 1), of_tables(1, 1)]);
    let script = &log.shapes[0].script;
    assert!(script.starts_with("BEGIN;\nSELECT c FROM sbtest1 WHERE id = 5;\n"), "{script}");
    assert!(!script.contains("\\if") && log.shapes[0].shown.contains("sbtest1"));
}

#[test]
fn too_many_tables_are_taken_for_the_most_frequent_ones() {
    let all: Vec<Vec<String>> = (0..3000).map(|table| of_tables(table.max(1000), 1)).collect();
    let log = captured(&all);
    let shape = &log.shapes[0];
    assert_eq!(shape.omits.as_deref(), Some("500 of 2000 tables of the same form, the most frequent ones"));
    assert_eq!(shape.script.matches("elif").count(), 499);
    assert!(shape.script.contains("\\if :p_table1 = 1\nSELECT c FROM sbtest1000 "));
    assert!(
        shape.rows.iter().all(|row| shape.columns[0].value(row).unwrap().parse::<usize>().unwrap() <= 500)
    );
}

/// An order and its lines; the id is given by a sequence.
fn order(id: u64, customer: u64) -> Vec<String> {
    block(&[
        format!("INSERT INTO orders (customer) VALUES ({customer}) RETURNING id"),
        format!("INSERT INTO lines (order_id, item) VALUES ({id}, {}), ({id}, 8)", 100 + customer),
        format!("UPDATE customers SET last_order = {id} WHERE id = {customer}"),
    ])
}

#[test]
fn what_an_insert_returned_is_used_later() {
    let all: Vec<Vec<String>> = (0..30).map(|n| order(7000 + n, n * 37 % 11)).collect();
    let log = captured(&all);
    let expected = "BEGIN;
INSERT INTO orders (customer) VALUES (:p1::integer) RETURNING id \\gset p_of1_
INSERT INTO lines (order_id, item) VALUES (:p_of1_id::integer, :p3::integer), (:p_of1_id::integer, 8);
UPDATE customers SET last_order = :p_of1_id::integer WHERE id = :p7::integer;
COMMIT;
";
    assert_eq!(log.shapes[0].script, expected);
    let names: Vec<&str> = log.shapes[0].columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["p1", "p3", "p7"]);
}

#[test]
fn what_was_known_before_is_not_returned() {
    // The application's own key, a value that repeats, and one that falls.
    let own = |n: u64| {
        block(&[
            format!("INSERT INTO orders (id) VALUES ({n}) RETURNING id"),
            format!("INSERT INTO lines VALUES ({n})"),
        ])
    };
    let other = |id: u64| {
        block(&[
            "INSERT INTO orders (customer) VALUES (1) RETURNING id".to_owned(),
            format!("INSERT INTO lines VALUES ({id})"),
        ])
    };
    for all in [
        (0..30).map(own).collect::<Vec<_>>(),
        (0..30).map(|n| other(n / 2)).collect(),
        (0..30).map(|n| other(100 - n)).collect(),
        (0..5).map(other).collect(),
    ] {
        let log = captured(&all);
        assert!(!log.shapes[0].script.contains("gset"), "{}", log.shapes[0].script);
    }
}
