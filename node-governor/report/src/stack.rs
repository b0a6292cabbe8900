// SPDX-License-Identifier: Apache-2.0
//! Figures under each other along one axis.

use crate::markup::{caption, escape};
use crate::panels::Figure;

/// Figures under one title whose x axes are the same: equal times stand above each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stack {
    /// Above them; may be empty.
    pub title: String,
    /// From top to bottom. Give their x axes the same range.
    pub figures: Vec<Figure>,
    /// Below them: what to see in them.
    pub caption: String,
}

impl Stack {
    pub(crate) fn html(&self) -> String {
        let title = match &*self.title {
            "" => String::new(),
            title => format!("<h3>{}</h3>\n", escape(title)),
        };
        let figures: String = self
            .figures
            .iter()
            .map(|figure| figure.parts().panel(""))
            .collect();
        let figures = match &*figures {
            "" => "<p class=\"empty\">no data</p>\n".to_owned(),
            figures => format!("<div class=\"stack\">\n{figures}</div>\n"),
        };
        format!(
            "<figure>\n{title}{figures}{caption}</figure>\n",
            caption = caption(&self.caption)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_nothing_says_so() {
        assert!(Stack::default().html().contains("no data"));
    }
}
