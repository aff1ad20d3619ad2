//! Functions that take the arguments of a run, which are declared in bench_model::spec.

use serde_json::Value;

use crate::server::jsonb::Jsonb;

/// jsonb and name, as the list of a run's arguments calls them.
pub(super) type Json = Jsonb;
pub(super) type Name<'a> = &'a std::ffi::CStr;

/// An argument as SQL hands it over, as [`RunArguments`](bench_model::spec::RunArguments) keeps it.
pub(super) trait Argument<T> {
    fn kept(self) -> T;
}

macro_rules! kept_as_it_is {
    ($($type:ty),*) => { $(impl Argument<$type> for $type { fn kept(self) -> $type { self } })* };
}
kept_as_it_is!(bool, i32, i64, f64, String);

impl Argument<Value> for Json {
    fn kept(self) -> Value {
        self.0
    }
}

impl Argument<String> for Name<'_> {
    fn kept(self) -> String {
        self.to_string_lossy().into_owned()
    }
}

/// A function of SQL that makes runs: its name, its own arguments with their types in brackets, its result, and what it
/// does with its own arguments and those of a run, which come behind them.
macro_rules! run_function {
    ($(#[$doc:meta])* $name:ident($($own:ident: [$($type:tt)+]),*) -> [$($result:tt)+] = $does:expr) => {
        bench_model::run_arguments! {
            with_run_arguments, $(#[$doc])* $name ($($own: [$($type)+]),*) [$($result)+] ($does)
        }
    };
}

/// Two functions of SQL with the same arguments, as [`run_function!`] has them: one that waits for what it makes, and one that
/// starts it and returns its id. `$asks` makes of the arguments what both are given.
macro_rules! run_functions {
    (
        $(#[$doc:meta])* $name:ident, $(#[$start_doc:meta])* $start:ident($($own:ident: [$($type:tt)+]),* $(,)?)
            -> [$($result:tt)+] = $asks:expr, $waits:expr, $starts:expr
    ) => {
        run_function! {
            $(#[$doc])* $name($($own: [$($type)+]),*) -> [$($result)+] =
                |$($own,)* run| ($asks)($($own,)* run).and_then($waits).or_raise()
        }

        run_function! {
            $(#[$start_doc])* $start($($own: [$($type)+]),*) -> [i64] =
                |$($own,)* run| ($asks)($($own,)* run).and_then($starts).or_raise()
        }
    };
}

macro_rules! with_run_arguments {
    (
        { $(#[$doc:meta])* $name:ident ($($own:ident: [$($type:tt)+]),*) [$($result:tt)+] ($does:expr) }
        $($(#[$meaning:meta])* $argument:ident: $kind:ident = $default:expr,)*
    ) => {
        $(#[$doc])*
        #[pg_extern(sql = false)]
        #[allow(clippy::too_many_arguments, clippy::type_complexity)]
        fn $name($($own: $($type)+,)* $($argument: Option<$kind>,)*) -> $($result)+ {
            let run = bench_model::spec::RunArguments {
                $($argument: $argument.map(Argument::kept),)*
                ..Default::default()
            };
            ($does)($($own,)* run)
        }
    };
}

pub(super) use {run_function, run_functions, with_run_arguments};
