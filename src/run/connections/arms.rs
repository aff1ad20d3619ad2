//! The arms of a duel over connections: what makes a session that of an arm.

use bench_model::spec::Duel;

/// Something to be sent where a stretch of an arm begins.
pub enum ArmMessage {
    /// Takes back what only the other arm sets.
    Reset(String),
    /// Sets its own parameters, with these values.
    Set(String, Vec<String>),
}

/// All that is to be sent for an arm. Names of parameters are plain ones (`Duel::check`): they need no quotes.
pub fn messages(duel: &Duel, arm: usize) -> Vec<ArmMessage> {
    let own = &duel.arms[arm].settings;
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let others = duel.arms[1 - arm].settings.iter().filter(|(name, _)| !is_own(name));
    let resets: Vec<String> = others.map(|(name, _)| format!("RESET {name}")).collect();
    let calls = (1..=own.len())
        .map(|number| format!("pg_catalog.set_config(${}, ${}, false)", 2 * number - 1, 2 * number));
    let calls: Vec<String> = calls.collect();
    let values = own.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
    let mut messages = Vec::new();
    if !resets.is_empty() {
        messages.push(ArmMessage::Reset(resets.join("; ")));
    }
    if !calls.is_empty() {
        messages.push(ArmMessage::Set(format!("SELECT {}", calls.join(", ")), values.collect()));
    }
    messages
}
