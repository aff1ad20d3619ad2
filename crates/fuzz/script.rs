//! Any text as a script: it may be refused, and nothing else. What is accepted is checked as a run does it, and runs
//! one transaction without a server.

#![no_main]

use bench_script::{Action, Symbols, Value, Variables, client_seeds, parse, preview};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut symbols = Symbols::new();
    let Ok(script) = parse("fuzz", text, &mut symbols) else { return };
    let seeds = client_seeds(0, 1, 0, false);
    let mut variables = Variables::new(symbols.len());
    for (name, value) in [
        ("client_id", Value::Integer(0)),
        ("default_seed", Value::Integer(seeds.default_seed)),
        ("scale", Value::Integer(1)),
        ("x", Value::Text("1e3".into())),
    ] {
        variables.set(symbols.intern(name), value);
    }
    let defined = |id| variables.get(id).is_some();
    let _ = script.undefined_variables(&symbols, &defined);
    let _ = script.check_parameterized(&symbols, &|_| false, &defined);
    for (index, command) in script.commands.iter().enumerate() {
        if let Action::Sql(sql) = &command.action
            && let Err(error) = sql.parameterized(&variables)
        {
            script.at(index, error);
        }
    }
    let _ = preview(&script, 0, variables, seeds.functions, 1, &mut |_, _| true, &mut |_| {}, &mut || {});
});
