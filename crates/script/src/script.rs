//! Scripts: parsing them, what is known of one before it runs, and what one does without a server.

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
    /// As the user calls it; it appears in messages.
    pub name: String,
    /// The whole text, as written.
    pub source: String,
    /// In the order of the text, at least one.
    pub commands: Vec<Command>,
}

impl Script {
    /// The first variable, and the line of the command that reads it, that neither `defined` knows nor the
    /// script sets, be it before or after: by a `\set`, or maybe by a `\gset` or `\aset` with whose prefix its
    /// name begins. In statements, comments and string constants do not count. `symbols` are those that the
    /// script was parsed with.
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

    /// Whether all statements can have parameters, which only `query_mode` "simple" does without: glued
    /// variables must be constant, string constants cannot have parameters, and a statement has at most 65,535.
    /// `assigned` tells which variables other scripts of the run assign; those that this one does, by `\set` or
    /// by a `\gset` or `\aset` whose prefix is not empty, count in any case. `defined` tells which have a value
    /// before the run. `symbols` are those that the script was parsed with.
    ///
    /// # Errors
    /// 42601 for a variable in a wrong place, 54023 for too many of them. The detail names script, line and
    /// column.
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

    /// Whether values of feeders can stand where they do: only where a value can, and with `in_text`, as `query_mode` "simple"
    /// has them, as literals. `fed` tells which variables have such values.
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

    /// Calls `visit` with the variable of each `\set`. What `\gset` and `\aset` assign is not known before they
    /// run, but for its [prefixes](Self::capture_prefixes).
    pub fn for_each_assigned(&self, visit: &mut dyn FnMut(VariableId)) {
        for command in &self.commands {
            if let Action::Set { target, .. } = command.action {
                visit(target);
            }
        }
    }

    /// The prefixes of all `\gset` and `\aset`, empty ones too.
    pub fn capture_prefixes(&self) -> impl Iterator<Item = &str> {
        self.statements().filter_map(|(_, sql)| sql.capture.as_ref()).map(|capture| capture.prefix.as_str())
    }

    /// Calls `visit` with each mention of a variable that is attached to an identifier, and the line its statement
    /// begins at.
    pub fn for_each_glued(&self, visit: &mut dyn FnMut(u32, VariableId)) {
        for (command, sql) in self.statements() {
            sql.glued().for_each(|id| visit(command.line, id));
        }
    }

    /// An error of the command of this index at run time, with a detail that names script and line. A detail
    /// that the error has comes after that, otherwise the command's first line.
    pub fn at(&self, command: usize, error: UserError) -> UserError {
        let Some(command) = self.commands.get(command) else { return error };
        let after = error.detail.as_deref().unwrap_or_else(|| excerpt(&command.source));
        let detail = format!("script \"{}\", line {}:\n{after}", self.name, command.line);
        error.detail(detail)
    }

    /// As [`Script::at`], of an error of the server's.
    #[cold]
    pub fn locate(&self, command: usize, error: SqlError) -> SqlError {
        let SqlError { message, detail, .. } = error;
        let located = self.at(command, UserError { detail, ..UserError::new("", message) });
        SqlError { message: located.message, detail: located.detail, ..error }
    }

    /// For a client without a connection: the error of the first command for pipelines.
    ///
    /// # Errors
    /// 0A000, with the place in the script.
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

    /// The statements behind the `\startpipeline` with the index `start` and before the next `\endpipeline` in the
    /// text, each with its index: those that pgbench prepares before it begins the pipeline, because a Parse within it
    /// would take a snapshot before BEGIN ISOLATION LEVEL (`prepareCommandsInPipeline` in pgbench.c).
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

/// Parses the script `name`, whose text is `source`. Its variables become part of `symbols`.
///
/// # Errors
/// 42601 for a syntax error or a script without commands, 0A000 for shell commands, 22003 and 54001 as an
/// expression's. Their details name script, line and column, and show the line.
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

/// Makes `\gset` or `\aset` a part of the command before it.
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
    /// Whether one of them is at the front of `name`.
    pub fn begin(&self, name: &str) -> bool {
        // In the order of texts, nothing but continuations of a prefix stands between it and a name it begins.
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
