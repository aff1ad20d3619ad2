//! bench.capacity and bench.start_capacity: how much load a server sustains.

use bench_core::error::UserError;
use bench_core::report::sweep::answer_sentence;
use bench_core::sweep::{SweepArguments, search_of};
use pgrx::prelude::*;

use crate::catalog::searches;
use crate::error::{OrRaise, notice};
use crate::launch::room;
use crate::server::jsonb::Jsonb;
use crate::sweep::launch::{plan, run_to_the_end, start};

/// Everything that bench.capacity and bench.start_capacity take, in their order.
macro_rules! capacity_function {
    ($(#[$doc:meta])* $name:ident, $then:ident) => {
        $(#[$doc])*
        #[pg_extern(sql = false)]
        #[allow(clippy::too_many_arguments)]
        fn $name(
            workload: Option<String>,
            latency_limit: Option<f64>,
            latency_limits: Option<Vec<Option<f64>>>,
            percentile: Option<f64>,
            clients: Option<i32>,
            secs: Option<f64>,
            trials: Option<i32>,
            precision: Option<f64>,
            rounds: Option<i32>,
            max_failed: Option<f64>,
            warmup: Option<f64>,
            variables: Option<Jsonb>,
            settings: Option<Jsonb>,
            before: Option<String>,
            driver: Option<String>,
            target: Option<String>,
            nodes: Option<String>,
            query_mode: Option<String>,
            seed: Option<i64>,
            tags: Option<Jsonb>,
            jobs: Option<i32>,
            reconnect: Option<bool>,
        ) -> i64 {
            let json = |value: Option<Jsonb>| value.map(|v| v.0);
            search_of(latency_limit, latency_limits, percentile, trials, precision, max_failed, rounds)
                .and_then(|search| {
                    $then(SweepArguments {
                        workload,
                        clients: Some(vec![Some(match clients {
                            Some(clients) => clients,
                            None => room::clients(driver.as_deref(), target.is_some(), nodes.as_deref())?,
                        })]),
                        secs,
                        rounds,
                        warmup,
                        variables: json(variables),
                        settings: json(settings),
                        before,
                        seed,
                        query_mode,
                        nodes,
                        tags: json(tags),
                        driver,
                        target,
                        jobs,
                        reconnect,
                        search: Some(search),
                        ..SweepArguments::with_defaults()
                    })
                })
                .or_raise()
        }
    };
}

capacity_function!(
    /// Searches for the rate that a server sustains and waits for the end. See the COMMENT ON.
    capacity_of_workload,
    search_and_wait
);

capacity_function!(
    /// Starts a search and returns at once. See the COMMENT ON.
    start_capacity_of_workload,
    start_only
);

fn search_and_wait(arguments: SweepArguments) -> Result<i64, UserError> {
    let sweep_id = run_to_the_end(plan(arguments)?)?;
    for answer in searches::answers(sweep_id)? {
        notice(
            answer_sentence(&answer),
            format!(
                "See SELECT * FROM bench.capacities WHERE sweep_id = {sweep_id}, and bench.sweep_report({sweep_id})."
            ),
        );
    }
    Ok(sweep_id)
}

fn start_only(arguments: SweepArguments) -> Result<i64, UserError> {
    start(&plan(arguments)?)
}
