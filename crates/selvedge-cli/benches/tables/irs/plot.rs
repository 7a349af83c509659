//! Overhead against constraints, as a picture.

use std::fmt::Write as _;

/// A line of the picture: share of constraints and overhead, both in percent.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A picture with two axes.
pub(super) struct Plot {
    title: String,
    /// Whether overheads differ by orders of magnitude.
    logarithmic: bool,
    series: Vec<Series>,
}

const COLOURS: [&str; 6] = [
    "#1b6ca8", "#c8553d", "#4f9d69", "#8e5ea2", "#d19c1d", "#555555",
];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 470.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 350.0;

impl Plot {
    pub(super) fn new(title: &str, logarithmic: bool) -> Plot {
        Plot {
            title: title.to_owned(),
            logarithmic,
            series: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, series: Series) {
        self.series.push(series);
    }

    /// The picture as SVG.
    pub(super) fn draw(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n",
            self.title
        );
        for mark in self.marks() {
            let y = self.height(mark);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
                 <text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\" dy=\"4\">{mark:.0}%</text>\n",
                x = LEFT - 6.0
            );
        }
        for share in [100.0, 75.0, 50.0, 25.0, 0.0] {
            let x = across(share);
            let y = BOTTOM + 18.0;
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{share:.0}%</text>"
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">constraints left</text>",
            (LEFT + RIGHT) / 2.0,
            BOTTOM + 38.0
        );
        for (number, series) in self.series.iter().enumerate() {
            self.line(&mut svg, number, series);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn line(&self, svg: &mut String, number: usize, series: &Series) {
        let colour = COLOURS[number % COLOURS.len()];
        let mut path = String::new();
        for &(share, overhead) in &series.points {
            let (x, y) = (across(share), self.height(overhead));
            let _ = write!(path, "{x:.1},{y:.1} ");
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
        let y = TOP + 12.0 + 18.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\n<text x=\"{}\" y=\"{y}\">{}</text>",
            RIGHT + 12.0,
            y - 5.0,
            RIGHT + 30.0,
            series.name
        );
    }

    fn largest(&self) -> f64 {
        let all = self.series.iter().flat_map(|series| &series.points);
        all.map(|&(_, overhead)| overhead).fold(10.0, f64::max)
    }

    /// Where lines go across.
    fn marks(&self) -> Vec<f64> {
        if self.logarithmic {
            let powers = (0..).map(|power| 10_f64.powi(power));
            return powers
                .take_while(|&mark| mark <= self.largest() * 10.0)
                .collect();
        }
        let step = if self.largest() > 40.0 { 20.0 } else { 5.0 };
        (-1..)
            .map(|n| step * f64::from(n))
            .take_while(|&mark| mark <= self.largest() + step)
            .collect()
    }

    fn height(&self, overhead: f64) -> f64 {
        let marks = self.marks();
        let (low, high) = (marks[0], marks[marks.len() - 1]);
        let share = match self.logarithmic {
            true => overhead.max(low).log10() / high.log10(),
            false => (overhead - low) / (high - low),
        };
        BOTTOM - (BOTTOM - TOP) * share.clamp(0.0, 1.0)
    }
}

/// All constraints are on the left, none on the right, as in the document.
fn across(share: f64) -> f64 {
    RIGHT - (RIGHT - LEFT) * share / 100.0
}
