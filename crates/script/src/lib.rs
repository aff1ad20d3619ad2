//! pgbench's script language: SQL statements with `:variables`, and meta commands behind a backslash.
//!
//! [`parse`] turns a script into [`Command`]s once; running them needs no text any more. Statements reach the
//! server with `$1`, `$2` … in place of variables, or with their values as text. [`Action::perform`] does what
//! meta commands do and tells where to go on; their expressions are trees that [`Expression::evaluate`] walks.

// Tests call the functions of C that they compare with.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod blanks;
mod capture;
mod command;
mod conditions;
mod evaluate;
mod expression;
mod hash;
mod lexer;
mod meta;
mod permute;
mod pipeline;
mod position;
mod prefixes;
mod preview;
mod prng;
mod random;
mod script;
mod sleep;
mod sql;
pub mod tokens;
mod variables;

pub use capture::{CapturedRows, MAX_CAPTURED, MAX_COLUMNS, QueryResult};
pub use command::{Action, Command, Flow};
pub use expression::Expression;
pub use pipeline::{Pipeline, PipelineMode};
pub use position::with_caret;
pub use preview::{PreviewLine, preview};
pub use prng::{ClientSeeds, Prng, client_seeds};
pub use script::{Script, parse};
pub use sleep::Sleep;
pub use sql::{Parameterized, ResultCapture, Sql, hint_of_prepared};
pub use variables::{Symbols, Value, VariableId, Variables, format_double, is_variable_name};
