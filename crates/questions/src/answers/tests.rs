use proptest::prelude::*;

use super::*;

const INT4: u32 = 23;
const FLOAT8: u32 = 701;
const TEXT: u32 = 25;

type Row = Vec<Option<String>>;

fn message(row: &Row) -> Vec<u8> {
    let mut body = (row.len() as u16).to_be_bytes().to_vec();
    for value in row {
        match value {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(text) => {
                body.extend((text.len() as i32).to_be_bytes());
                body.extend(text.as_bytes());
            }
        }
    }
    body
}

fn description(types: &[u32]) -> Vec<u8> {
    let mut body = (types.len() as u16).to_be_bytes().to_vec();
    for (place, oid) in types.iter().enumerate() {
        body.extend(format!("c{place}\0").as_bytes());
        body.extend([0; 6]);
        body.extend(oid.to_be_bytes());
        body.extend([0; 8]);
    }
    body
}

fn answer(types: &[u32], shape: Shape, rows: &[Row]) -> Answer {
    let mut answer = Answer::new();
    answer.expect(shape);
    answer.take(b'T', &description(types));
    rows.iter().for_each(|row| answer.take(b'D', &message(row)));
    answer.finish(rows.len() as u64);
    answer
}

fn row(values: &[&str]) -> Row {
    values.iter().map(|value| (*value != "NULL").then(|| (*value).to_owned())).collect()
}

fn rows(all: &[&[&str]]) -> Vec<Row> {
    all.iter().map(|values| row(values)).collect()
}

fn by(keys: &[usize], is_cut: [bool; 2]) -> Shape {
    Shape { keys: Some(keys.to_vec()), is_cut, ..Shape::default() }
}

/// In any order.
fn any_order() -> Shape {
    Shape::default()
}

fn kind(comparison: Comparison) -> Option<Kind> {
    match comparison {
        Comparison::Differs(difference) => Some(difference.kind),
        _ => None,
    }
}

fn compared(types: &[u32], shape: Shape, a: &[Row], b: &[Row]) -> Comparison {
    compare(&answer(types, shape.clone(), a), &answer(types, shape, b), 1e-9, None)
}

#[test]
fn kinds_of_differences() {
    let of = |a: &[&[&str]], b: &[&[&str]]| compared(&[INT4, TEXT], any_order(), &rows(a), &rows(b));
    assert_eq!(kind(of(&[&["1", "x"]], &[&["1", "x"], &["2", "y"]])), Some(Kind::Rows));
    assert_eq!(kind(of(&[&["1", "x"]], &[&["1", "y"]])), Some(Kind::Values));
    assert_eq!(kind(of(&[&["1", "x"]], &[&["1", "NULL"]])), Some(Kind::Null));
    let different =
        compare(&answer(&[INT4], any_order(), &[]), &answer(&[TEXT], any_order(), &[]), 0.0, None);
    assert_eq!(kind(different), Some(Kind::Type));
    let named = |oid, name: &str| {
        let mut answer = answer(&[oid], any_order(), &rows(&[&["1"]]));
        answer.columns[0].type_name = Some(name.to_owned());
        answer
    };
    assert_eq!(compare(&named(20_000, "x.y"), &named(20_001, "x.y"), 0.0, None), Comparison::Same);
    assert_eq!(kind(compare(&named(20_000, "x.y"), &named(20_000, "x.z"), 0.0, None)), Some(Kind::Type));
    // Two lengths make no row equal to another.
    assert_eq!(kind(of(&[&["1", "23"]], &[&["12", "3"]])), Some(Kind::Values));
    // What an UPDATE processed counts, too.
    let mut other = answer(&[], any_order(), &[]);
    other.processed = 1;
    assert_eq!(kind(compare(&answer(&[], any_order(), &[]), &other, 0.0, None)), Some(Kind::Rows));
}

#[test]
fn sorted_rows_may_change_places_where_keys_are_equal() {
    let a = rows(&[&["1", "x"], &["1", "y"], &["2", "z"]]);
    let ties = rows(&[&["1", "y"], &["1", "x"], &["2", "z"]]);
    let swapped = rows(&[&["2", "z"], &["1", "x"], &["1", "y"]]);
    let of = |b: &[Row]| compared(&[INT4, TEXT], by(&[0], [false; 2]), &a, b);
    assert_eq!(of(&ties), Comparison::Same);
    assert_eq!(kind(of(&swapped)), Some(Kind::Order));
    assert_eq!(compared(&[INT4, TEXT], any_order(), &a, &swapped), Comparison::Same);
}

#[test]
fn limits_cut_ties() {
    let a = rows(&[&["1", "x"], &["2", "y"], &["2", "z"]]);
    let other_tie = rows(&[&["1", "x"], &["2", "y"], &["2", "w"]]);
    let before = rows(&[&["1", "w"], &["2", "y"], &["2", "z"]]);
    let of = |is_cut, b: &[Row]| compared(&[INT4, TEXT], by(&[0], is_cut), &a, b);
    assert_eq!(of([false, true], &other_tie), Comparison::Tied);
    assert_eq!(kind(of([true, false], &other_tie)), Some(Kind::Values));
    assert_eq!(kind(of([false, true], &before)), Some(Kind::Values));
    assert_eq!(of([true, true], &before), Comparison::Tied);
}

#[test]
fn limits_that_are_not_reached_cut_nothing() {
    let of = |limit, value| {
        let mut answer = Answer::new();
        answer.expect(by(&[0], [false, true]));
        answer.take(b'T', &description(&[INT4, TEXT]));
        answer.take(b'D', &message(&row(&["1", value])));
        answer.limited_to(limit);
        answer.finish(1);
        answer
    };
    assert_eq!(compare(&of(Some(1), "x"), &of(Some(1), "y"), 0.0, None), Comparison::Tied);
    assert_eq!(kind(compare(&of(Some(2), "x"), &of(Some(2), "y"), 0.0, None)), Some(Kind::Values));
    let cut = |is_cut| Shape { is_cut: [false, is_cut], ..any_order() };
    assert!(
        answer(&[INT4], cut(true), &[]).is_arbitrary() && !answer(&[INT4], cut(false), &[]).is_arbitrary()
    );
}

#[test]
fn sort_keys_behind_the_columns_are_seen_and_not_shown() {
    let of = |rows: &[Row]| {
        let mut answer = Answer::new();
        answer.expect(Shape { width: Some(1), ..by(&[1], [false; 2]) });
        answer.take(b'T', &description(&[TEXT, INT4]));
        rows.iter().for_each(|row| answer.take(b'D', &message(row)));
        answer.finish(rows.len() as u64);
        answer
    };
    let a = of(&rows(&[&["x", "1"], &["y", "1"], &["z", "2"]]));
    assert_eq!(a.columns.len(), 1);
    assert_eq!(
        compare(&a, &of(&rows(&[&["y", "1"], &["x", "1"], &["z", "2"]])), 0.0, None),
        Comparison::Same
    );
    // A key of the other one is a column.
    let of_column = answer(&[TEXT], by(&[0], [false; 2]), &rows(&[&["x"], &["y"], &["z"]]));
    let other = of(&rows(&[&["x", "x"], &["y", "y"], &["z", "z"]]));
    assert_eq!(compare(&of_column, &other, 0.0, None), Comparison::Same);
    assert_eq!(
        kind(compare(&a, &of(&rows(&[&["x", "1"], &["z", "2"], &["y", "1"]])), 0.0, None)),
        Some(Kind::Order)
    );
}

#[test]
fn floats_have_a_tolerance() {
    let of = |tolerance, a: &str, b: &str| {
        let side = |value| answer(&[FLOAT8], by(&[0], [false; 2]), &rows(&[&[value]]));
        compare(&side(a), &side(b), tolerance, None)
    };
    assert_eq!(of(1e-9, "0.30000000000000004", "0.3"), Comparison::Close);
    assert_eq!(kind(of(0.0, "0.30000000000000004", "0.3")), Some(Kind::Values));
    assert_eq!(kind(of(1e-9, "0.3001", "0.3")), Some(Kind::Values));
    assert_eq!(of(0.0, "-0", "0"), Comparison::Close);
    assert_eq!(of(1e-9, "NaN", "NaN"), Comparison::Same);
    assert_eq!(kind(of(1e-9, "Infinity", "1e308")), Some(Kind::Values));
}

#[test]
fn examples_show_the_rows_of_a_key() {
    let a = answer(&[INT4, TEXT], any_order(), &rows(&[&["2", "b"], &["1", "a"]]));
    let b = answer(&[INT4, TEXT], any_order(), &rows(&[&["1", "a"], &["2", "c"]]));
    let Comparison::Differs(difference) = compare(&a, &b, 0.0, Some("c0")) else { panic!("they differ") };
    let values =
        |row: Option<ShownRow>| row.map(|row| row.into_iter().filter_map(|(_, value)| value).collect());
    assert_eq!(
        difference.rows.map(values),
        [Some(vec!["2".to_owned(), "b".into()]), Some(vec!["2".into(), "c".into()])]
    );
}

#[test]
fn large_results_are_compared_by_their_hashes() {
    let long = "x".repeat(MAX_KEPT / 3);
    let all: Vec<Row> = (0..4).map(|at| row(&[&at.to_string(), &long])).collect();
    let mut other = all.clone();
    other.reverse();
    assert_eq!(compared(&[INT4, TEXT], any_order(), &all, &other), Comparison::Same);
    other[0][0] = Some("9".to_owned());
    assert_eq!(kind(compared(&[INT4, TEXT], any_order(), &all, &other)), Some(Kind::Values));
}

#[test]
fn verdicts_and_their_sentence() {
    let of = |executions: Vec<Execution>| {
        let mut all = StatementAnswers::default();
        executions.into_iter().for_each(|one| drop(all.add(one)));
        all
    };
    let failed = |a: Option<&str>, b: Option<&str>| {
        Execution::Failed([a, b].map(|error| error.map(|error| (error.to_owned(), "message".to_owned()))))
    };
    let same = || Execution::Compared(Comparison::Same);
    let difference = Difference { kind: Kind::Values, rows: [None, None] };
    let all = [
        of(vec![same(), same()]),
        of(vec![same(), Execution::Compared(Comparison::Differs(difference))]),
        of(vec![same(), Execution::Unstable]),
        of(vec![same(), failed(None, Some("22012"))]),
        of(vec![failed(Some("22012"), Some("22012"))]),
        of(vec![same(), failed(Some("22012"), Some("22012"))]),
        of(vec![]),
        of(vec![same(), Execution::Compared(Comparison::Close)]),
    ];
    let verdicts: Vec<Verdict> = all.iter().map(StatementAnswers::verdict).collect();
    use Verdict::*;
    assert_eq!(verdicts, [Same, Differs, Unstable, Fails, Fails, Same, NotCompared, Close]);
    assert_eq!(all[3].cause.as_deref(), Some("arm b: 22012 message"));
    assert_eq!(all[7].row(1e-9)["verdict"], "same within 1e-9");
    assert_eq!(
        sentence(&all),
        "of 8 statements 3 answer the same, 1 differs, 2 fail, 1 is not stable, 1 was not compared"
    );
}

#[test]
fn recall_counts_rows_of_the_exact_answer() {
    let exact =
        answer(&[INT4, TEXT], any_order(), &rows(&[&["1", "a"], &["2", "b"], &["2", "b"], &["3", "c"]]));
    let other = answer(&[INT4, TEXT], any_order(), &rows(&[&["3", "x"], &["2", "b"], &["4", "d"]]));
    assert_eq!(overlap(&exact, &other, None), Some(1));
    assert_eq!(overlap(&exact, &other, Some("c0")), Some(2));
    assert_eq!(overlap(&exact, &other, Some("c2")), None);
    let sample = |found| RecallSample { found, exact: 10, returned: found, index_ms: 1.0, exact_ms: 3.0 };
    let samples: Vec<RecallSample> = (0..40).map(|at| sample(if at < 2 { at + 4 } else { 10 })).collect();
    let all = recall(&samples).expect("executions");
    assert_eq!((all.executions, all.recall_min, all.recall_p5, all.short), (40, 0.4, 0.5, 2));
    assert!((all.recall - (0.9 + 38.0) / 40.0).abs() < 1e-12 && all.exact_ms == 3.0);
    assert_eq!(recall(&[RecallSample { exact: 0, ..sample(0) }]), None);
    let of = |recall| Some(Recall { recall, ..Recall::default() });
    assert_eq!(pick(&[None, of(0.9), of(0.95), of(1.0)], 0.95), Some(2));
    assert_eq!(pick(&[of(0.9)], 0.95), None);
}

fn columns(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| Column { name: (*name).to_owned(), type_oid: TEXT, type_name: None }).collect()
}

#[test]
fn texts_tell_the_kinds_of_statements() {
    use StatementKind::*;
    for (text, kind) in [
        ("SELECT 1", Reads),
        ("/* x */ (SELECT 1) UNION VALUES (2)", Reads),
        ("WITH x AS (SELECT 1) TABLE x", Reads),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", Writes),
        ("MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING", Writes),
        ("SELECT 1 INTO t", Utility),
        ("SELECT 1 AS \"into\"", Reads),
        ("SET work_mem = '1MB'", Utility),
        ("PREPARE transaction 'x'", TransactionControl),
        ("PREPARE x AS SELECT 1", Utility),
        ("commit", TransactionControl),
    ] {
        assert_eq!(Outline::new(text).kind, kind, "{text}");
    }
}

#[test]
fn texts_tell_the_order_of_rows() {
    let names = columns(&["id", "Name", "x"]);
    let shape = |text: &str| Outline::new(text).shape(&names);
    assert_eq!(shape("SELECT id, \"Name\", x FROM t"), any_order());
    assert_eq!(shape("SELECT * FROM t ORDER BY x DESC NULLS LAST, 1 FOR UPDATE"), by(&[2, 0], [false; 2]));
    assert_eq!(shape("SELECT * FROM t ORDER BY \"Name\" COLLATE \"C\" LIMIT 5"), by(&[1], [false, true]));
    assert_eq!(shape("SELECT * FROM t ORDER BY t.x USING < OFFSET $1"), by(&[2], [true, false]));
    assert_eq!(
        shape("SELECT id, lower(n), f(a, 'b') AS x FROM t ORDER BY f(a, 'b'), lower(n)"),
        by(&[2, 1], [false; 2])
    );
    assert_eq!(shape("VALUES (3, 1, 2) UNION SELECT 1, 2, 3 ORDER BY 2"), by(&[1], [false; 2]));
    // Keys that are no columns, and those after them, are not known, and LIMIT may not take other rows then.
    assert_eq!(shape("SELECT id, a, x FROM t ORDER BY x, at, id LIMIT 3"), by(&[2], [false; 2]));
    assert_eq!(shape("SELECT id, a, x FROM t ORDER BY at LIMIT 3"), any_order());
    assert_eq!(shape("SELECT id, a, x FROM t ORDER BY 4"), any_order());
    assert_eq!(shape("SELECT x FROM t WHERE id IN (SELECT id FROM u ORDER BY x LIMIT 1)"), any_order());
    assert_eq!(shape("SELECT 1, 2, 3 LIMIT 1"), Shape { is_cut: [false, true], ..any_order() });
    assert!(Outline::new("SELECT DISTINCT ON (id) id, a, x FROM t").shape(&names).takes_one_of_several);
    let twice = columns(&["id", "id"]);
    assert_eq!(Outline::new("SELECT a.id, b.id FROM a, b ORDER BY id").shape(&twice), any_order());
    assert_eq!(Outline::new("SELECT a.id, b.id FROM a, b ORDER BY b.id").shape(&twice), by(&[1], [false; 2]));
}

#[test]
fn texts_tell_limits() {
    for (text, limit) in [
        ("SELECT 1", None),
        ("SELECT 1 LIMIT ALL", None),
        ("SELECT 1 LIMIT 5 OFFSET 2", Some(Limit::Count(5))),
        ("SELECT 1 LIMIT $3", Some(Limit::Parameter(3))),
        ("SELECT 1 LIMIT $3 + 1", Some(Limit::Expression)),
        ("SELECT 1 OFFSET 1 FETCH NEXT ROW ONLY", Some(Limit::Count(1))),
        ("SELECT 1 FETCH FIRST 7 ROWS ONLY", Some(Limit::Count(7))),
        ("SELECT 1 FETCH FIRST 7 ROWS WITH TIES", None),
    ] {
        assert_eq!(Outline::new(text).limit, limit, "{text}");
    }
}

#[test]
fn statements_that_read_the_clock_are_known() {
    assert!(reads_clock("SELECT * FROM t WHERE at > NOW() - interval '1 day'"));
    assert!(reads_clock("SELECT CURRENT_DATE"));
    assert!(!reads_clock("SELECT 'now()', \"now\" FROM known /* now() */"));
}

#[test]
fn collations_may_be_the_only_difference() {
    let named = |a: &str, b: &str| Some([a.to_owned(), b.to_owned()]);
    let collations = |a: &str, b: &str| other_collations(a, b);
    assert_eq!(
        collations("SELECT x FROM t ORDER BY x", "SELECT x FROM t ORDER BY x COLLATE pg_catalog.\"C\""),
        named("none", "pg_catalog.\"C\"")
    );
    assert_eq!(collations("SELECT a COLLATE \"C\"", "SELECT b COLLATE \"x\""), None);
    assert_eq!(collations("SELECT a COLLATE \"C\"", "SELECT a COLLATE \"C\""), None);
}

/// Rows of a small domain, so that there are equal ones.
fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let value = prop_oneof![Just(None), (0..4).prop_map(|value: i32| Some(value.to_string()))];
    prop::collection::vec(prop::collection::vec(value, 3), 1..20)
}

proptest! {
    #[test]
    fn permutations_answer_the_same(all in some_rows(), order in any::<prop::sample::Index>()) {
        let mut other = all.clone();
        other.rotate_left(order.index(all.len()));
        other.reverse();
        prop_assert_eq!(compared(&[INT4, TEXT, FLOAT8], any_order(), &all, &other), Comparison::Same);
    }

    #[test]
    fn ties_may_be_permuted(all in some_rows(), order in any::<prop::sample::Index>()) {
        let mut all = all;
        all.sort_by(|one, other| one[0].cmp(&other[0]));
        let mut other = all.clone();
        other.rotate_left(order.index(all.len()));
        other.sort_by(|one, other| one[0].cmp(&other[0]));
        prop_assert_eq!(compared(&[INT4, TEXT, TEXT], by(&[0], [false; 2]), &all, &other), Comparison::Same);
    }

    #[test]
    fn one_change_is_always_found(
        all in some_rows(), at in any::<prop::sample::Index>(), column in 0..3_usize, is_ordered: bool,
    ) {
        let mut other = all.clone();
        // Beyond the domain of the others.
        other[at.index(all.len())][column] = Some("7".to_owned());
        let order = if is_ordered { by(&[0], [false; 2]) } else { any_order() };
        let comparison = compared(&[INT4, TEXT, FLOAT8], order, &all, &other);
        prop_assert!(matches!(comparison, Comparison::Differs(_)), "{:?}", comparison);
    }

    #[test]
    fn a_missing_row_is_found(all in some_rows(), at in any::<prop::sample::Index>()) {
        let mut other = all.clone();
        other.remove(at.index(all.len()));
        prop_assert_eq!(kind(compared(&[INT4, TEXT, FLOAT8], any_order(), &all, &other)), Some(Kind::Rows));
    }

    #[test]
    fn any_text_has_an_outline(words in prop::collection::vec("[a-z]{1,3}|select|order|by|limit|fetch|,|\\(|\\)|\\*|\\.|[0-9]|'", 0..12)) {
        let text = words.join(" ");
        let shape = Outline::new(&text).shape(&columns(&["a", "b"]));
        prop_assert!(shape.keys.is_none_or(|keys| keys.iter().all(|key| *key < 2)));
        prop_assert_eq!(other_collations(&text, &text), None);
    }

    #[test]
    fn messages_of_any_bytes_are_taken(kind: u8, body in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut answer = Answer::new();
        answer.expect(Shape { width: Some(2), ..by(&[0, 3], [true, true]) });
        for kind in [kind, b'T', b'D', b'D'] {
            answer.take(kind, &body);
        }
        answer.finish(2);
        prop_assert_eq!(compare(&answer, &answer, 0.0, Some("x")), Comparison::Same);
    }
}
