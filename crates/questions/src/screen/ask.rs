//! What a screen of settings runs: a duel for each setting of the session, combinations of levels for those of the server.

use bench_base::error::UserError;
use bench_model::spec::{Duel, object};
use bench_results::screen::{Factor, FactorKind, Screen};
use bench_stats::screen::{MOST_FACTORS, design};
use serde_json::{Map, Value, json};

use crate::sweep::Variant;

const EXAMPLE: &str =
    "For example: factors => '{\"work_mem\": [\"4MB\", \"64MB\"], \"jit\": [\"off\", \"on\"]}'.";

/// What is screened, from what SQL handed over: by name of a parameter, two values. `kind` says when it can be set.
///
/// # Errors
/// 22023 for what is no such object, and those of `kind`.
pub fn screen_of(
    factors: Value,
    margin: f64,
    kind: &mut dyn FnMut(&str) -> Result<FactorKind, UserError>,
) -> Result<Screen, UserError> {
    let given = object("factors", factors)?;
    if given.is_empty() || given.len() > MOST_FACTORS {
        let message = format!("factors must name 1 to {MOST_FACTORS} settings, not {}", given.len());
        return Err(UserError::invalid(message).hint(EXAMPLE));
    }
    let mut factors = Vec::new();
    for (name, levels) in given {
        let is_level = |level: &Value| matches!(level, Value::String(_) | Value::Number(_) | Value::Bool(_));
        let (a, b) = match levels.as_array().map(Vec::as_slice) {
            Some([a, b]) if is_level(a) && is_level(b) && a != b => (a.clone(), b.clone()),
            _ => {
                let message = format!("factor \"{name}\" must be an array of two different values");
                return Err(UserError::invalid(message).hint(EXAMPLE));
            }
        };
        let kind = kind(&name)?;
        factors.push(Factor { name, a, b, kind });
    }
    Ok(Screen { factors, margin })
}

/// The name of a combination of levels by its row in the design, from 0.
fn name_of(row: usize) -> String {
    format!("combination {:02}", row + 1)
}

/// The row of a combination by its name.
pub fn row_of(variant: &str) -> Option<usize> {
    variant.strip_prefix("combination ")?.parse::<usize>().ok()?.checked_sub(1)
}

/// The variants of a screen's sweep.
///
/// # Errors
/// Those of the arms of a duel.
pub fn variants(screen: &Screen) -> Result<Vec<Variant>, UserError> {
    let mut variants = Vec::new();
    for Factor { name, a, b, .. } in screen.factors.iter().filter(|factor| factor.kind == FactorKind::Session)
    {
        let arm = |level: &Value| json!({"settings": {name: level}});
        let duel = Duel::new(&arm(a), &arm(b))?;
        variants.push(Variant { name: name.clone(), duel: Some(duel), ..Variant::default() });
    }
    let combined: Vec<&Factor> = screen.combined().collect();
    if combined.is_empty() {
        return Ok(variants);
    }
    for (row, levels) in design(combined.len()).iter().enumerate() {
        let of = |kind: FactorKind| -> Map<String, Value> {
            let chosen = combined.iter().zip(levels).filter(|(factor, _)| factor.kind == kind);
            chosen
                .map(|(factor, b)| (factor.name.clone(), if *b { &factor.b } else { &factor.a }.clone()))
                .collect()
        };
        let (system, restart) = (of(FactorKind::System), of(FactorKind::Restart));
        variants.push(Variant { name: name_of(row), system, restart, ..Variant::default() });
    }
    Ok(variants)
}

#[cfg(test)]
mod tests {
    use bench_base::error::sqlstate;

    use super::*;

    fn kind(name: &str) -> Result<FactorKind, UserError> {
        match name {
            "shared_buffers" => Ok(FactorKind::Restart),
            "full_page_writes" => Ok(FactorKind::System),
            "jit" => Ok(FactorKind::Session),
            _ => Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "unrecognized")),
        }
    }

    #[test]
    fn settings_of_the_session_have_duels_and_others_are_combined() {
        let given = json!({"shared_buffers": ["1GB", "8GB"], "jit": ["off", "on"], "full_page_writes": [true, false]});
        let screen = screen_of(given, 0.02, &mut kind).unwrap();
        let variants = variants(&screen).unwrap();
        assert_eq!(variants.iter().filter(|variant| variant.duel.is_some()).count(), 1);
        let combined: Vec<&Variant> = variants.iter().filter(|variant| variant.duel.is_none()).collect();
        assert_eq!(combined.len(), design(2).len());
        for (row, variant) in combined.iter().enumerate() {
            assert_eq!(row_of(&variant.name), Some(row));
            assert!(
                variant.system.contains_key("full_page_writes")
                    && variant.restart.contains_key("shared_buffers")
            );
        }
        assert_eq!(row_of("jit"), None);
    }

    #[test]
    fn what_is_no_factor_is_refused() {
        for given in [
            json!({}),
            json!([]),
            json!({"jit": "on"}),
            json!({"jit": ["on"]}),
            json!({"jit": ["on", "on"]}),
            json!({"jit": ["on", {}]}),
            json!({"other": [1, 2]}),
        ] {
            assert!(screen_of(given.clone(), 0.02, &mut kind).is_err(), "{given}");
        }
    }
}
