// SPDX-License-Identifier: Apache-2.0
//! One figure of a page.

use crate::lines;

/// The sum of a metric's series that have these labels; none where the page has none. Lines that cannot be read
/// are left out.
#[must_use]
pub fn sum(page: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let named = lines(page).filter(|line| line.name == name);
    let values = named.filter_map(|line| line.read().ok());
    let wanted = values.filter(|(series, _)| {
        let has = |(label, value): &(&str, &str)| series.label(label) == Some(*value);
        labels.iter().all(has)
    });
    wanted
        .map(|(_, value)| value)
        .reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_name_are_summed_and_labels_choose_among_them() {
        let page = "# TYPE a gauge\na 1\nab 7\nb{x=\"1\",y=\"2\"} 2\nb{x=\"1\"} 3\nb{x=\"2\"} 5\n";
        assert_eq!(sum(page, "a", &[]), Some(1.0));
        assert_eq!(sum(page, "b", &[]), Some(10.0));
        assert_eq!(sum(page, "b", &[("x", "1")]), Some(5.0));
        assert_eq!(sum(page, "b", &[("y", "1")]), None);
        assert_eq!(sum(page, "c", &[]), None);
    }
}
