// SPDX-License-Identifier: Apache-2.0
//! A page of metrics that says how slow the service is.

use anyhow::Result;
use weir_guest::Guest;

/// A server of a page whose requests are as many as /run/www/step says for each tenth of a second, all slow.
const PAGE: &str = "
    mkdir -p /run/www; echo 0 > /run/www/step
    {
      requests=10
      while read -r step < /run/www/step; do
        requests=$((requests + step))
        cat > /run/www/next <<PAGE
# TYPE took histogram
took_bucket{le=\"0.001\"} 10
took_bucket{le=\"0.05\"} $requests
took_bucket{le=\"+Inf\"} $requests
took_count $requests
PAGE
        mv /run/www/next /run/www/metrics
        usleep 100000
      done
    } > /dev/null 2>&1 &
    httpd -p 127.0.0.1:9901 -h /run/www";

/// Serves it at port 9901; the service has no requests yet.
pub(crate) fn serve(guest: &mut Guest) -> Result<()> {
    guest.sh(PAGE)?;
    Ok(())
}

/// From now on it has some, all slow.
pub(crate) fn slow_down(guest: &mut Guest) -> Result<()> {
    guest.sh("echo 10 > /run/www/step")?;
    Ok(())
}
