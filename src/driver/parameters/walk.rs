//! What a walk over a query tree has seen so far.

use std::collections::HashMap;

use pgrx::pg_sys;

use super::operators::{bare, is_a};
use super::{Analysed, How, Meeting, Occurrence, ParameterPlace, Wrap};

/// An expression over one relation's columns.
#[derive(Clone)]
pub(super) struct ColumnExpression {
    pub entry: *mut pg_sys::RangeTblEntry,
    pub expression: String,
    pub column: Option<i16>,
    /// The type of the expression.
    pub type_oid: pg_sys::Oid,
    pub wrap: Option<Wrap>,
}

/// A query, and the one around it.
pub(super) struct Scope {
    pub query: *mut pg_sys::Query,
    pub parent: Option<usize>,
}

/// What has been seen.
#[derive(Default)]
pub(super) struct Walk {
    pub found: Analysed,
    pub scopes: Vec<Scope>,
    entries: Vec<*mut pg_sys::RangeTblEntry>,
    /// How many parameters are to equal an expression of an occurrence.
    equal: HashMap<(usize, String), usize>,
    /// The last expression whose source was looked for, with its scope: a list of thousands of parameters meets the same.
    pub last_source: Option<(usize, *mut pg_sys::Node, Option<ColumnExpression>)>,
    /// The extensions whose objects are no application's, looked up once.
    own: Option<[pg_sys::Oid; 2]>,
}

impl Walk {
    /// The parameter that an expression is, but for casts: its place among the parameters.
    ///
    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn parameter(&self, node: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            let node = bare(node);
            if !is_a(node, pg_sys::NodeTag::T_Param) {
                return None;
            }
            let parameter: *mut pg_sys::Param = node.cast();
            let is_external = (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
            let place = usize::try_from((*parameter).paramid - 1).ok()?;
            (is_external && place < self.found.parameters.len()).then_some(place)
        }
    }

    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn place(&mut self, node: *mut pg_sys::Node, place: ParameterPlace) {
        // SAFETY: by the caller.
        if let Some(parameter) = unsafe { self.parameter(node) }
            && self.found.parameters[parameter].place == ParameterPlace::Elsewhere
        {
            self.found.parameters[parameter].place = place;
        }
    }

    /// A condition says more than a value that is written, and the first one as much as another.
    pub(super) fn meet_at(&mut self, parameter: usize, mut meeting: Meeting) {
        let is_value = |how: How| matches!(how, How::Insert | How::Set);
        if let Some(old) = &self.found.parameters[parameter].meeting
            && (!is_value(old.how) || is_value(meeting.how))
        {
            return;
        }
        if meeting.how == How::Equal {
            // The same column once more: in IN or behind OR another row's.
            let count = self.equal.entry((meeting.occurrence, meeting.expression.clone())).or_default();
            meeting.row = *count;
            *count += 1;
        }
        self.found.parameters[parameter].meeting = Some(meeting);
    }

    pub(super) fn occurrence(&mut self, entry: *mut pg_sys::RangeTblEntry, is_target: bool) -> usize {
        if let Some(place) = self.entries.iter().position(|&known| known == entry) {
            self.found.occurrences[place].is_target |= is_target;
            return place;
        }
        self.entries.push(entry);
        // SAFETY: a live entry of a relation.
        let relation = unsafe { (*entry).relid };
        self.found.occurrences.push(Occurrence { relation, is_target });
        self.entries.len() - 1
    }

    /// Whether an object is this extension's, or pg_stat_statements'.
    pub(super) fn is_own(&mut self, class: pg_sys::Oid, object: pg_sys::Oid) -> bool {
        let names = [c"pgbench_ext", c"pg_stat_statements"];
        // SAFETY: catalog look-ups inside a transaction.
        unsafe {
            let own = *self
                .own
                .get_or_insert_with(|| names.map(|name| pg_sys::get_extension_oid(name.as_ptr(), true)));
            let extension = pg_sys::getExtensionOfObject(class, object);
            extension != pg_sys::InvalidOid && own.contains(&extension)
        }
    }
}
