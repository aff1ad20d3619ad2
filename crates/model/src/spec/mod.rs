//! The specification of a run: its [`RunOptions`], and everything that was looked up in the server for them.

mod arguments;
mod duel;
mod options;
mod run;
mod script;
#[cfg(test)]
mod tests;
mod values;

pub use arguments::{Json, Name, RunArguments};
pub use duel::{ARMS, AnswerVerdict, Arm, Duel, MARGIN, PLAN_ADVICE};
pub use options::{DEFAULT_SECS, Extent, RunOptions, SCRIPT, workload};
pub use run::{Address, Encryption, FixtureSpec, HostAddress, Observation, RunSpec, Starter, TargetSpec};
pub(crate) use script::{MAX_SCRIPTS, check_deck};
pub use script::{Role, ScriptSpec, Share, THINK, Terminal, expand, is_name, mix, think_scale};
pub use values::{
    Before, Driver, MAX_ARGUMENT, MAX_RUN_IDS, OnDisconnect, QueryMode, Results, check_count, check_text,
    object, plain, required, variables,
};
