use bench_base::error::UserError;
use proptest::prelude::*;

use crate::expression::*;
use crate::text::ScriptText;
use crate::variables::{Scalar, Symbols};

fn parse(text: &str) -> Result<Expression, UserError> {
    let mut symbols = Symbols::new();
    Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// The tree with all of its parentheses.
fn shape(text: &str) -> String {
    fn list<'a>(nodes: impl IntoIterator<Item = &'a ExpressionNode>) -> String {
        nodes.into_iter().map(show).collect::<Vec<_>>().join(", ")
    }
    fn name(function: Binary) -> String {
        match function {
            Binary::Overloaded(function) => format!("{function:?}"),
            Binary::Integral(function) => format!("{function:?}"),
            function => format!("{function:?}"),
        }
    }
    fn show(node: &ExpressionNode) -> String {
        match node {
            ExpressionNode::Constant(Scalar::Integer(value)) => value.to_string(),
            ExpressionNode::Constant(scalar) => format!("{scalar:?}"),
            ExpressionNode::Variable { name, .. } => format!(":{name}"),
            ExpressionNode::Unary { function, argument } => format!("{function:?}({})", show(argument)),
            ExpressionNode::Fold { first, steps } => steps.iter().fold(show(first), |left, step| {
                format!("{}({left}, {})", name(step.function), show(&step.operand))
            }),
            ExpressionNode::Ternary { function, arguments } => {
                format!("{function:?}({})", list(&**arguments))
            }
            ExpressionNode::Extremum { which, arguments } => format!("{which:?}({})", list(arguments)),
            ExpressionNode::Case { arms, otherwise } => {
                let arms = arms.iter().map(|(when, then)| format!("{}: {}, ", show(when), show(then)));
                format!("Case({}{})", arms.collect::<String>(), show(otherwise))
            }
        }
    }
    show(&parse(text).unwrap().root)
}

#[test]
fn constants() {
    assert_eq!(shape("42"), "42");
    assert_eq!(shape("9223372036854775807"), "9223372036854775807");
    assert_eq!(shape("- 9223372036854775808"), "-9223372036854775808");
    assert_eq!(shape("1 - -9223372036854775808"), "Subtract(1, -9223372036854775808)");
    assert_eq!(shape("1.5"), "Double(1.5)");
    assert_eq!(shape("1."), "Double(1.0)");
    assert_eq!(shape(".5e+1"), "Double(5.0)");
    assert_eq!(shape("2E3"), "Double(2000.0)");
    assert_eq!(shape("NULL"), "Null");
    assert_eq!(shape("True"), "Boolean(true)");
    assert_eq!(shape("false"), "Boolean(false)");
    assert_eq!(shape("pi()"), "Double(3.141592653589793)");
}

#[test]
fn products_bind_stronger_than_sums_and_signs_strongest() {
    assert_eq!(shape("1 + 2 * :a - 3"), "Subtract(Add(1, Multiply(2, :a)), 3)");
    assert_eq!(shape("-:a * 2"), "Multiply(Subtract(0, :a), 2)");
    assert_eq!(shape("8 / 4 % 3"), "Modulo(Divide(8, 4), 3)");
    assert_eq!(shape("(1 + 2)*+3"), "Multiply(Add(1, 2), 3)");
    assert_eq!(shape("1 -\\\n- 1"), "Subtract(1, Subtract(0, 1))");
    assert_eq!(shape("- - 1"), "Subtract(0, Subtract(0, 1))");
}

#[test]
fn precedences_are_pgbenchs() {
    for (text, same) in [
        // Each binds stronger than the one before.
        ("1 OR 2 AND 3 OR 4", "(1 OR (2 AND 3)) OR 4"),
        ("NOT 1 AND 2", "(NOT 1) AND 2"),
        ("NOT 1 IS NULL", "NOT (1 IS NULL)"),
        ("NOT 1 = 2", "NOT (1 = 2)"),
        ("1 = 2 IS NULL", "(1 = 2) IS NULL"),
        ("1 | 2 < 3 # 4", "(1 | 2) < (3 # 4)"),
        ("1 | 2 + 3 << 4", "(1 | (2 + 3)) << 4"),
        ("1 & 2 | 3 # 4 >> 5", "(((1 & 2) | 3) # 4) >> 5"),
        ("1 - 2 + 3", "(1 - 2) + 3"),
        ("1 / 2 * 3 % 4", "((1 / 2) * 3) % 4"),
        // Prefixes reach as far as they bind, wherever they stand.
        ("~ 2 | 1", "(~2) | 1"),
        ("~ 2 + 1", "~(2 + 1)"),
        ("1 * ~ 2 + 3", "1 * (~(2 + 3))"),
        ("1 + NOT 2 = 3 AND 4", "(1 + (NOT (2 = 3))) AND 4"),
        ("1 = NOT 2 = 3", "1 = (NOT (2 = 3))"),
        ("NOT NOT 1", "NOT (NOT 1)"),
        ("- 1 * 2", "(-1) * 2"),
        // What follows its operand may follow once more, and what compares may follow it.
        ("1 IS NULL IS NOT TRUE", "(1 IS NULL) IS NOT TRUE"),
        ("1 ISNULL NOTNULL", "(1 ISNULL) NOTNULL"),
        ("1 = 2 IS NULL = 3", "((1 = 2) IS NULL) = 3"),
        ("1 IS NULL = 2 + 3", "(1 IS NULL) = (2 + 3)"),
        // Spellings.
        ("1 != 2", "1 <> 2"),
        ("1 > 2 + 3", "2 + 3 < 1"),
        ("1 >= 2", "2 <= 1"),
        ("1 ISNULL", "1 IS NULL"),
        ("1 notnull", "1 Is Not Null"),
    ] {
        assert_eq!(shape(text), shape(same), "{text}");
    }
    assert_eq!(shape("1 IS NULL"), "Is(1, Null)");
    assert_eq!(shape("1 IS NOT FALSE"), "IsNot(1, Boolean(false))");
    assert_eq!(shape("~:a"), "BitXor(-1, :a)");
    assert_eq!(shape("1 > 2"), "Less(2, 1)");
    assert_eq!(shape("1 <= 2"), "LessOrEqual(1, 2)");
}

#[test]
fn cases() {
    assert_eq!(shape("CASE WHEN 1 THEN 2 END"), "Case(1: 2, Null)");
    assert_eq!(
        shape("case when 1 = 2 then 3 when true then 4 else 5 end + 6"),
        "Add(Case(Equal(1, 2): 3, Boolean(true): 4, 5), 6)"
    );
}

#[test]
fn calls() {
    assert_eq!(shape("RANDOM(1, 10 * :scale)"), "Random(1, Multiply(10, :scale))");
    assert_eq!(shape("least(1,2,3)"), "Least(1, 2, 3)");
    assert_eq!(shape("mod(7, 3)"), shape("7 % 3"));
    assert_eq!(shape("power(2, 3)"), shape("pow(2, 3)"));
    assert_eq!(shape("random_zipfian(1, 2, 3)"), "RandomZipfian(1, 2, 3)");
    assert_eq!(shape("sqrt(exp(ln(1)))"), "SquareRoot(Exponential(Logarithm(1)))");
    // So it is in pgbench's grammar.
    assert_eq!(shape("abs(, 1)"), "Absolute(1)");
}

#[test]
fn a_seed_that_is_left_out_is_the_default_one() {
    assert_eq!(shape("hash(1)"), "HashMurmur2(1, :default_seed)");
    assert_eq!(shape("hash_murmur2(1)"), shape("hash(1, :default_seed)"));
    assert_eq!(shape("hash_fnv1a(1)"), shape("hash_fnv1a(1, :default_seed)"));
    assert_eq!(shape("permute(1, 2)"), "Permute(1, 2, :default_seed)");
    assert_eq!(shape("permute(1, 2, 3)"), "Permute(1, 2, 3)");
}

#[test]
fn variables_are_found_wherever_they_are() {
    let mut symbols = Symbols::new();
    let text = "CASE WHEN :a AND :b THEN least(:c) ELSE -:d + permute(:e, :f) END > :g";
    let expression = Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols).unwrap();
    let mut names = Vec::new();
    expression.for_each_variable(&mut |id| names.push(symbols.name(id)));
    assert_eq!(names, ["g", "a", "b", "c", "d", "e", "f", "default_seed"]);
}

#[test]
fn errors_are_pgbenchs() {
    assert_eq!(error("noSuchFunction()"), "unexpected function name \"noSuchFunction\" (42601)");
    for (call, name) in [
        ("random(1)", "random"),
        ("ln(1.0, 2.0))", "ln"),
        ("pi(1)", "pi"),
        ("mod(1)", "mod"),
        ("POW(1)", "pow"),
        ("random_zipfian(1, 2)", "random_zipfian"),
        ("hash()", "hash"),
        ("hash(1,2,3)", "hash"),
        ("permute(1)", "permute"),
        ("permute(1, 2, 3, 4)", "permute"),
    ] {
        assert_eq!(error(call), format!("unexpected number of arguments ({name}) (42601)"));
    }
    assert_eq!(error("least()"), "at least one argument expected (least) (42601)");
    assert_eq!(error("greatest())"), "at least one argument expected (greatest) (42601)");
    let seventeen = vec!["1"; 17].join(",");
    assert_eq!(error(&format!("least({seventeen})")), "too many function arguments, maximum is 16 (42601)");
    assert_eq!(error("1.0E309"), "double constant overflow (1.0E309) (22003)");
    assert_eq!(error(".1E310"), "double constant overflow (.1E310) (22003)");
    assert_eq!(error(";"), "unexpected character \";\" (42601)");
    assert_eq!(error("'text'"), "unexpected character \"'\" (42601)");
    assert_eq!(error("100000000000000000000"), "bigint constant overflow (100000000000000000000) (22003)");
    assert_eq!(error("1 ! 2"), "unexpected character \"!\" (42601)");
    assert_eq!(error("9223372036854775809"), "bigint constant overflow (9223372036854775809) (22003)");
    assert_eq!(error("1e400"), "double constant overflow (1e400) (22003)");
    assert_eq!(error("1 ? 2"), "unexpected character \"?\" (42601)");
    assert_eq!(error(": a"), "unexpected character \":\" (42601)");
    assert_eq!(error("1 \\ 2"), "unexpected character \"\\\" (42601)");
}

#[test]
fn syntax_errors_name_the_token() {
    assert_eq!(error(""), "syntax error at end of expression (42601)");
    assert_eq!(error("1 +"), "syntax error at end of expression (42601)");
    assert_eq!(error("(1"), "syntax error at end of expression (42601)");
    assert_eq!(error("1 2 + 3"), "syntax error at or near \"2\" (42601)");
    assert_eq!(error("12abs(1)"), "syntax error at or near \"abs\" (42601)");
    assert_eq!(error("random(1,)"), "syntax error at or near \")\" (42601)");
    assert_eq!(error("abs 1"), "syntax error at or near \"1\" (42601)");
    // A bigint only behind a minus.
    assert_eq!(error("9223372036854775808"), "syntax error at or near \"9223372036854775808\" (42601)");
}

#[test]
fn half_an_expression_is_a_syntax_error() {
    for (text, token) in [
        ("CASE TRUE THEN 1 ELSE 0 END", "TRUE"),
        ("CASE WHEN 1 ELSE 0 END", "ELSE"),
        ("CASE WHEN 1 THEN 0 ELSE 1 WHEN 2 THEN 3 END", "WHEN"),
        ("CASE WHEN 1 THEN 2, 3 END", ","),
        ("1 = 2 = 3", "="),
        ("1 < 2 + 3 <= 4", "<="),
        ("1 IS 2", "2"),
        ("1 IS NOT 2", "2"),
        ("1 AND OR 2", "OR"),
        ("1 NOT 2", "NOT"),
        ("1 ## 2", "#"),
        ("1 ~ 2", "~"),
        ("1 - 9223372036854775808", "9223372036854775808"),
        ("is null", "is"),
        ("abs(,)", ")"),
    ] {
        assert_eq!(error(text), format!("syntax error at or near \"{token}\" (42601)"), "{text}");
    }
    for text in ["CASE WHEN 1 THEN 2", "CASE", "1 IS", "1 IS NOT", "NOT", "~", "1 = "] {
        assert_eq!(error(text), "syntax error at end of expression (42601)", "{text}");
    }
}

#[test]
fn depth_is_limited_however_it_comes_about() {
    let message = "expression nests deeper than 100 levels (54001)";
    assert_eq!(error(&format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000))), message);
    for prefix in ["-", "+", "~", "NOT ", "abs(", "least(1, ", "CASE WHEN ", "1 = NOT ", "1+(2*("] {
        assert_eq!(error(&format!("{}1", prefix.repeat(100_000))), message);
    }
    assert!(parse(&format!("{}1{}", "(".repeat(99), ")".repeat(99))).is_ok());
    assert!(parse(&format!("{}1", "1 OR 2 AND 3 = 4 | 5 + 6 * -".repeat(99))).is_ok());
}

#[test]
fn length_is_not_limited() {
    assert!(parse(&format!("1{}", "+1".repeat(100_000))).is_ok());
    assert!(parse(&format!("1{}", " AND 1 = 1 OR 2 > 3".repeat(10_000))).is_ok());
    assert!(parse(&format!("1{}", " IS NOT NULL".repeat(10_000))).is_ok());
    assert!(parse(&format!("CASE{} END", " WHEN 1 THEN 2".repeat(10_000))).is_ok());
}

proptest! {
    #[test]
    fn nothing_panics(text in "([-+*/%(),.:0-9eE \\\\\n<>=!|&#~]|random|abs|:a|null|é){0,30}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_row_of_words_panics(
        text in "((case|when|then|else|end|is|not|and|or|isnull|hash\\(|,|\\)|1|=) ){0,30}",
    ) {
        let _ = parse(&text);
    }
}
