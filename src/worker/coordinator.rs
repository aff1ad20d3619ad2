//! The coordinator: one background worker per run, to which the run belongs. It writes the run's
//! row, launches the clients, opens the gate, writes a sample for each interval, and closes.

use std::sync::atomic::Ordering::*;

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{Extent, RunSpec};
use bench_core::stats::{Histogram, Moments};
use bench_core::timeline::Timeline;
use pgrx::pg_sys;

use super::{OnTerminate, Post, client, crew, nap, now_ns, report_for_duty, termination_requested, wake};
use crate::catalog::recorder::{self, Closing, ErrorLine, Sample, Status};
use crate::engine::unserved;
use crate::error::internal;
use crate::observe::counters::{self, Counters};
use crate::shm::{ClientState, ProgressFigures, RunState, Segment, StopReason};

const NS_PER_SEC: f64 = 1e9;

/// How long clients have after the end of the measuring for the transaction they are in.
const DRAIN_NS: i64 = 60_000_000_000;

/// After a stop: when their statement is canceled, and when they are ended.
const STOP_CANCEL_NS: i64 = 200_000_000;
const STOP_TERMINATE_NS: i64 = 500_000_000;

/// The kind of worker that a coordinator is.
pub const KIND: super::Kind =
    super::Kind { entry: c"pgbench_ext_coordinator_main", title: c"pgbench_ext coordinator" };

/// The server's entry into a coordinator.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_coordinator_main(segment: pg_sys::Datum) {
    let post = report_for_duty(segment, OnTerminate::Flag);
    let segment = &post.segment;
    let header = segment.header();
    // SAFETY: this process's own pid.
    header.coordinator_pid.store(unsafe { pg_sys::MyProcPid }, Release);
    // However this process ends, the clients do not go on without it.
    segment.on_detach(stop_clients);
    if let Err(error) = settle_in().and_then(|()| conduct(&post)) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn stop_clients(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    // SAFETY: called by the server with the segment that the callback was registered on.
    let header = unsafe { Segment::header_in_callback(segment) };
    header.timeline.measure_end_ns.store(0, Relaxed);
    header.request_stop(StopReason::Requested);
    crew::terminate();
}

/// What the recorder's session must not inherit from the database's settings.
fn settle_in() -> Result<(), UserError> {
    crate::catalog::transaction(|| {
        for (name, value) in [
            (c"search_path", c"pg_catalog, pg_temp"),
            (c"default_transaction_read_only", c"off"),
            (c"default_transaction_isolation", c"read committed"),
            // A lock on the results' tables must not hold up a stop or a shutdown for ever.
            (c"lock_timeout", c"5s"),
            // What was committed survives a crash of the server; no standby is waited for.
            (c"synchronous_commit", c"local"),
            (c"row_security", c"off"),
            (c"application_name", c"pgbench_ext coordinator"),
        ] {
            // SAFETY: NUL-terminated strings.
            unsafe {
                pg_sys::SetConfigOption(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_SUSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                );
            }
        }
        Ok(())
    })
}

/// The whole run.
///
/// # Errors
/// What kept the run from being measured, or from being written down.
fn conduct(post: &Post) -> Result<(), UserError> {
    let segment = &post.segment;
    let header = segment.header();
    let spec: RunSpec = serde_json::from_str(segment.spec()).map_err(|e| internal(e.to_string()))?;
    let run_id = recorder::begin(&spec, segment.handle())?;
    header.run_id.store(run_id, Release);
    let mut run = Run::new(segment, &spec, run_id);
    let result = run.start().and_then(|()| run.measure());
    // Whatever happened, nobody goes on.
    run.dismiss();
    let outcome = run.close(result.clone().err());
    result.and(outcome)
}

struct Run<'a> {
    segment: &'a Segment,
    spec: &'a RunSpec,
    run_id: i64,
    timeline: Timeline,
    /// Intervals written so far, of the warm-up and of the measuring.
    next_interval: u32,
    /// The last sample, in case a short rest has to be joined to it.
    last: Option<Sample>,
    histograms: Vec<Histogram>,
    moments: Moments,
    failed: u64,
    before: Counters,
    query_ids: Vec<i64>,
    /// When the stop was asked for, by this process's clock.
    stopped_at_ns: Option<i64>,
    canceled: bool,
    terminated: bool,
    /// Clients that ended without saying so.
    lost: u32,
    measured: bool,
}

impl<'a> Run<'a> {
    fn new(segment: &'a Segment, spec: &'a RunSpec, run_id: i64) -> Self {
        Self {
            segment,
            spec,
            run_id,
            timeline: Timeline::new(0, 0, None, 1),
            next_interval: 0,
            last: None,
            histograms: vec![Histogram::new(); segment.shape().scripts as usize],
            moments: Moments::default(),
            failed: 0,
            before: Counters::default(),
            query_ids: Vec::new(),
            stopped_at_ns: None,
            canceled: false,
            terminated: false,
            lost: 0,
            measured: false,
        }
    }

    /// Launches the clients and waits until all stand at the gate.
    fn start(&mut self) -> Result<(), UserError> {
        let clients = self.segment.shape().clients;
        crew::launch(
            client::KIND,
            self.segment.handle(),
            clients,
            self.spec.database_oid,
            self.spec.role_oid,
        )?;
        loop {
            let ready = (0..clients).filter(|&c| self.segment.slot(c).state() == ClientState::Ready).count();
            if ready == clients as usize {
                break;
            }
            if let Some(client) = (0..clients).find(|&c| self.failed_to_start(c)) {
                return Err(self.start_error(client));
            }
            if let Some(reason) = self.stop_reason() {
                return Err(stop_error(reason));
            }
            nap(100);
        }
        self.query_ids = counters::query_ids(self.segment);
        self.before = counters::read(self.spec, &self.query_ids)?;
        let unserved = unserved::names(self.segment.header().unserved.load(Relaxed));
        recorder::running(self.run_id, &unserved)
    }

    fn failed_to_start(&self, client: u32) -> bool {
        let slot = self.segment.slot(client);
        // The worker's end is looked at first: it sets its state before it ends.
        let stopped = crew::has_stopped(client);
        match slot.state() {
            ClientState::Aborted => true,
            ClientState::Starting => stopped,
            _ => false,
        }
    }

    fn start_error(&self, client: u32) -> UserError {
        let entry = &self.segment.slot(client).errors[0];
        match (entry.sqlstate.load(Acquire), entry.message.get()) {
            (0, _) | (_, None) => UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("client {client} could not start"),
            )
            .hint("The server's log says why."),
            (state, Some(message)) => {
                let state = crate::error::unpack(state);
                let hint = self.start_hint(&state);
                let error = UserError::new(&state, message).detail(format!(
                    "Client {client} met this error when it prepared workload \"{}\".",
                    self.spec.options.workload
                ));
                UserError { hint, ..error }
            }
        }
    }

    fn start_hint(&self, state: &str) -> Option<String> {
        match state {
            sqlstate::INSUFFICIENT_PRIVILEGE => self.spec.fixture.as_ref().map(|fixture| {
                format!(
                    "Fixture \"{0}\" is in schema \"{1}\"; its owner can grant privileges on it, or load one of your own into another schema: bench.load('{0}', options => '{{\"schema\": \"…\"}}').",
                    fixture.name, fixture.schema
                )
            }),
            sqlstate::UNDEFINED_TABLE => Some(
                "Clients are sessions of their own: what the calling transaction has created they see after its commit."
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Opens the gate and writes samples until the end.
    fn measure(&mut self) -> Result<(), UserError> {
        let header = self.segment.header();
        let clients = self.segment.shape().clients;
        let ns = |secs: f64| (secs * NS_PER_SEC) as i64;
        let o = &self.spec.options;
        let (ramp_ns, measure_ns) = match o.extent {
            // Time for every client to be woken, so that the first interval has all of them.
            Extent::Secs(secs) => (10_000_000 + 500_000 * i64::from(clients), Some(ns(secs))),
            // Each transaction counts.
            Extent::Transactions(_) => (0, None),
        };
        // Stamped before the gate opens: however late anybody wakes, no time is left out.
        self.timeline =
            Timeline::new(now_ns() + ramp_ns, ns(o.warmup_secs), measure_ns, ns(o.sample_interval_secs));
        header.timeline.store(&self.timeline);
        header.gate.store(1, Release);
        header.set_state(RunState::Running);
        for slot in self.segment.slots() {
            wake(slot.pid.load(Relaxed));
        }
        wake(header.caller_pid.load(Relaxed));
        self.measured = true;
        loop {
            let (_, end_ns) = self.timeline.bounds(self.next_interval);
            let over = self.all_over();
            if over || self.stop_reason().is_some() || now_ns() >= self.timeline.measure_end_ns {
                return Ok(());
            }
            // The last interval is read when every client has ended.
            let is_last = end_ns >= self.timeline.measure_end_ns;
            let now = now_ns();
            if !is_last && now >= end_ns {
                self.write_sample(end_ns)?;
                continue;
            }
            // Late wake-ups do no harm; the cap is for a stop that came without a latch.
            nap(((end_ns - now) / 1_000_000 + 1).min(200));
        }
    }

    /// Why the run is to end early.
    fn stop_reason(&mut self) -> Option<StopReason> {
        if termination_requested() {
            return Some(StopReason::Requested);
        }
        match self.segment.header().stop() {
            StopReason::None => None,
            reason => Some(reason),
        }
    }

    /// Whether every client has ended; counts those that ended without a word.
    fn all_over(&mut self) -> bool {
        self.lost = 0;
        let mut over = true;
        for client in 0..self.segment.shape().clients {
            let slot = self.segment.slot(client);
            if slot.is_over() {
                continue;
            }
            if crew::has_stopped(client) && !slot.is_over() {
                self.lost += 1;
            } else {
                over = false;
            }
        }
        over
    }

    /// Waits for the transactions under way; ends what does not end by itself.
    fn dismiss(&mut self) {
        let header = self.segment.header();
        let stop = self.stop_reason();
        let end_ns = &header.timeline.measure_end_ns;
        let now = now_ns();
        if header.gate.load(Relaxed) == 0 {
            header.request_stop(StopReason::Requested);
            self.stopped_at_ns = Some(now);
            self.segment.slots().for_each(|slot| wake(slot.pid.load(Relaxed)));
        } else if now < end_ns.load(Relaxed) {
            // All clients have ended: so has the run, with the last of them.
            let last = self.segment.slots().map(|slot| slot.ended_ns.load(Relaxed)).max();
            let end = if self.all_over() { last.unwrap_or(now).clamp(1, now) } else { now };
            end_ns.store(end, Relaxed);
            self.timeline.measure_end_ns = end;
        }
        self.stopped_at_ns = self.stopped_at_ns.or(stop.map(|_| now));
        let began = now;
        while !self.all_over() {
            if self.stopped_at_ns.is_none() && self.stop_reason().is_some() {
                self.stopped_at_ns = Some(now_ns());
            }
            let now = now_ns();
            let since_stop = self.stopped_at_ns.map_or(0, |at| now - at);
            if since_stop > STOP_CANCEL_NS && !self.canceled {
                self.canceled = true;
                self.cancel_statements();
            }
            let overdue = since_stop > STOP_TERMINATE_NS || now - began > DRAIN_NS;
            if overdue && !self.terminated {
                self.terminated = true;
                crew::terminate();
            }
            nap(20);
        }
        // Their statistics are flushed and their locks gone when the processes are.
        let deadline = now_ns() + 5_000_000_000;
        while !crew::all_stopped() && now_ns() < deadline {
            nap(10);
        }
    }

    fn cancel_statements(&self) {
        for slot in self.segment.slots().filter(|slot| !slot.is_over()) {
            let pid = slot.pid.load(Relaxed);
            if pid != 0 && super::is_backend(pid) {
                // SAFETY: a signal to a backend of this server, as pg_cancel_backend sends it.
                unsafe { libc::kill(pid, libc::SIGINT) };
            }
        }
    }

    /// Reads the next interval from all clients and writes it down. `end_ns` is where it ends in
    /// truth: earlier than planned when the run was stopped.
    fn write_sample(&mut self, end_ns: i64) -> Result<(), UserError> {
        let sample = self.read_interval(end_ns);
        recorder::sample(self.run_id, &sample, None)?;
        self.keep(sample);
        Ok(())
    }

    fn read_interval(&mut self, end_ns: i64) -> Sample {
        let interval = self.next_interval;
        self.segment.close_interval(interval, || nap(1));
        let (start_ns, _) = self.timeline.bounds(interval);
        let in_warmup = self.timeline.is_warmup(interval);
        let origin = if in_warmup { self.timeline.warmup_start_ns } else { self.timeline.measure_start_ns };
        let mut sample = Sample {
            in_warmup,
            elapsed_secs: (end_ns - origin) as f64 / NS_PER_SEC,
            secs: (end_ns - start_ns) as f64 / NS_PER_SEC,
            clients: 0,
            failed: 0,
            retried: 0,
            moments: Moments::default(),
            histogram: Histogram::new(),
        };
        for client in 0..self.segment.shape().clients {
            let mut active = !self.segment.slot(client).is_over();
            for (script, cell) in self.segment.cells(client, interval).iter().enumerate() {
                if !cell.holds(interval) {
                    continue;
                }
                active = true;
                let counts = cell.counts();
                sample.failed += cell.failed.get();
                sample.retried += cell.retried.get();
                sample.moments.merge(&cell.moments());
                sample.histogram.merge_counts(&counts);
                if !in_warmup {
                    self.histograms[script].merge_counts(&counts);
                }
            }
            sample.clients += u32::from(active);
        }
        self.next_interval += 1;
        sample
    }

    fn keep(&mut self, sample: Sample) {
        let progress = &self.segment.header().progress;
        progress.set_figures(ProgressFigures {
            elapsed_secs: sample.elapsed_secs,
            tps: sample.tps(),
            latency_avg_ms: sample.moments.mean_ns().unwrap_or(0.0) / 1e6,
            latency_stddev_ms: sample.moments.stddev_ns().unwrap_or(0.0) / 1e6,
        });
        progress.in_warmup.store(sample.in_warmup.into(), Relaxed);
        progress.clients.store(sample.clients, Relaxed);
        if !sample.in_warmup {
            self.moments.merge(&sample.moments);
            self.failed += sample.failed;
            progress.transactions.set(self.moments.count);
            progress.failed.set(self.failed);
        }
        progress.samples.fetch_add(1, Release);
        wake(self.segment.header().caller_pid.load(Relaxed));
        self.last = Some(sample);
    }

    /// Reads and writes what is left of the intervals after the last client has ended. A rest
    /// shorter than half an interval is joined to the sample before it.
    fn write_rest(&mut self) -> Result<(), UserError> {
        let planned_end = self.timeline.measure_end_ns;
        let end = if planned_end == i64::MAX { now_ns() } else { planned_end };
        loop {
            let (start_ns, interval_end) = self.timeline.bounds(self.next_interval);
            if start_ns >= end {
                return self.write_stragglers(start_ns);
            }
            let end_ns = interval_end.min(end);
            let sample = self.read_interval(end_ns);
            let short = sample.secs < self.spec.options.sample_interval_secs / 2.0;
            match self.last.take() {
                Some(mut last) if short && last.in_warmup == sample.in_warmup => {
                    let elapsed = last.elapsed_secs;
                    let alone = sample.clone();
                    last.join(&sample);
                    recorder::sample(self.run_id, &last, Some(elapsed))?;
                    self.keep(alone);
                }
                _ => {
                    recorder::sample(self.run_id, &sample, None)?;
                    self.keep(sample);
                }
            }
        }
    }

    /// Transactions that ended just after a stop, in an interval that the run no longer has, still
    /// count: they go to the last sample.
    fn write_stragglers(&mut self, end_ns: i64) -> Result<(), UserError> {
        let interval = self.next_interval;
        let clients = 0..self.segment.shape().clients;
        let any = |client| self.segment.cells(client, interval).iter().any(|cell| cell.holds(interval));
        if !clients.into_iter().any(any) {
            return Ok(());
        }
        let mut rest = self.read_interval(end_ns);
        let Some(mut last) = self.last.take().filter(|last| last.in_warmup == rest.in_warmup) else {
            return Ok(());
        };
        rest.elapsed_secs = last.elapsed_secs;
        last.join(&rest);
        recorder::sample(self.run_id, &last, Some(last.elapsed_secs))?;
        self.keep(rest);
        Ok(())
    }

    /// Writes everything that is known at the end.
    fn close(&mut self, failure: Option<UserError>) -> Result<(), UserError> {
        let measured = self.measured && failure.is_none();
        let mut outcome = if measured { self.write_rest() } else { Ok(()) };
        let errors = self.errors();
        let (status, error) = self.verdict(failure.or_else(|| outcome.clone().err()), &errors);
        let audit = if measured {
            self.audit().unwrap_or_else(|e| {
                outcome = Err(e);
                Vec::new()
            })
        } else {
            Vec::new()
        };
        let closing = Closing {
            status,
            error: error.as_ref(),
            horizon_held: self.segment.header().horizon_held.load(Relaxed) != 0,
            moments: self.moments,
            histograms: &self.histograms,
            errors: &errors,
            audit: &audit,
        };
        let finished = recorder::finish(self.run_id, &closing);
        if self.segment.header().stop() == StopReason::BlockedByCaller
            && let Some(error) = error
        {
            return Err(error);
        }
        outcome.and(finished)
    }

    fn audit(&self) -> Result<Vec<recorder::AuditLine>, UserError> {
        let after = counters::read(self.spec, &self.query_ids)?;
        let all_flushed = self.lost == 0 && !self.terminated;
        Ok(counters::audit(self.spec, self.segment, &self.before, &after, all_flushed))
    }

    /// The run's status, and what is to be said of it.
    fn verdict(&mut self, failure: Option<UserError>, errors: &[ErrorLine]) -> (Status, Option<UserError>) {
        let reason = self.stop_reason();
        if let Some(failure) = failure {
            let status = match reason {
                Some(_) => Status::Canceled,
                None if self.measured => Status::Incomplete,
                None => Status::Failed,
            };
            return (status, Some(failure));
        }
        match reason {
            Some(StopReason::BlockedByCaller) => {
                (Status::Incomplete, Some(stop_error(StopReason::BlockedByCaller)))
            }
            // Stopped by hand is complete as far as it went; the reason tells it from the rest.
            Some(reason) => (Status::Canceled, Some(stop_error(reason))),
            None => {
                let aborted = self.segment.slots().filter(|slot| slot.state() == ClientState::Aborted).count()
                    as u32
                    + self.lost;
                if aborted == 0 {
                    return (Status::Completed, None);
                }
                let clients = self.segment.shape().clients;
                let worst = errors.iter().find(|e| !is_retryable(&e.sqlstate)).or(errors.first());
                let (state, message) = worst
                    .map_or((sqlstate::ADMIN_SHUTDOWN.to_owned(), "terminated".to_owned()), |e| {
                        (e.sqlstate.clone(), e.message.clone())
                    });
                let error = UserError::new(&state, message)
                    .detail(format!("{aborted} of {clients} clients ended early."));
                (Status::Incomplete, Some(error))
            }
        }
    }

    /// Errors of all clients by SQLSTATE.
    fn errors(&self) -> Vec<ErrorLine> {
        let mut lines: Vec<ErrorLine> = Vec::new();
        for slot in self.segment.slots() {
            for entry in &slot.errors {
                let state = entry.sqlstate.load(Acquire);
                if state == 0 {
                    continue;
                }
                let sqlstate = crate::error::unpack(state);
                let first_at = entry.first_at.load(Relaxed);
                match lines.iter_mut().find(|line| line.sqlstate == sqlstate) {
                    Some(line) => {
                        line.count += entry.count.get();
                        line.first_at = line.first_at.min(first_at);
                    }
                    None => lines.push(ErrorLine {
                        sqlstate,
                        message: entry.message.get().unwrap_or_default(),
                        count: entry.count.get(),
                        first_at,
                    }),
                }
            }
        }
        if self.lost > 0 {
            lines.push(ErrorLine {
                sqlstate: sqlstate::ADMIN_SHUTDOWN.to_owned(),
                message: "client terminated".to_owned(),
                count: u64::from(self.lost),
                // SAFETY: reads the clock.
                first_at: unsafe { pg_sys::GetCurrentTimestamp() },
            });
        }
        lines
    }
}

fn is_retryable(state: &str) -> bool {
    state == "40001" || state == sqlstate::DEADLOCK_DETECTED
}

fn stop_error(reason: StopReason) -> UserError {
    match reason {
        StopReason::BlockedByCaller => UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "a client waits for a lock that is held by the session waiting for the run",
        )
        .hint("Commit before the call, or use bench.start."),
        StopReason::CallerGone => {
            UserError::new(sqlstate::QUERY_CANCELED, "canceled with the call of bench.run")
        }
        _ if termination_requested() => UserError::new(
            sqlstate::ADMIN_SHUTDOWN,
            "the coordinator was terminated by an administrator's command",
        ),
        _ => UserError::new(sqlstate::QUERY_CANCELED, "stopped by bench.stop"),
    }
}
