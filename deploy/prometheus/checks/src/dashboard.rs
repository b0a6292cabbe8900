// SPDX-License-Identifier: Apache-2.0
//! The dashboard as Grafana reads it, as far as it can be wrong.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Columns of Grafana's grid.
const COLUMNS: u64 = 24;

/// A dashboard.
#[derive(Debug)]
pub struct Dashboard(Value);

impl Dashboard {
    /// Reads it.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    fn panels(&self) -> Result<&Vec<Value>> {
        self.0["panels"].as_array().context("no panels")
    }

    /// Every query with the panel's title, and variables as they stand for all.
    ///
    /// # Errors
    /// A panel without a query.
    pub fn queries(&self) -> Result<Vec<(String, String)>> {
        let mut queries = Vec::new();
        for panel in self.panels()?.iter().filter(|panel| panel["type"] != "row") {
            let title = panel["title"].as_str().context("a panel without a title")?;
            let targets = panel["targets"].as_array().filter(|list| !list.is_empty());
            for target in targets.with_context(|| format!("{title}: no query"))? {
                let query = target["expr"].as_str().context("a target without expr")?;
                let query = query.replace("$cluster", ".*");
                ensure!(
                    !query.contains('$'),
                    "{title}: an unknown variable: {query}"
                );
                queries.push((title.to_owned(), query));
            }
        }
        Ok(queries)
    }

    /// Looks for what Grafana would show wrongly, or not at all.
    ///
    /// # Errors
    /// The first of it.
    pub fn check(&self) -> Result<()> {
        ensure!(self.0["uid"] == "weir", "links need the uid `weir`");
        let variables = self.0["templating"]["list"]
            .as_array()
            .context("no variables")?;
        let source = variables
            .iter()
            .find(|variable| variable["type"] == "datasource");
        let source = source.context("no variable for the data source")?;
        ensure!(source["query"] == "prometheus" && source["name"] == "datasource");
        let mut ids = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for panel in self.panels()? {
            let title = panel["title"].as_str().unwrap_or_default();
            let id = panel["id"].as_u64().context("a panel without an id")?;
            ensure!(ids.insert(id), "{title}: another panel has the id {id}");
            let at = |field: &str| {
                let number = panel["gridPos"][field].as_u64();
                number.with_context(|| format!("{title}: no gridPos.{field}"))
            };
            let (x, y, w, h) = (at("x")?, at("y")?, at("w")?, at("h")?);
            ensure!(
                w > 0 && h > 0 && x + w <= COLUMNS,
                "{title}: outside of the grid"
            );
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                ensure!(cells.insert(cell), "{title}: overlaps another panel");
            }
            if panel["type"] == "row" {
                continue;
            }
            let mut letters = BTreeSet::new();
            let targets = panel["targets"].as_array().context("no targets")?;
            for place in targets.iter().chain([panel]) {
                let uid = &place["datasource"]["uid"];
                ensure!(*uid == "${datasource}", "{title}: the data source is {uid}");
            }
            for target in targets {
                let letter = target["refId"].as_str().context("no refId")?;
                ensure!(letters.insert(letter), "{title}: two targets {letter}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard() -> Value {
        let path = crate::deploy().join("grafana/weir.json");
        Dashboard::read(&path).unwrap().0
    }

    #[test]
    fn the_dashboard_is_whole() {
        let dashboard = Dashboard(dashboard());
        dashboard.check().unwrap();
        assert!(dashboard.queries().unwrap().len() > 30);
    }

    #[test]
    fn what_grafana_would_show_wrongly_is_found() {
        type Spoil = fn(&mut Value);
        let spoilt: [(Spoil, &str); 5] = [
            (
                |d| d["panels"][2]["id"] = d["panels"][1]["id"].clone(),
                "another panel has the id",
            ),
            (
                |d| d["panels"][2]["gridPos"] = d["panels"][1]["gridPos"].clone(),
                "overlaps",
            ),
            (
                |d| d["panels"][1]["gridPos"]["w"] = 25.into(),
                "outside of the grid",
            ),
            (
                |d| d["panels"][1]["datasource"]["uid"] = "x".into(),
                "the data source is",
            ),
            (
                |d| d["templating"]["list"][0]["type"] = "query".into(),
                "no variable for the data source",
            ),
        ];
        for (spoil, reason) in spoilt {
            let mut value = dashboard();
            spoil(&mut value);
            let error = Dashboard(value).check().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let mut value = dashboard();
        value["panels"][1]["targets"][0]["expr"] = "up{x=\"$other\"}".into();
        assert!(Dashboard(value).queries().is_err());
    }
}
