//! The end of a run: all results are collected and written in parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_capture::log::is_utility;
use bench_model::client::Lateness;
use bench_model::spec::{Driver, Extent, RunSpec};
use bench_results::{CommandSummary, Environment};
use bench_script::{Action, Symbols, parse};
use bench_stats::Histogram;

use super::{LINKS_NS, RunUnderWay, run_status};
use crate::observe::audit::{self, AuditRow};
use crate::observe::counters::{self, CountsById};
use crate::observe::waits::Switches;
use crate::run::client::schedule;
use crate::server::process::{NS_PER_SEC, now_ns, own_cpu_ns};
use crate::server::transaction::transaction;
use crate::shm::{ClientSlot, ClientState, CommandCounters, CommandTimes, Segment};
use crate::store::recorder::{self, Closing, ErrorRow, Part, RunStatus, Totals, ms};
use crate::store::{self, nodes};

/// The time after a stop within which everything should be written.
const STOP_DONE_NS: i64 = 1_800_000_000;

/// The time after a stop until which the log is written.
const LOG_DONE_NS: i64 = 1_000_000_000;

/// The counts of pg_stat_statements for each script.
type CallsOfScripts = Vec<(i32, Counts)>;

impl RunUnderWay<'_> {
    /// Writes all results. `failure` is the error that ended the run.
    pub(super) fn close(&mut self, failure: Option<UserError>) -> Result<(), UserError> {
        let measured = self.measured;
        let mut missing: Vec<(Part, UserError)> = Vec::new();
        if measured && let Err(error) = self.sampler.write_rest() {
            missing.push(("bench.samples", error));
        }
        let deadline_ns = self.stopped_at_ns.map(|at| at + LOG_DONE_NS);
        if measured && let Err(error) = self.log.write_rest(deadline_ns) {
            missing.push(("bench.transactions", error));
        }
        // Clients that a stop has ended do not count as errors.
        let lost = if self.stop_reason().is_some() { 0 } else { self.lost };
        let errors = run_status::errors(self.segment, lost);
        let failure = failure.or_else(|| self.unwritten.clone()).or_else(|| self.cut_short.clone());
        let (status, error) = self.run_status(failure, &errors);
        if let Some(links) = &self.links {
            // A node that cannot be read has the error in its row.
            let left_ns =
                self.stopped_at_ns.map_or(LINKS_NS, |at| (at + STOP_DONE_NS - now_ns()).max(100_000_000));
            let _ = links.collect(left_ns);
            if let Err(error) = nodes::write_nodes(self.run_id, links.iter(), 0) {
                missing.push(("bench.nodes", error));
            }
        }
        let (audit, calls) = if measured {
            self.audit().unwrap_or_else(|error| {
                missing.push(("bench.audit", error));
                Default::default()
            })
        } else {
            Default::default()
        };
        let scripts = if measured { self.sampler.scripts() } else { Vec::new() };
        let statements = if measured { lines(self.segment, self.spec) } else { Vec::new() };
        let duel = self
            .duel
            .as_mut()
            .filter(|_| measured)
            .map(|duel| duel.finish(self.segment, &self.sampler.waits));
        let relations = counters::read_relations(&self.tables()).unwrap_or_else(|error| {
            missing.push(("bench.relations", error));
            counters::no_relations()
        });
        let environment = self.aftermath();
        let events = self.sampler.observer.finish(now_ns());
        let closing = Closing {
            status,
            error: error.as_ref(),
            missing,
            horizon_held: self.segment.header().horizon_held.load(Relaxed) != 0,
            measured: &self.sampler.with_drained(),
            backlog: self.backlog(),
            logged: (self.log.written, self.log.lost()),
            clients_stuck: &self.stuck,
            server_cpu_us: self.server_cpu_us(),
            connects: &self.connects(),
            spec: self.spec,
            scripts: &scripts,
            statements: &statements,
            errors: &errors,
            audit: &audit,
            calls: &calls,
            duel: duel.as_ref(),
            waits: &self.sampler.waits.shares(),
            events: &events,
            relations: (&self.relations, &relations),
            environment: &environment,
            warmup_took_secs: self.warmup_took_secs(),
        };
        let finished = recorder::finish(self.run_id, &closing);
        if self.segment.header().stop().is_raised()
            && let Some(error) = error
        {
            return Err(error);
        }
        self.unwritten.take().map_or(Ok(()), Err).and(finished)
    }

    /// Returns the length of the warm-up, or of the run if that ended in it.
    fn warmup_took_secs(&self) -> Option<f64> {
        let timeline = self.segment.header().timeline.load();
        let end_ns = timeline.measure_start_ns.min(timeline.measure_end_ns);
        self.measured.then(|| (end_ns - timeline.warmup_start_ns).max(0) as f64 / NS_PER_SEC)
    }

    /// Counts the transactions that were due before the end and were neither started nor skipped, whether a client had taken
    /// them or not.
    fn backlog(&self) -> u64 {
        let header = self.segment.header();
        let timeline = header.timeline.load();
        let taken: u64 = self.segment.slots().map(|slot| slot.backlog.get()).sum();
        let rest = match (self.spec.options.extent, schedule(self.spec, timeline.warmup_start_ns)) {
            (Extent::Secs(_), Some(schedule)) if self.measured && self.segment.slots().next().is_some() => {
                schedule.rest_until(&header.arrivals.0, timeline.measure_end_ns)
            }
            _ => 0,
        };
        taken + rest
    }

    /// Returns the processor time per committed transaction, in microseconds, of the clients' processes, or of the backends
    /// that serve connections, in the measured intervals. `None` if it is known of no client.
    fn server_cpu_us(&self) -> Option<f64> {
        if self.spec.options.driver == Driver::Wire {
            let transactions = self.sampler.measured.moments.count;
            let cpu_ns = self.sampler.waits.cpu_ns().filter(|&cpu_ns| cpu_ns > 0 && transactions > 0)?;
            return Some(cpu_ns as f64 / transactions as f64 / 1e3);
        }
        let known = self.segment.slots().filter_map(ClientSlot::cpu_of_transactions);
        let (cpu_ns, transactions) =
            known.fold((0, 0), |sum, (cpu_ns, transactions)| (sum.0 + cpu_ns, sum.1 + transactions));
        (transactions > 0).then(|| cpu_ns as f64 / transactions as f64 / 1e3)
    }

    /// Returns the latencies of connections opened during the measurement.
    fn connects(&self) -> Totals {
        let mut connects = Totals::default();
        if self.segment.shape().connections > 0 {
            (0..self.segment.shape().slots).for_each(|job| connects.add(self.segment.connects(job)));
        }
        connects
    }

    /// Returns the facts about the environment that are known only at the end; empty if they cannot be read.
    fn aftermath(&self) -> Environment {
        let read = || -> Result<Environment, UserError> {
            if self.spec.target.is_some() {
                return Ok(self.worker_usage());
            }
            let holder = if self.segment.header().horizon_held.load(Relaxed) != 0 {
                None
            } else {
                store::horizon_holder(&self.horizon)?
            };
            Ok(Environment {
                xids_used: Some(store::next_transaction_ids()?.0 - self.next_xid),
                xid_age: store::oldest_age()?,
                horizon_holder: holder,
                ..self.worker_usage()
            })
        };
        if self.measured {
            transaction(std::panic::AssertUnwindSafe(read)).unwrap_or_default()
        } else {
            Environment::default()
        }
    }

    /// Returns processor time, context switches and lateness of the run's own workers.
    fn worker_usage(&self) -> Environment {
        Environment {
            coordinator_cpu_secs: Some(own_cpu_ns() as f64 / NS_PER_SEC),
            driver_cpu_secs: self.driver_cpu_secs(),
            driver_busy: self.driver_busy(),
            server_context_switches: self.server_switches(),
            driver_context_switches: self.driver_switches(),
            ..self.lateness()
        }
    }

    /// Returns how late the jobs served their connections during the measurement.
    fn lateness(&self) -> Environment {
        let mut lateness = Lateness::default();
        self.segment.slots().for_each(|slot| lateness.merge(&slot.lateness()));
        let ms = |ns: u64| (lateness.served > 0).then(|| ns as f64 / 1e6);
        Environment {
            driver_wait_avg_us: lateness.avg_us(),
            driver_wait_max_ms: ms(lateness.longest_ns),
            driver_round_max_ms: ms(lateness.longest_round_ns),
            ..Environment::default()
        }
    }

    /// Returns the jobs' processor time in seconds; `None` without jobs, or if it is not known of all.
    fn driver_cpu_secs(&self) -> Option<f64> {
        if self.spec.options.driver != Driver::Wire {
            return None;
        }
        let jobs = self.segment.slots().map(|slot| slot.cpu_ns.load(Relaxed));
        let all: Option<i64> = jobs.map(|ns| (ns > 0).then_some(ns)).sum();
        all.map(|ns| ns as f64 / NS_PER_SEC)
    }

    /// Returns the context switches per transaction, of the same processes as [`RunUnderWay::server_cpu_us`], but only of some
    /// of the backends that serve connections.
    fn server_switches(&self) -> Option<f64> {
        if self.spec.options.driver == Driver::Wire {
            return self.sampler.waits.switches.per_transaction();
        }
        let mut switches = Switches::default();
        for slot in self.segment.slots() {
            let transactions = slot.cpu_of_transactions().map(|(_, transactions)| transactions);
            if let Some((count, transactions)) = slot.measured_switches().zip(transactions) {
                switches.add(count, transactions);
            }
        }
        switches.per_transaction()
    }

    /// Returns the jobs' context switches per measured transaction; `None` without jobs, or if they are not known of all.
    fn driver_switches(&self) -> Option<f64> {
        if self.spec.options.driver != Driver::Wire {
            return None;
        }
        let mut switches = Switches::default();
        let count: Option<i64> = self.segment.slots().map(ClientSlot::measured_switches).sum();
        switches.add(count?, self.sampler.measured.moments.count);
        switches.per_transaction()
    }

    /// Returns the share of its time for which the busiest job used a processor; `None` without jobs.
    fn driver_busy(&self) -> Option<f64> {
        if self.spec.options.driver != Driver::Wire {
            return None;
        }
        let begin_ns = self.segment.header().timeline.load().measure_start_ns;
        let busy = |slot: &ClientSlot| {
            let elapsed_ns = slot.ended_ns.load(Relaxed) - begin_ns;
            slot.measured_cpu_ns().filter(|_| elapsed_ns > 0).map(|cpu_ns| cpu_ns as f64 / elapsed_ns as f64)
        };
        self.segment.slots().filter_map(busy).max_by(f64::total_cmp)
    }

    fn run_status(
        &mut self,
        failure: Option<UserError>,
        errors: &[ErrorRow],
    ) -> (RunStatus, Option<UserError>) {
        let sessions = self.segment.sessions();
        let aborted = sessions.filter(|session| session.state == ClientState::Aborted).count() as u32;
        run_status::run_status(&run_status::RunEnding {
            failure,
            stop: self.stop_reason(),
            part_of: self.spec.part_of.as_ref(),
            measured: self.measured,
            ended_early: aborted + self.lost,
            given_up: self.given_up,
            clients: self.segment.clients(),
            is_pooled: self.spec.target.as_ref().is_some_and(|target| target.is_pooled),
            errors,
        })
    }

    /// Returns the audit, and the counts of pg_stat_statements for each script.
    fn audit(&self) -> Result<(Vec<AuditRow>, CallsOfScripts), UserError> {
        let after = counters::read(self.spec, &self.query_ids)?;
        let all_ended = self.segment.slots().all(|slot| slot.unended.load(Relaxed) == 0);
        let all_flushed = self.lost == 0 && !self.terminated && all_ended;
        let recorded = self.sampler.measured.moments.count;
        let calls = if self.spec.target.is_some() {
            let until_ns = self.stopped_at_ns.map(|at| at + LOG_DONE_NS);
            let now = self.target_statements.read(|| until_ns.is_some_and(|until_ns| now_ns() > until_ns));
            calls(
                self.segment,
                self.spec,
                [&self.target_counts[0], &self.target_counts[1]],
                [&now[0], &now[1]],
            )
        } else {
            let (before, after) = (&self.before.statements, &after.statements);
            calls(self.segment, self.spec, [before, &None], [after, &None])
        };
        Ok((audit::audit(self.spec, self.segment, &self.before, &after, recorded, all_flushed), calls))
    }
}

/// Returns the results of each command of each script, in their order.
pub fn lines(segment: &Segment, spec: &RunSpec) -> Vec<CommandSummary> {
    let mut symbols = Symbols::new();
    let mut lines = Vec::new();
    for (index, script) in spec.scripts.iter().enumerate() {
        // The scripts were parsed without errors before the run.
        let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
        for (command, at) in parsed.commands.into_iter().zip(1..) {
            let is_sql = matches!(command.action, Action::Sql(_));
            let place = lines.len();
            let clients_times: Vec<&CommandTimes> =
                (0..segment.shape().slots).filter_map(|client| segment.times(client).get(place)).collect();
            let counters: Vec<&CommandCounters> =
                (0..segment.shape().slots).filter_map(|client| segment.commands(client).get(place)).collect();
            let counted = |count: fn(&CommandCounters) -> u64| counters.iter().map(|c| count(c)).sum::<u64>();
            let (generic, custom) = (counted(|c| c.generic_plans.get()), counted(|c| c.custom_plans.get()));
            let changes = counted(|c| c.plan_changes.get());
            let writes = counted(|c| c.writes.get());
            let sum =
                |count: fn(&CommandTimes) -> u64| clients_times.iter().map(|times| count(times)).sum::<u64>();
            let count = sum(|times| times.count.get());
            let mut histogram = Histogram::new();
            clients_times.iter().for_each(|times| times.add_to(&mut histogram));
            lines.push(CommandSummary {
                node: 0,
                script: index as u32,
                command: at,
                line: command.line,
                statement: command.source,
                count,
                failed: sum(|times| times.failed.get()),
                retried: sum(|times| times.retried.get()),
                latency_avg_ms: (count > 0)
                    .then(|| ms(sum(CommandTimes::latency_sum_ns) as f64 / count as f64)),
                latency_p95_ms: histogram.percentile_ns(0.95).map(ms),
                plan: plan_text(segment, place, (generic, custom), changes)
                    .or_else(|| script.plans.get(&at).cloned()),
                generic_plans: generic,
                custom_plans: custom,
                plan_changes: changes,
                workers_planned: counted(|c| c.workers_planned.get()),
                workers_launched: counted(|c| c.workers_launched.get()),
                rows: is_sql.then(|| counted(|c| c.rows.get())),
                writes: (writes > 0).then_some(writes),
                empty_writes: (writes > 0).then(|| counted(|c| c.empty_writes.get())),
            });
        }
    }
    lines
}

/// Returns the counts of pg_stat_statements for each script between two readings, without scripts that it does not know. The
/// counts of a statement of several scripts are divided by these scripts' executions. BEGIN and COMMIT are left out, as in
/// captured transactions. The second of each pair of readings is that of arm b's target, in a duel of two targets.
pub fn calls(
    segment: &Segment,
    spec: &RunSpec,
    before: [&Option<CountsById>; 2],
    after: [&Option<CountsById>; 2],
) -> Vec<(i32, Counts)> {
    let mut symbols = Symbols::new();
    let mut place = 0;
    // Executions of each script, by target and query id.
    let mut executed: BTreeMap<(usize, i64), BTreeMap<i32, f64>> = BTreeMap::new();
    for (index, script) in (0..).zip(&spec.scripts) {
        let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
        let target = usize::from(spec.other_target.is_some() && script.arm == Some(1));
        for (command, number) in parsed.commands.into_iter().zip(1..) {
            let at = place;
            place += 1;
            let counters =
                (0..segment.shape().slots).filter_map(move |client| segment.commands(client).get(at));
            if is_utility(&command.source) {
                continue;
            }
            // For connections, the query ids come from their target.
            let (mut ids, mut executions) = (BTreeSet::from_iter(script.query_ids.get(&number).copied()), 0);
            for client_counters in counters {
                ids.extend(client_counters.query_ids());
                executions += client_counters.executions.get();
            }
            for id in ids {
                *executed.entry((target, id)).or_default().entry(index).or_default() += executions as f64;
            }
        }
    }
    let mut script_counts: BTreeMap<i32, Counts> = BTreeMap::new();
    for ((target, id), scripts) in executed {
        let (Some(before), Some(after)) = (before[target], after[target]) else { continue };
        let Some(counts) = after.get(&id) else { continue };
        let counts = counts.since(before.get(&id).unwrap_or(&Counts::default()));
        let all: f64 = scripts.values().sum();
        for (script, executions) in scripts {
            let share = if all > 0.0 { executions / all } else { 0.0 };
            script_counts.entry(script).or_default().add(&counts.part(share));
        }
    }
    script_counts.retain(|_, counts| counts.calls > 0);
    script_counts.into_iter().collect()
}

/// Returns the forms of a command's plan in the order of their first execution, each behind a line with that time; `None` if
/// no plan was executed.
fn plan_text(segment: &Segment, place: usize, (generic, custom): (u64, u64), changes: u64) -> Option<String> {
    let kind = match (generic, custom) {
        (0, 0) => return None,
        (_, 0) => "generic plan".to_owned(),
        (0, _) => "custom plan".to_owned(),
        _ => format!("custom plan in {custom} executions, then generic in {generic}"),
    };
    let forms = segment.plans().get(place)?.described();
    let measure_start_ns = segment.header().timeline.load().measure_start_ns;
    let changed = forms.len() > 1;
    // More changes than that mean that plans alternate with the values.
    let for_good = changes <= u64::from(segment.shape().slots) * forms.len().saturating_sub(1) as u64;
    let mut text = kind;
    for (index, (first_ns, form)) in forms.into_iter().enumerate() {
        let elapsed = (first_ns - measure_start_ns) as f64 / 1e9;
        text += &match (changed, index) {
            (false, _) => ":\n".to_owned(),
            (true, 0) => ":\nat first:\n".to_owned(),
            (true, _) if for_good && elapsed < 0.0 => "\nthen, before measuring began:\n".to_owned(),
            (true, _) if for_good => format!("\nfrom {elapsed:.3} s on:\n"),
            (true, _) => format!("\nby turns, first at {elapsed:.3} s:\n"),
        };
        text += form.trim_end();
    }
    Some(text)
}
