//! A chart as data: the words around it, its axes, the shapes between them and their colours. Figures describe one, and
//! [`svg`](super::svg) draws it.

use crate::plot::axis::Axis;

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

// Colours are Okabe and Ito's and Paul Tol's, which people with any colour vision can tell apart. Each shape has its colour as a value, so that a chart can be taken out of its page. A style sheet catches those values
// and puts a variable in their place, which has another value on a dark page: [`style_sheet`] is made of the same table
// as the shapes.

/// A colour by its purpose, dark or bright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink {
    /// The name of its variable.
    pub name: &'static str,
    /// On white.
    light: (u8, u8, u8),
    /// On the dark page.
    dark: (u8, u8, u8),
}

macro_rules! inks {
    ($($(#[$doc:meta])* $ident:ident = $name:literal $light:literal $dark:literal;)*) => {
        $($(#[$doc])* pub const $ident: Ink = Ink { name: $name, light: rgb($light), dark: rgb($dark) };)*
        /// All of them, each with another value on white.
        const ALL: &[Ink] = &[$($ident,)*];
    };
}

inks! {
    /// Numbers on axes.
    TEXT = "ink-text" 0x4A525C 0xB3BBC6;
    AXIS = "ink-axis" 0x8C959F 0x6B7480;
    GRID = "ink-grid" 0xE2E6EB 0x2C333C;
    BLUE = "ink-blue" 0x0072B2 0x4FA8E0;
    SKY = "ink-sky" 0x56B4E9 0x8CCBF2;
    GREEN = "ink-green" 0x009E73 0x2FC59A;
    ORANGE = "ink-orange" 0xE69F00 0xF0B73A;
    RED = "ink-red" 0xD55E00 0xF07F2E;
    PINK = "ink-pink" 0xCC79A7 0xDD95BD;
    /// Checkpoints.
    SHADE = "ink-shade" 0x7A5FB0 0xA48BDB;
    /// Vacuums.
    OLIVE = "ink-olive" 0x999933 0xBDBD52;
    /// Idle, and what has no colour of its own.
    GREY = "ink-grey" 0xC3C9D0 0x4A525C;
    INDIGO = "ink-indigo" 0x332288 0x7F70E0;
    WINE = "ink-wine" 0x882255 0xC2487F;
    TEAL = "ink-teal" 0x44AA99 0x56C4B2;
    ROSE = "ink-rose" 0xCC6677 0xE0848F;
    SAND = "ink-sand" 0xDDCC77 0xE3D48B;
    MAGENTA = "ink-magenta" 0xAA4499 0xCC66BB;
    /// Few, and each of the following ones more: what is most stands out from either page.
    HEAT_1 = "ink-heat-1" 0xDCE9F5 0x1C2E42;
    HEAT_2 = "ink-heat-2" 0xB0CFE9 0x214A70;
    HEAT_3 = "ink-heat-3" 0x78AEDB 0x2D6FA6;
    HEAT_4 = "ink-heat-4" 0x3F86C4 0x5099D3;
    HEAT_5 = "ink-heat-5" 0x1C5C9C 0x8DC1EB;
    HEAT_6 = "ink-heat-6" 0x0B3266 0xDDEEFC;
}

/// The colours of a heat map, the least first.
pub const HEAT: [Ink; 6] = [HEAT_1, HEAT_2, HEAT_3, HEAT_4, HEAT_5, HEAT_6];

/// The colours of wait events, the one with the greatest share first; CPU and Runnable have their own.
pub const WAITS: [Ink; 8] = [INDIGO, SKY, ROSE, TEAL, WINE, SAND, MAGENTA, BLUE];

/// The colours of curves of which there may be several: the darker ones first.
pub const CURVES: [Ink; 8] = [BLUE, RED, GREEN, INDIGO, ORANGE, WINE, SKY, MAGENTA];

/// Red, green and blue of a number.
const fn rgb(value: u32) -> (u8, u8, u8) {
    ((value >> 16) as u8, (value >> 8) as u8, value as u8)
}

impl Ink {
    /// The colour on white, as SVG has it.
    pub fn hex(self) -> String {
        hex(self.light)
    }
}

/// A colour as SVG and CSS have it; selectors tell digits apart by their case.
fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The rules that let the page choose the colours. Paper is always white.
pub fn style_sheet() -> String {
    let variables = |choose: fn(&Ink) -> (u8, u8, u8)| {
        let variables = ALL.iter().map(|ink| format!("--{}:{};", ink.name, hex(choose(ink))));
        variables.collect::<String>()
    };
    let mut sheet = format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{}}}}}\n",
        variables(|ink| ink.light),
        variables(|ink| ink.dark)
    );
    for ink in ALL {
        let (value, name) = (hex(ink.light), ink.name);
        sheet += &format!("svg [fill=\"{value}\"]{{fill:var(--{name})}}");
        sheet += &format!("svg [stroke=\"{value}\"]{{stroke:var(--{name})}}\n");
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_can_tell_the_colours_apart() {
        for (index, ink) in ALL.iter().enumerate() {
            for other in &ALL[..index] {
                assert_ne!(ink.light, other.light, "{} and {}", ink.name, other.name);
                assert_ne!(ink.name, other.name);
            }
        }
    }

    #[test]
    fn what_is_read_has_contrast() {
        // WCAG 2: relative luminance and the ratio that text needs.
        let luminance = |(red, green, blue): (u8, u8, u8)| {
            let linear = |channel: u8| {
                let share = f64::from(channel) / 255.0;
                if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
        };
        let contrast = |one, other| {
            let (one, other): (f64, f64) = (luminance(one), luminance(other));
            (one.max(other) + 0.05) / (one.min(other) + 0.05)
        };
        let dark_page = rgb(0x14181D);
        assert!(contrast(TEXT.light, (255, 255, 255)) >= 4.5);
        assert!(contrast(TEXT.dark, dark_page) >= 4.5);
        for ink in [BLUE, GREEN, RED, SHADE, INDIGO, WINE, MAGENTA] {
            assert!(contrast(ink.light, (255, 255, 255)) >= 3.0, "{}", ink.name);
            assert!(contrast(ink.dark, dark_page) >= 3.0, "{}", ink.name);
        }
    }
}
