//! Horizontal bars with their names and figures.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    /// The figure as it is written behind the bar.
    pub(super) text: String,
    /// Ours, or what was reached.
    pub(super) bright: bool,
}

const WIDTH: i32 = 960;
/// Room for the names.
const LEFT: i32 = 330;
/// Room for the figures.
const RIGHT: i32 = 150;
const ROW: i32 = 26;
const TOP: i32 = 52;

/// Draws bars from zero to the largest, with a line at each of these marks.
pub(super) fn draw(
    path: &Path,
    caption: &str,
    bars: &[Bar],
    marks: &[(f64, &str)],
) -> anyhow::Result<()> {
    let height = TOP + ROW * i32::try_from(bars.len())? + 16;
    let root = SVGBackend::new(path, (u32::try_from(WIDTH)?, u32::try_from(height)?));
    let root = root.into_drawing_area();
    root.fill(&WHITE)?;
    let grey = RGBColor(90, 90, 90);
    let style = |size: i32, colour: RGBColor, side: HPos| {
        ("sans-serif", size).into_font().color(&colour).pos(Pos::new(side, VPos::Center))
    };
    root.draw(&Text::new(caption.to_owned(), (12, 18), style(17, BLACK, HPos::Left)))?;
    let values = bars.iter().map(|bar| bar.value).chain(marks.iter().map(|mark| mark.0));
    let most = values.fold(f64::MIN_POSITIVE, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "a place on the picture")]
    let place = |value: f64| LEFT + (f64::from(WIDTH - LEFT - RIGHT) * value / most) as i32;
    for &(at, name) in marks {
        let line = vec![(place(at), TOP - 4), (place(at), height - 12)];
        root.draw(&PathElement::new(line, RGBColor(200, 60, 60)))?;
        root.draw(&Text::new(
            name.to_owned(),
            (place(at), TOP - 12),
            style(12, grey, HPos::Center),
        ))?;
    }
    for (row, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * i32::try_from(row)?;
        let middle = top + ROW / 2;
        let colour = if bar.bright { RGBColor(20, 120, 70) } else { RGBColor(150, 165, 180) };
        let corners = [(LEFT, top + 4), (place(bar.value).max(LEFT + 1), top + ROW - 4)];
        root.draw(&Rectangle::new(corners, colour.filled()))?;
        let name = Text::new(bar.name.clone(), (LEFT - 8, middle), style(13, BLACK, HPos::Right));
        root.draw(&name)?;
        let at = (place(bar.value) + 8, middle);
        root.draw(&Text::new(bar.text.clone(), at, style(13, grey, HPos::Left)))?;
    }
    Ok(root.present()?)
}
