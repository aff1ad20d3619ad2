//! What goes on in the server for a while: checkpoints, vacuums and analyzes of the run's tables, index builds and rewrites
//! of them, base backups, connections of standbys and reloads of the configuration, with their begin and end.

use std::collections::{HashMap, HashSet};

use bench_base::error::UserError;
use bench_base::words;
use bench_model::views::ServerCounters;
use bench_results::Event;
use pgrx::pg_sys;

use crate::server::database;
use crate::server::guc;
use crate::server::process::NS_PER_SEC;
use crate::server::spi::{fetch, fetch_all};
use crate::server::transaction::transaction;

/// Reloads that follow each other within so many seconds are one event.
const RELOAD_SECS: f64 = 1.0;

/// Watches for events of one run.
pub struct EventWatch {
    tables: Vec<pg_sys::Oid>,
    /// When measuring begins, by CLOCK_MONOTONIC, and the same moment in seconds since 1970.
    origin_ns: i64,
    origin_epoch: f64,
    /// Where recovery would begin after the last checkpoint that has begun: a new one moves it first of all.
    redo: u64,
    /// The checkpoint under way, as an index of `events`.
    checkpoint: Option<usize>,
    /// When a checkpoint was seen to be under way before the run, by CLOCK_MONOTONIC.
    checkpoint_before_ns: Option<i64>,
    /// What was under way before the run.
    under_way_before: HashSet<Work>,
    /// When tables were last looked at, in seconds since 1970.
    looked_epoch: f64,
    /// Checkpoints that began since the last look.
    begun: i64,
    /// How often each table was vacuumed and analyzed so far: by hand and automatically.
    counts: HashMap<Work, (i64, i64)>,
    /// What is under way on a table, as an index of `events`.
    under_way: HashMap<Work, usize>,
    /// What processes are doing, and where it is in `events`; nowhere if it was begun before the run by a standby.
    tasks: HashMap<Task, Option<usize>>,
    /// All tables' counts at the last look.
    summary: Summary,
    events: Vec<Event>,
}

impl EventWatch {
    /// A watch over these tables.
    pub fn new(tables: Vec<pg_sys::Oid>) -> Self {
        Self {
            tables,
            origin_ns: 0,
            origin_epoch: 0.0,
            redo: 0,
            checkpoint: None,
            checkpoint_before_ns: None,
            under_way_before: HashSet::new(),
            looked_epoch: 0.0,
            begun: 0,
            counts: HashMap::new(),
            under_way: HashMap::new(),
            tasks: HashMap::new(),
            summary: Summary::default(),
            events: Vec::new(),
        }
    }

    /// Reads what was before.
    pub fn prepare(&mut self, now_ns: i64) -> Result<(), UserError> {
        self.redo = database::redo_pointer();
        guc::take_pending_reload();
        self.checkpoint_before_ns = (!is_complete(self.redo)?).then_some(now_ns);
        self.summary = self.summary()?;
        let standbys = self.summary.tasks.iter().filter(|task| task.kind == STANDBY);
        self.tasks = standbys.map(|task| (task.clone(), None)).collect();
        for row in self.work_rows()? {
            self.counts.insert(row.work, row.counts);
            if row.running_since.is_some() {
                self.under_way_before.insert(row.work);
            }
        }
        Ok(())
    }

    /// Begins. `origin_ns` and `origin_epoch` are the moment that measuring begins.
    pub fn begin(&mut self, now_ns: i64, origin_ns: i64, origin_epoch: f64) {
        self.origin_ns = origin_ns;
        self.origin_epoch = origin_epoch;
        self.looked_epoch = self.epoch(now_ns);
        if let Some(seen_ns) = self.checkpoint_before_ns.take() {
            // Nobody knows since when.
            self.push_checkpoint(seen_ns);
            // It has been counted already.
            if let Some(event) = self.events.last_mut() {
                event.detail = Some("begun before the run".to_owned());
            }
        }
    }

    /// Measuring begins at another moment, by CLOCK_MONOTONIC.
    pub fn move_origin(&mut self, origin_ns: i64) {
        let later_secs = (self.origin_ns - origin_ns) as f64 / NS_PER_SEC;
        self.origin_ns = origin_ns;
        self.origin_epoch -= later_secs;
        for event in &mut self.events {
            event.started += later_secs;
            event.ended = event.ended.map(|ended| ended + later_secs);
        }
    }

    fn elapsed(&self, now_ns: i64) -> f64 {
        (now_ns - self.origin_ns) as f64 / NS_PER_SEC
    }

    fn epoch(&self, now_ns: i64) -> f64 {
        self.origin_epoch + self.elapsed(now_ns)
    }

    fn push_checkpoint(&mut self, now_ns: i64) {
        self.checkpoint = Some(self.events.len());
        self.events.push(Event {
            kind: "checkpoint".to_owned(),
            started: self.elapsed(now_ns),
            ..Event::default()
        });
    }

    /// Looks whether a checkpoint has begun, or the configuration was reloaded.
    pub fn look_for_begins(&mut self, now_ns: i64) {
        let elapsed = self.elapsed(now_ns);
        let is_recent = |event: &Event| event.kind == "reload" && elapsed - event.started < RELOAD_SECS;
        if guc::take_pending_reload() && !self.events.last().is_some_and(is_recent) {
            let (started, ended) = (elapsed, Some(elapsed));
            self.events.push(Event { kind: "reload".to_owned(), started, ended, ..Event::default() });
        }
        let redo = database::redo_pointer();
        if redo != self.redo {
            // Whatever was under way has ended: there is never more than one.
            self.end_checkpoint(now_ns);
            self.redo = redo;
            self.begun += 1;
            self.push_checkpoint(now_ns);
        }
    }

    /// Looks whether the checkpoint under way has ended.
    pub fn look_for_its_end(&mut self, now_ns: i64) -> Result<(), UserError> {
        if self.checkpoint.is_some() && is_complete(self.redo)? {
            self.end_checkpoint(now_ns);
        }
        Ok(())
    }

    fn end_checkpoint(&mut self, now_ns: i64) {
        if let Some(index) = self.checkpoint.take() {
            self.events[index].ended = Some(self.elapsed(now_ns));
        }
    }

    /// How many checkpoints have begun since the last time it was asked.
    pub fn take_begun(&mut self) -> i64 {
        std::mem::take(&mut self.begun)
    }

    /// Says of the checkpoints what the server counted them as.
    pub fn label_checkpoints(&mut self, counted: &ServerCounters) {
        let count = |counter: Option<i64>| counter.unwrap_or_default();
        let kind = match (count(counted.checkpoints_timed), count(counted.checkpoints_requested)) {
            (0, 0) => return,
            (_, 0) => "timed",
            (0, _) => "requested",
            // Which is which cannot be told.
            _ => return,
        };
        let unlabelled = |event: &&mut Event| event.kind == "checkpoint" && event.detail.is_none();
        if let Some(event) = self.events.iter_mut().find(unlabelled) {
            event.detail = Some(kind.to_owned());
        }
    }

    /// Looks whether a vacuum, an analyze or a backup has begun or ended.
    pub fn look_for_work(&mut self, now_ns: i64) -> Result<(), UserError> {
        let now = self.summary()?;
        let before = std::mem::replace(&mut self.summary, now);
        let is_new = self.summary.done != before.done;
        let is_under_way = self.summary.under_way > 0 || !self.under_way.is_empty();
        self.follow_tasks(now_ns);
        if !self.tables.is_empty() && (is_new || is_under_way) {
            for row in self.work_rows()? {
                self.follow(&row, now_ns);
            }
        }
        self.looked_epoch = self.epoch(now_ns);
        Ok(())
    }

    fn follow_tasks(&mut self, now_ns: i64) {
        let elapsed = self.elapsed(now_ns);
        let (summary, events) = (&self.summary, &mut self.events);
        for task in &summary.tasks {
            self.tasks.entry(task.clone()).or_insert_with(|| {
                let (kind, relation) = (task.kind.clone(), task.relation.clone());
                events.push(Event { kind, relation, started: elapsed, ..Event::default() });
                Some(events.len() - 1)
            });
        }
        self.tasks.retain(|task, index| {
            let is_under_way = summary.tasks.contains(task);
            if let (Some(index), false) = (index, is_under_way) {
                events[*index].ended = Some(elapsed);
            }
            is_under_way
        });
    }

    fn follow(&mut self, row: &WorkRow, now_ns: i64) {
        let before = self.counts.insert(row.work, row.counts).unwrap_or_default();
        for (is_auto, had, has, last) in
            [(false, before.0, row.counts.0, row.last), (true, before.1, row.counts.1, row.last_auto)]
        {
            if has <= had {
                continue;
            }
            let ended = last.map_or(self.elapsed(now_ns), |epoch| epoch - self.origin_epoch);
            let index = self.under_way.remove(&row.work).unwrap_or_else(|| {
                // It began and ended between two looks: all that is known is its end.
                self.push_work(row, is_auto, ended)
            });
            self.events[index].ended = Some(ended);
        }
        match (row.running_since, self.under_way.get(&row.work)) {
            (Some((epoch, is_auto)), None) => {
                // Its command may have been at other tables before this one.
                let epoch = if self.under_way_before.remove(&row.work) {
                    epoch
                } else {
                    epoch.max(self.looked_epoch)
                };
                let index = self.push_work(row, is_auto, epoch - self.origin_epoch);
                self.under_way.insert(row.work, index);
            }
            // It was canceled.
            (None, Some(&index)) => {
                self.events[index].ended = Some(self.elapsed(now_ns));
                self.under_way.remove(&row.work);
            }
            _ => {}
        }
    }

    fn push_work(&mut self, row: &WorkRow, is_auto: bool, started: f64) -> usize {
        let kind = format!("{}{}", if is_auto { "auto" } else { "" }, row.work.kind.as_str());
        self.events.push(Event { kind, relation: Some(row.name.clone()), started, ..Event::default() });
        self.events.len() - 1
    }

    /// What tells whether anything is new.
    fn summary(&self) -> Result<Summary, UserError> {
        let found = transaction(|| {
            fetch_all(
                "SELECT (SELECT coalesce(sum(pg_stat_get_vacuum_count(t) \
                             + pg_stat_get_autovacuum_count(t) + pg_stat_get_analyze_count(t) \
                             + pg_stat_get_autoanalyze_count(t)), 0)::int8 \
                         FROM unnest($1) AS t), \
                        (SELECT count(*) FROM ( \
                             SELECT p.relid, p.datname FROM pg_stat_progress_vacuum p \
                             UNION ALL SELECT p.relid, p.datname FROM pg_stat_progress_analyze p) p \
                         WHERE p.relid = ANY ($1) AND p.datname = current_database()), \
                        EXISTS (SELECT FROM pg_stat_get_progress_info('BASEBACKUP')) \
                            OR EXISTS (SELECT FROM pg_stat_get_progress_info('CREATE INDEX')) \
                            OR EXISTS (SELECT FROM pg_stat_get_progress_info($2)) \
                            OR EXISTS (SELECT FROM pg_stat_get_wal_senders())",
                &[self.tables.clone().into(), REWRITE.to_uppercase().into()],
                |row| {
                    let summary = Summary {
                        done: row.get::<i64>(1)?.unwrap_or_default(),
                        under_way: row.get::<i64>(2)?.unwrap_or_default(),
                        tasks: Vec::new(),
                    };
                    Ok((summary, row.get::<bool>(3)?.unwrap_or_default()))
                },
            )
        })?;
        let Some((mut summary, has_tasks)) = found.into_iter().next() else { return Ok(Summary::default()) };
        // Planning this takes longer than all the rest, and mostly there is nothing.
        if has_tasks {
            summary.tasks = self.task_rows()?;
        }
        Ok(summary)
    }

    fn task_rows(&self) -> Result<Vec<Task>, UserError> {
        let query = format!(
            "SELECT t.pid, t.kind, t.relid::regclass::text FROM ( \
                         SELECT b.pid, 'backup', NULL::oid FROM pg_stat_progress_basebackup b \
                         UNION ALL SELECT w.pid, 'standby', NULL FROM pg_stat_get_wal_senders() w \
                         LEFT JOIN LATERAL pg_stat_get_activity(w.pid) a ON true \
                         WHERE a.application_name IS DISTINCT FROM 'pg_basebackup' \
                         UNION ALL SELECT i.pid, lower(replace(i.command, ' CONCURRENTLY', '')), i.relid \
                         FROM pg_stat_progress_create_index i \
                         WHERE i.relid = ANY ($1) AND i.datname = current_database() \
                         UNION ALL SELECT c.pid, lower(c.command), c.relid \
                         FROM pg_stat_progress_{REWRITE} c \
                         WHERE c.relid = ANY ($1) AND c.datname = current_database()) AS t (pid, kind, relid)"
        );
        transaction(|| {
            fetch_all(&query, &[self.tables.clone().into()], |row| {
                Ok(Task {
                    pid: row.get::<i32>(1)?.unwrap_or_default(),
                    kind: row.get::<String>(2)?.unwrap_or_default(),
                    relation: row.get(3)?,
                })
            })
        })
    }

    fn work_rows(&self) -> Result<Vec<WorkRow>, UserError> {
        let mut rows = self.rows_of(WorkKind::Vacuum)?;
        rows.extend(self.rows_of(WorkKind::Analyze)?);
        Ok(rows)
    }

    fn rows_of(&self, kind: WorkKind) -> Result<Vec<WorkRow>, UserError> {
        let word = kind.as_str();
        let query = format!(
            "SELECT t, t::regclass::text, \
                    pg_stat_get_{word}_count(t), pg_stat_get_auto{word}_count(t), \
                    date_part('epoch', pg_stat_get_last_{word}_time(t)), \
                    date_part('epoch', pg_stat_get_last_auto{word}_time(t)), \
                    date_part('epoch', a.query_start), a.backend_type = 'autovacuum worker' \
             FROM unnest($1) AS t \
             LEFT JOIN (pg_stat_progress_{word} p JOIN pg_stat_activity a USING (pid)) \
                 ON p.relid = t AND p.datname = current_database()"
        );
        transaction(|| {
            fetch_all(&query, &[self.tables.clone().into()], |row| {
                let table = row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid);
                let since = row.get::<f64>(7)?;
                Ok(WorkRow {
                    work: Work { table, kind },
                    name: row.get::<String>(2)?.unwrap_or_default(),
                    counts: (row.get::<i64>(3)?.unwrap_or_default(), row.get::<i64>(4)?.unwrap_or_default()),
                    last: row.get(5)?,
                    last_auto: row.get(6)?,
                    running_since: since.zip(row.get::<bool>(8)?),
                })
            })
        })
    }

    /// All events, in the order of their begin.
    pub fn take(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by(|a, b| a.started.total_cmp(&b.started));
        events
    }
}

words! {
    /// What is done to tables by hand and automatically, by the words of its views, functions and events.
    #[derive(Hash)]
    enum WorkKind {
        Vacuum = "vacuum",
        Analyze = "analyze",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Work {
    table: pg_sys::Oid,
    kind: WorkKind,
}

/// How often it was done, and whether it is under way. Times are seconds since 1970.
struct WorkRow {
    work: Work,
    name: String,
    /// By hand and automatically.
    counts: (i64, i64),
    last: Option<f64>,
    last_auto: Option<f64>,
    /// Since when one is under way, and whether it is automatic.
    running_since: Option<(f64, bool)>,
}

/// What a look reads first.
#[derive(Default)]
struct Summary {
    /// Vacuums and analyzes of all tables so far.
    done: i64,
    under_way: i64,
    tasks: Vec<Task>,
}

/// What a process does for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Task {
    pid: i32,
    /// As an event's.
    kind: String,
    relation: Option<String>,
}

/// What the server calls the commands that write a table anew, as CLUSTER does, where it shows their progress.
const REWRITE: &str = if cfg!(since_19) { "repack" } else { "cluster" };

/// The kind of a standby's connection. It lasts.
const STANDBY: &str = "standby";

/// Whether the checkpoint with this redo pointer has ended: the control file is written last.
fn is_complete(redo: u64) -> Result<bool, UserError> {
    let lsn = format!("{:X}/{:X}", redo >> 32, redo & 0xFFFF_FFFF);
    let sql = "SELECT redo_lsn >= $1::pg_lsn FROM pg_control_checkpoint()";
    Ok(transaction(|| fetch::<bool>(sql, &[lsn.as_str().into()]))?.unwrap_or(true))
}
