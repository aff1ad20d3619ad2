//! With option mask, no constant is in a text that leaves the capture: every form of the grammar, gram.y's AexprConst and
//! whatever else takes an Sconst, an Iconst, an FCONST, a BCONST or an XCONST.

use super::super::*;

/// Expressions with a constant that `{}` stands for, which is of letters.
const TEXTS: [&str; 66] = [
    "'{}'",
    "'x''{}'",
    "'x'\n'{}'",
    "E'{}\\x41'",
    "E'{}\\xff'",
    "E'x\\'{}'",
    "$${}$$",
    "$q$it's {}$q$",
    "N'{}'",
    "U&'{}\\0041'",
    "U&'{}!0041' UESCAPE '!'",
    "U&'{}!00zz' UESCAPE '!'",
    "U&'{}'\n'x' UESCAPE /* {} */ '!'",
    "date '{}'",
    "date E'{}'",
    "date $${}$$",
    "date U&'{}'",
    "timestamp '{}'",
    "timestamp(3) '{}'",
    "timestamp(3) with time zone '{}'",
    "timestamp without time zone '{}'",
    "time(0) with time zone '{}'",
    "interval '{}'",
    "interval '{}' day",
    "interval '{}' day to second(3)",
    "interval(3) '{}'",
    "name '{}'",
    "char '{}'",
    "char(9) '{}'",
    "character varying(9) '{}'",
    "national character varying '{}'",
    "nchar(9) '{}'",
    "varchar '{}'",
    "bpchar(9) '{}'",
    "bit(3) '{}'",
    "bit varying '{}'",
    "numeric(10, 2) '{}'",
    "double precision '{}'",
    "float(24) '{}'",
    "dec '{}'",
    "boolean '{}'",
    "json '{}'",
    "jsonb '{\"{}\": 1}'",
    "mood '{}'",
    "int4range '[{}]'",
    "shop.\"Mood\" '{}'",
    "\"char\" '{}'",
    "geometry(Point, 4326) '{}'",
    "'{}'::text",
    "'{}'::interval day",
    "CAST('{}' AS char(3))",
    "trim('{}')",
    "trim(both '{}' from a)",
    "trim(leading from '{}')",
    "a LIKE '{}' ESCAPE '{}'",
    "a SIMILAR TO '{}'",
    "a IS DISTINCT FROM '{}'",
    "a OPERATOR(pg_catalog.=) '{}'",
    "extract('{}' FROM a)",
    "position('{}' IN a)",
    "overlay(a PLACING '{}' FROM 2)",
    "a AT TIME ZONE '{}'",
    "xmlparse(DOCUMENT '{}')",
    "json_object('{}' VALUE '{}')",
    "sum(a) OVER (ORDER BY a RANGE '{}' PRECEDING)",
    "f(variadic ARRAY['{}'], b => '{}', c := '{}')",
];

/// Of digits.
const NUMBERS: [&str; 21] = [
    "{}",
    "-{}",
    "- {}",
    "+{}",
    "{}.5",
    ".{}",
    "{}e3",
    "1e{}",
    "{}_000",
    "0x{}",
    "0o{}",
    "0b{}",
    "0x{}{}{}{}{}{}{}{}{}{}{}",
    "B'{}'",
    "X'{}'",
    "b'1'\n'{}'",
    "a[{}]",
    "a[{}:{}]",
    "sum(a) OVER (ROWS {} PRECEDING)",
    "(SELECT b FROM t FETCH FIRST {} ROWS ONLY)",
    "(SELECT b FROM t TABLESAMPLE bernoulli ({}) REPEATABLE ({}) LIMIT {} OFFSET {})",
];

/// Whole statements.
const STATEMENTS: [&str; 14] = [
    "SELECT /*+ Set(work_mem '{}') */ a FROM t",
    "SELECT a FROM t -- {}\nWHERE b",
    "SELECT DISTINCT ON (a) '{}' FROM t",
    "INSERT INTO t VALUES ('{}'), ('{}')",
    "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE s = '{}' DO UPDATE SET a = '{}' WHERE t.b = '{}'",
    "INSERT INTO t VALUES (1) ON CONFLICT (lower(a || '{}')) DO NOTHING",
    "WITH RECURSIVE x AS (SELECT 1) CYCLE a SET b TO '{}' DEFAULT '{}' USING c SELECT 1 FROM x",
    "SELECT * FROM xmltable('{}' PASSING a COLUMNS b text PATH '{}' DEFAULT '{}')",
    "SELECT * FROM json_table(a, '$.{}' COLUMNS (b text PATH '$.{}'))",
    "SET LOCAL app.tenant = '{}'",
    "SET LOCAL transaction_isolation = '{}'",
    "SET LOCAL TIME ZONE INTERVAL '{}' HOUR TO MINUTE",
    "CALL p('{}')",
    "COMMENT ON TABLE t IS '{}'",
];

fn entry(message: String, severity: &str, query: &str) -> LogEntry {
    LogEntry {
        at_ms: 1.0,
        session: "s".into(),
        severity: severity.into(),
        virtual_transaction: "3/0".into(),
        message,
        query: query.into(),
        ..LogEntry::default()
    }
}

/// What leaves a masked capture of a statement: of one that succeeded, and of one that failed.
fn left(statement: &str) -> Vec<String> {
    let given = serde_json::json!({ "mask": true, "writes": true });
    let mut capture = LogCapture::new(LogOptions::new(String::new(), &given).expect("known options"));
    let message = format!("duration: 1.0 ms  statement: {statement}");
    for entry in [entry(message, "LOG", ""), entry("failed".into(), "ERROR", statement)] {
        capture.take(&entry).expect("within the limits");
    }
    let captured = capture.finish().expect("within the limits");
    assert_eq!(captured.figures.transactions, 2, "{statement}");
    let kept = captured.shapes.into_iter().flat_map(|shape| {
        let omits = shape.omits.unwrap_or_default();
        [shape.script, shape.shown, omits]
    });
    let skipped = captured.skipped.into_iter().flat_map(|(reason, skipped)| [reason, skipped.example]);
    kept.chain(skipped).collect()
}

#[test]
fn no_constant_leaves_a_masked_capture() {
    let expressions = |forms: &'static [&str], constant: &'static str| {
        forms.iter().map(move |form| format!("SELECT {} FROM t", form.replace("{}", constant)))
    };
    let texts =
        expressions(&TEXTS, "secret").chain(STATEMENTS.iter().map(|form| form.replace("{}", "secret")));
    let numbers = expressions(&NUMBERS, "101101");
    for (statement, secret) in texts.map(|text| (text, "secret")).chain(numbers.map(|text| (text, "101101")))
    {
        for text in left(&statement) {
            assert!(!text.contains(secret), "{statement}: {text}");
        }
    }
}

/// What is left out for want of a variable: all else is kept.
#[test]
fn masked_captures_keep_what_can_have_variables() {
    let is_kept = |statement: &str| left(statement).iter().any(|text| text.ends_with(";\n"));
    let refused: Vec<&str> = (TEXTS.iter().chain(&NUMBERS))
        .filter(|form| !is_kept(&format!("SELECT {} FROM t", form.replace("{}", "101"))))
        .copied()
        .collect();
    assert_eq!(
        refused,
        ["E'{}\\xff'", "U&'{}!00zz' UESCAPE '!'", "extract('{}' FROM a)", "0x{}{}{}{}{}{}{}{}{}{}{}",]
    );
}
