//! A plot and the words around it.

use super::palette::Ink;

/// A plot with what is written around it.
pub struct Figure {
    /// One word, for links.
    pub id: &'static str,
    /// With the unit.
    pub title: &'static str,
    /// How to read it.
    pub caption: String,
    /// What the colours are.
    pub legend: Vec<(Ink, String)>,
    pub svg: String,
}
