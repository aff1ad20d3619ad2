//! What postgresql.auto.conf had of the parameters that a sweep or a capture has changed there, until it has that again.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use pgrx::JsonB;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::as_owner;
use super::work::is_led;
use crate::server::database;
use crate::server::rows::select;
use crate::server::spi::run;
use crate::shm::Work;

/// Who has changed parameters of the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changer {
    Sweep(i64),
    /// By its name.
    Capture(String),
}

/// By parameter; null for one that the file did not have.
pub type FileSettings = Map<String, Value>;

/// What is written into the file, and what it had before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedSettings {
    /// Written into the file, by name.
    pub set: BTreeMap<String, String>,
    /// What it had instead; null for nothing.
    pub own: FileSettings,
}

/// What the file has, and had, while a restart is waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForRestart {
    #[serde(flatten)]
    pub saved: SavedSettings,
    /// Parameters that a restart gives other values.
    pub pending: Vec<String>,
}

/// Keeps what the file has and is about to have, before it is changed; `None`: it has its own again.
pub fn keep_system_settings(changer: &Changer, settings: Option<&SavedSettings>) -> Result<(), UserError> {
    let settings = settings.map(|SavedSettings { set, own }| {
        JsonB(json!({"server": database::identity(), "set": set, "own": own}))
    });
    as_owner(|| {
        match changer {
            Changer::Sweep(sweep_id) => run(
                "UPDATE bench_internal.sweep_log SET system_settings = $2 WHERE sweep_id = $1",
                &[(*sweep_id).into(), settings.into()],
            ),
            Changer::Capture(name) => run(
                "UPDATE bench_internal.capture_list SET system_settings = $2 WHERE name = $1",
                &[name.as_str().into(), settings.into()],
            ),
        }
        .map(drop)
    })
}

/// What has not been put back.
pub struct Forgotten {
    /// By `own`, and by sweeps and captures whose processes are gone.
    pub settings: Vec<(Changer, SavedSettings)>,
    /// Whether another process has changed the file and is still at it.
    pub is_in_use: bool,
}

/// Forgets what sweeps and captures have not put back into another server's file, or have changed in a database that this one
/// is a copy of: a dump or CREATE DATABASE brings such rows.
fn disown_copies() -> Result<(), UserError> {
    for table in ["sweep_log", "capture_list"] {
        run(
            &format!(
                "UPDATE bench_internal.{table} SET system_settings = NULL WHERE system_settings IS NOT NULL \
                 AND system_settings ->> 'server' IS DISTINCT FROM $1"
            ),
            &[database::identity().into()],
        )?;
    }
    Ok(())
}

/// What sweeps and captures whose processes are gone, and `own`, have not put back.
pub fn forgotten_system_settings(own: Option<&Changer>) -> Result<Forgotten, UserError> {
    let of_sweeps = "SELECT sweep_id, segment, system_settings, status = 'waiting for restart' \
                     FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL";
    let of_captures = "SELECT l.name, EXISTS (SELECT FROM pg_stat_get_activity(l.pid) a WHERE a.pid IS NOT NULL AND a.backend_start <= l.started_at), \
                           l.system_settings FROM bench_internal.capture_list l WHERE l.system_settings IS NOT NULL";
    let (sweeps, captures) = as_owner(|| {
        disown_copies()?;
        let sweeps = select::<(i64, i64, Value, bool)>(of_sweeps, &[])?;
        Ok((sweeps, select::<(String, bool, Value)>(of_captures, &[])?))
    })?;
    let sweeps = sweeps
        .into_iter()
        // What waits for a restart goes on, though nobody leads it.
        .map(|(id, segment, settings, waits)| {
            (Changer::Sweep(id), waits || is_led(Work::Sweep(id), segment as u32), settings)
        });
    let captures =
        captures.into_iter().map(|(name, lives, settings)| (Changer::Capture(name), lives, settings));
    let mut forgotten = Forgotten { settings: Vec::new(), is_in_use: false };
    for (changer, lives, settings) in sweeps.chain(captures) {
        if lives && Some(&changer) != own {
            forgotten.is_in_use = true;
        } else {
            forgotten.settings.push((changer, serde_json::from_value(settings).unwrap_or_default()));
        }
    }
    Ok(forgotten)
}
