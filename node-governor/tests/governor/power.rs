// SPDX-License-Identifier: Apache-2.0
//! Power under `heracles`, on made-up files of powercap and cpufreq: no machine here has RAPL.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use weir_governor::config;
use weir_governor::run::Governor;

use crate::kernel::{Kernel, wait_for};
use crate::processes::{self, Process};

/// Two cores, of which a job has the second.
fn configured(kernel: &Kernel, service: &Process, more: &str) -> PathBuf {
    let policy = format!("heracles: {{ {HERACLES}, guaranteed: 2.6 GHz{more} }}");
    configured_as(kernel, service, &policy, "[/bin/sleep, '600']")
}

/// Of such a node, without waiting.
pub(crate) const HERACLES: &str = "least: 0, elastic: 1, look: 10ms, grow: 10ms";

/// With this core policy and job.
pub(crate) fn configured_as(
    kernel: &Kernel,
    service: &Process,
    policy: &str,
    job: &str,
) -> PathBuf {
    let path = kernel.config_file("{ performance: {} }");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&format!(
        "service: {{ pid: {} }}\n\
         core_policy: {{ {policy} }}\n\
         batch: {{ logs: {}, on_stop: end, user: root }}\n\
         jobs: [ {{ name: sleep, command: {job} }} ]\n",
        service.0.id(),
        kernel.path("logs").display(),
    ));
    fs::write(&path, text).unwrap();
    fs::write(kernel.path("sys/devices/system/cpu/online"), "0-1\n").unwrap();
    path
}

/// Watts of the package go by this counter, which the governor has open.
fn count(kernel: &Kernel, joules: u64) {
    let energy = kernel.path("sys/class/powercap/intel-rapl:0/energy_uj");
    let file = fs::File::options().write(true).open(energy).unwrap();
    // Always as long, so that it is never seen in part.
    file.write_all_at(format!("{:020}\n", joules * 1_000_000).as_bytes(), 0)
        .unwrap();
}

fn package(kernel: &Kernel, more: &[(&str, &str)]) {
    let zone = kernel.path("sys/class/powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    let all = [
        ("name", "package-0"),
        ("max_energy_range_uj", "262143328850"),
        ("energy_uj", "00000000000000000000"),
    ];
    for (file, text) in all.iter().chain(more) {
        fs::write(zone.join(file), format!("{text}\n")).unwrap();
    }
}

pub(crate) fn service() -> Process {
    let mut command = Command::new("sleep");
    Process(command.arg("600").spawn().unwrap())
}

#[test]
fn power_is_refused_at_the_start_where_nothing_tells_of_it_or_what_the_packages_are_made_for() {
    let (kernel, service) = (Kernel::new(2), service());
    let refused = |more: &str| {
        let config = configured(&kernel, &service, more);
        let error = Governor::start(config::load(&config).unwrap(), &kernel.root()).err();
        error.expect("it is refused").to_string()
    };
    let error = refused(", tdp: 50 W");
    assert!(error.contains("heracles.guaranteed: no RAPL"), "{error}");
    package(&kernel, &[]);
    let error = refused("");
    assert!(error.contains("heracles.tdp: required"), "{error}");
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}

#[test]
fn a_jobs_core_is_slower_while_the_package_draws_too_much_and_the_service_is_slow_for_it() {
    let (kernel, service) = (Kernel::new(2), service());
    package(&kernel, &[("constraint_0_max_power_uw", "50000000")]);
    let really = kernel.path("sys/devices/system/cpu/cpu0/cpufreq");
    fs::create_dir_all(&really).unwrap();
    let really = really.join("scaling_cur_freq");
    fs::write(&really, "2000000\n").unwrap();
    let config = configured(&kernel, &service, "");
    let config = config.to_str().unwrap();
    let mut run = processes::command(&kernel, &["run", "--config", config]);
    run.stdout(Stdio::null()).stderr(Stdio::null());
    let mut governor = Process(run.spawn().unwrap());

    // A hundred watts or so, of fifty.
    let mut joules = 0;
    let speed = |policy| kernel.read(policy, "scaling_setspeed");
    wait_for("the job's core is slower", || {
        joules += 1;
        count(&kernel, joules);
        speed(1) == "2000000"
    });
    assert_eq!(speed(0), "2600000", "the service's");
    // Now nothing is drawn, and the service has what it shall have.
    fs::write(&really, "2600000\n").unwrap();
    wait_for("the job's core is fast again", || speed(1) == "2600000");
    governor.signal(Signal::TERM);
    assert_eq!(governor.code(), Some(0));
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}
