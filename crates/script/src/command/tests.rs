use crate::command::{Action, *};
use crate::script::{Script, parse};
use crate::variables::Symbols;

fn script(source: &str) -> Script {
    parse("s", source, &mut Symbols::new()).unwrap()
}

fn said(result: Result<(), UserError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
}

#[test]
fn a_pipeline_is_opened_once_and_closed_once() {
    let mut mode = PipelineMode::default();
    let mut said = |command| said(mode.perform(command, false));
    assert_eq!(said(Pipeline::Sync), "not in pipeline mode (55000)");
    assert_eq!(said(Pipeline::End), "not in pipeline mode (55000)");
    assert_eq!(said(Pipeline::Start), "fine");
    assert_eq!(said(Pipeline::Start), "already in pipeline mode (55000)");
    assert_eq!(said(Pipeline::Sync), "fine");
    assert_eq!(said(Pipeline::Sync), "fine");
    assert_eq!(said(Pipeline::End), "fine");
    assert_eq!(said(Pipeline::End), "not in pipeline mode (55000)");
    assert_eq!(mode, PipelineMode::default());
}

#[test]
fn the_simple_protocol_has_no_pipelines() {
    let mut mode = PipelineMode::default();
    let expected = "cannot use pipeline mode with the simple query protocol (0A000)";
    assert_eq!(said(mode.perform(Pipeline::Start, true)), expected);
    assert!(!mode.is_open());
    // As in pgbench, what is wrong without regard to the protocol is said as ever.
    assert_eq!(said(mode.perform(Pipeline::End, true)), "not in pipeline mode (55000)");
}

#[test]
fn no_result_is_kept_in_a_pipeline_and_no_script_ends_in_one() {
    let script = script("SELECT 1 \\gset\nSELECT 2 \\aset\nSELECT 3;");
    let check = |mode: PipelineMode, index: usize| match &script.commands[index].action {
        Action::Sql(sql) => said(mode.check_statement(sql)),
        other => panic!("{other:?}"),
    };
    let mut mode = PipelineMode::default();
    assert_eq!([check(mode, 0), check(mode, 1), check(mode, 2)], ["fine"; 3]);
    assert_eq!(said(mode.check_end()), "fine");
    mode.perform(Pipeline::Start, false).unwrap();
    assert_eq!(check(mode, 0), "\\gset is not allowed in pipeline mode (55000)");
    assert_eq!(check(mode, 1), "\\aset is not allowed in pipeline mode (55000)");
    assert_eq!(check(mode, 2), "fine");
    assert_eq!(said(mode.check_end()), "end of script reached with pipeline open (55000)");
}
