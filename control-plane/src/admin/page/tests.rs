// SPDX-License-Identifier: Apache-2.0
use super::*;

const PAGE: &str = include_str!("index.html");

fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = FILES.into_iter().filter(|(_, kind, _)| *kind == SCRIPT);
    files.map(|(name, _, text)| (name, text))
}

#[test]
fn every_file_that_the_page_names_is_served_and_none_is_left_over() {
    let names = FILES.map(|(name, ..)| name);
    let modules = scripts().flat_map(|(_, text)| text.split("from './").skip(1));
    let imported = modules.filter_map(|rest| rest.split('\'').next());
    let linked = PAGE.split("\"page/").skip(1);
    let linked = linked.filter_map(|rest| rest.split('"').next());
    let named: std::collections::BTreeSet<_> = imported.chain(linked).collect();
    assert_eq!(named, names.into_iter().collect());
}

#[test]
fn the_page_takes_nothing_from_elsewhere_and_no_text_for_markup() {
    let texts = FILES.map(|(name, _, text)| (name, text));
    for (name, text) in texts.into_iter().chain([("index.html", PAGE)]) {
        let addresses = text.matches("://").count() - text.matches("http://www.w3.org/").count();
        assert_eq!(addresses, 0, "{name} names an address");
        for markup in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!text.contains(markup), "{name} has {markup}");
        }
    }
    for inline in [" style=", " onclick=", " onload=", "<style"] {
        assert!(!PAGE.contains(inline), "{inline} would not be honoured");
    }
}

#[test]
fn every_element_that_a_script_looks_for_is_in_the_page() {
    for (name, text) in scripts() {
        for wanted in text.split("byId('").skip(1) {
            let id = wanted.split('\'').next().unwrap_or_default();
            assert!(PAGE.contains(&format!("id=\"{id}\"")), "{name}: {id}");
        }
    }
}
