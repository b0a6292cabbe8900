// SPDX-License-Identifier: Apache-2.0
//! Shares in rows and columns, each with a shade behind its number.

use crate::markup::{Parts, escape};
use crate::shade;

/// A table of shares in per cent: where the things of a row went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heat {
    /// Above it.
    pub title: String,
    /// Over the names of the rows, then over each column.
    pub header: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<HeatRow>,
    /// Below it: what to see in it.
    pub caption: String,
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatRow {
    /// Its name.
    pub label: String,
    /// 0 to 1 for each column; what is not finite is shown as a dash.
    pub shares: Vec<f64>,
}

impl Heat {
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            kind: "heat",
            title: &self.title,
            legend: String::new(),
            body: self.body(),
            caption: &self.caption,
        }
    }

    fn body(&self) -> String {
        if self.rows.is_empty() {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        }
        let rows = self.rows.iter().map(|row| row.shares.len());
        let columns = rows.fold(self.header.len().saturating_sub(1), usize::max);
        let name = |n: usize| escape(self.header.get(n).map_or("", String::as_str));
        let head: String = (0..=columns)
            .map(|n| format!("<th scope=\"col\">{}</th>", name(n)))
            .collect();
        let body: String = self.rows.iter().map(|row| row.html(columns)).collect();
        format!(
            "<div class=\"shares\" tabindex=\"0\"><table><thead>\n<tr>{head}</tr>\n</thead><tbody>\n{body}</tbody></table></div>\n"
        )
    }
}

impl HeatRow {
    fn html(&self, columns: usize) -> String {
        let cell = |n: usize| match self.shares.get(n).filter(|share: &&f64| share.is_finite()) {
            Some(share) => format!(
                "<td class=\"f{}{}\">{}</td>",
                shade::of_share(*share),
                if *share > 0.0 { "" } else { " nothing" },
                percent(*share)
            ),
            None => "<td>–</td>".to_owned(),
        };
        let cells: String = (0..columns).map(cell).collect();
        let label = escape(&self.label);
        format!("<tr><th scope=\"row\">{label}</th>{cells}</tr>\n")
    }
}

/// Whole per cent; nothing only for nothing, and all only for all.
fn percent(share: f64) -> String {
    match share {
        s if s <= 0.0 => "0".to_owned(),
        s if s < 0.005 => "&lt;1".to_owned(),
        s if s < 1.0 => format!("{:.0}", (100.0 * s).min(99.0)),
        _ => "100".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_per_cent_and_neither_nothing_nor_all_by_rounding() {
        let shown = [0.0, 0.0001, 0.256, 0.999, 1.0].map(percent);
        assert_eq!(shown, ["0", "&lt;1", "26", "99", "100"]);
    }

    #[test]
    fn every_row_has_a_cell_for_every_column_and_missing_ones_are_dashes() {
        let row = |shares: &[f64]| HeatRow {
            label: "k".to_owned(),
            shares: shares.to_vec(),
        };
        let heat = Heat {
            header: vec!["key".to_owned()],
            rows: vec![row(&[1.0, f64::NAN]), row(&[])],
            ..Heat::default()
        };
        let body = heat.body();
        assert_eq!(body.matches("<td").count(), 4);
        assert_eq!(body.matches("<td>–").count(), 3);
        assert_eq!(body.matches("scope=\"col\"").count(), 3);
        assert!(body.contains("<td class=\"f7\">100</td>"));
    }

    #[test]
    fn no_rows_say_so() {
        assert!(Heat::default().body().contains("no data"));
    }
}
