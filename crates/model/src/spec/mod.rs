//! The specification of a run: its [`RunOptions`], and everything that was looked up in the server for them.

mod arguments;
mod before;
mod driver;
mod duel;
mod execution;
pub mod limits;
mod mix;
mod options;
mod roles;
mod run;
mod script;
mod target;
mod terminal;
#[cfg(test)]
mod tests;
mod values;

pub use arguments::{Json, Name, RunArguments};
pub use before::Before;
pub use driver::{Driver, OnDisconnect};
pub use duel::{ARMS, Arm, Duel, MARGIN, PLAN_ADVICE};
pub use execution::{QueryMode, Results};
pub(crate) use mix::{MAX_SCRIPTS, check_deck};
pub use mix::{Share, expand, is_name, mix};
pub use options::{DEFAULT_SECS, Extent, RunOptions, SCRIPT, workload};
pub use run::{FixtureSpec, Observation, RunSpec, Starter};
pub use script::{Role, ScriptSpec};
pub use target::{Address, Encryption, HostAddress, TargetSpec};
pub use terminal::Terminal;
pub(crate) use values::words;
pub use values::{Word, object, plain, required, variables};
