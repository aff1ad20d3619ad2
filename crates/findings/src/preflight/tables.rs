//! The run's tables: vacuums and locks of others, dead rows, bloat, statistics.

use std::collections::BTreeMap;

use bench_base::number::bytes;
use bench_base::sentence::{counted, first_few, grouped, percent, seconds};
use bench_model::spec::Before;

use crate::preflight::situation::{
    Announced, BlockingLock, FixtureState, PlannedRun, Risk, RiskTopic, Situation, TableStatistics, notice,
    warning,
};

/// Seconds from which on somebody's vacuum is announced before a run: autovacuum is through with a small table long before.
const LONG_VACUUM: f64 = 1.0;

/// Dead rows that matter: as a share of all, and at least so many.
const DEAD_SHARE: f64 = 0.2;
const DEAD: f64 = 1000.0;
/// Dead rows that are announced before a run: as many as live ones, and at least so many.
const DEAD_SHARE_TOLD: f64 = 0.5;
const DEAD_TOLD: f64 = 100_000.0;

/// How much larger tables are than they were loaded, by which factor and at least so many bytes, with hardly more rows.
const BLOAT: f64 = 1.5;
const BLOAT_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
const SAME_ROWS: f64 = 1.1;

/// The risks of the tables.
pub fn risks(situation: &Situation) -> Vec<Risk> {
    let (plan, server) = (&situation.plan, &situation.server);
    let mut risks = Vec::new();
    if let Some(locks) = &server.locks {
        risks.extend(vacuums(locks));
        risks.extend(obstacles(plan, locks));
    }
    // Tables that are loaded anew have none of all that.
    if plan.does(Before::Reload) {
        return risks;
    }
    risks.extend(server.fixtures.iter().flatten().filter_map(bloat));
    let is_held = server.holders.iter().flatten().any(|holder| holder.is_old());
    let tables = server.tables.as_deref().unwrap_or_default();
    let settings = Settings(server.settings.as_ref());
    // A VACUUM that is held back removes nothing.
    if !plan.does(Before::Vacuum) || is_held {
        risks.extend(dead(tables, &settings));
    }
    if !plan.does(Before::Vacuum) {
        risks.extend(due(tables, &settings));
        risks.extend(unanalyzed(tables));
    }
    risks
}

fn vacuums(locks: &[BlockingLock]) -> Option<Risk> {
    let at_work: Vec<&BlockingLock> = locks
        .iter()
        .filter(|lock| lock.mode == "ShareUpdateExclusiveLock" && lock.command.is_some())
        .collect();
    let described: Vec<String> = at_work
        .iter()
        .map(|lock| {
            let command = lock.command.as_deref().unwrap_or_default();
            let by = if lock.is_autovacuum == Some(true) { "autovacuum, " } else { "" };
            let since = lock.secs.map_or(String::new(), |secs| format!(", since {}", seconds(secs)));
            format!("{command} of {} ({by}pid {}{since})", lock.relation, lock.pid)
        })
        .collect();
    let is_long = at_work.iter().any(|lock| lock.secs.is_some_and(|secs| secs >= LONG_VACUUM));
    (!at_work.is_empty()).then(|| {
        warning(
            RiskTopic::Vacuum,
            format!("Maintenance is running on tables of the run: {}.", first_few(&described)),
            "Wait for its end, or use before => 'vacuum'.",
            Announced::if_so(is_long),
        )
    })
}

/// Locks that the run's statements would wait for.
fn obstacles(plan: &PlannedRun, locks: &[BlockingLock]) -> Option<Risk> {
    let blocks = |lock: &&BlockingLock| match lock.mode.as_str() {
        "AccessExclusiveLock" => true,
        "ShareLock" | "ShareRowExclusiveLock" | "ExclusiveLock" => plan.writes,
        _ => false,
    };
    let described: Vec<String> = locks
        .iter()
        .filter(blocks)
        .map(|lock| format!("the session with pid {} holds {} on {}", lock.pid, lock.mode, lock.relation))
        .collect();
    (!described.is_empty()).then(|| {
        warning(
            RiskTopic::Lock,
            format!("The clients would wait for a lock: {}.", first_few(&described)),
            "Wait for the end of that transaction, or end it.",
            Announced::Never,
        )
    })
}

impl TableStatistics {
    fn all(&self) -> f64 {
        self.live + self.dead
    }

    fn is_full_of_dead(&self, share: f64, least: f64) -> bool {
        self.dead >= least && self.dead >= share * self.all()
    }
}

fn dead(tables: &[TableStatistics], settings: &Settings) -> Option<Risk> {
    let full: Vec<&TableStatistics> =
        tables.iter().filter(|table| table.is_full_of_dead(DEAD_SHARE, DEAD)).collect();
    let described: Vec<String> = full
        .iter()
        .map(|table| {
            let due = if settings.wants_vacuum(table).is_some() { ", autovacuum is due" } else { "" };
            let share = percent(table.dead / table.all());
            format!("{} has {} dead rows ({share}{due})", table.relation, grouped(table.dead))
        })
        .collect();
    let is_announced = full.iter().any(|table| table.is_full_of_dead(DEAD_SHARE_TOLD, DEAD_TOLD));
    (!full.is_empty()).then(|| {
        warning(
            RiskTopic::Dead,
            format!("Tables have many dead rows: {}.", first_few(&described)),
            "Use before => 'vacuum' or 'reload', so that every run starts from the same state.",
            Announced::if_so(is_announced),
        )
    })
}

/// The parameters of autovacuum.
struct Settings<'a>(Option<&'a BTreeMap<String, String>>);

impl Settings<'_> {
    fn of_server(&self, name: &str) -> Option<&str> {
        self.0?.get(name).map(String::as_str)
    }

    /// A parameter as it is in force for a table, whose storage parameters have the same names.
    fn number(&self, table: &TableStatistics, name: &str) -> Option<f64> {
        let own = table.options.as_ref().and_then(|options| options.get(name));
        own.map(String::as_str).or_else(|| self.of_server(name))?.parse().ok()
    }

    fn is_on(&self, table: &TableStatistics) -> bool {
        let own = table.options.as_ref().and_then(|options| options.get("autovacuum_enabled"));
        let is_off = |value: &String| ["off", "false", "no", "0"].contains(&value.to_lowercase().as_str());
        self.of_server("autovacuum") == Some("on")
            && self.of_server("track_counts") == Some("on")
            && !own.is_some_and(is_off)
    }

    /// So many rows, and by how many rows autovacuum is called for (relation_needs_vacanalyze in autovacuum.c).
    fn threshold(&self, table: &TableStatistics, base: &str, factor: &str) -> Option<f64> {
        let (base, factor) = (self.number(table, base)?, self.number(table, factor)?);
        Some(base + factor * table.reltuples.max(0.0))
    }

    /// Whether autovacuum is due because of dead rows, and its threshold.
    fn wants_vacuum(&self, table: &TableStatistics) -> Option<f64> {
        let threshold =
            self.threshold(table, "autovacuum_vacuum_threshold", "autovacuum_vacuum_scale_factor")?;
        // From PostgreSQL 18 on; -1: no limit.
        let most = self.number(table, "autovacuum_vacuum_max_threshold").filter(|&most| most >= 0.0);
        let threshold = most.map_or(threshold, |most| threshold.min(most));
        (self.is_on(table) && table.dead > threshold).then_some(threshold)
    }

    /// Why autovacuum is due, other than by dead rows that are announced already.
    fn reasons(&self, table: &TableStatistics) -> Vec<String> {
        let mut reasons = Vec::new();
        if !table.is_full_of_dead(DEAD_SHARE, DEAD)
            && let Some(threshold) = self.wants_vacuum(table)
        {
            reasons.push(format!("{} dead rows, threshold {}", grouped(table.dead), grouped(threshold)));
        }
        let base = "autovacuum_vacuum_insert_threshold";
        let inserts = self.threshold(table, base, "autovacuum_vacuum_insert_scale_factor");
        let counts_inserts = self.number(table, base).is_some_and(|base| base >= 0.0);
        if let Some(threshold) = inserts.filter(|&threshold| counts_inserts && table.inserted > threshold) {
            reasons.push(format!(
                "{} rows inserted, threshold {}",
                grouped(table.inserted),
                grouped(threshold)
            ));
        }
        let changes =
            self.threshold(table, "autovacuum_analyze_threshold", "autovacuum_analyze_scale_factor");
        if let Some(threshold) = changes.filter(|&threshold| table.modified > threshold) {
            reasons.push(format!(
                "{} rows changed since ANALYZE, threshold {}",
                grouped(table.modified),
                grouped(threshold)
            ));
        }
        if self.is_on(table) { reasons } else { Vec::new() }
    }
}

fn due(tables: &[TableStatistics], settings: &Settings) -> Option<Risk> {
    let mut described = Vec::new();
    for table in tables {
        let mut reasons = settings.reasons(table);
        // To prevent wraparound it comes even where it is off.
        let most = settings.number(table, "autovacuum_freeze_max_age");
        // A table's cannot be above the server's.
        let server = settings.of_server("autovacuum_freeze_max_age").and_then(|most| most.parse().ok());
        let most = most.zip(server).map(|(own, server): (f64, f64)| own.min(server));
        if most.is_some_and(|most| table.xid_age > most) {
            reasons.push(format!("{} transactions old, to prevent wraparound", grouped(table.xid_age)));
        }
        if !reasons.is_empty() {
            described.push(format!("{} ({})", table.relation, reasons.join("; ")));
        }
    }
    let naptime = settings.of_server("autovacuum_naptime").and_then(|secs| secs.parse().ok());
    let when = naptime.map_or(String::new(), |secs| format!(", within {}", seconds(secs)));
    (!described.is_empty()).then(|| {
        warning(
            RiskTopic::Autovacuum,
            format!("Autovacuum is due{when}, for {}.", first_few(&described)),
            "Use before => 'vacuum', so that vacuum runs before each run and not during some of them.",
            Announced::InLongRuns,
        )
    })
}

fn unanalyzed(tables: &[TableStatistics]) -> Option<Risk> {
    let never: Vec<String> = tables
        .iter()
        .filter(|table| table.reltuples < 0.0 && table.live > 0.0)
        .map(|table| table.relation.clone())
        .collect();
    (!never.is_empty()).then(|| {
        notice(
            RiskTopic::Statistics,
            format!(
                "{} never vacuumed or analyzed: {}. Plans are based on default estimates, and change with the first \
                 ANALYZE.",
                match never.len() {
                    1 => "A table was".to_owned(),
                    count => format!("{} were", counted(count as u64, "table")),
                },
                first_few(&never)
            ),
            "Run VACUUM (ANALYZE) on them, or use before => 'vacuum'.",
        )
    })
}

fn bloat(fixture: &FixtureState) -> Option<Risk> {
    let (loaded, now, live) = (fixture.loaded_bytes?, fixture.bytes?, fixture.live?);
    let has_same_rows = fixture.rows > 0.0 && live <= SAME_ROWS * fixture.rows;
    if !has_same_rows || now < BLOAT * loaded || now - loaded < BLOAT_BYTES {
        return None;
    }
    Some(warning(
        RiskTopic::Bloat,
        format!(
            "The tables of fixture \"{}\" have grown from {} to {} since they were loaded, without more rows.",
            fixture.name,
            bytes(Some(loaded)),
            bytes(Some(now))
        ),
        "Compare only runs on tables of the same size. Reload the fixture with bench.load or before => 'reload'.",
        Announced::Never,
    ))
}
