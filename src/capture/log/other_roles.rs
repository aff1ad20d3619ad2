//! Shapes of transactions, analysed in sessions of the role that executed them.

use std::collections::HashMap;

use bench_base::error::UserError;
use bench_capture::log::Replayable;
use bench_capture::options::LogOptions;
use bench_capture::statements::{shared, with_casts};
use bench_model::feeder::MAX_COLUMNS;
use bench_script as script;
use bench_script::{Action, Symbols, VariableId, Variables};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::capture::sessions::{Refusal, Replayer, Sessions, check_privileges, untriable};
use crate::capture::values::plan_for_all_values;
use crate::driver::parameters::{TextMask, analyse_with_texts, text_mask};
use crate::launch::role_session::{Watch, answer, ask_and_watch, count_answered, kind, read_only};
use crate::server::background_worker::WorkerKind;
use crate::server::guc;
use crate::server::transaction::{renew_snapshot, rolled_back};

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
    mask: bool,
}

/// What the server says of a shape.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checked {
    /// With casts where a variable needs them.
    pub script: String,
    pub columns: Vec<CheckedColumn>,
}

/// What the server says of a variable that rows have values for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckedColumn {
    pub mask: TextMask,
    /// As a parameter's of a statement.
    pub interval_fields: Option<i32>,
}

/// What the server says of shapes that a role has executed, in their order; the reasons why some cannot be replayed.
///
/// # Errors
/// Those of a question to another session.
pub fn checked<'a>(
    sessions: &Sessions,
    replayer: &Replayer,
    shapes: impl Iterator<Item = &'a Replayable>,
    options: &LogOptions,
    watch: Watch,
) -> Result<Vec<Result<Checked, Refusal>>, UserError> {
    let asked = |shape: &Replayable| RequestedShape {
        script: shape.script.clone(),
        columns: shape.columns.iter().map(|column| column.name.clone()).collect(),
    };
    let LogOptions { writes, mask, .. } = *options;
    let question = ShapeRequest { shapes: shapes.map(asked).collect(), writes, mask };
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
            renew_snapshot();
            let checked = check(shape, &question);
            count_answered();
            checked
        });
        Ok((checked.collect::<Vec<_>>(), Vec::new()))
    });
}

/// Whether the server takes the statements of a shape, with variables as parameters. Statements that change data are refused
/// unless the option says otherwise.
///
/// # Errors
/// The reason why it does not.
fn check(shape: &RequestedShape, asked: &ShapeRequest) -> Result<Checked, Refusal> {
    if shape.columns.len() > MAX_COLUMNS {
        return Err(format!("more than {MAX_COLUMNS} variables").into());
    }
    let mut symbols = Symbols::new();
    let parsed = script::parse("log", &shape.script, &mut symbols)?;
    let path = guc::initial_search_path()?;
    let places: HashMap<&str, usize> =
        shape.columns.iter().enumerate().map(|(place, column)| (column.as_str(), place)).collect();
    let mut columns =
        vec![CheckedColumn { mask: TextMask::Keep, interval_fields: None }; shape.columns.len()];
    let mut casts: HashMap<VariableId, String> = HashMap::new();
    for command in &parsed.commands {
        let Action::Sql(sql) = &command.action else { continue };
        let parameterized = sql.parameterized(&Variables::new(symbols.len()))?;
        let analyse = |text: &str| rolled_back(|| guc::with_search_path(&path, || analyse_with_texts(text)));
        let by_place = analyse(&parameterized.text);
        let all_typed = by_place.as_ref().is_ok_and(|(_, texts)| texts.is_empty());
        let one_each = shared(&parameterized.text, &parameterized.parameters).filter(|_| !all_typed);
        let (text, variables, (analysed, texts)) = match one_each {
            // With one type for all places of a variable, as the log's statement had it.
            Some((text, distinct)) => {
                let (analysed, texts) = analyse(&text)?;
                let mut mentions: HashMap<VariableId, usize> = HashMap::new();
                parameterized.parameters.iter().for_each(|id| *mentions.entry(*id).or_default() += 1);
                for (id, parameter) in distinct.iter().zip(&analysed.parameters) {
                    pgrx::check_for_interrupts!();
                    if mentions.get(id).is_some_and(|&mentions| mentions > 1) {
                        casts.insert(*id, parameter.sql_type.clone());
                    }
                }
                (text, distinct, (analysed, texts))
            }
            None => (parameterized.text.clone(), parameterized.parameters.clone(), by_place?),
        };
        casts.extend(
            texts.iter().filter_map(|&place| Some((*variables.get(place)?, "pg_catalog.text".to_owned()))),
        );
        if analysed.calls_us {
            return Err("calls functions of this extension".into());
        }
        if analysed.administers {
            return Err("administers the server".into());
        }
        // The server sees more than the words of a statement tell, such as what functions may do.
        if analysed.writes && !asked.writes {
            return Err("changes data (option writes)".into());
        }
        check_privileges(&analysed.privileges)?;
        for (&id, parameter) in variables.iter().zip(&analysed.parameters) {
            if let Some(&place) = places.get(symbols.name(id)) {
                let column = &mut columns[place];
                column.interval_fields = column.interval_fields.or(parameter.interval_fields);
                if asked.mask {
                    let mask = text_mask(parameter.type_oid.into())
                        .ok_or_else(|| format!("values of type {} cannot be masked", parameter.sql_type))?;
                    if mask != TextMask::Keep {
                        column.mask = mask;
                    }
                }
            }
        }
        // A session that has executed a statement five times may plan it for all values.
        if !analysed.is_utility && untriable(&analysed.objects)?.is_none() {
            let types: Vec<u32> = analysed.parameters.iter().map(|parameter| parameter.type_oid).collect();
            rolled_back(|| guc::with_search_path(&path, || plan_for_all_values(&text, &types)))
                .map_err(|error| Refusal::from(error).after("it cannot be planned"))?;
        }
    }
    let casts: HashMap<&str, &str> =
        casts.iter().map(|(id, sql_type)| (symbols.name(*id), sql_type.as_str())).collect();
    Ok(Checked { script: with_casts(&shape.script, &casts), columns })
}
