//! Expressions, most of them with a value, and texts that resemble them.

use std::slice::from_ref;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

type Expression = BoxedStrategy<String>;

/// Variables as -D gives them: name, and a text that may look like a number.
pub const VARIABLES: [(&str, &str); 46] = [
    ("five", "5"),
    ("neg", "-17"),
    ("zero", "0"),
    ("max", "9223372036854775807"),
    ("min", "-9223372036854775808"),
    ("plus", "+3"),
    ("blank", " 12"),
    ("lead", "007"),
    ("newline", "\n5"),
    ("half", "0.5"),
    ("thousand", "1e3"),
    ("point", "1."),
    ("behind", ".5"),
    ("minus_zero", "-0.0"),
    ("inf", "inf"),
    ("minus_inf", "-Infinity"),
    ("nan", "nan"),
    ("hex", "0x1F"),
    ("hex_point", "-0x1.8p1"),
    ("yes", "yes"),
    ("y", "y"),
    ("no", "No"),
    ("on", "on"),
    ("of", "of"),
    ("TRUE", "TRUE"),
    ("fal", "fal"),
    ("null", "null"),
    ("NULL", "NULL"),
    ("o", "o"),
    ("n", "n"),
    ("over", "9223372036854775808"),
    ("under", "-9223372036854775809"),
    ("after", "12 "),
    ("only_blank", " "),
    ("hex_none", "0x"),
    ("signs", "+-3"),
    ("sign", "-"),
    ("dot", "."),
    ("exponent", "1e"),
    ("huge", "1e400"),
    ("tiny", "1e-400"),
    ("subnormal", "4.9e-324"),
    ("text", "text"),
    ("comma", "1,5"),
    ("not_ascii", "é"),
    ("naïve", "6"),
];

/// How many of the variables are integers, and behind these doubles, and behind these booleans or null.
const INTEGERS: usize = 9;
const DOUBLES: usize = 19;
const BOOLEANS: usize = 28;

/// Strategies for texts of each type, with what is of the wrong type, or out of its limits, now and then.
#[derive(Clone)]
pub struct Expressions {
    pub integer: Expression,
    pub double: Expression,
    pub boolean: Expression,
}

impl Expressions {
    /// Expressions that nest up to `depth` levels of operators and functions.
    pub fn new(depth: usize) -> Expressions {
        let leaves = Expressions {
            integer: prop_oneof![8 => integer_constant(), 4 => variable(0..INTEGERS), 2 => automatic()]
                .boxed(),
            double: prop_oneof![3 => double_constant(), 1 => variable(INTEGERS..DOUBLES)].boxed(),
            boolean: prop_oneof![
                3 => cased(&["true", "false"]),
                1 => cased(&["null"]),
                1 => variable(DOUBLES..BOOLEANS)
            ]
            .boxed(),
        };
        (0..depth).fold(leaves, |operands, _| operands.deeper())
    }

    /// Any type, more often of numbers.
    pub fn any(&self) -> Expression {
        prop_oneof![
            8 => self.integer.clone(),
            4 => self.double.clone(),
            3 => self.boolean.clone(),
            1 => variable(BOOLEANS..VARIABLES.len())
        ]
        .boxed()
    }

    /// An integer, seldom something else.
    fn mostly_integer(&self) -> Expression {
        prop_oneof![40 => self.integer.clone(), 4 => self.double.clone(), 1 => self.any()].boxed()
    }

    /// A double or an integer, seldom something else.
    fn number(&self) -> Expression {
        prop_oneof![20 => self.double.clone(), 15 => self.integer.clone(), 1 => self.any()].boxed()
    }

    fn mostly_boolean(&self) -> Expression {
        prop_oneof![40 => self.boolean.clone(), 1 => self.any()].boxed()
    }

    fn deeper(&self) -> Expressions {
        let (any, integer, number, boolean) =
            (self.any(), self.mostly_integer(), self.number(), self.mostly_boolean());
        let arithmetic = ["+", "-", "*", "/"];
        let integral = ["%", "&", "|", "#", "<<", ">>"];
        let comparisons = ["=", "<>", "!=", "<", "<=", ">", ">="];
        let tests = [
            "is null",
            "is not null",
            "isnull",
            "notnull",
            "is true",
            "is not true",
            "is false",
            "is not false",
        ];
        Expressions {
            integer: prop_oneof![
                2 => self.integer.clone(),
                4 => infix(&integer, &arithmetic, &integer),
                4 => infix(&integer, &integral, &integer),
                2 => prefix(&["-", "+", "~", "- ", "-  -"], &integer),
                1 => parentheses(&integer),
                1 => call(&["abs", "int", "debug"], from_ref(&number)),
                1 => call(&["mod"], &[integer.clone(), integer.clone()]),
                1 => prop_oneof![vec(integer.clone(), 1..5), vec(integer.clone(), 15..17)]
                    .prop_flat_map(|arguments| called(&["least", "greatest"], arguments)),
                2 => random_call(),
                1 => call(&["random"], &[integer.clone(), integer.clone()]),
                1 => call(
                    &["random_exponential", "random_gaussian", "random_zipfian"],
                    &[integer.clone(), integer.clone(), parameter()]
                ),
                1 => call(&["hash", "hash_murmur2", "hash_fnv1a"], from_ref(&integer)),
                1 => call(&["hash", "hash_murmur2", "hash_fnv1a"], &[integer.clone(), integer.clone()]),
                1 => call(&["permute"], &[integer.clone(), integer.clone()]),
                1 => call(&["permute"], &[integer.clone(), integer.clone(), integer.clone()]),
                1 => case(&any, &boolean, &integer),
            ]
            .boxed(),
            double: prop_oneof![
                2 => self.double.clone(),
                4 => infix(&number, &arithmetic, &number),
                1 => prefix(&["-", "+"], &self.double),
                1 => parentheses(&number),
                2 => call(&["double", "exp", "ln", "sqrt", "abs", "debug"], from_ref(&number)),
                1 => call(&["pow", "power"], &[number.clone(), number.clone()]),
                1 => called(&["pi"], Vec::new()),
                1 => vec(number.clone(), 1..4)
                    .prop_flat_map(|arguments| called(&["least", "greatest"], arguments)),
                1 => case(&any, &boolean, &number),
            ]
            .boxed(),
            boolean: prop_oneof![
                1 => self.boolean.clone(),
                4 => infix(&number, &comparisons, &number),
                1 => infix(&boolean, &comparisons[..3], &boolean),
                3 => infix(&boolean, &["and", "or", "AND", "oR"], &boolean),
                2 => prefix(&["not ", "NOT "], &boolean),
                1 => parentheses(&boolean),
                2 => (any.clone(), cased(&tests)).prop_map(|(operand, test)| format!("{operand} {test}")),
                1 => call(&["debug"], from_ref(&boolean)),
                1 => case(&any, &boolean, &boolean),
            ]
            .boxed(),
        }
    }
}

fn variable(range: std::ops::Range<usize>) -> Expression {
    range.prop_map(|index| format!(":{}", VARIABLES[index].0)).boxed()
}

fn automatic() -> Expression {
    prop_oneof![
        30 => select(&[":client_id", ":scale", ":random_seed", ":default_seed"][..]),
        1 => Just(":nowhere"),
    ]
    .prop_map(str::to_owned)
    .boxed()
}

fn integer_constant() -> Expression {
    const SPECIAL: [&str; 22] = [
        "9223372036854775807",
        "-9223372036854775808",
        "- 9223372036854775808",
        "9223372036854775806",
        "-9223372036854775807",
        "4611686018427387904",
        "4294967296",
        "2147483648",
        "9007199254740993",
        "3037000500",
        "-3037000500",
        "007",
        "00",
        "62",
        "63",
        "64",
        "65",
        "1000000",
        "1000",
        "-1",
        "9223372036854775808",
        "99999999999999999999",
    ];
    prop_oneof![
        20 => (-3..12_i64).prop_map(|number| number.to_string()),
        4 => (-2000..2000_i64).prop_map(|number| number.to_string()),
        4 => any::<i64>().prop_map(|number| number.to_string()),
        4 => select(&SPECIAL[..20]).prop_map(str::to_owned),
        // Beyond a bigint: refused, or behind a minus the least one.
        1 => select(&SPECIAL[20..]).prop_map(str::to_owned),
    ]
    .boxed()
}

fn double_constant() -> Expression {
    const SPECIAL: [&str; 24] = [
        "0.0",
        "-0.0",
        "2.5",
        "3.5",
        "-0.5",
        ".5",
        "5.",
        "1e10",
        "1E+3",
        "1e-5",
        "0.0001",
        "0.00001",
        "123456789012345.6",
        "1234567890123456.7",
        "999999999999999.9",
        "1e15",
        "9007199254740993.0",
        "9.223372036854775e18",
        "9.3e18",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        // Beyond a double.
        "1.8e308",
        "1e-310",
        "4.9e-324",
    ];
    prop_oneof![
        6 => (-400..400_i32).prop_map(|number| format!("{:?}", f64::from(number) / 8.0)),
        6 => select(&SPECIAL[..21]).prop_map(str::to_owned),
        4 => (any::<i32>(), 0..12).prop_map(|(digits, exponent)| format!("{digits}e-{exponent}")),
        2 => any::<f64>().prop_filter_map("a finite number", |n| n.is_finite().then(|| format!("{n:e}"))),
        1 => select(&SPECIAL[21..]).prop_map(str::to_owned),
    ]
    .boxed()
}

/// One of the words, in lower, upper or mixed case.
fn cased(words: &[&'static str]) -> Expression {
    (select(words.to_vec()), 0..4_u8)
        .prop_map(|(word, how)| match how {
            0 => word.to_uppercase(),
            1 => word[..1].to_uppercase() + &word[1..],
            _ => word.to_owned(),
        })
        .boxed()
}

/// What separates tokens, mostly a blank.
fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![15 => Just(" "), 2 => select(vec!["\t", " \\\n ", "  \\\r\n", "\r\u{b}\u{c}"])]
}

/// No blanks can be left out: `1-9`; not those around words.
fn infix(left: &Expression, operators: &[&'static str], right: &Expression) -> Expression {
    (left.clone(), select(operators.to_vec()), right.clone(), blank(), any::<bool>())
        .prop_map(|(left, operator, right, blank, tight)| {
            let is_word = operator.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
            let blank = if tight && !is_word { "" } else { blank };
            format!("{left}{blank}{operator}{blank}{right}")
        })
        .boxed()
}

fn prefix(operators: &[&'static str], operand: &Expression) -> Expression {
    (select(operators.to_vec()), operand.clone())
        .prop_map(|(operator, operand)| format!("{operator}{operand}"))
        .boxed()
}

fn parentheses(inner: &Expression) -> Expression {
    inner.clone().prop_map(|inner| format!("({inner})")).boxed()
}

/// A call with as many arguments as given, seldom with one more or less.
fn call(names: &[&'static str], arguments: &[Expression]) -> Expression {
    let names = names.to_vec();
    let mut more = arguments.to_vec();
    more.extend(arguments.first().cloned());
    let less = arguments[1..].to_vec();
    prop_oneof![60 => Just(arguments.to_vec()), 1 => Just(more), 1 => Just(less)]
        .prop_flat_map(|arguments| arguments)
        .prop_flat_map(move |arguments| called(&names, arguments))
        .boxed()
}

/// A call with these arguments.
fn called(names: &[&'static str], arguments: Vec<String>) -> Expression {
    (cased(names), select(vec![", ", ",", " , "]), blank())
        .prop_map(move |(name, comma, blank)| {
            let blank = if blank == " " { "" } else { blank };
            format!("{name}{blank}({})", arguments.join(comma))
        })
        .boxed()
}

/// The parameter of a random distribution, around the limits of all of them. Infinity would be undefined.
fn parameter() -> Expression {
    const SPECIAL: [&str; 21] = [
        "0", "0.0", "-1", "1e-3", "1e-6", "1.0", "1.001", "1.0009", "1.001001", "1000", "1000.1", "2.0",
        "1.999", "2", "50", "700", "800", "1e18", "null", "true", ":text",
    ];
    prop_oneof![
        6 => prop_oneof![1..80_i32, 1..400_i32].prop_map(|number| (f64::from(number) / 16.0).to_string()),
        2 => select(&SPECIAL[..]).prop_map(str::to_owned),
    ]
    .boxed()
}

/// A random function with arguments around its limits.
pub fn random_call() -> Expression {
    let functions = ["random", "random_exponential", "random_gaussian", "random_zipfian"];
    let least = prop_oneof![6 => -1000..1000_i64, 1 => any::<i64>()];
    let length = prop_oneof![4 => 0..20_i64, 4 => 0..1_000_000_i64, 1 => any::<i64>()];
    (select(functions.to_vec()), least, length, parameter())
        .prop_map(|(function, least, length, parameter)| {
            let most = least.wrapping_add(length);
            let parameter = if function == "random" { String::new() } else { format!(", {parameter}") };
            format!("{function}({least}, {most}{parameter})")
        })
        .boxed()
}

/// CASE with conditions of any type.
fn case(any: &Expression, boolean: &Expression, result: &Expression) -> Expression {
    let condition = prop_oneof![6 => boolean.clone(), 1 => any.clone()];
    let arms = vec((condition, result.clone()), 1..3);
    (arms, proptest::option::of(result.clone()), blank())
        .prop_map(|(arms, otherwise, blank)| {
            let mut text = "case".to_owned();
            for (condition, result) in arms {
                text += &format!("{blank}when {condition} then {result}");
            }
            if let Some(otherwise) = otherwise {
                text += &format!("{blank}else {otherwise}");
            }
            text + " end"
        })
        .boxed()
}

/// Words and symbols in any order, which seldom make sense.
pub fn tokens() -> Expression {
    const TOKENS: [&str; 64] = [
        "1", "2.5", ":five", "+", "-", "*", "/", "%", "|", "#", "&", "~", "<<", ">>", "=", "<>", "!=", "<",
        "<=", ">", ">=", "(", ")", ",", "or", "and", "not", "is", "isnull", "notnull", "case", "when",
        "then", "else", "end", "null", "true", "false", "abs(", "least(", "random(", "pi()", "nope(", "x",
        "!", "==", ":", "::five", ":1", "$1", "'a'", "\"", ";", "1e", "1e+", "1.2.3", "0x10", "1_000", "..5",
        "é", "@", "--", "/*", ".",
    ];
    vec((select(TOKENS.to_vec()), select(vec![" ", " ", ""])), 1..9)
        .prop_map(|tokens| tokens.into_iter().map(|(token, blank)| format!("{token}{blank}")).collect())
        .boxed()
}

/// Expressions from which a piece is missing, or that have one too many.
pub fn damaged(expressions: &Expressions) -> Expression {
    const EXTRA: [&str; 20] = [
        "", "(", ")", ",", " 1 ", " end ", " is ", "-", "+", ":", "\\", "\\\n", "\n", "\"", "e", ".",
        " not ", "=", "é", " null",
    ];
    (expressions.any(), any::<prop::sample::Index>(), 0..4_usize, select(EXTRA.to_vec()))
        .prop_map(|(expression, at, length, extra)| {
            let characters: Vec<char> = expression.chars().collect();
            let at = at.index(characters.len() + 1);
            let behind = (at + length).min(characters.len());
            let before: String = characters[..at].iter().collect();
            before + extra + &characters[behind..].iter().collect::<String>()
        })
        .boxed()
}
