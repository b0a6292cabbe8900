// SPDX-License-Identifier: Apache-2.0
//! Text and numbers on their way into HTML.

/// `text` made safe between tags and inside quoted attributes. Control characters that HTML does
/// not allow become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate or percentage: two decimals, without needless zeros.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// A caption under a figure, or nothing.
pub(crate) fn caption(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<figcaption>{}</figcaption>\n", escape(text))
}

/// What a figure is made of.
pub(crate) struct Parts<'a> {
    /// Its class.
    pub(crate) kind: &'static str,
    pub(crate) title: &'a str,
    /// As HTML; may be empty.
    pub(crate) legend: String,
    /// As HTML.
    pub(crate) body: String,
    pub(crate) caption: &'a str,
}

impl Parts<'_> {
    /// The figure on its own.
    pub(crate) fn figure(&self) -> String {
        format!(
            "<figure class=\"{kind}\">\n<h3>{title}</h3>\n{legend}{body}{caption}</figure>\n",
            kind = self.kind,
            title = escape(self.title),
            legend = self.legend,
            body = self.body,
            caption = caption(self.caption),
        )
    }

    /// The figure as one of several, without the legend that they share.
    pub(crate) fn panel(&self, shared: &str) -> String {
        let legend = if self.legend == shared {
            ""
        } else {
            &self.legend
        };
        format!(
            "<div class=\"panel {kind}\">\n<h4>{title}</h4>\n{legend}{body}{caption}</div>\n",
            kind = self.kind,
            title = escape(self.title),
            body = self.body,
            caption = match self.caption {
                "" => String::new(),
                text => format!("<p class=\"remark\">{}</p>\n", escape(text)),
            },
        )
    }
}

/// The coloured list of names above a figure. `swatch` draws the sample of the n-th name.
pub(crate) fn legend<'a>(
    names: impl Iterator<Item = &'a str>,
    swatch: impl Fn(usize) -> String,
) -> String {
    let entries: String = names
        .enumerate()
        .filter(|(_, name)| !name.is_empty())
        .map(|(n, name)| format!("<li>{}{}</li>", swatch(n), escape(name)))
        .collect();
    if entries.is_empty() {
        return entries;
    }
    format!("<ul class=\"legend\">{entries}</ul>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escaped_text_can_open_neither_a_tag_nor_an_attribute(text in "\\PC*|[<>&\"'\\x00-\\x20]*") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            prop_assert_eq!(escaped.matches('&').count(), escaped.matches(';').count() - text.matches(';').count());
        }
    }

    #[test]
    fn control_characters_are_replaced_and_line_breaks_kept() {
        assert_eq!(escape("a\u{0}b\nc"), "a\u{fffd}b\nc");
    }

    #[test]
    fn coordinates_are_short() {
        let short = [0.0, -0.001, 12.5, 99.999, 2.34567].map(coordinate);
        assert_eq!(short, ["0", "0", "12.5", "100", "2.35"]);
    }
}
