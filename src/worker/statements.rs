//! What the clients counted of each command, for bench.statements.

use bench_core::script::{Symbols, parse};
use bench_core::spec::RunSpec;
use bench_core::stats::Histogram;

use crate::catalog::recorder::StatementLine;
use crate::shm::{CommandTimes, Segment};

/// A line for each command of each script, in their order.
pub fn lines(segment: &Segment, spec: &RunSpec) -> Vec<StatementLine> {
    let mut symbols = Symbols::new();
    let mut lines = Vec::new();
    for (index, script) in spec.scripts.iter().enumerate() {
        // It was parsed before the run began.
        let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
        for (command, at) in parsed.commands.into_iter().zip(1..) {
            let place = lines.len();
            let of_clients: Vec<&CommandTimes> =
                (0..segment.shape().clients).filter_map(|client| segment.times(client).get(place)).collect();
            let sum = |of: fn(&CommandTimes) -> u64| of_clients.iter().map(|times| of(times)).sum::<u64>();
            let count = sum(|times| times.count.get());
            let mut histogram = Histogram::new();
            of_clients.iter().for_each(|times| times.add_to(&mut histogram));
            lines.push(StatementLine {
                script: index,
                command: at,
                line: command.line,
                text: command.source,
                count,
                failed: sum(|times| times.failed.get()),
                retried: sum(|times| times.retried.get()),
                latency_avg_ns: (count > 0).then(|| sum(CommandTimes::latency_sum_ns) as f64 / count as f64),
                latency_p95_ns: histogram.percentile_ns(0.95),
            });
        }
    }
    lines
}
