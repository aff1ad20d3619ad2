//! Definitions of feeders.

use super::*;

fn feeder(prefix: &str, order: &str, once: bool, max_rows: i32) -> Result<Feeder, UserError> {
    Feeder::new(prefix.to_owned(), "SELECT 1 AS id".to_owned(), order, once, max_rows)
}

fn message(result: Result<impl std::fmt::Debug, UserError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn arguments_are_checked() {
    assert!(feeder("", "random", false, 1).is_ok());
    assert!(feeder("ü_1", "sequence", true, i32::MAX).is_ok());
    assert_eq!(message(feeder("1", "random", false, 1)), "invalid prefix: \"1\" (22023)");
    assert_eq!(message(feeder("a b", "random", false, 1)), "invalid prefix: \"a b\" (22023)");
    assert_eq!(
        message(feeder(&"x".repeat(64), "random", false, 1)),
        "prefix must not be longer than 63 bytes (22023)"
    );
    assert_eq!(message(feeder("", "Random", false, 1)), "unrecognized order: \"Random\" (22023)");
    assert_eq!(message(feeder("", "weighted", true, 1)), "once does not go with order \"weighted\" (22023)");
    assert_eq!(message(feeder("", "random", false, 0)), "max_rows must be at least 1, not 0 (22023)");
    assert_eq!(message(feeder("", "random", false, -5)), "max_rows must be at least 1, not -5 (22023)");
}

#[test]
fn columns_become_variables() {
    let variables = |prefix: &str, order: &str, columns: &[&str]| {
        feeder(prefix, order, false, 1).expect("a feeder").variables(columns)
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(variables("c_", "random", &["id", "2"]), Ok(vec![some("c_id"), some("c_2")]));
    assert_eq!(variables("", "random", &["weight"]), Ok(vec![some("weight")]));
    assert_eq!(variables("c", "weighted", &["id", "weight"]), Ok(vec![some("cid"), None]));
    assert_eq!(
        message(variables("", "random", &["?column?"])),
        "column \"?column?\" of the feeder's query cannot be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &["2"])),
        "column \"2\" of the feeder's query cannot be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &["id", "id"])),
        "column \"id\" of the feeder's query appears twice (22023)"
    );
    assert_eq!(
        message(variables("", "weighted", &["id"])),
        "the query of a weighted feeder has no column \"weight\" (22023)"
    );
    assert_eq!(
        message(variables("", "weighted", &["weight"])),
        "the feeder's query has no column that could be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &[])),
        "the feeder's query has no column that could be a variable (22023)"
    );
}
