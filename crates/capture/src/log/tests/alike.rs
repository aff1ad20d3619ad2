//! Transactions that differ in the numbers of their tables alone, and values that one statement returned to a later one.

use super::super::*;

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
            capture.take(&entry).unwrap();
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
