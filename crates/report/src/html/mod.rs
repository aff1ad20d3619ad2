//! The report as one page that needs nothing but itself: no script, no font, no picture from elsewhere. It is read
//! on a telephone and on a desk, by day and by night, and on paper.

mod page;
mod parts;

pub use page::render;
