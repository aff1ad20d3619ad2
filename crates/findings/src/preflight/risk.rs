//! What would spoil a run.

use bench_results::{Severity, topics};

topics! {
    /// What a risk is about.
    pub enum RiskTopic {
        Autovacuum = "autovacuum",
        Bloat = "bloat",
        Checkpoint = "checkpoint",
        Dead = "dead",
        Fixture = "fixture",
        Governor = "governor",
        Horizon = "horizon",
        Load = "load",
        Lock = "lock",
        Nodes = "nodes",
        Safety = "safety",
        Slot = "slot",
        Statistics = "statistics",
        Swap = "swap",
        Target = "target",
        Timeout = "timeout",
        Vacuum = "vacuum",
    }
}

/// What would spoil a run, in a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    pub severity: Severity,
    pub topic: RiskTopic,
    pub finding: String,
    /// What to do.
    pub advice: String,
    /// Whether a run raises a NOTICE of it before it starts.
    pub announced: Announced,
}

/// Before which runs a risk is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// It is certain and this server's own.
    Always,
    /// Those whose figures somebody may want to see again: see [`LONG_SECS`](super::situation::LONG_SECS).
    InLongRuns,
    Never,
}

impl Announced {
    /// Always or never.
    pub(super) fn if_so(is_announced: bool) -> Self {
        if is_announced { Self::Always } else { Self::Never }
    }
}

impl Risk {
    /// The finding as the message of a NOTICE: without a capital and a full stop.
    pub fn message(&self) -> String {
        let text = self.finding.strip_suffix('.').unwrap_or(&self.finding);
        let mut characters = text.chars();
        characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
    }
}

/// A risk that does not keep figures from being right, and that no run tells.
pub fn notice(topic: RiskTopic, finding: String, advice: impl Into<String>) -> Risk {
    Risk { severity: Severity::Notice, topic, finding, advice: advice.into(), announced: Announced::Never }
}

/// A risk of figures that are not the same tomorrow.
pub fn warning(topic: RiskTopic, finding: String, advice: impl Into<String>, announced: Announced) -> Risk {
    Risk { severity: Severity::Warning, topic, finding, advice: advice.into(), announced }
}
