//! What pg_stat_statements of a run's targets counts of its statements: read once before and once after, over connections of
//! their own.

use std::collections::HashMap;

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::{Observation, RunSpec, TargetSpec};
use bench_protocol::foreign_server::Secrets;

use crate::driver::connection::{PolledSession, Route};
use crate::server::process::{nap, now_ns};

/// How long a reading may take.
const LONGEST_NS: i64 = 2_000_000_000;

/// The longest answer that is taken, in bytes: a line for each statement of a run.
const LONGEST_ANSWER: usize = 1 << 22;

/// What was counted of statements, by their identifiers.
pub type CountsById = HashMap<i64, Counts>;

/// The targets whose counts are read, in the order of a duel's arms.
#[derive(Default)]
pub struct TargetStatements {
    targets: [Option<(Route, String)>; 2],
}

impl TargetStatements {
    /// Those of a run's targets that count its statements.
    pub fn new(spec: &RunSpec, secrets: &[Secrets; 2]) -> Self {
        let arm = |place: usize| {
            let target = [&spec.target, &spec.other_target][place].as_ref();
            let target = target.filter(|_| spec.observation != Observation::Off)?;
            let question = question(spec, target, spec.other_target.is_some().then_some(place))?;
            Some((Route::of_watch(target, &secrets[place]).ok()?.into_iter().next()?, question))
        };
        Self { targets: [arm(0), arm(1)] }
    }

    /// What has been counted by now; `None` for a target that does not count, or does not say so in time.
    pub fn read(&self, is_stopped: impl Fn() -> bool) -> [Option<CountsById>; 2] {
        [0, 1].map(|place| {
            let (route, question) = self.targets[place].as_ref()?;
            ask(route, question, &is_stopped).ok().flatten()
        })
    }
}

/// What is asked of a target: the counts of the run's statements, or of those of an arm.
fn question(spec: &RunSpec, target: &TargetSpec, arm: Option<usize>) -> Option<String> {
    let view = target.statements.as_ref()?;
    let scripts = spec.scripts.iter().filter(|script| arm.is_none() || script.arm == arm);
    let ids: Vec<String> = scripts.flat_map(|script| script.query_ids.values()).map(i64::to_string).collect();
    let sql = format!(
        "SELECT json_agg(json_build_array(s.queryid, s.calls, s.rows, s.shared_blks_hit, s.shared_blks_read, \
             s.total_exec_time)) \
         FROM {view} s JOIN pg_roles r ON r.oid = s.userid AND r.rolname = current_user \
         JOIN pg_database d ON d.oid = s.dbid \
             AND d.datname = current_database() \
         WHERE s.toplevel AND s.queryid = ANY ('{{{}}}'::int8[])",
        ids.join(",")
    );
    (!ids.is_empty()).then_some(sql)
}

/// Asks over a connection that is made for it.
fn ask(
    route: &Route,
    question: &str,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<CountsById>, UserError> {
    let deadline_ns = now_ns() + LONGEST_NS;
    let may_wait = || now_ns() < deadline_ns && !is_stopped();
    let mut session = loop {
        match PolledSession::connect(route)? {
            Some(session) => break session,
            None if may_wait() => nap(2),
            None => return Ok(None),
        }
    };
    let mut is_asked = false;
    loop {
        if !session.turn(route)? {
            if !may_wait() || session.received() > LONGEST_ANSWER {
                return Ok(None);
            }
            nap(2);
        } else if is_asked {
            break;
        } else {
            route.check(session.session())?;
            session.ask(question)?;
            is_asked = true;
        }
    }
    let answer = session.value()?;
    session.terminate(route);
    type Line = (i64, i64, i64, i64, i64, f64);
    let lines: Option<Vec<Line>> = answer.and_then(|json| serde_json::from_str(&json).ok());
    let counts = |(id, calls, rows, hit, read, exec_ms)| (id, Counts { calls, rows, hit, read, exec_ms });
    // Without a line there is nothing that was counted yet.
    Ok(Some(lines.unwrap_or_default().into_iter().map(counts).collect()))
}
