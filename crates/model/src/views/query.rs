//! The queries of a target's monitoring connection, and their answers.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Replication, ServerCounters, counters_query, replication_query};

/// What of a server's statistics a role can read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Views {
    /// The server's server_version_num.
    pub version: i32,
    /// Views of pg_catalog that it has and does not show to the role.
    pub unreadable: Vec<String>,
}

/// What is asked of a target.
pub struct ViewsQuery {
    whole: String,
    /// What is said of waits, up to the processes.
    waits: String,
}

/// What one question is answered with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ViewsAnswer {
    counters: Option<Vec<Option<i64>>>,
    pub replication: Option<Replication>,
    /// Sessions by what they wait for, `type:event`, or `CPU` for those that wait for nothing.
    pub waits: Option<BTreeMap<String, i64>>,
}

impl ViewsAnswer {
    /// Reads an answer; `None` for what is none.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The server's counters, where they were asked for.
    pub fn server_counters(&self) -> Option<ServerCounters> {
        self.counters.as_ref().map(|values| ServerCounters::new(values.iter().copied()))
    }
}

impl ViewsQuery {
    /// Of a server with these views. `application_name` is that of the run's sessions, as a literal of SQL.
    pub fn new(views: &Views, application_name: &str) -> Self {
        let may = |view: &str| !views.unreadable.iter().any(|name| name == view);
        let replication = match may("pg_stat_replication") {
            true => format!("({})", replication_query()),
            false => "NULL".to_owned(),
        };
        let counters = counters_query(views.version, &views.unreadable);
        let waits = match may("pg_stat_activity") {
            true => format!(
                "'waits', (SELECT json_object_agg(w.event, w.sessions) FROM ( \
                     SELECT coalesce(a.wait_event_type || ':' || a.wait_event, 'CPU') AS event, count(*) AS sessions \
                     FROM pg_stat_activity a \
                     WHERE a.usename = session_user AND a.application_name = {application_name} \
                       AND a.state IS NOT NULL AND a.pid = ANY ('{{"
            ),
            false => String::new(),
        };
        let whole = format!("'counters', to_json(({counters})), 'replication', {replication}");
        Self { whole, waits }
    }

    /// The text of the question: what these processes wait for, and with `whole` everything else. `None` where there is
    /// nothing to ask.
    pub fn text(&self, whole: bool, pids: &[i32]) -> Option<String> {
        let asks_waits = !self.waits.is_empty() && !pids.is_empty();
        if !whole && !asks_waits {
            return None;
        }
        let mut text = "SELECT json_build_object(".to_owned();
        if whole {
            text.push_str(&self.whole);
        }
        if asks_waits {
            text.push_str(if whole { ", " } else { "" });
            text.push_str(&self.waits);
            for (place, pid) in pids.iter().enumerate() {
                // Writing into a text does not fail.
                let _ = write!(text, "{}{pid}", if place == 0 { "" } else { "," });
            }
            text.push_str("}'::int4[]) GROUP BY 1) w)");
        }
        text.push(')');
        Some(text)
    }
}
