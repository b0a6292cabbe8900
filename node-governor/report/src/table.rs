// SPDX-License-Identifier: Apache-2.0
//! Tables.

use crate::markup::escape;

/// More columns than these are set closer.
const MANY: usize = 8;

/// Rows of text under a header. Columns whose cells all start like numbers are set to the right;
/// the first column stays in sight while the rest scrolls sideways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells by row. Short rows end in empty cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// With these names and rows.
    #[must_use]
    pub fn new<const N: usize>(
        header: [&str; N],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self {
            header: header.map(str::to_owned).to_vec(),
            rows: rows.into_iter().collect(),
        }
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = "---|".repeat(self.header.len());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{rule}\n{rows}", line(&self.header))
    }

    pub(crate) fn html(&self) -> String {
        if self.rows.is_empty() {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        }
        let rows = self.rows.iter().map(Vec::len);
        let columns = rows.fold(self.header.len(), usize::max);
        let numeric: Vec<bool> = (0..columns).map(|n| self.is_numeric(n)).collect();
        let line = |cells: &[String], head: bool| {
            let cell = |n| tag(cells.get(n).map_or("", String::as_str), n, head, numeric[n]);
            format!("<tr>{}</tr>\n", (0..columns).map(cell).collect::<String>())
        };
        let head = line(&self.header, true);
        let body: String = self.rows.iter().map(|row| line(row, false)).collect();
        let wide = if columns > MANY { " wide" } else { "" };
        format!(
            "<div class=\"table{wide}\" tabindex=\"0\"><table><thead>\n{head}</thead><tbody>\n{body}</tbody></table></div>\n"
        )
    }

    fn is_numeric(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
        filled.peek().is_some() && filled.all(|cell| starts_like_a_number(cell))
    }
}

fn starts_like_a_number(cell: &str) -> bool {
    // A lone dash stands for "none" in a column of numbers.
    let rest = cell.trim_start_matches(['-', '−', '–', '+', '±', '<', '≤', '~', '×', ' ']);
    rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit())
}

fn tag(text: &str, column: usize, head: bool, numeric: bool) -> String {
    let class = if numeric { " class=\"n\"" } else { "" };
    let text = escape(text);
    match (head, column) {
        // Headers may break, but not between a quantity and its unit.
        (true, _) => format!(
            "<th scope=\"col\"{class}>{}</th>",
            text.replace(" / ", "\u{a0}/\u{a0}")
        ),
        (false, 0) => format!("<th scope=\"row\"{class}>{text}</th>"),
        (false, _) => format!("<td{class}>{text}</td>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(header: &[&str], rows: &[&[&str]]) -> String {
        let own = |row: &[&str]| row.iter().map(|cell| cell.to_string()).collect();
        Table {
            header: own(header),
            rows: rows.iter().map(|row| own(row)).collect(),
        }
        .html()
    }

    #[test]
    fn number_columns_are_set_to_the_right() {
        let html = table(
            &["order", "p99 / ms"],
            &[&["priority", "12.5"], &["fifo", "–"]],
        );
        assert!(html.contains("<th scope=\"col\" class=\"n\">p99\u{a0}/\u{a0}ms</th>"));
        assert!(html.contains("<td class=\"n\">12.5</td>"));
        assert!(html.contains("<th scope=\"row\">priority</th>"));
    }

    #[test]
    fn short_and_long_rows_have_the_same_number_of_cells() {
        let html = table(&["a", "b"], &[&["x"], &["x", "y", "z"]]);
        assert_eq!(html.matches("<td").count(), 4);
        assert_eq!(html.matches("scope=\"col\"").count(), 3);
    }

    #[test]
    fn a_table_without_rows_says_so() {
        assert!(table(&["a"], &[]).contains("no data"));
    }
}
