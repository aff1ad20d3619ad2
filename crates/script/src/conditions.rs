//! Where `\if`, `\elif` and `\else` branch to.

use super::command::{Action, Command};

/// A command that does not fit the others.
pub(super) struct ConditionError {
    /// Its number for pgbench, counted from 1; one more than there are if the script's end came too early.
    pub number: usize,
    /// The index of the command to point at.
    pub index: usize,
    /// What is wrong.
    pub message: &'static str,
}

/// Fills in where the conditional commands of a script go on (`CheckConditional` in pgbench.c).
///
/// # Errors
/// The first command that does not fit.
pub(super) fn link(commands: &mut [Command]) -> Result<(), ConditionError> {
    // For each \if that is open, the indexes of its \if, its \elifs and its \else so far.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for index in 0..commands.len() {
        let error = |message| ConditionError { number: index + 1, index, message };
        let (without_if, after_else) = match &commands[index].action {
            Action::If { .. } => {
                open.push(vec![index]);
                continue;
            }
            Action::Elif { .. } => ("\\elif without matching \\if", Some("\\elif after \\else")),
            Action::Else { .. } => ("\\else without matching \\if", Some("\\else after \\else")),
            Action::Endif => ("\\endif without matching \\if", None),
            Action::Sql(_) | Action::Set { .. } | Action::Sleep(_) | Action::Pipeline(_) => continue,
        };
        let Some(branches) = open.last_mut() else { return Err(error(without_if)) };
        let last = branches.last().and_then(|&last| commands.get_mut(last));
        match last.map(|command| &mut command.action) {
            Some(Action::If { otherwise, .. } | Action::Elif { otherwise, .. }) => *otherwise = index,
            _ => {
                if let Some(message) = after_else {
                    return Err(error(message));
                }
            }
        }
        if after_else.is_some() {
            branches.push(index);
            continue;
        }
        for branch in open.pop().unwrap_or_default() {
            if let Action::Elif { end, .. } | Action::Else { end } = &mut commands[branch].action {
                *end = index;
            }
        }
    }
    match open.last().and_then(|branches| branches.first()) {
        None => Ok(()),
        Some(&index) => {
            let number = commands.len() + 1;
            Err(ConditionError { number, index, message: "\\if without matching \\endif" })
        }
    }
}
