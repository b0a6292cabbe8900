// SPDX-License-Identifier: Apache-2.0
//! What a job sends under `heracles`, as HTB's own counters show it, and the interface as it is found again.

use anyhow::{Context, Result, ensure};
use weir_guest::Guest;

use crate::layout::{self, CALM, SERVICE};
use crate::stage::Scenario;
use crate::{governor, group};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_job_sends_no_more_than_the_service_leaves_and_after_kill_9_and_sigterm_the_interface_is_as_found",
        sends,
    ),
    (
        "an_interface_that_is_somebody_elses_or_a_kernel_without_htb_is_refused_and_left_alone",
        is_refused,
    ),
];

/// Nothing measures the latency: heracles goes by use.
const CONFIGURATION: &str = "
tick: 100ms
service: { cgroup: system.slice/memcached.service }
core_policy:
  heracles: { least: 0, elastic: 1-3, target: 5ms, look: 200ms, grow: 200ms, cooldown: 1s, patience: 1s }
network: { interface: lo, link: 10 Mbit/s }
batch: { cgroup: weir, logs: /var/log/weir, user: 0 }
jobs:
  - { name: send, queue: long, command: [/bin/sh, -c, 'exec nc 127.0.0.1 9000 < /dev/zero'] }";
const LINK_BYTES: f64 = 1250e3;
/// The largest on this interface.
const PACKET_BYTES: f64 = 65536.0;

/// As the interface was booted.
const FOUND: &str = "qdisc noqueue 0: root refcnt 2";
const OURS: &str = "qdisc htb 5e1f: root";
/// The job's class, and all others'.
const JOBS: &str = "5e1f:20";
const OTHERS: &str = "5e1f:10";

/// Two that take what they are sent, and say nothing: at the end of their input they would end the connection.
fn begin(guest: &mut Guest) -> Result<()> {
    guest.sh(&format!(
        "mkdir -p {}/{SERVICE}
         mkfifo /run/work/silence
         for port in 9000 9001; do nc -l -p $port <> /run/work/silence > /dev/null 2>&1 & done",
        group::MOUNT
    ))?;
    layout::serve(guest, CALM)
}

fn sends(guest: &mut Guest) -> Result<()> {
    begin(guest)?;
    has(guest, FOUND)?;
    governor::start(guest, CONFIGURATION)?;
    has(guest, OURS)?;

    wait_until_more_than(guest, JOBS, 100_000)?;
    let (first, began, _) = sent(guest, JOBS)?;
    guest.sh("sleep 3")?;
    let (last, _, ended) = sent(guest, JOBS)?;
    ensure!(last > first, "it has sent {first} bytes and then {last}");
    let most = LINK_BYTES * (ended - began) + 2.0 * PACKET_BYTES;
    let sent_bytes = (last - first) as f64;
    ensure!(
        sent_bytes < most,
        "it has sent {sent_bytes} bytes within {} s, of {most}",
        ended - began
    );

    // As much as the service can.
    guest.sh(&format!(
        "(echo 0 > {}/{SERVICE}/cgroup.procs; exec nc 127.0.0.1 9001 < /dev/zero) > /dev/null 2>&1 &",
        group::MOUNT
    ))?;
    wait_until_more_than(guest, OTHERS, 2_000_000)?;
    guest.wait_until(
        "{ /bin/tc class show dev lo | grep -q 'class htb 5e1f:20 root prio 1 rate 100Kbit ceil 100Kbit'; }",
    )?;

    governor::kill(guest)?;
    has(guest, FOUND).context("its watchdog has put nothing back")?;

    governor::start(guest, CONFIGURATION)?;
    has(guest, OURS)?;
    governor::abandon(guest)?;
    has(guest, OURS).context("somebody has put things back")?;
    guest.sh("weir-governor restore --config /etc/weir-governor.yaml")?;
    has(guest, FOUND)?;

    governor::start(guest, CONFIGURATION)?;
    has(guest, OURS)?;
    governor::stop(guest, "TERM")?;
    has(guest, FOUND)
}

fn is_refused(guest: &mut Guest) -> Result<()> {
    begin(guest)?;
    guest.sh("/bin/tc qdisc add dev lo root handle 7: pfifo")?;
    refuses(
        guest,
        "lo has the discipline pfifo 7:, which somebody has made",
    )?;
    has(guest, "qdisc pfifo 7: root")?;
    guest.sh("/bin/tc qdisc del dev lo root; rmmod sch_htb")?;
    let refused = refuses(guest, "modprobe sch_htb");
    guest.sh("insmod /lib/drivers/sch_htb.ko")?;
    refused?;
    has(guest, FOUND)
}

fn refuses(guest: &mut Guest, reason: &str) -> Result<()> {
    let started = governor::start(guest, CONFIGURATION);
    ensure!(started.is_err(), "it governs");
    let said = governor::log(guest)?;
    ensure!(said.contains(reason), "it says:\n{said}");
    Ok(())
}

/// The interface has this at its root.
fn has(guest: &mut Guest, discipline: &str) -> Result<()> {
    let said = guest.sh("/bin/tc qdisc show dev lo")?;
    ensure!(
        said.starts_with(discipline),
        "it has {said:?}, and should have {discipline:?}"
    );
    Ok(())
}

/// For the shell: prints what a class has sent. Without its path busybox's own `tc` would run.
const SENT: &str = "
    sent() {
      /bin/tc -s class show dev lo | { while read -r first kind class rest; do
        [ \"$first $class\" != \"class $1\" ] || { read -r _ bytes _; echo $bytes; }
      done; }
    }";

fn wait_until_more_than(guest: &mut Guest, class: &str, bytes: u64) -> Result<()> {
    guest.wait_until(&format!(
        "{{ {SENT}
            [ $(sent {class}) -gt {bytes} ]; }}"
    ))
}

/// Bytes that a class has sent, and seconds since the guest was booted, before they were read and after.
fn sent(guest: &mut Guest, class: &str) -> Result<(u64, f64, f64)> {
    let said = guest.sh(&format!(
        "{SENT}
         read -r before _ < /proc/uptime
         sent {class}
         read -r after _ < /proc/uptime
         echo $before; echo $after"
    ))?;
    let words: Vec<&str> = said.split_whitespace().collect();
    let [bytes, before, after] = words[..] else {
        anyhow::bail!("{class}: {said:?}");
    };
    Ok((bytes.parse()?, before.parse()?, after.parse()?))
}
