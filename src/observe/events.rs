//! What goes on in the server for a while: checkpoints and vacuums of the run's tables, with their begin and end.

use std::collections::{HashMap, HashSet};

use bench_core::document::Event;
use bench_core::error::UserError;
use bench_core::views::ServerCounters;
use pgrx::pg_sys;

use crate::server::database;
use crate::server::process::NS_PER_SEC;
use crate::server::spi::{fetch, fetch_all};
use crate::server::transaction::transaction;

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
    /// Tables that were being vacuumed before the run.
    vacuumed_before: HashSet<pg_sys::Oid>,
    /// When vacuums were last looked for, in seconds since 1970.
    looked_epoch: f64,
    /// Checkpoints that began since the last look.
    begun: i64,
    /// Vacuums of each table so far: by hand and automatic.
    vacuums: HashMap<pg_sys::Oid, (i64, i64)>,
    /// The vacuum under way of a table, as an index of `events`.
    under_way: HashMap<pg_sys::Oid, usize>,
    /// Vacuums of all tables at the last look.
    vacuumed: i64,
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
            vacuumed_before: HashSet::new(),
            looked_epoch: 0.0,
            begun: 0,
            vacuums: HashMap::new(),
            under_way: HashMap::new(),
            vacuumed: 0,
            events: Vec::new(),
        }
    }

    /// Reads what was before.
    pub fn prepare(&mut self, now_ns: i64) -> Result<(), UserError> {
        self.redo = database::redo_pointer();
        self.checkpoint_before_ns = (!is_complete(self.redo)?).then_some(now_ns);
        self.vacuumed = self.vacuum_count()?.0;
        for row in self.vacuum_rows()? {
            self.vacuums.insert(row.table, row.counts);
            if row.running_since.is_some() {
                self.vacuumed_before.insert(row.table);
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

    /// Looks whether a checkpoint has begun.
    pub fn look_for_checkpoint(&mut self, now_ns: i64) {
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

    /// Looks whether a vacuum has begun or ended.
    pub fn look_for_vacuums(&mut self, now_ns: i64) -> Result<(), UserError> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let (vacuumed, running) = self.vacuum_count()?;
        if vacuumed != self.vacuumed || running > 0 || !self.under_way.is_empty() {
            self.vacuumed = vacuumed;
            for row in self.vacuum_rows()? {
                self.follow(&row, now_ns);
            }
        }
        self.looked_epoch = self.epoch(now_ns);
        Ok(())
    }

    fn follow(&mut self, row: &VacuumRow, now_ns: i64) {
        let before = self.vacuums.insert(row.table, row.counts).unwrap_or_default();
        for (is_auto, had, has, last) in
            [(false, before.0, row.counts.0, row.last), (true, before.1, row.counts.1, row.last_auto)]
        {
            if has <= had {
                continue;
            }
            let ended = last.map_or(self.elapsed(now_ns), |epoch| epoch - self.origin_epoch);
            let index = self.under_way.remove(&row.table).unwrap_or_else(|| {
                // It began and ended between two looks: all that is known is its end.
                self.push_vacuum(row, is_auto, ended)
            });
            self.events[index].ended = Some(ended);
        }
        match (row.running_since, self.under_way.get(&row.table)) {
            (Some((epoch, is_auto)), None) => {
                // Its command may have vacuumed other tables before this one.
                let epoch = if self.vacuumed_before.remove(&row.table) {
                    epoch
                } else {
                    epoch.max(self.looked_epoch)
                };
                let index = self.push_vacuum(row, is_auto, epoch - self.origin_epoch);
                self.under_way.insert(row.table, index);
            }
            // It was canceled.
            (None, Some(&index)) => {
                self.events[index].ended = Some(self.elapsed(now_ns));
                self.under_way.remove(&row.table);
            }
            _ => {}
        }
    }

    fn push_vacuum(&mut self, row: &VacuumRow, is_auto: bool, started: f64) -> usize {
        self.events.push(Event {
            kind: if is_auto { "autovacuum" } else { "vacuum" }.to_owned(),
            relation: Some(row.name.clone()),
            started,
            ..Event::default()
        });
        self.events.len() - 1
    }

    /// Vacuums of all tables so far, and how many are under way.
    fn vacuum_count(&self) -> Result<(i64, i64), UserError> {
        let counts = transaction(|| {
            fetch::<Vec<i64>>(
                "SELECT ARRAY[(SELECT coalesce(pg_catalog.sum(pg_catalog.pg_stat_get_vacuum_count(t) \
                                   + pg_catalog.pg_stat_get_autovacuum_count(t)), 0)::pg_catalog.int8 \
                               FROM pg_catalog.unnest($1) AS t), \
                              (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_progress_vacuum p \
                               WHERE p.relid = ANY ($1) AND p.datname = pg_catalog.current_database())]",
                &[self.tables.clone().into()],
            )
        })?
        .unwrap_or_default();
        Ok((counts.first().copied().unwrap_or_default(), counts.get(1).copied().unwrap_or_default()))
    }

    fn vacuum_rows(&self) -> Result<Vec<VacuumRow>, UserError> {
        transaction(|| {
            fetch_all(
                "SELECT t, t::pg_catalog.regclass::pg_catalog.text, \
                        pg_catalog.pg_stat_get_vacuum_count(t), pg_catalog.pg_stat_get_autovacuum_count(t), \
                        pg_catalog.date_part('epoch', pg_catalog.pg_stat_get_last_vacuum_time(t)), \
                        pg_catalog.date_part('epoch', pg_catalog.pg_stat_get_last_autovacuum_time(t)), \
                        pg_catalog.date_part('epoch', a.query_start), a.backend_type = 'autovacuum worker' \
                 FROM pg_catalog.unnest($1) AS t \
                 LEFT JOIN (pg_catalog.pg_stat_progress_vacuum p JOIN pg_catalog.pg_stat_activity a USING (pid)) \
                     ON p.relid = t AND p.datname = pg_catalog.current_database()",
                &[self.tables.clone().into()],
                |row| {
                    let since = row.get::<f64>(7)?;
                    Ok(VacuumRow {
                        table: row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid),
                        name: row.get::<String>(2)?.unwrap_or_default(),
                        counts: (
                            row.get::<i64>(3)?.unwrap_or_default(),
                            row.get::<i64>(4)?.unwrap_or_default(),
                        ),
                        last: row.get(5)?,
                        last_auto: row.get(6)?,
                        running_since: since.zip(row.get::<bool>(8)?),
                    })
                },
            )
        })
    }

    /// All events, in the order of their begin.
    pub fn take(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by(|a, b| a.started.total_cmp(&b.started));
        events
    }
}

/// A table's vacuums. Times are seconds since 1970.
struct VacuumRow {
    table: pg_sys::Oid,
    name: String,
    /// By hand and automatic.
    counts: (i64, i64),
    last: Option<f64>,
    last_auto: Option<f64>,
    /// Since when one is under way, and whether it is automatic.
    running_since: Option<(f64, bool)>,
}

/// Whether the checkpoint with this redo pointer has ended: the control file is written last.
fn is_complete(redo: u64) -> Result<bool, UserError> {
    let lsn = format!("{:X}/{:X}", redo >> 32, redo & 0xFFFF_FFFF);
    let sql = "SELECT redo_lsn >= $1::pg_catalog.pg_lsn FROM pg_catalog.pg_control_checkpoint()";
    Ok(transaction(|| fetch::<bool>(sql, &[lsn.as_str().into()]))?.unwrap_or(true))
}
