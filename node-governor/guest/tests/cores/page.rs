// SPDX-License-Identifier: Apache-2.0
//! A page of metrics that says how slow the service is.

use anyhow::Result;
use weir_guest::Guest;

/// For the shell: a server of a page whose requests are as many as its file of steps says for each tenth of a second, all
/// slow.
const PAGE: &str = "
    mkdir -p /run/www; cd /run/www; echo 0 > $page.step
    {
      requests=10
      while read -r step < $page.step; do
        requests=$((requests + step))
        cat > $page.next <<PAGE
# TYPE took histogram
took_bucket{le=\"0.001\"} 10
took_bucket{le=\"0.05\"} $requests
took_bucket{le=\"+Inf\"} $requests
took_count $requests
PAGE
        mv $page.next $page
        usleep 100000
      done
    } > /dev/null 2>&1 &
    pidof httpd > /dev/null || httpd -p 127.0.0.1:9901 -h /run/www";

/// Serves it by this name at port 9901; the service has no requests yet.
pub(crate) fn serve(guest: &mut Guest, page: &str) -> Result<()> {
    guest.sh(&format!("page={page}{PAGE}"))?;
    Ok(())
}

/// From now on it has so many in a tenth of a second, all slow.
pub(crate) fn slow_requests(guest: &mut Guest, page: &str, requests: u32) -> Result<()> {
    // Whoever reads an empty file ends.
    let step = format!("/run/www/{page}.step");
    guest.sh(&format!(
        "echo {requests} > {step}.next; mv {step}.next {step}"
    ))?;
    Ok(())
}
