use crate::help::*;

fn declared(name: &str, sql_type: &str, default: Option<&str>) -> Declared {
    Declared { name: name.to_owned(), sql_type: sql_type.to_owned(), default: default.map(str::to_owned) }
}

#[test]
fn the_list_has_every_function_once() {
    let help = Help::default();
    let list = help.list();
    for name in help.names() {
        assert_eq!(list.iter().filter(|line| line.starts_with(&format!("  {name} "))).count(), 1, "{name}");
    }
    assert!(list.iter().all(|line| line.chars().count() <= WIDTH), "{list:#?}");
    assert_eq!(list.iter().filter(|line| line.as_str() == "Runs").count(), 1);
}

#[test]
fn a_function_is_shown_with_arguments_and_example() {
    let arguments =
        [declared("run_id", "bigint", None), declared("timeout", "double precision", Some("NULL"))];
    let lines = Help::default().function("wait", &arguments, "text");
    let expected = [
        "bench.wait(run_id, timeout) returns text",
        "",
        "Waits for the end of a run and returns its status. Canceling the wait does not stop the run.",
        "",
        "Arguments:",
        "  run_id bigint",
        "      the run",
        "  timeout double precision DEFAULT NULL",
        "      seconds to wait at most; NULL: no limit",
        "",
        "Example:",
        "  SELECT bench.wait(:started_id, timeout => 1);",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn arguments_are_taken_from_the_page_that_has_them() {
    let help = Help::default();
    let of_run = help.meaning("run", "max_tries");
    assert!(of_run.as_ref().is_some_and(|text| text.contains("0: no limit")), "{of_run:?}");
    for function in ["start", "sweep", "start_sweep", "schedule"] {
        assert_eq!(help.meaning(function, "query_mode"), help.meaning("run", "query_mode"), "{function}");
    }
    // A sweep has its own of what it takes otherwise.
    assert_ne!(help.meaning("sweep", "clients"), help.meaning("run", "clients"));
    assert_eq!(help.meaning("start_sweep", "clients"), help.meaning("sweep", "clients"));
    assert_eq!(help.meaning("wait", "format"), None);
    assert_eq!(help.meaning("nothing", "nothing"), None);
    // Of all functions that take one.
    assert_eq!(help.meaning("delete_run", "run_id").as_deref(), Some("the run"));
    let options = help.meaning("load", "options").expect("a meaning");
    assert!(options.len() > 20 && !options.contains("below"), "{options}");
    // Links and backquotes are left to the page.
    let nodes = help.meaning("run", "nodes").expect("a meaning");
    assert!(nodes.contains("Citus cluster:") && !nodes.contains(['`', '[', ']', '(']), "{nodes}");
}

#[test]
fn names_are_found_as_they_are_written() {
    let help = Help::default();
    for name in ["run", "RUN", "bench.run", "bench.run(text, int)", " run "] {
        assert_eq!(help.find(name), Ok("run"), "{name}");
    }
    let error = help.find("bench.comapre").expect_err("mistyped");
    assert_eq!(error.sqlstate, "42883");
    assert_eq!(error.message, "function bench.comapre does not exist");
    assert_eq!(
        error.hint.as_deref(),
        Some("Perhaps you meant \"compare\". SELECT * FROM bench.help() lists all functions.")
    );
}

#[test]
fn marks_of_markdown_are_left_out() {
    assert_eq!(
        plain("as in [`bench.run`](runs.md), for [each](a.md#b) run"),
        "as in bench.run, for each run"
    );
    assert_eq!(plain("an [array]: `a[1]` (one)"), "an [array]: a[1] (one)");
    assert_eq!(plain("of all; see [below](#rate), or; see [above](a.md)"), "of all, or");
    assert_eq!(plain("One. [Arguments](a.md). Two, [three](b.md)."), "One.  Two, three.");
    assert_eq!(first_sentence("One. Two."), "One.");
    assert_eq!(first_sentence("One, of 0.5 s"), "One, of 0.5 s");
}
