//! Shapes of transactions, analysed in sessions of the role that executed them.

use std::collections::HashMap;

use bench_base::error::UserError;
use bench_capture::log::{Replayable, shared, with_cast};
use bench_script as script;
use bench_script::{Action, Symbols, VariableId, Variables};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::capture::refusal::{Refusal, check_privileges};
use crate::capture::sessions::{Replayer, Sessions};
use crate::driver::parameters::analyse;
use crate::launch::role_session::{Watch, answer, ask_and_watch, count_answered, kind, read_only};
use crate::server::background_worker::WorkerKind;
use crate::server::guc;
use crate::server::transaction::rolled_back;

/// The kind of worker that looks at shapes.
const KIND: WorkerKind = kind(c"pgbench_ext_shapes_main", c"pgbench_ext capture");

#[derive(Serialize, Deserialize)]
struct RequestedShape {
    script: String,
    /// The names of its variables that rows have values for.
    columns: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ShapeRequest {
    shapes: Vec<RequestedShape>,
    writes: bool,
}

/// What the server says of a shape.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checked {
    /// With casts where a variable needs them.
    pub script: String,
    /// Whether each column is a text.
    pub is_text: Vec<bool>,
}

/// What the server says of shapes that a role has executed, in their order; the reasons why some cannot be replayed.
///
/// # Errors
/// Those of a question to another session.
pub fn checked<'a>(
    sessions: &Sessions,
    replayer: &Replayer,
    shapes: impl Iterator<Item = &'a Replayable>,
    writes: bool,
    watch: Watch,
) -> Result<Vec<Result<Checked, Refusal>>, UserError> {
    let asked = |shape: &Replayable| RequestedShape {
        script: shape.script.clone(),
        columns: shape.columns.iter().map(|column| column.name.clone()).collect(),
    };
    let question = ShapeRequest { shapes: shapes.map(asked).collect(), writes };
    ask_and_watch(KIND, &replayer.session, sessions.run_as(), &question, watch).map(|(checked, _)| checked)
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_shapes_main(segment: pg_sys::Datum) {
    answer(segment, |question: ShapeRequest| {
        read_only()?;
        let checked = question.shapes.iter().map(|shape| {
            pgrx::check_for_interrupts!();
            let checked = check(shape, question.writes);
            count_answered();
            checked
        });
        Ok((checked.collect::<Vec<_>>(), Vec::new()))
    });
}

/// Whether the server takes the statements of a shape, with variables as parameters. Statements that change data are refused
/// unless `writes`.
///
/// # Errors
/// The reason why it does not.
fn check(shape: &RequestedShape, writes: bool) -> Result<Checked, Refusal> {
    let mut symbols = Symbols::new();
    let parsed = script::parse("log", &shape.script, &mut symbols)?;
    let path = guc::initial_search_path()?;
    let columns: HashMap<&str, usize> =
        shape.columns.iter().enumerate().map(|(place, column)| (column.as_str(), place)).collect();
    let mut is_text = vec![false; shape.columns.len()];
    let mut script = shape.script.clone();
    for command in &parsed.commands {
        let Action::Sql(sql) = &command.action else { continue };
        let parameterized = sql.parameterized(&Variables::new(symbols.len()))?;
        let analyse = |text: &str| rolled_back(|| guc::with_search_path(&path, || analyse(text)));
        let mut variables = parameterized.parameters.clone();
        let analysed =
            match (analyse(&parameterized.text), shared(&parameterized.text, &parameterized.parameters)) {
                // With one type for all places of a variable, as the log's statement had it.
                (Err(_), Some((text, distinct))) => {
                    let analysed = analyse(&text)?;
                    let mut places: HashMap<VariableId, usize> = HashMap::new();
                    parameterized.parameters.iter().for_each(|id| *places.entry(*id).or_default() += 1);
                    for (id, parameter) in distinct.iter().zip(&analysed.parameters) {
                        pgrx::check_for_interrupts!();
                        if places.get(id).is_some_and(|&places| places > 1) {
                            script = with_cast(&script, symbols.name(*id), &parameter.sql_type);
                        }
                    }
                    variables = distinct;
                    analysed
                }
                (result, _) => result?,
            };
        if analysed.calls_us {
            return Err("calls functions of this extension".into());
        }
        if analysed.administers {
            return Err("administers the server".into());
        }
        // The server sees more than the words of a statement tell, such as what functions may do.
        if analysed.writes && !writes {
            return Err("changes data (option writes)".into());
        }
        check_privileges(&analysed.privileges)?;
        for (&id, parameter) in variables.iter().zip(&analysed.parameters) {
            if let Some(&column) = columns.get(symbols.name(id)) {
                let texts = [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID];
                is_text[column] |= texts.iter().any(|text| text.to_u32() == parameter.type_oid);
            }
        }
    }
    Ok(Checked { script, is_text })
}
