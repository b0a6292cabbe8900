// SPDX-License-Identifier: Apache-2.0
//! The live page in a browser: a whole weir-control, and what Chromium makes of its page.

mod browser;
mod fleet;

#[allow(dead_code)] // Other tests use more of it.
#[path = "../threats/program.rs"]
mod program;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;

use browser::Browser;
use program::{FREE, Program};

/// What a row of the table of hosts says of a column.
fn cell(host: &str, column: &str) -> String {
    format!(
        "[...document.querySelectorAll('.hosts tbody tr')].find((row) => row.textContent.includes('{host}'))\
         ?.querySelector('.{column}').textContent ?? null"
    )
}

/// What an element says.
fn said(selector: &str) -> String {
    format!("document.querySelector('{selector}')?.textContent ?? null")
}

fn says(selector: &str, words: &str) -> String {
    format!("document.querySelector('{selector}')?.textContent.includes('{words}') ?? null")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_hosts_sidecars_requests_and_who_has_a_key() {
    let host = fleet::host().await.to_string();
    let hosts =
        format!("[ {{ address: \"{host}\" }}, {{ address: \"127.0.0.1:9\", draining: true }} ]");
    let sources = "scrape: { interval: 50ms }, cache: { interval: 50ms }";
    let config = format!("{FREE}clusters: {{ rules: {{ {sources}, hosts: {hosts} }} }}\n");
    let control = Program::start(&config, &[]);
    let Some(mut page) = Browser::open(control.admin) else {
        return;
    };
    page.until(&cell(&host, "state"), "up");
    page.until(&cell(&host, "load"), "3 + 4");
    page.until(&cell(&host, "keys"), "2");
    page.until(&cell("127.0.0.1:9", "state"), "draining");

    fleet::sidecar(control.xds, "caller-1", None).await;
    let markup = "<img id=planted src=x>";
    fleet::sidecar(control.xds, "<b id=planted>caller-2</b>", Some(markup)).await;
    page.until(
        &says("#sidecars", "HostTable: <img id=planted src=x>"),
        true,
    );
    page.until(&says("#sidecars", "<b id=planted>caller-2</b>"), true);
    page.until(&said("#planted"), serde_json::Value::Null);
    page.until(&says("#alerts", "1 sidecar refuses a resource"), true);

    fleet::report(control.xds, &host, 30, 20).await;
    let class = "[...document.querySelectorAll('#traffic .pair > :first-child tbody tr')]\
        .map((row) => `${row.cells[0].textContent}: ${row.cells[4].textContent}`).join()";
    page.until(class, "16 (low): 10");

    page.value(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))",
    );
    page.until("document.activeElement.id", "search-key");
    page.value("document.activeElement.value = 'a'");
    // A question that a change of the machine's networks cut off is asked again.
    let ask = format!(
        "({}) || document.querySelector('#search button').click()",
        says("#answer .verdict", "known_cached")
    );
    page.until(&ask, true);
    let first = format!("1. {host}");
    page.until(&said("#answer tbody tr th"), first.as_str());
    page.until(&says("#answer", &format!("Holders: {host} (known)")), true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_hosts_those_in_sight_have_rows_and_the_others_are_found() {
    let metrics = fleet::host().await;
    let hosts = (0..1000).map(|it| {
        let address = format!("10.0.{}.{}:80", it / 250, it % 250 + 1);
        format!("{{ address: \"{address}\", metrics_address: \"{metrics}\" }}")
    });
    let hosts = hosts.collect::<Vec<_>>().join(", ");
    let config = format!("{FREE}clusters: {{ rules: {{ scrape: {{}}, hosts: [ {hosts} ] }} }}\n");
    let control = Program::start(&config, &[]);
    let Some(mut page) = Browser::open(control.admin) else {
        return;
    };
    page.until(
        "document.querySelector('.hosts').getAttribute('aria-rowcount')",
        "1001",
    );
    page.until(&cell("10.0.0.1:80", "load"), "3 + 4");
    let rows = "document.querySelectorAll('.hosts tbody tr').length";
    let rows = page.value(rows).as_u64().unwrap();
    assert!((5..100).contains(&rows), "{rows} rows");
    page.value("document.querySelector('#hosts-scroll').scrollTop = 1e9");
    page.until(&cell("10.0.3.250:80", "state"), "up");
    // Of the rows in sight a step of one fills one.
    let filled = page.value(
        "(async () => { \
           const drawn = () => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))); \
           const scroll = document.querySelector('#hosts-scroll'); \
           scroll.scrollTop = 18000; \
           await drawn(); \
           const filled = new Set(); \
           const seen = new MutationObserver((all) => all.forEach(({ target }) => filled.add(target))); \
           const what = { subtree: true, attributes: true, attributeFilter: ['aria-rowindex'] }; \
           seen.observe(document.querySelector('.hosts tbody'), what); \
           scroll.scrollTop += parseFloat(getComputedStyle(scroll).getPropertyValue('--row')); \
           await drawn(); \
           seen.disconnect(); \
           return filled.size; })()",
    );
    assert_eq!(filled, 1);
    let indexes = page.value(
        "[...document.querySelectorAll('.hosts tbody tr[aria-rowindex]')] \
           .map((row) => row.getAttribute('aria-rowindex') - 0) \
           .every((index, place, all) => place === 0 || index === all[place - 1] + 1)",
    );
    assert_eq!(indexes, true, "they are in order");
    page.value(
        "const filter = document.querySelector('#hosts-filter'); filter.value = '10.0.2.250'; \
         filter.dispatchEvent(new Event('input'))",
    );
    page.until(&said("#hosts-count"), "1 of 1,000");
    page.until(&cell("10.0.2.250:80", "load"), "3 + 4");
    // The canvas has a cell for each.
    page.until(
        "document.querySelector('.strip').getAttribute('aria-label').split(' ')[0]",
        "1,000",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_keeps_people_out_by_the_rules_of_axe() {
    let Some(axe) = weir_needs::provided_or_skip("WEIR_AXE") else {
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap() + ";0";
    let host = fleet::host().await.to_string();
    let hosts = format!("[ {{ address: \"{host}\" }}, {{ address: \"127.0.0.1:9\" }} ]");
    let config = format!("{FREE}clusters: {{ rules: {{ scrape: {{}}, hosts: {hosts} }} }}\n");
    let control = Program::start(&config, &[]);
    let Some(mut page) = Browser::open(control.admin) else {
        return;
    };
    page.until(&cell(&host, "state"), "up");
    fleet::sidecar(control.xds, "caller-1", Some("too large")).await;
    page.until(&says("#alerts", "1 sidecar refuses a resource"), true);
    page.value(&axe);
    for (width, colours) in [
        (1280, "light"),
        (1280, "dark"),
        (390, "light"),
        (390, "dark"),
    ] {
        page.show_on(width, colours);
        let found = page.value(
            "axe.run(document).then(({ violations }) => violations.map(({ id, impact, nodes }) => \
               `${id} (${impact}): ${nodes.map(({ html }) => html.slice(0, 200)).join()}`))",
        );
        assert_eq!(found, serde_json::json!([]), "{width} {colours}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_slider_shows_what_was_and_the_stream_goes_on_behind_it() {
    let host = fleet::host().await.to_string();
    let config = format!(
        "{FREE}clusters: {{ rules: {{ scrape: {{}}, hosts: [ {{ address: \"{host}\" }} ] }} }}\n"
    );
    let control = Program::start(&config, &[]);
    let Some(mut page) = Browser::open(control.admin) else {
        return;
    };
    page.until("document.querySelector('#moment').disabled", false);
    let state = "document.querySelector('#status').dataset.state";
    page.until(state, "live");
    page.value("const slider = document.querySelector('#moment'); slider.value = -1; slider.dispatchEvent(new Event('input'))");
    page.until(state, "past");
    page.until(
        "document.querySelector('#moment').getAttribute('aria-valuetext')",
        "5.0 s ago",
    );
    page.until(&cell(&host, "state"), "up");
    page.value(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true }))",
    );
    page.until(state, "live");
}
