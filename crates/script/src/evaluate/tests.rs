use proptest::prelude::*;

use crate::evaluate::*;
use crate::random::client_seeds;
use crate::text::ScriptText;
use crate::variables::Symbols;

/// Evaluates with `:i` 7, `:d` 2.5, `:n` null, `:b` true, `:t` the text "12", `:bad` the text "x1" and
/// `:default_seed` 5432.
fn evaluate(text: &str) -> Result<Value, String> {
    evaluate_with_debug(text, &mut |_| {})
}

fn evaluate_with_debug(text: &str, debug: &mut dyn FnMut(&str)) -> Result<Value, String> {
    let mut symbols = Symbols::new();
    let mut variables = Variables::default();
    for (name, value) in [
        ("i", Value::Integer(7)),
        ("d", Value::Double(2.5)),
        ("n", Value::Null),
        ("b", Value::Boolean(true)),
        ("t", Value::Text("12".into())),
        ("bad", Value::Text("x1".into())),
        ("default_seed", Value::Integer(5432)),
    ] {
        variables.set(symbols.intern(name), value);
    }
    Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols)
        .and_then(|expression| expression.evaluate(&variables, &mut Prng::from_seed(42), debug))
        .map_err(|error| error.to_string())
}

fn integer_of(text: &str) -> i64 {
    match evaluate(text) {
        Ok(Value::Integer(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn double_of(text: &str) -> f64 {
    match evaluate(text) {
        Ok(Value::Double(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> String {
    evaluate(text).unwrap_err()
}

fn boolean_of(text: &str) -> bool {
    match evaluate(text) {
        Ok(Value::Boolean(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn integers_stay_integers() {
    assert_eq!(integer_of("7 / 2"), 3);
    assert_eq!(integer_of("-7 / 2"), -3);
    assert_eq!(integer_of("-7 % 3"), -1);
    assert_eq!(integer_of("7 % -1"), 0);
    assert_eq!(integer_of("-9223372036854775808 % -1"), 0);
    assert_eq!(integer_of("abs(-3) + :i * :t"), 87);
    assert_eq!(integer_of("int(2.5) + int(3.5)"), 6);
    assert_eq!(integer_of("least(3, 1, 2) + greatest(10, 30, 20)"), 31);
}

#[test]
fn one_double_makes_a_double() {
    assert_eq!(double_of("7 / 2.0"), 3.5);
    assert_eq!(double_of(":d * 2"), 5.0);
    assert_eq!(double_of("1.0 / 0"), f64::INFINITY);
    assert_eq!(double_of("abs(-0.5)"), 0.5);
    assert_eq!(double_of("double(3)"), 3.0);
    assert_eq!(double_of("least(1, 0.5)"), 0.5);
    // But a rest is an integer's always.
    assert_eq!(integer_of("7.4 % 4"), 3);
    assert!(double_of("abs(0.0 * -1)").is_sign_negative());
}

#[test]
fn bits_are_integers() {
    assert_eq!(integer_of("12 & 10 | 1"), 9);
    assert_eq!(integer_of("12 # 10"), 6);
    assert_eq!(integer_of("~ 0"), -1);
    assert_eq!(integer_of("5.4 & 7"), 5);
    assert_eq!(integer_of("1 << 62"), 1 << 62);
    assert_eq!(integer_of("-8 >> 1"), -4);
    // What pgbench shows for distances outside of 0 to 63.
    assert_eq!(integer_of("1 << 64"), 1);
    assert_eq!(integer_of("1 << -1"), i64::MIN);
    assert_eq!(integer_of("-1 >> 70"), -1);
    assert_eq!(error("1 & true"), "cannot coerce boolean to int (22023)");
}

#[test]
fn comparisons() {
    assert!(boolean_of("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 <> 2 and 1 != 2 and 1 = 1.0"));
    assert!(!boolean_of("2 < 1 or 3 <= 2 or 2 > 3 or 2 >= 3 or 1 <> 1 or 1 = 1.5"));
    // As integers, without a loss of digits.
    assert!(boolean_of("9223372036854775807 > 9223372036854775806"));
    let not_a_number = "ln(-1)";
    assert!(boolean_of(&format!("{not_a_number} <> {not_a_number}")));
    assert!(!boolean_of(&format!("{not_a_number} >= 1")));
    // Not even booleans with each other.
    assert_eq!(error("true = true"), "cannot coerce boolean to int (22023)");
    assert_eq!(error("true < 1.5"), "cannot coerce boolean to double (22023)");
}

#[test]
fn functions_of_doubles() {
    assert_eq!(double_of("sqrt(2.25)"), 1.5);
    assert_eq!(double_of("exp(0)"), 1.0);
    assert_eq!(double_of("ln(1)"), 0.0);
    assert_eq!(double_of("ln(0)"), f64::NEG_INFINITY);
    assert!(double_of("sqrt(-1)").is_nan());
    assert_eq!(double_of("power(2, 0.5)"), std::f64::consts::SQRT_2);
    assert_eq!(double_of("least(ln(-1), 1)"), 1.0);
    assert!(double_of("greatest(1, ln(-1))").is_nan());
    assert_eq!(double_of("greatest(3, 1, 2.5, 2)"), 3.0);
}

#[test]
fn what_is_decided_is_not_evaluated() {
    let fails = "1 / 0 = 1";
    assert!(!boolean_of(&format!("false AND {fails}")));
    assert!(!boolean_of(&format!("true AND false AND {fails} AND {fails}")));
    assert!(boolean_of(&format!("true OR {fails}")));
    assert!(boolean_of(&format!("false AND {fails} OR true OR {fails}")));
    assert_eq!(evaluate(&format!("null AND {fails}")), Ok(Value::Null));
    assert_eq!(evaluate(&format!("null OR {fails}")), Ok(Value::Null));
    assert_eq!(
        integer_of(&format!("CASE WHEN false THEN 1 / 0 WHEN 2 THEN 3 WHEN {fails} THEN 1 / 0 END")),
        3
    );
    // Unlike SQL's, the operators look at the left operand first and are content if that is null.
    assert_eq!(evaluate("null OR true"), Ok(Value::Null));
    assert_eq!(evaluate("true AND null"), Ok(Value::Null));
    assert_eq!(error("true AND 1"), "cannot coerce int to boolean (22023)");
    assert_eq!(error("0 OR true"), "cannot coerce int to boolean (22023)");
}

#[test]
fn conditions_take_numbers() {
    let is_true = |text: &str| {
        let mut symbols = Symbols::new();
        let expression =
            Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols).unwrap();
        expression
            .is_true(&Variables::default(), &mut Prng::from_seed(42), &mut |_| {})
            .map_err(|e| e.to_string())
    };
    for text in ["true", "1", "-1", "0.1", "ln(-1)", "null is null"] {
        assert_eq!(is_true(text), Ok(true), "{text}");
        assert_eq!(integer_of(&format!("CASE WHEN {text} THEN 1 ELSE 2 END")), 1);
    }
    for text in ["false", "0", "0.0", "null"] {
        assert_eq!(is_true(text), Ok(false), "{text}");
        assert_eq!(integer_of(&format!("CASE WHEN {text} THEN 1 ELSE 2 END")), 2);
    }
    assert_eq!(evaluate("CASE WHEN 0 THEN 1 END"), Ok(Value::Null));
    assert_eq!(is_true("1 / 0"), Err("division by zero (22012)".to_owned()));
}

#[test]
fn is_knows_only_null_and_booleans() {
    assert!(boolean_of("null is null and 1 is not null and :n isnull and :i notnull"));
    assert!(boolean_of("true is true and false is false and true is not false"));
    assert!(boolean_of("null is not true and 1 is not true and 0 is not false and 0.0 is not null"));
    assert!(!boolean_of("1 is null is null"));
}

#[test]
fn debug_shows_its_argument_and_gives_it() {
    let mut shown = Vec::new();
    let text = "debug(debug(1 + 2) / 2.0) + CASE WHEN debug(null) THEN 1 WHEN debug(true) THEN debug(4) END";
    let value = evaluate_with_debug(text, &mut |text| shown.push(text.to_owned()));
    assert_eq!(value, Ok(Value::Double(5.5)));
    assert_eq!(shown, ["int 3", "double 1.5", "null", "boolean true", "int 4"]);
}

#[test]
fn operands_are_evaluated_in_pgbenchs_order() {
    for (text, order) in [
        ("debug(1) - debug(2) - debug(3)", ["int 1", "int 2", "int 3"]),
        ("debug(1) - debug(2) * debug(3)", ["int 1", "int 2", "int 3"]),
        ("permute(debug(1), debug(2), debug(3))", ["int 1", "int 2", "int 3"]),
        // `a > b` is `b < a`.
        ("debug(1) + debug(2) > debug(3)", ["int 3", "int 1", "int 2"]),
        ("debug(1) >= debug(2) + debug(3)", ["int 2", "int 3", "int 1"]),
    ] {
        let mut shown = Vec::new();
        evaluate_with_debug(text, &mut |text| shown.push(text.to_owned())).unwrap();
        assert_eq!(shown, order, "{text}");
    }
}

#[test]
fn null_gives_null() {
    for text in [
        ":n",
        ":n + 1",
        "random(1, :n)",
        "least(1, null)",
        "greatest(1, 2, null)",
        "1 / :n",
        "1 = :n",
        "1 & :n",
        "pow(:n, 1)",
        "abs(null)",
        "not :n",
        "permute(1, 2, :n)",
        "hash(null)",
        // Even where the other argument is of the wrong type.
        "null + true",
    ] {
        assert_eq!(evaluate(text), Ok(Value::Null), "{text}");
    }
    assert_eq!(evaluate(":b"), Ok(Value::Boolean(true)));
}

#[test]
fn errors_are_pgbenchs() {
    assert_eq!(error("9223372036854775807 + 1"), "bigint add out of range (22003)");
    assert_eq!(error("-9223372036854775808 - 1"), "bigint sub out of range (22003)");
    assert_eq!(error("9223372036854775807 * 2"), "bigint mul out of range (22003)");
    assert_eq!(error("-9223372036854775808 / -1"), "bigint div out of range (22003)");
    assert_eq!(error("abs(-9223372036854775808)"), "bigint abs out of range (22003)");
    assert_eq!(error("1 / 0"), "division by zero (22012)");
    assert_eq!(error("1 % 0"), "division by zero (22012)");
    assert_eq!(error(":b + 1"), "cannot coerce boolean to int (22023)");
    assert_eq!(error(":b + 1.0"), "cannot coerce boolean to double (22023)");
    assert_eq!(error("NOT 0.0"), "cannot coerce double to boolean (22023)");
    assert_eq!(error("ln(TRUE)"), "cannot coerce boolean to double (22023)");
    assert_eq!(error("permute(0, 0)"), "permute size parameter must be greater than zero (22023)");
    assert_eq!(error("int(1.0 / 0)"), "double to int overflow for Infinity (22003)");
    assert_eq!(error("int(ln(-1))"), "double to int overflow for NaN (22003)");
    assert_eq!(error("int(1e19)"), "double to int overflow for 10000000000000000000.000000 (22003)");
    assert_eq!(
        error("int(9223372036854775807.0)"),
        "double to int overflow for 9223372036854775808.000000 (22003)"
    );
    assert_eq!(error(":nowhere + 1"), "undefined variable \"nowhere\" (42703)");
    assert_eq!(error(":bad + 1"), "malformed variable \"bad\" value: \"x1\" (22023)");
}

#[test]
fn random_is_pgbenchs() {
    // As in prng.rs: what PostgreSQL 15's pg_prng.c gives for seed 42 and the range 1 to 100000.
    assert_eq!(integer_of("random(1, 100000)"), 54225);
    assert_eq!(integer_of("random(5, 5)"), 5);
    assert_eq!(error("random(2, 1)"), "empty range given to random (22023)");
    assert_eq!(error("random(0, 9223372036854775807)"), "random range is too large (22023)");
    assert!(evaluate("random(1, 9223372036854775807)").is_ok());
    // As in random/tests.rs.
    assert_eq!(integer_of("random_exponential(1, 100000, 2.5)"), 19105);
    assert_eq!(integer_of("random_gaussian(-50000, 50000, 5)"), -10278);
    assert_eq!(integer_of("random_zipfian(1, 100000, 1.07)"), 336);
    assert_eq!(error("random_zipfian(2, 1, 1.07)"), "empty range given to random (22023)");
    assert_eq!(error("random_gaussian(1, 2, true)"), "cannot coerce boolean to double (22023)");
}

#[test]
fn hashes_and_permutations_take_the_default_seed() {
    assert_eq!(integer_of("hash(10)"), -5817877081768721676);
    assert_eq!(integer_of("hash_fnv1a(10)"), -7793829335365542153);
    assert_eq!(integer_of("permute(999, 1000)"), 93);
    assert!(boolean_of("hash(10, 1) <> hash(10)"));
}

#[test]
fn the_deepest_expression_fits_the_stack() {
    // Test threads have a stack of 2 MB.
    assert_eq!(integer_of(&format!("{}1{}", "abs(".repeat(99), ")".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "least(3, 2, ".repeat(99), ")".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "CASE WHEN 1 THEN ".repeat(99), " END".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "permute(0, 1, ".repeat(99), ")".repeat(99))), 0);
    // All strengths of binding between one level and the next.
    let nested = "false OR true AND 3 = 0 | 0 + 1 * CASE WHEN ";
    let error = error(&format!("{}0 / 0{}", nested.repeat(99), " THEN 1 END".repeat(99)));
    assert_eq!(error, "division by zero (22012)");
}

#[test]
fn the_longest_expression_is_evaluated() {
    assert_eq!(integer_of(&format!("0{}", " + 1".repeat(50_000))), 50_000);
    assert!(boolean_of(&format!("1{}", " IS NOT NULL".repeat(50_000))));
}

/// A sum, difference or product of constants.
#[derive(Clone, Debug)]
enum Exact {
    Constant(i64),
    Operation(Box<Exact>, char, Box<Exact>),
}

impl Exact {
    /// With no more parentheses than needed.
    fn text(&self) -> String {
        let inside = |exact: &Exact, parenthesised: &[char]| match exact {
            Exact::Operation(_, operator, _) if parenthesised.contains(operator) => {
                format!("({})", exact.text())
            }
            _ => exact.text(),
        };
        match self {
            Exact::Constant(value) => value.to_string(),
            Exact::Operation(left, '*', right) => {
                format!("{}*{}", inside(left, &['+', '-']), inside(right, &['+', '-', '*']))
            }
            Exact::Operation(left, operator, right) => {
                format!("{}{operator}{}", left.text(), inside(right, &['+', '-']))
            }
        }
    }

    /// In 128 bits; the error names the first operation, from left to right, that leaves 64.
    fn value(&self) -> Result<i64, String> {
        let (left, operator, right) = match self {
            Exact::Constant(value) => return Ok(*value),
            Exact::Operation(left, operator, right) => (left.value()?, operator, right.value()?),
        };
        let (left, right) = (i128::from(left), i128::from(right));
        let (result, name) = match operator {
            '+' => (left + right, "add"),
            '-' => (left - right, "sub"),
            _ => (left * right, "mul"),
        };
        i64::try_from(result).map_err(|_| format!("bigint {name} out of range (22003)"))
    }
}

fn exact() -> impl Strategy<Value = Exact> {
    let constant = prop_oneof![-100..100i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
    constant.prop_map(Exact::Constant).prop_recursive(5, 32, 2, |inner| {
        (inner.clone(), prop::sample::select(vec!['+', '-', '*']), inner)
            .prop_map(|(left, operator, right)| Exact::Operation(left.into(), operator, right.into()))
    })
}

proptest! {
    #[test]
    fn constants_compute_as_in_128_bits(exact in exact()) {
        prop_assert_eq!(evaluate(&exact.text()), exact.value().map(Value::Integer), "{}", exact.text());
    }

    #[test]
    fn random_numbers_lie_in_their_range(min in -1000..1000i64, length in 0..1000i64) {
        let drawn = integer_of(&format!("random({min}, {})", min + length));
        prop_assert!((min..=min + length).contains(&drawn));
    }

    #[test]
    fn division_and_rest_belong_together(dividend: i64, divisor: i32) {
        prop_assume!(divisor != 0 && divisor != -1);
        let quotient = integer_of(&format!("{dividend} / {divisor}"));
        let rest = integer_of(&format!("{dividend} % {divisor}"));
        prop_assert_eq!(quotient * i64::from(divisor) + rest, dividend);
    }
}

// What pgbench's own tests (t/001_pgbench_with_server.pl of PostgreSQL 18) expect of expressions.

/// The test "pgbench expressions".
const SCRIPT: &str = r#"-- integer functions
\set i1 debug(random(10, 19))
\set i2 debug(random_exponential(100, 199, 10.0))
\set i3 debug(random_gaussian(1000, 1999, 10.0))
\set i4 debug(abs(-4))
\set i5 debug(greatest(5, 4, 3, 2))
\set i6 debug(11 + least(-5, -4, -3, -2))
\set i7 debug(int(7.3))
-- integer arithmetic and bit-wise operators
\set i8 debug(17 / (4|1) + ( 4 + (7 >> 2)))
\set i9 debug(- (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1)
\set ia debug(10 + (0 + 0 * 0 - 0 / 1))
\set ib debug(:ia + :scale)
\set ic debug(64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2))
-- double functions and operators
\set d1 debug(sqrt(+1.5 * 2.0) * abs(-0.8E1))
\set d2 debug(double(1 + 1) * (-75.0 / :foo))
\set pi debug(pi() * 4.9)
\set d4 debug(greatest(4, 2, -1.17) * 4.0 * Ln(Exp(1.0)))
\set d5 debug(least(-5.18, .0E0, 1.0/0) * -3.3)
-- reset variables
\set i1 0
\set d1 false
-- yet another integer function
\set id debug(random_zipfian(1, 9, 1.3))
--- pow and power
\set poweri debug(pow(-3,3))
\set powerd debug(pow(2.0,10))
\set poweriz debug(pow(0,0))
\set powerdz debug(pow(0.0,0.0))
\set powernegi debug(pow(-2,-3))
\set powernegd debug(pow(-2.0,-3.0))
\set powernegd2 debug(power(-5.0,-5.0))
\set powerov debug(pow(9223372036854775807, 2))
\set powerov2 debug(pow(10,30))
-- comparisons and logical operations
\set c0 debug(1.0 = 0.0 and 1.0 != 0.0)
\set c1 debug(0 = 1 Or 1.0 = 1)
\set c4 debug(case when 0 < 1 then 32 else 0 end)
\set c5 debug(case when true then 33 else 0 end)
\set c6 debug(case when false THEN -1 when 1 = 1 then 13 + 19 + 2.0 end )
\set c7 debug(case when (1 > 0) and (1 >= 0) and (0 < 1) and (0 <= 1) and (0 != 1) and (0 = 0) and (0 <> 1) then 35 else 0 end)
\set c8 debug(CASE \
                WHEN (1.0 > 0.0) AND (1.0 >= 0.0) AND (0.0 < 1.0) AND (0.0 <= 1.0) AND \
                     (0.0 != 1.0) AND (0.0 = 0.0) AND (0.0 <> 1.0) AND (0.0 = 0.0) \
                  THEN 36 \
                  ELSE 0 \
              END)
\set c9 debug(CASE WHEN NOT FALSE THEN 3 * 12.3333334 END)
\set ca debug(case when false then 0 when 1-1 <> 0 then 1 else 38 end)
\set cb debug(10 + mod(13 * 7 + 12, 13) - mod(-19 * 11 - 17, 19))
\set cc debug(NOT (0 > 1) AND (1 <= 1) AND NOT (0 >= 1) AND (0 < 1) AND \
    NOT (false and true) AND (false OR TRUE) AND (NOT :f) AND (NOT FALSE) AND \
    NOT (NOT TRUE))
-- NULL value and associated operators
\set n0 debug(NULL + NULL * exp(NULL))
\set n1 debug(:n0)
\set n2 debug(NOT (:n0 IS NOT NULL OR :d1 IS NULL))
\set n3 debug(:n0 IS NULL AND :d1 IS NOT NULL AND :d1 NOTNULL)
\set n4 debug(:n0 ISNULL AND NOT :n0 IS TRUE AND :n0 IS NOT FALSE)
\set n5 debug(CASE WHEN :n IS NULL THEN 46 ELSE NULL END)
-- use a variables of all types
\set n6 debug(:n IS NULL AND NOT :f AND :t)
-- conditional truth
\set cs debug(CASE WHEN 1 THEN TRUE END AND CASE WHEN 1.0 THEN TRUE END AND CASE WHEN :n THEN NULL ELSE TRUE END)
-- hash functions
\set h0 debug(hash(10, 5432))
\set h1 debug(:h0 = hash_murmur2(10, 5432))
\set h3 debug(hash_fnv1a(10, 5432))
\set h4 debug(hash(10))
\set h5 debug(hash(10) = hash(10, :default_seed))
-- lazy evaluation
\set zy 0
\set yz debug(case when :zy = 0 then -1 else (1 / :zy) end)
\set yz debug(case when :zy = 0 or (1 / :zy) < 0 then -1 else (1 / :zy) end)
\set yz debug(case when :zy > 0 and (1 / :zy) < 0 then (1 / :zy) else 1 end)
-- substitute variables of all possible types
\set v0 NULL
\set v1 TRUE
\set v2 5432
\set v3 -54.21E-2
SELECT :v0, :v1, :v2, :v3;
-- if tests
\set nope 0
\if 1 > 0
\set id debug(65)
\elif 0
\set nope 1
\else
\set nope 1
\endif
\if 1 < 0
\set nope 1
\elif 1 > 0
\set ie debug(74)
\else
\set nope 1
\endif
\if 1 < 0
\set nope 1
\elif 1 < 0
\set nope 1
\else
\set if debug(83)
\endif
\if 1 = 1
\set ig debug(86)
\elif 0
\set nope 1
\endif
\if 1 = 0
\set nope 1
\elif 1 <> 0
\set ih debug(93)
\endif
-- must be zero if false branches where skipped
\set nope debug(:nope)
-- check automatic variables
\set sc debug(:scale)
\set ci debug(:client_id)
\set rs debug(:random_seed)
-- minint constant parsing
\set min debug(-9223372036854775808)
\set max debug(-(:min + 1))
-- parametric pseudorandom permutation function
\set t debug(permute(0, 2) + permute(1, 2) = 1)
\set t debug(permute(0, 3) + permute(1, 3) + permute(2, 3) = 3)
\set t debug(permute(0, 4) + permute(1, 4) + permute(2, 4) + permute(3, 4) = 6)
\set t debug(permute(0, 5) + permute(1, 5) + permute(2, 5) + permute(3, 5) + permute(4, 5) = 10)
\set t debug(permute(0, 16) + permute(1, 16) + permute(2, 16) + permute(3, 16) + \
             permute(4, 16) + permute(5, 16) + permute(6, 16) + permute(7, 16) + \
             permute(8, 16) + permute(9, 16) + permute(10, 16) + permute(11, 16) + \
             permute(12, 16) + permute(13, 16) + permute(14, 16) + permute(15, 16) = 120)
-- random sanity checks
\set size random(2, 1000)
\set v random(0, :size - 1)
\set p permute(:v, :size)
\set t debug(0 <= :p and :p < :size and :p = permute(:v + :size, :size) and :p <> permute(:v + 1, :size))
-- actual values
\set t debug(permute(:v, 1) = 0)
\set t debug(permute(0, 2, 5431) = 0 and permute(1, 2, 5431) = 1 and \
             permute(0, 2, 5433) = 1 and permute(1, 2, 5433) = 0)
-- check permute's portability across architectures
\set size debug(:max - 10)
\set t debug(permute(:size-1, :size, 5432) = 520382784483822430 and \
             permute(:size-2, :size, 5432) = 1143715004660802862 and \
             permute(:size-3, :size, 5432) = 447293596416496998 and \
             permute(:size-4, :size, 5432) = 916527772266572956 and \
             permute(:size-5, :size, 5432) = 2763809008686028849 and \
             permute(:size-6, :size, 5432) = 8648551549198294572 and \
             permute(:size-7, :size, 5432) = 4542876852200565125)
"#;

/// What its commands, counted from 1, show by `debug`: all that pgbench shows, of which the test asserts 69,
/// the doubles among them up to their points.
const EXPECTED: [(usize, &str); 75] = [
    (1, "int 17"),
    (2, "int 104"),
    (3, "int 1498"),
    (4, "int 4"),
    (5, "int 5"),
    (6, "int 6"),
    (7, "int 7"),
    (8, "int 8"),
    (9, "int 9"),
    (10, "int 10"),
    (11, "int 11"),
    (12, "int 12"),
    (13, "double 13.856406460551"),
    (14, "double 14.8514851485149"),
    (15, "double 15.39380400259"),
    (16, "double 16"),
    (17, "double 17.094"),
    (20, "int 3"),
    (21, "double -27"),
    (22, "double 1024"),
    (23, "double 1"),
    (24, "double 1"),
    (25, "double -0.125"),
    (26, "double -0.125"),
    (27, "double -0.00032"),
    (28, "double 8.50705917302346e+37"),
    (29, "double 1e+30"),
    (30, "boolean false"),
    (31, "boolean true"),
    (32, "int 32"),
    (33, "int 33"),
    (34, "double 34"),
    (35, "int 35"),
    (36, "int 36"),
    (37, "double 37.0000002"),
    (38, "int 38"),
    (39, "int 39"),
    (40, "boolean true"),
    (41, "null"),
    (42, "null"),
    (43, "boolean true"),
    (44, "boolean true"),
    (45, "boolean true"),
    (46, "int 46"),
    (47, "boolean true"),
    (48, "boolean true"),
    (49, "int -5817877081768721676"),
    (50, "boolean true"),
    (51, "int -7793829335365542153"),
    (52, "int 4313776982099445391"),
    (53, "boolean true"),
    (55, "int -1"),
    (56, "int -1"),
    (57, "int 1"),
    (65, "int 65"),
    (74, "int 74"),
    (83, "int 83"),
    (86, "int 86"),
    (93, "int 93"),
    (95, "int 0"),
    (96, "int 1"),
    (97, "int 0"),
    (98, "int 5432"),
    (99, "int -9223372036854775808"),
    (100, "int 9223372036854775807"),
    (101, "boolean true"),
    (102, "boolean true"),
    (103, "boolean true"),
    (104, "boolean true"),
    (105, "boolean true"),
    (109, "boolean true"),
    (110, "boolean true"),
    (111, "boolean true"),
    (112, "int 9223372036854775797"),
    (113, "boolean true"),
];

/// A client's variables and names.
#[derive(Default)]
struct PgbenchClient {
    symbols: Symbols,
    variables: Variables,
}

impl PgbenchClient {
    fn set(&mut self, name: &str, value: Value) {
        self.variables.set(self.symbols.intern(name), value);
    }

    fn parse(&mut self, text: &str) -> Result<Expression, UserError> {
        Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut self.symbols)
    }
}

/// The commands of a script, their continuation lines included.
fn commands(script: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut continued = false;
    for line in script.lines().filter(|line| !line.starts_with("--")) {
        match commands.last_mut() {
            Some(command) if continued => *command += &format!("\n{line}"),
            _ => commands.push(line.to_owned()),
        }
        continued = line.ends_with('\\');
    }
    commands
}

#[test]
fn expressions() {
    let mut client = PgbenchClient::default();
    let options = [
        ("foo", "-10.1"),
        ("bla", "false"),
        ("i", "+3"),
        ("n", "null"),
        ("t", "t"),
        ("f", "of"),
        ("d", "1.0"),
    ];
    for (name, text) in options {
        client.set(name, Value::Text(text.into()));
    }
    let seeds = client_seeds(5432, 1, 0, false);
    let mut random = seeds.functions;
    client.set("scale", Value::Integer(1));
    client.set("client_id", Value::Integer(0));
    client.set("random_seed", Value::Integer(5432));
    client.set("default_seed", Value::Integer(seeds.default_seed));

    let mut shown = Vec::new();
    // Whether the branch of an `\if` is taken, and whether one of it was.
    let (mut active, mut decided) = (true, false);
    for (index, command) in commands(SCRIPT).iter().enumerate() {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        match word {
            "\\if" | "\\elif" if word == "\\if" || !decided => {
                let condition = client.parse(rest).unwrap();
                active = condition.is_true(&client.variables, &mut random, &mut |_| {}).unwrap();
                decided = active;
            }
            "\\elif" => active = false,
            "\\else" => active = !decided,
            "\\endif" => active = true,
            "\\set" if active => {
                let (name, text) = rest.split_once(' ').unwrap();
                let expression = client.parse(text).unwrap();
                let mut debug = |text: &str| shown.push((index + 1, text.to_owned()));
                let value = expression.evaluate(&client.variables, &mut random, &mut debug).unwrap();
                client.set(name, value);
            }
            _ => {}
        }
    }
    assert_eq!(shown, EXPECTED.map(|(command, text)| (command, text.to_owned())));
}

#[test]
fn expression_errors() {
    for (text, message) in [
        ("1 +", "syntax error at end of expression (42601)"),
        ("noSuchFunction()", "unexpected function name \"noSuchFunction\" (42601)"),
        ("1/0", "division by zero (22012)"),
        (":nosuchvariable", "undefined variable \"nosuchvariable\" (42703)"),
        (";", "unexpected character \";\" (42601)"),
        (
            "least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
            "too many function arguments, maximum is 16 (42601)",
        ),
        ("random(5,3)", "empty range given to random (22023)"),
        ("random(:minint, :maxint)", "random range is too large (22023)"),
        (
            "random_gaussian(0, 10, 1.0)",
            "gaussian parameter must be at least 2.000000 (not 1.000000) (22023)",
        ),
        (
            "random_exponential(0, 10, 0.0)",
            "exponential parameter must be greater than zero (not 0.000000) (22023)",
        ),
        (
            "random_zipfian(0, 10, 1)",
            "zipfian parameter must be in range [1.001, 1000] (not 1.000000) (22023)",
        ),
        (
            "random_zipfian(0, 10, 1000000)",
            "zipfian parameter must be in range [1.001, 1000] (not 1000000.000000) (22023)",
        ),
        (":foo + 1", "malformed variable \"foo\" value: \"bla\" (22023)"),
        ("", "syntax error at end of expression (42601)"),
        ("NOT 0.0", "cannot coerce double to boolean (22023)"),
        ("TRUE + 2", "cannot coerce boolean to int (22023)"),
        ("ln(TRUE)", "cannot coerce boolean to double (22023)"),
        ("CASE TRUE THEN 1 ELSE 0 END", "syntax error at or near \"TRUE\" (42601)"),
        ("random(FALSE, TRUE)", "cannot coerce boolean to int (22023)"),
        ("ln(1.0, 2.0))", "unexpected number of arguments (ln) (42601)"),
        ("greatest())", "at least one argument expected (greatest) (42601)"),
        ("int(1E32)", "double to int overflow for 100000000000000005366162204393472.000000 (22003)"),
        ("(1<<62) + (1<<62)", "bigint add out of range (22003)"),
        ("0 - (1<<62) - (1<<62) - (1<<62)", "bigint sub out of range (22003)"),
        ("2 * (1<<62)", "bigint mul out of range (22003)"),
        (":minint / -1", "bigint div out of range (22003)"),
        (":badtrue or true", "malformed variable \"badtrue\" value: \"trueXXX\" (22023)"),
        ("- :minint", "bigint sub out of range (22003)"),
        ("permute(0, -1)", "permute size parameter must be greater than zero (22023)"),
        ("permute(0, 0)", "permute size parameter must be greater than zero (22023)"),
    ] {
        let mut client = PgbenchClient::default();
        for (name, value) in [
            ("foo", "bla"),
            ("badtrue", "trueXXX"),
            ("maxint", "9223372036854775807"),
            ("minint", "-9223372036854775808"),
            ("default_seed", "5432"),
        ] {
            client.set(name, Value::Text(value.into()));
        }
        let error = client
            .parse(text)
            .and_then(|expression| {
                expression.evaluate(&client.variables, &mut Prng::from_seed(42), &mut |_| {})
            })
            .unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}
