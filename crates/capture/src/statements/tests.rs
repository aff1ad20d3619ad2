use bench_script::tokens::{TokenKind, tokens};
use bench_script::{Symbols, parse};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fidelity::{Call, likeness, overall};
use crate::options::{CaptureOptions, Importance, Roles};

fn same(text: &str) {
    assert_eq!(parsable(text), text);
}

#[test]
fn constants_of_a_type_become_casts() {
    for (text, wanted) in [
        ("SELECT now() - interval $1", "SELECT now() - CAST($1 AS interval)"),
        ("SELECT INTERVAL $1 day + x", "SELECT CAST($1 AS INTERVAL day) + x"),
        ("SELECT interval $1 day to second, 1", "SELECT CAST($1 AS interval day to second), 1"),
        ("SELECT interval(3) $2", "SELECT CAST($2 AS interval(3))"),
        (
            "WHERE d >= date $1 AND e < timestamp $2",
            "WHERE d >= CAST($1 AS date) AND e < CAST($2 AS timestamp)",
        ),
        ("t < timestamp with time zone $1", "t < CAST($1 AS timestamp with time zone)"),
        ("t < timestamp (3) without time zone $1", "t < CAST($1 AS timestamp(3) without time zone)"),
        ("x = double precision $1", "x = CAST($1 AS double precision)"),
        ("x = numeric(10,2) $1", "x = CAST($1 AS numeric(10,2))"),
        ("x = char /* a */ varying $1", "x = CAST($1 AS char varying)"),
        // As a cast, these would have the length 1.
        ("x = char $1 || bit $2", "x = CAST($1 AS pg_catalog.bpchar) || CAST($2 AS pg_catalog.\"bit\")"),
        ("x = char(9) $1 || bit varying $2", "x = CAST($1 AS char(9)) || CAST($2 AS bit varying)"),
        ("f(mood $1, s.\"Mood\" $2)", "f(CAST($1 AS mood), CAST($2 AS s.\"Mood\"))"),
        ("x @> int4range $1 AND y > pg_lsn $2", "x @> CAST($1 AS int4range) AND y > CAST($2 AS pg_lsn)"),
        ("time(0) with time zone $1", "CAST($1 AS time(0) with time zone)"),
        ("interval $1 hour to second(3)", "CAST($1 AS interval hour to second(3))"),
        ("x = $1 UESCAPE '!' AND y = date $2 uescape '#'", "x = $1  AND y = CAST($2 AS date) "),
        ("x = uuid $12", "x = CAST($12 AS uuid)"),
    ] {
        assert_eq!(parsable(text), wanted);
    }
}

#[test]
fn fields_of_extract_become_arguments() {
    assert_eq!(
        parsable("SELECT EXTRACT($1 FROM created_at), extract ( $2 from t.x )"),
        "SELECT pg_catalog.\"extract\"($1 , created_at), pg_catalog.\"extract\" ( $2 , t.x )"
    );
    same("SELECT extract(year FROM x), my.extract($1 FROM x)");
}

#[test]
fn prepared_statements_lose_their_name() {
    assert_eq!(parsable("PREPARE s (int, numeric(3,1)) AS SELECT $1"), " SELECT $1");
    assert_eq!(parsable("prepare \"as\" as select $1"), " select $1");
    same("SELECT prepare AS x");
}

#[test]
fn what_is_no_constant_stays() {
    same("SELECT date, $1 FROM t WHERE date = $2 AND t.date > $3 LIMIT $4");
    same("SELECT 'interval $1', \"date $1\", $$timestamp $1$$, E'\\'date $1' FROM t");
    same("SELECT x::date, CAST($1 AS date)");
    same(
        "SELECT DISTINCT ON (a) $1, b OPERATOR(pg_catalog.+) $2, c LIKE $3 ESCAPE $4, d AT TIME ZONE $5 FROM t",
    );
    same(
        "SELECT sum(a) OVER (ORDER BY b RANGE $1 PRECEDING), sum(a) OVER (ROWS $2 PRECEDING) FROM t FETCH FIRST $3 ROWS ONLY",
    );
    same("SELECT /*+ IndexScan(t) */ 1");
    assert_eq!(parsable("SELECT 1 -- date $1\n, /* date $2 */ 2"), "SELECT 1  \n,   2");
}

#[test]
fn squashed_lists_get_their_elements_back() {
    let text = "SELECT * FROM t WHERE a IN ($1 /*, ... */) AND b = $2 AND c = ANY (ARRAY[$3 /*, ... */])";
    assert_eq!(squashed(text), [1, 3]);
    let wanted = "SELECT * FROM t WHERE a IN ($1 , $4, $5) AND b = $2 AND c = ANY (ARRAY[$3 , $6])";
    assert_eq!(expanded(text, |first| if first == 1 { 3 } else { 2 }), wanted);
    assert_eq!(squashed("SELECT '$1 /*, ... */', 2 /*, ... */"), Vec::<u32>::new());
}

#[test]
fn parameters_get_the_types_that_constants_had() {
    let of = |text: &str| with_types(text);
    assert_eq!(
        of("SELECT * FROM t WHERE a = $1 AND b IN ($2, $3) AND (c, d) = ($4, $5)"),
        Vec::<String>::new()
    );
    assert_eq!(
        of("x @> array [ $1, $2 ] AND y = ANY (ARRAY[$3 /*, ... */])")[..2],
        [
            "x @> array [ $1, $2 ]::integer[] AND y = ANY (ARRAY[$3 /*, ... */]::integer[])",
            "x @> array [ $1, $2 ]::bigint[] AND y = ANY (ARRAY[$3 /*, ... */]::bigint[])",
        ]
    );
    for text in ["ARRAY[$1::uuid]", "ARRAY[$1]::int8[]", "ARRAY[]", "ARRAY[$1, x]", "ARRAY[$1", "'ARRAY[$1]'"]
    {
        assert_eq!(of(text), Vec::<String>::new(), "{text}");
    }
    let both = of("SELECT f($1, x, g($2)), h($3 + 1), k(ARRAY[$4])");
    assert_eq!(both.len(), 12);
    assert_eq!(both[2], "SELECT f($1, x, g($2)), h($3 + 1), k(ARRAY[$4]::numeric[])");
    assert_eq!(both[4], "SELECT f($1::integer, x, g($2::integer)), h($3 + 1), k(ARRAY[$4])");
    assert_eq!(both[11], "SELECT f($1::boolean, x, g($2::boolean)), h($3 + 1), k(ARRAY[$4]::boolean[])");
    for text in ["VALUES ($1)", "row($1)", "x IN ($1)", "f(($1))", ") $1 (", "]", "f($1"] {
        assert_eq!(of(text), Vec::<String>::new(), "{text}");
    }
}

fn script_of(text: &str, type_of: impl Fn(u32) -> Option<String>) -> String {
    script(text, |number| Ok(variable(number)), type_of)
}

#[test]
fn scripts_have_variables_for_parameters() {
    let typed = |number: u32| Some(format!("type{number}"));
    assert_eq!(script_of("SELECT * FROM t WHERE a = $1;\n", typed), "SELECT * FROM t WHERE a = :p1;");
    assert_eq!(
        script_of("SELECT $1, $2 + $1", typed),
        "SELECT CAST(:p1 AS type1), :p2 + CAST(:p1 AS type1);"
    );
    assert_eq!(
        script_of("SELECT a[$1:$2], b[1:n], $3::int", typed),
        "SELECT a[:p1 \\::p2], b[1\\:n], :p3 ::int;"
    );
    assert_eq!(script_of("SELECT 'a:b', \"c:d\"", typed), "SELECT 'a:b', \"c:d\";");
    let now = |_: u32| Err("'now'::date".to_owned());
    assert_eq!(script("SELECT $1, b[1:n]", now, |_| None), "SELECT 'now'::date, b[1\\:n];");
}

#[test]
fn options_are_checked() {
    let options =
        CaptureOptions::new(&json!({"writes": true, "by": "calls", "roles": ["a"], "list_length": 3}))
            .unwrap();
    assert_eq!(options.by, Importance::Calls);
    assert_eq!(options.roles, Roles::Named(vec!["a".to_owned()]));
    assert!(options.writes && !options.mask);
    let exclude = CaptureOptions::new(&json!({"exclude": ["%a%", -7]})).unwrap().exclude;
    assert_eq!((exclude.patterns, exclude.query_ids), (vec!["%a%".to_owned()], vec![-7]));
    let error = CaptureOptions::new(&json!({"write": true})).unwrap_err();
    let hint = "Perhaps you meant \"writes\". Known options: by, exclude, list_length, mask, roles, run_as, \
         think_times, transactions, writes.";
    assert_eq!(error.hint.as_deref(), Some(hint));
    for bad in [
        json!({"by": "x"}),
        json!({"mask": 1}),
        json!({"roles": []}),
        json!({"list_length": 0}),
        json!([]),
        json!({"exclude": "x"}),
        json!({"exclude": [0.5]}),
    ] {
        assert_eq!(CaptureOptions::new(&bad).unwrap_err().sqlstate, "22023", "{bad}");
    }
}

#[test]
fn equal_calls_score_one() {
    let call = Call { rows: 3.0, hit: 5.0, read: 1.0, ms: 0.2 };
    assert_eq!(likeness(&call, &call).score, 1.0);
    // Hit or read: the blocks are the same.
    let cold = Call { hit: 0.0, read: 6.0, ..call };
    assert_eq!(likeness(&call, &cold).score, 1.0);
    let half = Call { rows: 1.5, ..call };
    assert_eq!(likeness(&call, &half).score, 0.5);
    assert_eq!(Call::of(0, 1, 1, 1, 1.0), None);
    assert_eq!(overall(&[(0.5, Some(1.0)), (0.25, Some(0.5)), (0.25, None)]), Some(0.625));
    assert_eq!(overall(&[]), None);
}

#[test]
fn items_of_group_by_have_the_parameters_of_the_list() {
    let text = "SELECT f($1, a) AS h, count(*) FROM t WHERE b = $2 GROUP BY f($3, a), c ORDER BY h LIMIT $4";
    assert_eq!(grouped(text), text.replace("$3", "$1"));
    let text = "SELECT extract($1 FROM a) AS h FROM t WHERE b = $2 GROUP BY extract(hour FROM a) ORDER BY h";
    assert_eq!(grouped(text), text.replace("$1", "hour"));
    for text in ["SELECT a + $1 FROM t GROUP BY a", "SELECT $1, b FROM t GROUP BY b, c.d", "SELECT 1"] {
        assert_eq!(grouped(text), text);
    }
    let text = "SELECT x FROM (SELECT f(a, $1) x FROM t GROUP BY f(a, $2)) s WHERE y = $3";
    assert_eq!(grouped(text), text.replace("$2", "$1"));
}

fn one_call(rows: f64, hit: f64) -> Call {
    Call { rows, hit, ..Call::default() }
}

#[test]
fn values_get_weights_by_what_their_calls_take() {
    let calls = [one_call(1.0, 10.0), one_call(5.0, 50.0), one_call(9.0, 20.0)];
    let found = fit(&one_call(3.0, 30.0), &calls, &[1.0; 3], 1e4).unwrap();
    assert!(found.likeness.score > 0.99, "{found:?}");
    // What nothing comes near to gets the nearest.
    let found = fit(&one_call(0.5, 5.0), &calls, &[1.0; 3], 1e4).unwrap();
    assert!(found.weights[0] > 0.99, "{found:?}");
    assert_eq!(fit(&one_call(1.0, 1.0), &[], &[], 1.0), None);
    assert_eq!(fit(&one_call(1.0, 1.0), &calls, &[0.0; 3], 1.0), None);
    // Next to nothing is as much as nothing.
    let calls = [one_call(0.0, 2.0), one_call(1.0, 4.0)];
    let found = fit(&one_call(0.0, 2.0), &calls, &[1.0; 2], 1e4).unwrap();
    assert!(found.likeness.score > 0.99, "{found:?}");
}

#[test]
fn few_calls_get_values_that_are_alike() {
    let calls: Vec<Call> = (0..200).map(|n| one_call(1.0, f64::from(n))).collect();
    let many = fit(&one_call(1.0, 40.0), &calls, &[1.0; 200], 1e6).unwrap();
    let few = fit(&one_call(1.0, 40.0), &calls, &[1.0; 200], 20.0).unwrap();
    assert!(many.likeness.score > 0.98 && few.likeness.score > 0.98);
    assert!(many.spread > 0.8 && few.spread < 0.25, "{} {}", many.spread, few.spread);
}

#[test]
fn plans_are_chosen_as_the_plan_cache_does() {
    let share = |generic, costs: &[f64]| generic_share(generic, costs, &vec![1.0; costs.len()], 100);
    assert_eq!(share(10.0, &[9.0]), 0.0);
    assert_eq!(share(9.0, &[10.0]), 0.95);
    // An even choice of both: the mean is 10, which the costs of five are above as often as below.
    let mixed = share(10.0, &[1.0, 19.0]);
    assert!((0.3..0.99).contains(&mixed), "{mixed}");
    assert_eq!(generic_share(1.0, &[], &[], 100), 0.0);
    assert_eq!(generic_share(1.0, &[5.0], &[0.0], 100), 0.0);
}

#[test]
fn weights_are_shares_of_the_calls() {
    assert_eq!(weights(&[3, 1, 0]), [3, 1, 1]);
    assert_eq!(weights(&[30_000_000, 10_000_000, 1]), [750_000, 250_000, 1]);
}

#[test]
fn parameters_become_texts_wherever_they_are() {
    let text = "SELECT concat($1, '$1'), $2 FROM t WHERE a = $1";
    let wanted = "SELECT concat($1::pg_catalog.text, '$1'), $2 FROM t WHERE a = $1::pg_catalog.text";
    assert_eq!(with_texts(text, &[1]), wanted);
    assert_eq!(with_texts(text, &[]), text);
}

#[test]
fn conditions_of_arbiters_are_found() {
    let condition = |text: &str| arbiter(text).map(|range| text[range].to_owned());
    let of = |clause: &str| condition(&format!("INSERT INTO t VALUES ($1) ON CONFLICT {clause}"));
    assert_eq!(
        of("(a, (b + $2)) WHERE s = $3 AND (c OR $4) DO NOTHING"),
        Some("s = $3 AND (c OR $4)".to_owned())
    );
    assert_eq!(of("(a) WHERE s DO UPDATE SET b = $2 WHERE t.b = $3"), None);
    assert_eq!(of("(a) DO UPDATE SET b = $2 WHERE t.b = $3"), None);
    assert_eq!(of("DO NOTHING"), None);
    assert_eq!(condition("SELECT $1 FROM t WHERE a = $2"), None);
}

#[test]
fn constants_of_statements_are_told_from_what_else_has_digits() {
    for text in [
        "SELECT $1::numeric(10, 2) FROM t2 ORDER BY 1",
        "SELECT CAST($2 AS interval second(3))",
        "SELECT true, null",
    ] {
        assert!(!has_constants(text), "{text}");
    }
    for text in
        ["SELECT 'a'", "SELECT $1 LIMIT 5", "SELECT B'1'", "SELECT /*+ Set(a '1') */ $1", "SELECT mood 'a'"]
    {
        assert!(has_constants(text), "{text}");
    }
    assert_eq!(highest_parameter("SELECT $3, $12, '$99'"), 12);
}

#[test]
fn masked_documents_are_documents() {
    let hidden = masked_json(r#"{"secret": ["secret", 7, null, {"a\nsecret": true}]}"#);
    let name = masked("secret");
    assert_eq!(
        hidden,
        format!(r#"{{"{name}":["{name}",7,null,{{"{}":true}}]}}"#, masked("a\nsecret").replace('\n', "\\n"))
    );
    assert_eq!(masked_json("{secret"), masked("{secret"));
}

#[test]
fn masked_texts_keep_their_length() {
    let hidden = masked("Ann.Smith42@example.org");
    assert_eq!(hidden.len(), 23);
    assert_ne!(hidden, "Ann.Smith42@example.org");
    assert_eq!((&hidden[3..4], &hidden[11..12]), (".", "@"));
    assert_eq!(masked("Ann.Smith42@example.org"), hidden);
}

/// Pieces that statements are made of, of which no two make another one together.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "'[a-z $1]{0,8}'".prop_map(|s| s),
        "\"[a-z $1]{1,8}\"".prop_map(|s| s),
        "\\$q\\$[a-z 1']{0,8}\\$q\\$".prop_map(|s| s),
        "[a-z_]{1,6}".prop_filter("a word of its own", |s| !s.ends_with(['e', 'b', 'x', 'n', 'u'])),
        "[0-9]{1,4}",
        Just("(".to_owned()),
        Just(",".to_owned()),
        Just("=".to_owned()),
        Just("+ interval $1".to_owned()),
        Just("$2".to_owned()),
    ]
}

proptest! {
    #[test]
    fn tokens_cover_any_text(text in ".{0,60}") {
        let found = tokens(&text);
        let joined: String = found.iter().map(|token| token.text(&text)).collect();
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn quoted_texts_are_left_alone(pieces in prop::collection::vec(piece(), 1..12)) {
        let text = pieces.join(" ");
        let quoted = |text: &str| -> Vec<String> {
            let is_quoted = |kind| matches!(kind, TokenKind::String | TokenKind::OtherString | TokenKind::QuotedIdentifier);
            tokens(text).iter().filter(|t| is_quoted(t.kind)).map(|t| t.text(text).to_owned()).collect()
        };
        let rewritten = parsable(&text);
        prop_assert_eq!(quoted(&rewritten), quoted(&text));
        // What was rewritten needs no rewriting.
        prop_assert_eq!(parsable(&rewritten), rewritten.clone());
        let casts = pieces.iter().filter(|piece| *piece == "+ interval $1").count();
        prop_assert_eq!(rewritten.matches("CAST($1 AS interval)").count(), casts);
    }

    #[test]
    fn a_script_mentions_parameters_only(pieces in prop::collection::vec(piece(), 1..12)) {
        let text = format!("SELECT {}", pieces.join(" ").replace('(', "+"));
        let written = script(&parsable(&text), |number| Ok(variable(number)), |_| None);
        let mut symbols = Symbols::new();
        let parsed = parse("s", &written, &mut symbols);
        prop_assert!(parsed.is_ok(), "{}", written);
        for index in 0..symbols.len() {
            let name = (1..=2).map(variable).find(|name| symbols.lookup(name).is_some_and(|id| id.index() == index));
            prop_assert!(name.is_some(), "{} in {}", index, written);
        }
    }

    #[test]
    fn means_between_those_of_calls_are_met(
        all in prop::collection::vec((0.0..100.0_f64, 1.0..1000.0_f64, 0.05..1.0_f64), 1..60)
    ) {
        // Some weights have the wanted means; so weights that differ from the first ones no more are found. The penalty lets
        // them miss by the root of twice itself times the relative entropy (at the minimum, half the penalty times the square
        // of lambda is at most that entropy), here below 3.
        let calls: Vec<Call> = all.iter().map(|(rows, hit, _)| one_call(*rows, *hit)).collect();
        let weights: Vec<f64> = all.iter().map(|(.., weight)| *weight).collect();
        let wanted = mean(&calls, &weights);
        let found = fit(&wanted, &calls, &vec![1.0; all.len()], 1e9).unwrap();
        prop_assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!(found.weights.iter().all(|weight| *weight >= 0.0));
        prop_assert!(found.likeness.rows > 0.97 && found.likeness.blocks > 0.97, "{:?}", found.likeness);
    }

    #[test]
    fn shares_of_plans_are_shares(
        generic in 0.0..1e6_f64, costs in prop::collection::vec((0.0..1e6_f64, 0.0..1.0_f64), 0..9), calls in 0..50_u32
    ) {
        let (costs, weights): (Vec<f64>, Vec<f64>) = costs.into_iter().unzip();
        let share = generic_share(generic, &costs, &weights, calls);
        prop_assert!((0.0..=1.0).contains(&share));
    }

    #[test]
    fn masks_keep_the_number_of_characters(text in ".{0,30}") {
        prop_assert_eq!(masked(&text).chars().count(), text.chars().count());
    }
}

#[test]
fn places_of_one_variable_share_a_number() {
    let text = "SELECT '$2', $1 WHERE a = $2 OR $3 IS NULL AND $4 > 0";
    let (renumbered, variables) = shared(text, &["a", "a", "b", "c"]).expect("one of them twice");
    assert_eq!(renumbered, "SELECT '$2', $1 WHERE a = $1 OR $2 IS NULL AND $3 > 0");
    assert_eq!(variables, ["a", "b", "c"]);
    assert_eq!(shared(text, &["a", "b", "c", "d"]), None);
    assert_eq!(shared("SELECT $1, $2, $3", &["a", "a"]), None);
}

#[test]
fn casts_stand_behind_whole_names_that_have_none() {
    let script = "SELECT :p1, :p12, :p1::int, a = :p1;\n\\sleep :p1_sleep us\n";
    let types = [("p1", "pg_catalog.text"), ("p12", "shop.\"Mood\"")].into();
    assert_eq!(
        with_casts(script, &types),
        "SELECT :p1::pg_catalog.text, :p12::shop.\"Mood\", :p1::int, a = :p1::pg_catalog.text;\n\
         \\sleep :p1_sleep us\n"
    );
}
