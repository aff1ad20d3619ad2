//! From one arm of a duel to the other.

use std::sync::atomic::Ordering::*;

use bench_base::error::SqlError;
use bench_model::client::{Consequence, Step, TransactionRecorder};

use super::{Connection, WaitsFor};
use crate::run::connections::arms::ArmMessage;
use crate::run::connections::shared::JobState;

impl Connection<'_> {
    /// Makes the session that of an arm, for which so many messages have been `sent` and answered; the next step, unless the
    /// server has to answer another one first.
    pub(super) fn switch(&mut self, arm: usize, sent: usize, shared: &mut JobState) -> Option<Step> {
        if sent > 0
            && let Some(error) = self.session.outcome().error
        {
            return Some(not_switched(error, shared));
        }
        let asked = match shared.arms[arm].get(sent) {
            Some(ArmMessage::Reset(text)) => self.session.query(text),
            Some(ArmMessage::Set(text, values)) => {
                self.session.capture(false);
                self.session.execute_params(text, values.iter().map(Some))
            }
            None => {
                self.cell.arm.store(arm as u32 + 1, Relaxed);
                let client = self.client.as_mut()?;
                return Some(client.switched(&shared.workload, &mut shared.recorder));
            }
        };
        if let Err(error) = asked {
            return Some(not_switched(error.into(), shared));
        }
        self.flush();
        self.waits = WaitsFor::Switched { arm, sent: sent + 1 };
        None
    }
}

/// A client that cannot be of its arm is over.
#[cold]
fn not_switched(error: SqlError, shared: &mut JobState) -> Step {
    shared.recorder.error(&error, Consequence::Uncounted);
    Step::End(Some(Box::new(error)))
}
