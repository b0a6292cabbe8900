// SPDX-License-Identifier: Apache-2.0
//! The page around everything, and its file.

use std::io;
use std::path::{Path, PathBuf};

use crate::bars::Bars;
use crate::heat::Heat;
use crate::lanes::Lanes;
use crate::markup::escape;
use crate::panels::Panels;
use crate::plot::Plot;
use crate::stack::Stack;
use crate::strips::Strips;
use crate::table::Table;

/// Colours, measures and both themes.
const STYLE: &str = include_str!("page.css");

/// A report, written from top to bottom.
#[derive(Debug, Clone)]
pub struct Report {
    title: String,
    subtitle: String,
    body: String,
}

/// The report's file could not be written; what was there before is untouched.
#[derive(Debug, thiserror::Error)]
#[error("report {path}: {source}")]
pub struct WriteError {
    /// The file asked for.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl Report {
    /// A report with nothing in it yet.
    #[must_use]
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            body: String::new(),
        }
    }

    /// Starts a section.
    pub fn heading(&mut self, text: &str) {
        self.element("<h2>", text, "</h2>");
    }

    /// Adds paragraphs; an empty line starts the next one.
    pub fn text(&mut self, text: &str) {
        for paragraph in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
            self.element("<p>", paragraph.trim(), "</p>");
        }
    }

    /// Adds a remark that must not be overlooked.
    pub fn note(&mut self, text: &str) {
        self.element("<p class=\"note\">", text, "</p>");
    }

    /// Adds the command that makes these results again.
    pub fn command(&mut self, line: &str) {
        self.element(
            "<pre class=\"command\" tabindex=\"0\"><code>",
            line,
            "</code></pre>",
        );
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&table.html());
    }

    /// Adds a plot.
    pub fn plot(&mut self, plot: &Plot) {
        self.body.push_str(&plot.parts().figure());
    }

    /// Adds bars.
    pub fn bars(&mut self, bars: &Bars) {
        self.body.push_str(&bars.parts().figure());
    }

    /// Adds a table of shares.
    pub fn heat(&mut self, heat: &Heat) {
        self.body.push_str(&heat.parts().figure());
    }

    /// Adds strips.
    pub fn strips(&mut self, strips: &Strips) {
        self.body.push_str(&strips.parts().figure());
    }

    /// Adds lanes.
    pub fn lanes(&mut self, lanes: &Lanes) {
        self.body.push_str(&lanes.parts().figure());
    }

    /// Adds figures under each other.
    pub fn stack(&mut self, stack: &Stack) {
        self.body.push_str(&stack.html());
    }

    /// Adds figures side by side.
    pub fn panels(&mut self, panels: &Panels) {
        self.body.push_str(&panels.html());
    }

    /// Adds what `add` adds, folded away behind its name until the reader asks for it.
    pub fn fold(&mut self, name: &str, add: impl FnOnce(&mut Self)) {
        let name = escape(name);
        self.body
            .push_str(&format!("<details>\n<summary>{name}</summary>\n"));
        add(self);
        self.body.push_str("</details>\n");
    }

    /// Adds a list of points.
    pub fn list(&mut self, points: &[String]) {
        let points: String = points
            .iter()
            .map(|point| format!("<li>{}</li>\n", escape(point)))
            .collect();
        if !points.is_empty() {
            self.body
                .push_str(&format!("<ul class=\"list\">\n{points}</ul>\n"));
        }
    }

    /// Adds names and what is to be said of each: settings, versions, the machine.
    pub fn facts<N: AsRef<str>, T: AsRef<str>>(&mut self, facts: &[(N, T)]) {
        let line = |(name, text): &(N, T)| {
            let (name, text) = (escape(name.as_ref()), escape(text.as_ref()));
            format!("<dt>{name}</dt><dd>{text}</dd>\n")
        };
        let lines: String = facts.iter().map(line).collect();
        self.body.push_str(&format!("<dl>\n{lines}</dl>\n"));
    }

    fn element(&mut self, open: &str, text: &str, close: &str) {
        self.body
            .push_str(&format!("{open}{}{close}\n", escape(text)));
    }

    /// The whole page. The same calls give the same text.
    #[must_use]
    pub fn html(&self) -> String {
        let (title, subtitle, body) = (escape(&self.title), escape(&self.subtitle), &self.body);
        // The policy keeps the promise that nothing is loaded or run, whatever is in the text.
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<p class=\"subtitle\">{subtitle}</p>\n{body}</main>\n</body>\n</html>\n"
        )
    }

    /// Writes the page to `path`, where a reader sees all of it or what was there before.
    ///
    /// # Errors
    /// [`WriteError`] when the folder is missing or cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), WriteError> {
        let path = path.as_ref();
        weir_whole_file::write(path, self.html()).map_err(|source| WriteError {
            path: path.to_owned(),
            source,
        })
    }
}
