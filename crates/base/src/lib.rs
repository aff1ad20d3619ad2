//! The ground that all other crates stand on.
//!
//! | module | contents |
//! |---|---|
//! | [`error`] | an error with SQLSTATE, DETAIL and HINT |
//! | [`interrupts`] | the check for interrupts in long loops |
//! | [`untrusted`] | other programs' texts, cut to a limit and cleaned; fallible allocation for data whose size others choose |
//! | [`mod@words`] | enums of words that users write; the known name closest to a mistyped one |
//! | [`number`] | numbers in tables and reports |
//! | [`sentence`] | numbers and lists within a sentence |

#![forbid(unsafe_code)]

pub mod error;
pub mod interrupts;
pub mod number;
pub mod sentence;
pub mod untrusted;
pub mod words;
