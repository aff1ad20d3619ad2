//! What the parameters of a statement meet: the server's own analysis, with types for the parameters found by it, and a walk
//! over the query tree that looks for the column beside each parameter.
//!
//! Unlike in a client's loop nothing here is in a hurry: all of the server's functions are called through guards, so that an
//! ERROR unwinds as a panic does.

mod analysis;
mod columns;
mod operators;

pub use analysis::{analyse, analyse_with_texts};
pub use operators::{
    Analysed, How, Meeting, NeededPrivileges, Object, Occurrence, Parameter, ParameterPlace, TextMask,
    TypeShape, Wrap, shape_of, text_mask,
};
