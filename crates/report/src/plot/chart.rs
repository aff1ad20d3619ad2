//! A chart as data: the words around it, its axes, and the shapes between them. Figures describe one, and
//! [`svg`](super::svg) draws it.

use super::axis::Axis;
use super::palette::Ink;

/// A place in the values of both axes.
pub type Point = (f64, f64);

/// What the colours are.
pub type Legend = Vec<(Ink, String)>;

/// A chart and the words around it.
pub struct Chart {
    /// One word, for links.
    pub id: &'static str,
    /// With the unit.
    pub title: &'static str,
    /// A sentence for readers who do not see it.
    pub label: String,
    /// How to read it.
    pub caption: String,
    pub legend: Legend,
    pub plot: Plot,
}

/// Panels under each other that share an x axis.
pub struct Plot {
    pub x: Axis,
    /// Whether lines are drawn up from the ticks of the x axis.
    pub is_upright: bool,
    pub panels: Vec<Panel>,
    pub hover: Vec<Hover>,
}

/// One of the panels of a plot.
pub struct Panel {
    /// Where there are several.
    pub title: Option<&'static str>,
    pub y: Axis,
    /// Those that come later are drawn over the others.
    pub shapes: Vec<Shape>,
}

/// A text that shows where the pointer rests.
pub enum Hover {
    /// Between two values of the x axis, over all panels.
    Span([f64; 2], String),
    /// Around a place of the first panel.
    Around(Point, String),
}

/// Something drawn in a colour.
#[derive(Clone)]
pub struct Shape {
    pub ink: Ink,
    /// A fraction of 1.
    pub opacity: f64,
    pub form: Form,
}

/// The form of a shape. Lengths are in half pixels.
#[derive(Clone)]
pub enum Form {
    Line {
        points: Vec<Point>,
        width: u32,
        is_dashed: bool,
    },
    /// Filled within its outline.
    Area(Vec<Point>),
    /// Filled between two opposite corners.
    Rectangle([Point; 2]),
    Circle {
        at: Point,
        radius: u32,
        is_filled: bool,
    },
    /// Centred above a place.
    Text {
        at: Point,
        text: String,
    },
}

impl Panel {
    /// A panel without a title.
    pub fn new(y: Axis) -> Panel {
        Panel { title: None, y, shapes: Vec::new() }
    }

    /// This panel with a title.
    pub fn titled(self, title: &'static str) -> Panel {
        Panel { title: Some(title), ..self }
    }

    /// This panel with more shapes over those that it has.
    pub fn with(mut self, shapes: impl IntoIterator<Item = Shape>) -> Panel {
        self.shapes.extend(shapes);
        self
    }
}

impl Ink {
    /// A line through points, in half pixels wide.
    pub fn line(self, points: Vec<Point>, width: u32) -> Shape {
        self.shape(Form::Line { points, width, is_dashed: false })
    }

    /// A thin line of dashes through points.
    pub fn dashes(self, points: Vec<Point>) -> Shape {
        self.shape(Form::Line { points, width: 2, is_dashed: true })
    }

    /// What is within an outline.
    pub fn area(self, outline: Vec<Point>) -> Shape {
        self.shape(Form::Area(outline))
    }

    /// A rectangle between two opposite corners.
    pub fn rectangle(self, corner: Point, opposite: Point) -> Shape {
        self.shape(Form::Rectangle([corner, opposite]))
    }

    /// A filled circle.
    pub fn dot(self, at: Point, radius: u32) -> Shape {
        self.shape(Form::Circle { at, radius, is_filled: true })
    }

    /// A circle that is not filled.
    pub fn ring(self, at: Point, radius: u32) -> Shape {
        self.shape(Form::Circle { at, radius, is_filled: false })
    }

    /// A text centred above a place.
    pub fn text(self, at: Point, text: String) -> Shape {
        self.shape(Form::Text { at, text })
    }

    fn shape(self, form: Form) -> Shape {
        Shape { ink: self, opacity: 1.0, form }
    }
}

impl Shape {
    /// This shape, so that what is under it can be seen.
    pub fn faint(self, opacity: f64) -> Shape {
        Shape { opacity, ..self }
    }
}
