//! How a run ended, as the columns status have it.

/// How a run, or a sweep of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Completed,
    /// Clients were lost on the way, or runs of a sweep; the rest is there.
    Incomplete,
    Canceled,
    /// Nothing was measured.
    Failed,
}

impl RunStatus {
    /// As the columns status have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }
}
