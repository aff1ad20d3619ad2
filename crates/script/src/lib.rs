//! pgbench's script language: SQL statements with `:variables`, and meta commands behind a backslash.
//!
//! [`parse`] turns a script into [`Command`]s once. Statements are sent with `$1`, `$2` … in place of variables, or
//! with the values in their text. [`Action::perform`] executes meta commands and returns where to go on; their
//! expressions are trees that [`Expression::evaluate`] walks.

// Tests call C functions to compare with.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod capture;
mod command;
mod evaluate;
mod expression;
mod lexer;
mod meta;
mod random;
mod script;
mod sql;
mod text;
pub mod tokens;
mod variables;

pub use crate::capture::{CapturedRows, MAX_CAPTURED, MAX_COLUMNS, QueryResult};
pub use crate::command::{Action, Command, Flow, Pipeline, PipelineMode, Sleep};
pub use crate::expression::Expression;
pub use crate::random::{ClientSeeds, Prng, client_seeds};
pub use crate::script::{PreviewLine, Script, parse, preview};
pub use crate::sql::{Parameterized, ResultCapture, Sql, hint_of_prepared};
pub use crate::text::with_caret;
pub use crate::variables::{Symbols, Value, VariableId, Variables, format_double, is_variable_name};
