//! From the arguments of `bench.load` to a started leader, and the progress that its caller sees.

pub mod load;
pub mod load_progress;
