//! A variant: what distinguishes some runs of a sweep from the others.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{check_count, check_text, object};
use bench_results::experiment::{AppliedSql, Variant};
use serde_json::{Map, Value};

/// The group `sql`.
///
/// # Errors
/// 22023 for anything but texts under both names.
fn applied_sql(variant: &str, mut group: Map<String, Value>) -> Result<AppliedSql, UserError> {
    const EXAMPLE: &str = "For example: \"sql\": {\"apply\": \"CREATE INDEX i ON t (a)\", \"revert\": \"DROP INDEX i\"}. An empty \
                           array of revert says that there is nothing to be undone.";
    let mut texts = |key: &str| {
        let texts = match group.remove(key) {
            Some(Value::String(text)) => Some(vec![text]),
            Some(Value::Array(texts)) => {
                texts.into_iter().map(|text| text.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        let texts: Vec<String> = texts.ok_or_else(|| {
            UserError::invalid(format!(
                "sql of variant \"{variant}\" must have {key}, a text or an array of texts"
            ))
            .hint(EXAMPLE)
        })?;
        check_count(key, texts.len(), MAX_STATEMENTS, "statements")?;
        texts.iter().try_for_each(|text| check_text(key, text))?;
        Ok::<_, UserError>(texts)
    };
    let (apply, revert) = (texts("apply")?, texts("revert")?);
    if let Some(unknown) = group.keys().next() {
        return Err(UserError::invalid(format!(
            "sql of variant \"{variant}\" has an unrecognized key: \"{unknown}\""
        ))
        .hint(EXAMPLE));
    }
    if apply.is_empty() {
        return Err(UserError::invalid(format!("sql of variant \"{variant}\" applies nothing")).hint(EXAMPLE));
    }
    Ok(AppliedSql { apply, revert })
}

/// More statements than this in one variant are taken for a mistake.
const MAX_STATEMENTS: usize = 1000;

/// Arguments of bench.run that a variant may have. No parameter of the server has such a name.
pub(crate) const ARGUMENTS: [&str; 6] =
    ["driver", "query_mode", "target", "jobs", "reconnect", "on_disconnect"];

/// Those that belong to a driver.
pub(crate) const OF_DRIVERS: [&str; 5] = ["driver", "target", "jobs", "reconnect", "on_disconnect"];

/// The variants of a sweep, the baseline first: those of an object in the order of their names, for jsonb does not keep
/// that in which they were written, and those of an array of objects in its order.
pub fn parse(variants: Value) -> Result<Vec<Variant>, UserError> {
    let named: Vec<(String, Value)> = match variants {
        Value::Array(objects) if !objects.is_empty() => {
            let objects = objects.into_iter().map(|of| object("each of variants", of));
            objects.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
        }
        variants => object("variants", variants)?.into_iter().collect(),
    };
    if named.is_empty() {
        return Ok(vec![Variant::default()]);
    }
    let mut names = BTreeSet::new();
    if let Some((twice, _)) = named.iter().find(|(name, _)| !names.insert(name)) {
        return Err(UserError::invalid(format!("variant \"{twice}\" is given twice")));
    }
    let variants: Vec<Variant> =
        named.into_iter().map(|(name, changes)| one(name, changes)).collect::<Result<_, _>>()?;
    let without = variants.iter().find(|variant| variant.load.is_empty());
    match (without, variants.iter().find(|variant| !variant.load.is_empty())) {
        // It would find whatever was loaded last.
        (Some(without), Some(with)) => Err(UserError::invalid(format!(
            "variant \"{}\" loads a fixture and variant \"{}\" does not",
            with.name, without.name
        ))
        .hint("Give each variant a \"load\", or none.")),
        _ => Ok(variants),
    }
}

/// Keys that arms of a duel have and variants have not.
const OF_DUELS: [&str; 6] = ["hide_indexes", "plan_advice", "results", "role_settings", "script", "workload"];

/// A variant by its name and what it changes.
pub fn one(name: String, changes: Value) -> Result<Variant, UserError> {
    const EXAMPLE: &str = "For example: variants => '{\"off\": {\"synchronous_commit\": \"off\"}, \"on\": {\"synchronous_commit\": \"on\"}}'.";
    if name.trim().is_empty() {
        return Err(UserError::invalid("a variant must have a name").hint(EXAMPLE));
    }
    let Value::Object(changes) = changes else {
        return Err(UserError::invalid(format!("variant \"{name}\" must be a JSON object")).hint(EXAMPLE));
    };
    let mut variant = Variant { name, ..Variant::default() };
    for (key, value) in changes {
        if OF_DUELS.contains(&key.as_str()) {
            let message = format!("variants cannot differ in \"{key}\"");
            return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                .hint("Arms of a duel can: SELECT * FROM bench.duel(…) with the same a and b."));
        }
        let Value::Object(group) = value else {
            if ARGUMENTS.contains(&key.as_str()) {
                check_argument(&variant.name, &key, &value)?;
                variant.run.insert(key, value);
            } else {
                variant.settings.insert(key, value);
            }
            continue;
        };
        match key.as_str() {
            "settings" => variant.settings.extend(group),
            "variables" => variant.variables = group,
            "load" => variant.load = group,
            "system" => variant.system = group,
            "restart" => variant.restart = group,
            "sql" => variant.sql = Some(applied_sql(&variant.name, group)?),
            _ => {
                return Err(UserError::invalid(format!(
                    "variant \"{}\" has an unrecognized group: \"{key}\"",
                    variant.name
                ))
                .hint(
                    "Besides configuration parameters, a variant can have driver, query_mode, target, jobs, reconnect and \
                     on_disconnect, and the groups settings, variables, load, system, restart and sql.",
                ));
            }
        }
    }
    Ok(variant)
}

/// Whether an argument of bench.run has a value of its type; what it may be, the run checks.
fn check_argument(variant: &str, name: &str, value: &Value) -> Result<(), UserError> {
    let (fits, what) = match name {
        "jobs" => (value.as_i64().is_some_and(|jobs| i32::try_from(jobs).is_ok()), "a whole number"),
        "reconnect" => (value.is_boolean(), "true or false"),
        _ => (value.is_string(), "text"),
    };
    if fits {
        Ok(())
    } else {
        Err(UserError::invalid(format!("{name} of variant \"{variant}\" must be {what}")))
    }
}
