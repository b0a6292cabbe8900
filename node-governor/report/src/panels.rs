// SPDX-License-Identifier: Apache-2.0
//! Figures side by side, for looking from one to the next.

use crate::bars::Bars;
use crate::heat::Heat;
use crate::lanes::Lanes;
use crate::markup::{Parts, caption, escape};
use crate::plot::Plot;
use crate::strips::Strips;

/// A figure of any kind.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Figure {
    Plot(Plot),
    Bars(Bars),
    Heat(Heat),
    Lanes(Lanes),
    Strips(Strips),
}

/// Small figures under one title: beside each other where there is space, else under each other.
/// Legends that are equal are shown once, above all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panels {
    /// Above them; may be empty.
    pub title: String,
    /// In the order of reading. Give their axes the same ranges, or the eye is misled.
    pub figures: Vec<Figure>,
    /// Below them: what to see in them.
    pub caption: String,
}

impl Panels {
    pub(crate) fn html(&self) -> String {
        let parts: Vec<Parts<'_>> = self.figures.iter().map(Figure::parts).collect();
        let title = match &*self.title {
            "" => String::new(),
            title => format!("<h3>{}</h3>\n", escape(title)),
        };
        if parts.is_empty() {
            return format!("<figure>\n{title}<p class=\"empty\">no data</p>\n</figure>\n");
        }
        let mut legends: Vec<&str> = parts.iter().map(|part| part.legend.as_str()).collect();
        legends.dedup();
        let shared = match legends[..] {
            [legend] => legend,
            _ => "",
        };
        let figures: String = parts.iter().map(|part| part.panel(shared)).collect();
        format!(
            "<figure>\n{title}{shared}<div class=\"panels\">\n{figures}</div>\n{caption}</figure>\n",
            caption = caption(&self.caption),
        )
    }
}

impl Figure {
    pub(crate) fn parts(&self) -> Parts<'_> {
        match self {
            Self::Plot(plot) => plot.parts(),
            Self::Bars(bars) => bars.parts(),
            Self::Heat(heat) => heat.parts(),
            Self::Lanes(lanes) => lanes.parts(),
            Self::Strips(strips) => strips.parts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Series;

    fn plot(name: &str) -> Figure {
        let series = Series {
            name: name.to_owned(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
            ..Series::default()
        };
        Figure::Plot(Plot {
            series: vec![series],
            ..Plot::default()
        })
    }

    fn legends(names: &[&str]) -> usize {
        let figures = names.iter().map(|name| plot(name)).collect();
        let panels = Panels {
            figures,
            ..Panels::default()
        };
        panels.html().matches("class=\"legend\"").count()
    }

    #[test]
    fn a_legend_that_all_share_is_shown_once() {
        assert_eq!(legends(&["a", "a", "a"]), 1);
        assert_eq!(legends(&["a", "b", "a"]), 3);
    }

    #[test]
    fn no_figures_say_so() {
        assert!(Panels::default().html().contains("no data"));
    }
}
