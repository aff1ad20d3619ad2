//! Showing what a script does, without a server.

use bench_base::error::UserError;

use super::command::{Action, Flow};
use super::pipeline::PipelineMode;
use super::prng::Prng;
use super::script::Script;
use super::variables::Variables;

/// Something that a script sends or shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewLine {
    /// The transaction, counted from 1.
    pub transaction: u32,
    /// The command, counted from 1.
    pub command: u32,
    /// The line the command begins at, counted from 1.
    pub line: u32,
    /// A statement with its values, without the final semicolon, or what a `debug()` shows, as pgbench prints
    /// it.
    pub output: String,
}

/// Runs `transactions` transactions of one client, whose variables and random numbers begin as `variables` and
/// `random`, and calls `emit` for each statement and each `debug()`. Nothing sleeps, and what `\gset` and
/// `\aset` would set stays unset. `script_index` is the script's place among those of a run, counted from 0.
/// `begin` is called before each transaction, and may set variables; where it returns false, there are no more.
/// `pulse` is called before each command: it may be long before one shows anything.
///
/// # Errors
/// Errors of meta commands, with details that name script and line. What came before has been emitted.
#[allow(clippy::too_many_arguments)]
pub fn preview(
    script: &Script,
    script_index: u32,
    mut variables: Variables,
    mut random: Prng,
    transactions: u32,
    begin: &mut dyn FnMut(&mut Variables, &mut Prng) -> bool,
    emit: &mut dyn FnMut(PreviewLine),
    pulse: &mut dyn FnMut(),
) -> Result<(), UserError> {
    for transaction in 1..=transactions {
        if !begin(&mut variables, &mut random) {
            break;
        }
        let (mut index, mut otherwise) = (0, false);
        let mut pipeline = PipelineMode::default();
        while let Some(command) = script.commands.get(index) {
            pulse();
            let number = u32::try_from(index).map_or(u32::MAX, |index| index.saturating_add(1));
            let mut show =
                |output| emit(PreviewLine { transaction, command: number, line: command.line, output });
            match &command.action {
                Action::Sql(sql) => {
                    pipeline.check_statement(sql).map_err(|error| script.at(index, error))?;
                    let mut output = String::new();
                    sql.substitute(&variables, &mut output).map_err(|error| script.at(index, error))?;
                    show(output);
                }
                Action::Pipeline(command) => {
                    pipeline.perform(*command, false).map_err(|error| script.at(index, error))?;
                }
                _ => {}
            }
            let mut debug =
                |text: &str| show(format!("debug(script={script_index},command={number}): {text}"));
            let flow = command
                .action
                .perform(otherwise, &mut variables, &mut random, &mut debug)
                .map_err(|error| script.at(index, error))?;
            (index, otherwise) = match flow {
                Flow::Next | Flow::Sleep(_) => (index + 1, false),
                Flow::Jump(target) => (target, false),
                Flow::Otherwise(target) => (target, true),
            };
        }
        pipeline.check_end().map_err(|error| script.at(script.commands.len() - 1, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
