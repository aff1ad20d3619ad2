//! Scripts: parsing, checks before a run, and previews without a server.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_base::interrupts;

use crate::command::{Action, Command, Flow, Pipeline, PipelineMode};
use crate::lexer::CommandText;
use crate::meta::Meta;
use crate::random::Prng;
use crate::sql::{ResultCapture, Sql};
use crate::text::{LineCounter, ScriptText, excerpt, trim_end};
use crate::variables::{Symbols, VariableId, Variables};
use crate::{command, lexer, meta};

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The name that messages show.
    pub name: String,
    /// The whole text, as written.
    pub source: String,
    /// At least one, in the order of the text.
    pub commands: Vec<Command>,
}

impl Script {
    /// Finds the first variable that is neither `defined` nor set anywhere in the script, with the line of the command
    /// that reads it. A `\gset` or `\aset` counts as setting all names with its prefix. Mentions in comments and string
    /// constants do not count. `symbols` are those that the script was parsed with.
    pub fn undefined_variables(
        &self,
        symbols: &Symbols,
        defined: &dyn Fn(VariableId) -> bool,
    ) -> Option<(u32, VariableId)> {
        let prefixes: Prefixes = self.capture_prefixes().collect();
        let set_here = self.assigned(symbols);
        let is_defined = |id: VariableId| {
            set_here.get(id.index()) == Some(&true) || defined(id) || prefixes.begin(symbols.name(id))
        };
        self.commands.iter().find_map(|command| {
            let mut first_undefined = None;
            command.for_each_variable_read(&mut |id| {
                if first_undefined.is_none() && !is_defined(id) {
                    first_undefined = Some((command.line, id));
                }
            });
            first_undefined
        })
    }

    /// Checks that all statements work with parameters, as needed by every `query_mode` but "simple": glued variables must
    /// be constant, string constants cannot contain parameters, and a statement has at most 65,535. `assigned` says
    /// which variables other scripts of the run assign, besides those that this one does by `\set`, or by `\gset` or
    /// `\aset` with a prefix. `defined` says which have a value before the run. `symbols` are those of [`parse`].
    ///
    /// # Errors
    /// 42601 for a variable in a wrong place, 54023 for too many. The detail names script, line and column.
    pub fn check_parameterized(
        &self,
        symbols: &Symbols,
        assigned: &dyn Fn(VariableId) -> bool,
        defined: &dyn Fn(VariableId) -> bool,
    ) -> Result<(), UserError> {
        let prefixes: Prefixes = self.capture_prefixes().filter(|prefix| !prefix.is_empty()).collect();
        let set_here = self.assigned(symbols);
        let is_assigned = |id: VariableId| {
            set_here.get(id.index()) == Some(&true) || assigned(id) || prefixes.begin(symbols.name(id))
        };
        let source = ScriptText { name: &self.name, text: &self.source };
        self.statements()
            .try_for_each(|(_, sql)| sql.check_parameterized(source, symbols, &is_assigned, defined))
    }

    /// Checks that feeders' values stand only where a value can; with `in_text`, for `query_mode` "simple", as literals.
    /// `fed` says which variables feeders set.
    ///
    /// # Errors
    /// 42601 for a variable in a wrong place, with script, line and column.
    pub fn check_fed(
        &self,
        symbols: &Symbols,
        fed: &dyn Fn(VariableId) -> bool,
        in_text: bool,
    ) -> Result<(), UserError> {
        let source = ScriptText { name: &self.name, text: &self.source };
        self.statements().try_for_each(|(_, sql)| sql.check_fed(source, symbols, fed, in_text))
    }

    /// Calls `visit` with the variable of each `\set`. Of the variables that `\gset` and `\aset` assign, only the
    /// [prefixes](Self::capture_prefixes) are known before they run.
    pub fn for_each_assigned(&self, visit: &mut dyn FnMut(VariableId)) {
        for command in &self.commands {
            if let Action::Set { target, .. } = command.action {
                visit(target);
            }
        }
    }

    /// Returns the prefixes of all `\gset` and `\aset`, including empty ones.
    pub fn capture_prefixes(&self) -> impl Iterator<Item = &str> {
        self.statements().filter_map(|(_, sql)| sql.capture.as_ref()).map(|capture| capture.prefix.as_str())
    }

    /// Calls `visit` with each mention of a variable glued to an identifier, and the line of its statement.
    pub fn for_each_glued(&self, visit: &mut dyn FnMut(u32, VariableId)) {
        for (command, sql) in self.statements() {
            sql.glued().for_each(|id| visit(command.line, id));
        }
    }

    /// Adds script and line of the command with this index to a run-time error's detail, before the error's own detail
    /// or, without one, the command's first line.
    pub fn at(&self, command: usize, error: UserError) -> UserError {
        let Some(command) = self.commands.get(command) else { return error };
        let after = error.detail.as_deref().unwrap_or_else(|| excerpt(&command.source));
        let detail = format!("script \"{}\", line {}:\n{after}", self.name, command.line);
        error.detail(detail)
    }

    /// As [`Script::at`], for an error from the server.
    #[cold]
    pub fn locate(&self, command: usize, error: SqlError) -> SqlError {
        let SqlError { message, detail, .. } = error;
        let located = self.at(command, UserError { detail, ..UserError::new("", message) });
        SqlError { message: located.message, detail: located.detail, ..error }
    }

    /// Checks that the script has no pipeline commands, for clients without a connection.
    ///
    /// # Errors
    /// 0A000 for the first of them, with its script and line.
    pub fn check_without_connection(&self) -> Result<(), UserError> {
        let mut pipelines =
            self.commands.iter().zip(0..).filter_map(|(command, index)| match command.action {
                Action::Pipeline(pipeline) => Some((pipeline, index)),
                _ => None,
            });
        let Some((pipeline, index)) = pipelines.next() else { return Ok(()) };
        let name = match pipeline {
            Pipeline::Start => "startpipeline",
            Pipeline::Sync => "syncpipeline",
            Pipeline::End => "endpipeline",
        };
        let message = format!(
            "meta command \"\\{name}\" is not supported: a client inside the server has no connection to pipeline"
        );
        let error = UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint("Use driver => 'wire'.");
        Err(self.at(index, error))
    }

    /// Returns the statements between the `\startpipeline` with the index `start` and the next `\endpipeline`, each with
    /// its index. pgbench prepares them before the pipeline, because a Parse within it would take a snapshot before
    /// BEGIN ISOLATION LEVEL (`prepareCommandsInPipeline` in pgbench.c).
    pub fn statements_in_pipeline(&self, start: usize) -> impl Iterator<Item = (usize, &Sql)> {
        let is_end = |action: &Action| matches!(action, Action::Pipeline(Pipeline::End));
        self.commands
            .iter()
            .enumerate()
            .skip(start + 1)
            .take_while(move |(_, command)| !is_end(&command.action))
            .filter_map(|(index, command)| match &command.action {
                Action::Sql(sql) => Some((index, sql)),
                _ => None,
            })
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = (&Command, &Sql)> {
        self.commands.iter().filter_map(|command| match &command.action {
            Action::Sql(sql) => Some((command, sql)),
            _ => None,
        })
    }

    /// For each of `symbols`, whether a `\set` assigns it.
    fn assigned(&self, symbols: &Symbols) -> Vec<bool> {
        let mut assigned = vec![false; symbols.len()];
        self.for_each_assigned(&mut |id| {
            if let Some(flag) = assigned.get_mut(id.index()) {
                *flag = true;
            }
        });
        assigned
    }
}

/// Parses the script `name` with the text `source`, and adds its variables to `symbols`.
///
/// # Errors
/// 42601 for a syntax error or a script without commands, 0A000 for shell commands, 22003 and 54001 from
/// expressions. The details name script, line and column, and show the line.
pub fn parse(name: &str, source: &str, symbols: &mut Symbols) -> Result<Script, UserError> {
    let place = ScriptText { name, text: source };
    let mut lines = LineCounter::new(source);
    let mut commands: Vec<Command> = Vec::new();
    // The byte offset of each command.
    let mut starts = Vec::new();
    for piece in lexer::split(place)? {
        interrupts::check_now_and_then();
        let (range, action) = match piece {
            CommandText::Sql(statement) => {
                (statement.range.clone(), Action::Sql(Sql::new(source, &statement, symbols)))
            }
            CommandText::Meta(range) => match meta::parse(place, range.clone(), symbols)? {
                None => continue,
                Some(Meta::Action(action)) => (range, action),
                Some(Meta::Capture(capture)) => {
                    attach(capture, commands.last_mut())
                        .map_err(|message| place.error(range.start, sqlstate::SYNTAX_ERROR, message))?;
                    continue;
                }
            },
        };
        let Range { start, .. } = range;
        starts.push(start);
        let text = trim_end(&source[range]).to_owned();
        commands.push(Command { line: lines.line_of(start), source: text, action });
    }
    command::link(&mut commands).map_err(|error| {
        let message =
            format!("condition error in script \"{name}\" command {}: {}", error.number, error.message);
        let start = starts.get(error.index).copied().unwrap_or_default();
        place.error(start, sqlstate::SYNTAX_ERROR, message)
    })?;
    if commands.is_empty() {
        let message = format!("empty command list for script \"{name}\"");
        return Err(UserError::new(sqlstate::SYNTAX_ERROR, message)
            .hint("Write at least one SQL statement or meta command."));
    }
    Ok(Script { name: name.to_owned(), source: source.to_owned(), commands })
}

/// Attaches `\gset` or `\aset` to the command before it.
fn attach(capture: ResultCapture, command: Option<&mut Command>) -> Result<(), &'static str> {
    match command.map(|command| &mut command.action) {
        Some(Action::Sql(sql)) if sql.capture.is_none() => {
            sql.capture = Some(capture);
            Ok(())
        }
        _ => Err("\\gset must follow an SQL command"),
    }
}

/// A set of prefixes, none of which begins another.
pub(crate) struct Prefixes<'a>(Vec<&'a str>);

impl Prefixes<'_> {
    /// Whether `name` begins with one of the prefixes.
    pub fn begin(&self, name: &str) -> bool {
        // In sorted order, only texts with the same prefix lie between a prefix and a name that begins with it.
        let not_after = self.0.partition_point(|&prefix| prefix <= name);
        self.0[..not_after].last().is_some_and(|prefix| name.starts_with(prefix))
    }
}

impl<'a> FromIterator<&'a str> for Prefixes<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(prefixes: I) -> Self {
        let mut prefixes: Vec<&str> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|next, kept| next.starts_with(*kept));
        Prefixes(prefixes)
    }
}

/// A statement that a script sends, or a line that `debug()` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewLine {
    /// The transaction, counted from 1.
    pub transaction: u32,
    /// The command, counted from 1.
    pub command: u32,
    /// The line the command begins at, counted from 1.
    pub line: u32,
    /// A statement with its values, without the final semicolon, or the output of `debug()` as pgbench prints it.
    pub output: String,
}

/// Runs `transactions` transactions of one client, which starts with `variables` and `random`, and calls `emit` for
/// each statement and each `debug()`. Sleeps are skipped, and `\gset` and `\aset` set nothing. `script_index` is the
/// script's place in the run, counted from 0. `begin` is called before each transaction, may set variables, and ends
/// the preview by returning false. `pulse` is called before each command, for checks of interrupts.
///
/// # Errors
/// Errors of meta commands, with details that name script and line; earlier output has been emitted.
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
