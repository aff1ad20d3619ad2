//! Holds expressions and scripts against an installed pgbench: what is refused, with which message, what is
//! sent and what `debug()` shows must be the same for the same seed.
//!
//! PGBENCH_ORACLE names a pgbench; without it nothing is compared. No server is needed: pgbench talks to one
//! that notes what it is sent. ORACLE_CASES is about how many expressions are tried; what else there is goes
//! with it.

mod expressions;
mod pgbench;
mod scripts;
mod server;
mod wire;

use std::env;
use std::fmt::Debug;
use std::ops::RangeInclusive;

use bench_script as script;
use bench_script::Symbols;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};

use expressions::{Expressions, VARIABLES};
use pgbench::{Doings, Mode, Pgbench, PgbenchJob, RunError, is_deliberate, is_undefined, line_of};

/// As many expressions as can be compared in a moment.
const DEFAULT_CASES: u32 = 5000;

/// How many expressions share one run of pgbench, each with a client of its own; on average half as many.
const BATCH: RangeInclusive<usize> = 1..=100;

/// The share for [`check`] where each case is a batch.
const SHARE_OF_BATCHES: u32 = 20;

/// Tries `share` in 1000 of the cases; those that fail are made simple before they are shown. How many is said by
/// ORACLE_CASES, and each time they are others; without it they are the same each time, so that a change is to blame
/// for what it breaks, and nothing else.
fn check<S>(share: u32, strategy: S, test: impl Fn(&Pgbench, S::Value) -> Result<(), String>)
where
    S: Strategy,
    S::Value: Debug + Clone,
{
    let Some(pgbench) = Pgbench::from_environment() else { return };
    let asked_for = env::var("ORACLE_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    let cases = (u64::from(asked_for.unwrap_or(DEFAULT_CASES)) * u64::from(share) / 1000).max(1);
    // Failures are shown as scripts that can be run by hand; nothing is to be written into the source.
    let config = Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 3000,
        max_shrink_time: 20_000,
        max_global_rejects: u32::MAX,
        max_local_rejects: u32::MAX,
        ..Config::default()
    };
    let mut runner = match asked_for {
        Some(_) => TestRunner::new(config),
        None => {
            let random = TestRng::deterministic_rng(config.rng_algorithm);
            TestRunner::new_with_rng(config, random)
        }
    };
    match runner.run(&strategy, |value| test(pgbench, value).map_err(TestCaseError::fail)) {
        Ok(()) => println!("{cases} cases"),
        Err(TestError::Fail(reason, _)) => panic!("{}", reason.message()),
        Err(error) => panic!("{error}"),
    }
}

/// The variables that expressions may use.
fn given() -> Vec<(String, String)> {
    VARIABLES.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn one_client(script: String, seed: u64) -> PgbenchJob {
    PgbenchJob {
        script,
        clients: 1,
        transactions: 1,
        seed,
        variables: given(),
        mode: Mode::Simple,
        max_tries: 1,
    }
}

/// Compares a script's acceptance, and what comes of it.
fn compare(pgbench: &Pgbench, job: &PgbenchJob) -> Result<(), String> {
    let ours = job.run_here();
    if ours.as_ref().is_err_and(is_deliberate) {
        return Ok(());
    }
    if let Ok(ours) = &ours
        && ours.errors.iter().flatten().any(|error| is_undefined(&job.script, error))
    {
        return Ok(());
    }
    let different = |theirs: &dyn Debug, ours: &dyn Debug| {
        Err(format!("{}\npgbench: {theirs:#?}\nours: {ours:#?}", job.shown()))
    };
    match (pgbench.run(job), &ours) {
        (Err(theirs), Err(ours)) => {
            // Theirs is the line that the command begins at, but for \gset in vain.
            let line = theirs.split("script:").nth(1).and_then(|rest| rest.split(':').next()?.parse().ok());
            let is_same_line = line.is_none()
                || theirs.contains("\\gset must")
                || line == line_of(ours)
                || is_continued(&job.script);
            if !is_same_refusal(&theirs, &ours.message) || !is_same_line {
                return different(&theirs, ours);
            }
            Ok(())
        }
        (Ok(theirs), Ok(ours)) => match difference(&theirs, ours) {
            None => Ok(()),
            Some(parts) => Err(format!("{}\n{parts}", job.shown())),
        },
        (theirs, ours) => different(&theirs, ours),
    }
}

/// Whether a meta command of the script is longer than a line.
fn is_continued(script: &str) -> bool {
    script.contains("\\\n") || script.contains("\\\r\n")
}

/// What is not the same, if anything.
fn difference(theirs: &Doings, ours: &Doings) -> Option<String> {
    let parts = [
        ("errors", first_difference(&theirs.errors, &ours.errors)),
        ("debug lines", first_difference(&theirs.debug, &ours.debug)),
        ("statements", first_difference(&theirs.sent, &ours.sent)),
    ];
    let parts = parts.into_iter().filter_map(|(name, difference)| Some(format!("{name}: {}", difference?)));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The first elements that are not the same, with their place.
fn first_difference<T: Debug + PartialEq>(theirs: &[T], ours: &[T]) -> Option<String> {
    let at = (0..theirs.len().max(ours.len())).find(|&at| theirs.get(at) != ours.get(at))?;
    Some(format!("number {at}\npgbench: {:#?}\nours: {:#?}", theirs.get(at), ours.get(at)))
}

/// Whether both say the same about a script that they refuse. A syntax error is one, whatever else is said.
fn is_same_refusal(theirs: &str, ours: &str) -> bool {
    // While pgbench looks for the end of the line to show it, it finds these, and tells the last of them.
    const LATE: [&str; 3] = ["bigint constant overflow", "double constant overflow", "unexpected character"];
    const CORES: [&str; 12] = [
        "unexpected function name",
        "unexpected number of arguments",
        "at least one argument expected",
        "syntax error",
        "missing argument",
        "too many arguments",
        "unexpected argument",
        "invalid command",
        "unrecognized time unit",
        "invalid sleep time",
        "empty command list",
        "\\gset must follow an SQL command",
    ];
    if let Some(at) = theirs.find("condition error") {
        // With the command's number.
        return theirs[at..].trim_end() == ours;
    }
    let core = CORES.iter().find(|core| theirs.contains(*core));
    LATE.iter().any(|late| theirs.contains(late)) || core.is_some_and(|core| ours.contains(core))
}

/// A script in which each client has an expression of its own, so that one which fails stops no other.
fn dispatch(expressions: &[String]) -> String {
    let mut script = String::new();
    for (client, expression) in expressions.iter().enumerate() {
        let word = if client == 0 { "if" } else { "elif" };
        script += &format!("\\{word} :client_id = {client}\n\\set result debug({expression})\n");
    }
    script + "\\endif\n"
}

fn is_accepted(script: &str) -> bool {
    script::parse("script", script, &mut Symbols::new()).is_ok()
}

/// A job for these expressions, without those of which nothing can be said. What becomes of one that is random
/// depends on the number of clients.
fn together(mut expressions: Vec<String>, seed: u64) -> Option<PgbenchJob> {
    while !expressions.is_empty() {
        let clients = expressions.len() as u32;
        let job = PgbenchJob { clients, ..one_client(dispatch(&expressions), seed) };
        let errors = job.run_here().map(|doings| doings.errors).unwrap_or_default();
        let is_undefined = |error: &RunError| is_undefined(&job.script, error);
        if !errors.iter().flatten().any(is_undefined) {
            return Some(job);
        }
        let mut errors = errors.iter();
        expressions.retain(|_| !errors.next().and_then(Option::as_ref).is_some_and(is_undefined));
    }
    None
}

/// Compares expressions: those that ours accepts together, each other one alone.
fn compare_expressions(pgbench: &Pgbench, expressions: &[String], seed: u64) -> Result<(), String> {
    let alone = |expression: &String| format!("\\set result debug({expression})\n");
    let (accepted, refused): (Vec<_>, Vec<_>) =
        expressions.iter().cloned().partition(|expression| is_accepted(&alone(expression)));
    for expression in &refused {
        compare(pgbench, &one_client(alone(expression), seed))?;
    }
    let Some(job) = together(accepted, seed) else { return Ok(()) };
    compare(pgbench, &job)
}

#[test]
fn expressions_have_pgbenchs_values() {
    let batches = vec(Expressions::new(3).any(), BATCH);
    check(SHARE_OF_BATCHES, (batches, any::<u64>()), |pgbench, (expressions, seed)| {
        compare_expressions(pgbench, &expressions, seed)
    });
}

#[test]
fn short_expressions_have_pgbenchs_values() {
    let batches = vec(Expressions::new(1).any(), BATCH);
    check(SHARE_OF_BATCHES, (batches, any::<u64>()), |pgbench, (expressions, seed)| {
        compare_expressions(pgbench, &expressions, seed)
    });
}

#[test]
fn sequences_of_random_numbers_are_pgbenchs() {
    let batches = vec(expressions::random_call(), 1..=40);
    check(6, (batches, any::<u64>()), |pgbench, (expressions, seed)| {
        let Some(job) = together(expressions, seed) else { return Ok(()) };
        compare(pgbench, &PgbenchJob { transactions: 100, ..job })
    });
}

#[test]
fn texts_that_are_hardly_expressions_are_refused_alike() {
    let expressions = prop_oneof![expressions::tokens(), expressions::damaged(&Expressions::new(2))];
    check(200, (expressions, any::<u64>()), |pgbench, (expression, seed)| {
        compare(pgbench, &one_client(format!("\\set result debug({expression})\n"), seed))?;
        compare(pgbench, &one_client(format!("\\set result {expression}\nSELECT :result;"), seed))
    });
}

#[test]
fn texts_of_variables_mean_the_same() {
    let text = prop_oneof![
        2 => "[ \t]?[+-]?[0-9]{0,20}(\\.[0-9]{0,17})?([eE][+-]?[0-9]{1,3})?[ x]?",
        1 => "[ ]?[+-]?0[xX][0-9a-fA-F]{0,18}(\\.[0-9a-f]{0,8})?([pP][+-]?[0-9]{0,4})?",
        1 => "(?i)[ +-]?(t|tr|true|f|fa|false|y|ye|yes|n|no|on|of|off|null|nul|inf|infi|infinity|nan)[ 1]?",
        1 => "[ 0-9a-fnxyINFtrue.+-]{0,6}",
        1 => "\\PC{0,4}",
    ];
    check(5, (vec(text, BATCH), any::<u64>()), |pgbench, (texts, seed)| {
        let expressions: Vec<String> = (0..texts.len()).map(|at| format!(":v{at}")).collect();
        let clients = expressions.len() as u32;
        let variables = texts.into_iter().enumerate();
        // pgbench takes no empty ones.
        let variables = variables.filter(|(_, text)| !text.is_empty());
        let variables = variables.map(|(at, text)| (format!("v{at}"), text)).collect();
        compare(pgbench, &PgbenchJob { clients, variables, ..one_client(dispatch(&expressions), seed) })
    });
}

#[test]
fn scripts_do_the_same() {
    let strategy = (scripts::programs(), 1..4_u32, 1..5_u32, any::<u64>());
    check(80, strategy, |pgbench, (script, clients, transactions, seed)| {
        compare(pgbench, &PgbenchJob { clients, transactions, ..one_client(script, seed) })
    });
}

/// Variables that statements may use.
fn given_to_statements(default_seed: bool) -> Vec<(String, String)> {
    let mut variables = vec![("v", "one"), ("w_2", "a:v b"), ("é", "'ü'")];
    if default_seed {
        variables.push(("default_seed", "7"));
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn statements_are_split_and_sent_alike() {
    let script = prop_oneof![scripts::statements(), scripts::tame_statements()];
    check(200, (script, any::<bool>()), |pgbench, (script, default_seed)| {
        let variables = given_to_statements(default_seed);
        compare(pgbench, &PgbenchJob { variables, ..one_client(script, 1) })
    });
}

#[test]
fn statements_with_parameters_are_sent_alike() {
    let strategy = (scripts::parameterized(), prop_oneof![Just(Mode::Extended), Just(Mode::Prepared)]);
    check(40, (strategy, 1..4_u32, any::<u64>()), |pgbench, ((script, mode), clients, seed)| {
        let variables = given_to_statements(false);
        compare(
            pgbench,
            &PgbenchJob { clients, transactions: 2, mode, variables, ..one_client(script, seed) },
        )
    });
}

#[test]
fn meta_commands_are_refused_alike() {
    check(200, scripts::meta_lines(), |pgbench, script| compare(pgbench, &one_client(script, 1)));
}

/// What is easily got wrong, and what once was.
#[test]
fn known_scripts_do_the_same() {
    const SCRIPTS: [&str; 25] = [
        "\\set a debug(-9223372036854775808 / -1)",
        "\\set a debug(-9223372036854775808 % -1)",
        "\\set a debug(- -9223372036854775808)",
        "\\set a debug(2 << 65) debug(1)",
        "\\set a debug(-1 >> 70)\n\\set a debug(1 << -1)",
        "\\set a debug(null or 1)\n\\set a debug(false and 1)\n\\set a debug(1 and false)",
        "\\set a debug(not 1 < 2 is true)",
        "\\set a debug(1 < 2 < 3)",
        "\\set a debug(1 = 1.0) \\set b 1",
        "\\set a debug(random(1, 9) > random(1, 9))\n\\set a debug(random(1, 1000))",
        "\\set a debug(case when debug(1) = 1 then debug(2) else debug(3) end)",
        "\\set a debug(least(1, 2.0))\n\\set a debug(greatest(null, 1))\n\\set a debug(least())",
        "\\set a debug(int(2.5))\n\\set a debug(int(3.5))\n\\set a debug(int(-0.5))\n\\set a debug(int(9.3e18))",
        "\\set a debug(-0.0)\n\\set a debug(0 / -5.0)\n\\set a debug(1 / 0.0)\n\\set a debug(sqrt(-1))",
        "\\set a debug(hash(5) = hash(5, :default_seed))\n\\set a debug(permute(3, 0))",
        "\\set a debug(pi())\n\\set a debug(123456789012345678.0)\n\\set a debug(0.00001)",
        "SELECT :::five, ::five, :five:half, :1, 12:34, a[1:five], a[:five];",
        "SELECT E'a' -- c\n '\\';', 1; SELECT 'a\\'; SELECT $a$ ; $$ $a$;",
        "SELECT 1 \\; SELECT ':five' \\; SELECT \\:five; /* a */ SELECT 2; -- b\n;",
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC; SELECT CASE 1 END; END; SELECT 3;",
        "SELECT (1; 2); SELECT 3 \\set a 5\n + 4;",
        "1e5$$ ; SELECT 2 $$ ; .5e2$a$ ; 1e5_$$ ; 1e+5$$ ; $$;",
        "\\if false\n\\elif null\nSELECT 1;\n\\elif 0.5\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n",
        "\\if 1\n\\else\n\\else\n\\endif\n",
        "\\set a 1 + \\\n 2\nSELECT :a;\n\\sleep 0 s\n",
    ];
    let Some(pgbench) = Pgbench::from_environment() else { return };
    for script in SCRIPTS {
        if let Err(difference) = compare(pgbench, &one_client(format!("{script}\n"), 42)) {
            panic!("{difference}");
        }
    }
}
