//! What is observed of a target: one connection, over which the server is asked the questions that this one is asked where
//! the run is here. Nothing waits for its answers but the run's beginning and its end, each for a moment.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::TargetSpec;
use bench_model::timeline::{Phase, Timeline};
use bench_model::views::{Replication, ServerCounters, ViewsAnswer, ViewsQuery};
use bench_protocol::foreign_server::Secrets;

use super::waits::WaitTimes;
use crate::driver::connection::{PolledSession, Route, failed};
use crate::error::warn;
use crate::server::process::{nap, now_ns};
use crate::server::spi::quote_literal;
use crate::shm::Segment;

/// Between two questions what the sessions wait for.
const LOOK_NS: i64 = 100_000_000;

/// A question is asked again after this many times of what its answer took: a target of many sessions is busy with it for a
/// twentieth of a processor's time at most.
const REST: i64 = 20;

/// The most time that one answer stands for: a target that stalls leaves its sessions' waits unknown.
const LONGEST_GAP_NS: i64 = 1_000_000_000;

/// The counters are asked for so long before an interval's end, or a quarter of the interval.
const LEAD_NS: i64 = 50_000_000;

/// How long a connection may take, and an answer.
const TIMEOUT_NS: i64 = 5_000_000_000;

/// Between two looks whether an answer has come: soon after the question, and later.
const SOON_NS: i64 = 4_000_000;
const LATER_NS: i64 = 20_000_000;

/// Pauses before a lost connection is tried again; each doubles the one before.
const LEAST_PAUSE_NS: i64 = 500_000_000;
const LONGEST_PAUSE_NS: i64 = 16_000_000_000;

/// How long the beginning of a run waits for the first answer, its end for the last, and for the end of the session.
const FIRST_NS: i64 = 2_000_000_000;
const LAST_NS: i64 = 250_000_000;

/// The longest answer that is taken, in bytes: some hundred wait events and standbys.
const LONGEST_ANSWER: usize = 1 << 17;

/// Where the connection is in its life.
enum Life {
    /// There is none; it is tried again then.
    Apart(i64),
    /// It has been begun then.
    Connecting(PolledSession, i64),
    Idle(PolledSession),
    /// A question, the whole one or of waits only, was asked then.
    Asked {
        session: PolledSession,
        whole: bool,
        asked_ns: i64,
    },
    Over,
}

/// What was seen since the last cut.
pub struct TargetObserved {
    pub waits: WaitTimes,
    /// `None` without an answer in this time, or without one before.
    pub counters: Option<ServerCounters>,
    /// At the last answer.
    pub replication: Option<Replication>,
}

/// Watches the target of one run.
pub struct TargetWatch<'a> {
    segment: &'a Segment,
    target: String,
    routes: Vec<Route>,
    way: usize,
    life: Life,
    question: ViewsQuery,
    /// The pids that the protocol tells of are not those of the sessions.
    is_pooled: bool,
    timeline: Option<Timeline>,
    next_turn_ns: i64,
    next_waits_ns: i64,
    next_whole_ns: i64,
    pause_ns: i64,
    /// When the sessions were last seen; 0: not yet.
    seen_ns: i64,
    waits: WaitTimes,
    /// The counters at the last cut, and as they were last told.
    before: Option<ServerCounters>,
    latest: Option<ServerCounters>,
    replication: Option<Replication>,
    /// The counters have been told since the last cut.
    is_fresh: bool,
    complained: bool,
}

impl<'a> TargetWatch<'a> {
    /// Watches a target, over a connection that is made at the first turn. `application_name` is that of the sessions, where
    /// it is not the target's.
    ///
    /// # Errors
    /// 08001 for files of certificates and keys.
    pub fn new(
        segment: &'a Segment,
        target: &TargetSpec,
        application_name: Option<&str>,
        secrets: &Secrets,
    ) -> Result<Self, UserError> {
        let routes = Route::of_watch(target, secrets)?;
        let own_name = routes.first().map_or("", Route::application_name);
        let question = ViewsQuery::new(&target.views, &quote_literal(application_name.unwrap_or(own_name)));
        Ok(Self {
            segment,
            target: target.name.clone(),
            life: if routes.is_empty() { Life::Over } else { Life::Apart(0) },
            routes,
            way: 0,
            question,
            is_pooled: target.is_pooled,
            timeline: None,
            next_turn_ns: 0,
            next_waits_ns: i64::MAX,
            next_whole_ns: 0,
            pause_ns: LEAST_PAUSE_NS,
            seen_ns: 0,
            waits: WaitTimes::default(),
            before: None,
            latest: None,
            replication: None,
            is_fresh: false,
            complained: false,
        })
    }

    /// Waits for the first answer, as long as nothing else is to be done. A target that is slow to answer is heard of later.
    pub fn prepare(&mut self, is_stopped: impl Fn() -> bool) {
        let deadline_ns = now_ns() + FIRST_NS;
        while self.latest.is_none() && now_ns() < deadline_ns && !self.complained && !is_stopped() {
            self.turn(now_ns());
            nap(2);
        }
    }

    /// An interval begins: what was seen before is forgotten.
    pub fn begin(&mut self, now_ns: i64, timeline: &Timeline) {
        self.timeline = Some(*timeline);
        self.before = self.latest;
        self.is_fresh = false;
        self.waits = WaitTimes::default();
        self.seen_ns = now_ns;
        self.next_waits_ns = now_ns;
        self.plan_whole(now_ns);
        self.next_turn_ns = now_ns;
    }

    /// The measurement begins earlier than planned; the intervals before it stay as they are.
    pub fn move_measurement(&mut self, timeline: &Timeline) {
        self.timeline = self.timeline.map(|_| *timeline);
    }

    /// The counters are asked for shortly before the interval ends.
    fn plan_whole(&mut self, now_ns: i64) {
        let of = |timeline: &Timeline, interval| {
            let (start_ns, end_ns) = timeline.bounds(interval);
            end_ns - LEAD_NS.min((end_ns - start_ns) / 4)
        };
        self.next_whole_ns = match &self.timeline {
            Some(timeline) => match timeline.phase_at(now_ns) {
                Phase::Interval(interval) if of(timeline, interval) > now_ns => of(timeline, interval),
                Phase::Interval(interval) => of(timeline, interval.saturating_add(1)).max(now_ns + LOOK_NS),
                Phase::Ramp => of(timeline, 0),
                Phase::Drain => i64::MAX,
            },
            None => i64::MAX,
        };
    }

    /// When [`TargetWatch::turn`] has something to do next.
    pub fn next_turn_ns(&self) -> i64 {
        self.next_turn_ns
    }

    /// Does what can be done without waiting.
    pub fn turn(&mut self, now_ns: i64) {
        if now_ns < self.next_turn_ns {
            return;
        }
        let life = std::mem::replace(&mut self.life, Life::Over);
        match self.advance(life, now_ns) {
            Ok(life) => self.life = life,
            Err(error) => self.lose(&error, now_ns),
        }
        self.next_turn_ns = match &self.life {
            Life::Apart(again_ns) => *again_ns,
            Life::Connecting(_, since_ns) | Life::Asked { asked_ns: since_ns, .. } => {
                now_ns + if now_ns - since_ns < 10 * SOON_NS { SOON_NS } else { LATER_NS }
            }
            Life::Idle(_) => self.next_waits_ns.min(self.next_whole_ns),
            Life::Over => i64::MAX,
        };
    }

    fn advance(&mut self, life: Life, now_ns: i64) -> Result<Life, UserError> {
        let route = &self.routes[self.way];
        match life {
            Life::Apart(again_ns) if now_ns < again_ns => Ok(Life::Apart(again_ns)),
            Life::Apart(_) => Ok(match PolledSession::connect(route)? {
                Some(session) => Life::Connecting(session, now_ns),
                None => Life::Apart(now_ns + SOON_NS),
            }),
            Life::Connecting(mut session, since_ns) => {
                if session.turn(route)? {
                    // Before the first statement.
                    route.check(session.session())?;
                    self.next_whole_ns = now_ns;
                    return self.advance(Life::Idle(session), now_ns);
                }
                self.check_silence(since_ns, now_ns)?;
                Ok(Life::Connecting(session, since_ns))
            }
            Life::Idle(mut session) => {
                let whole = now_ns >= self.next_whole_ns;
                let pids = match self.is_pooled || now_ns < self.next_waits_ns {
                    true => Vec::new(),
                    false => self.segment.remote_pids(),
                };
                if now_ns >= self.next_waits_ns {
                    self.next_waits_ns = now_ns + LOOK_NS;
                }
                let Some(text) = self.question.text(whole, &pids) else { return Ok(Life::Idle(session)) };
                session.ask(&text)?;
                self.advance(Life::Asked { session, whole, asked_ns: now_ns }, now_ns)
            }
            Life::Asked { mut session, whole, asked_ns } => {
                if session.turn(route)? {
                    let answer = session.value()?.and_then(|json| ViewsAnswer::parse(&json));
                    self.take(answer.unwrap_or_default(), whole, asked_ns, now_ns);
                    return Ok(Life::Idle(session));
                }
                if session.received() > LONGEST_ANSWER {
                    let message = format!("the answer has more than {LONGEST_ANSWER} bytes");
                    return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
                }
                self.check_silence(asked_ns, now_ns)?;
                Ok(Life::Asked { session, whole, asked_ns })
            }
            Life::Over => Ok(Life::Over),
        }
    }

    fn check_silence(&self, since_ns: i64, now_ns: i64) -> Result<(), UserError> {
        if now_ns - since_ns < TIMEOUT_NS {
            return Ok(());
        }
        Err(failed(&self.routes[self.way].to, "timeout expired"))
    }

    fn take(&mut self, answer: ViewsAnswer, whole: bool, asked_ns: i64, now_ns: i64) {
        self.pause_ns = LEAST_PAUSE_NS;
        if whole {
            self.latest = answer.server_counters();
            self.before = self.before.or(self.latest);
            self.replication.clone_from(&answer.replication);
            self.is_fresh = true;
            self.plan_whole(now_ns);
        }
        if self.next_waits_ns != i64::MAX {
            self.next_waits_ns = self.next_waits_ns.max(now_ns + REST * (now_ns - asked_ns));
        }
        if let Some(sessions) = answer.waits {
            self.waits.add_remote(sessions, (now_ns - self.seen_ns).clamp(0, LONGEST_GAP_NS));
            self.seen_ns = now_ns;
        }
    }

    /// Without its connection nothing is known of the target, until there is another.
    fn lose(&mut self, error: &UserError, now_ns: i64) {
        if !std::mem::replace(&mut self.complained, true) {
            warn(
                format!("could not observe target \"{}\": {}", self.target, error.message),
                "The results of the run are not affected, but some of its observations are missing.",
            );
        }
        (self.before, self.latest, self.replication) = (None, None, None);
        self.way = (self.way + 1) % self.routes.len();
        self.life = Life::Apart(now_ns + self.pause_ns);
        self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
    }

    /// What was seen of the interval that ends now.
    pub fn cut(&mut self) -> TargetObserved {
        let replication = self.replication.take();
        // Without a new answer, nothing is known of this interval's end: what comes later has its counts.
        let mut counters = None;
        if std::mem::take(&mut self.is_fresh) {
            counters = self.latest.zip(self.before).map(|(now, before)| now.since(before));
            self.before = self.latest;
        }
        TargetObserved { waits: std::mem::take(&mut self.waits), counters, replication }
    }

    /// The measuring has ended: asks a last time, and waits a moment for the answer.
    pub fn end(&mut self) -> TargetObserved {
        let began_ns = now_ns();
        self.next_waits_ns = i64::MAX;
        self.timeline = None;
        self.next_whole_ns = began_ns;
        let mut is_told = false;
        while !is_told && now_ns() < began_ns + LAST_NS && self.may_answer() {
            self.next_turn_ns = 0;
            self.turn(now_ns());
            is_told = matches!(self.life, Life::Idle(_)) && self.next_whole_ns > began_ns;
            if !is_told {
                nap(1);
            }
        }
        self.next_whole_ns = i64::MAX;
        self.cut()
    }

    fn may_answer(&self) -> bool {
        matches!(self.life, Life::Idle(_) | Life::Asked { .. })
    }

    /// Ends the session, and waits a moment for the server to do so as well.
    pub fn close(&mut self) {
        let life = std::mem::replace(&mut self.life, Life::Over);
        self.next_turn_ns = i64::MAX;
        if let Life::Idle(mut session) = life {
            session.terminate(&self.routes[self.way]);
            let deadline_ns = now_ns() + LAST_NS;
            while !session.is_closed() && now_ns() < deadline_ns {
                nap(1);
            }
        }
    }
}
