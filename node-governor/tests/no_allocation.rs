// SPDX-License-Identifier: Apache-2.0
//! A tick takes no memory from the heap: whatever the policy, with 64 cores that all have events.

use allocation_counter::measure;
use kernel::Kernel;
use producer::Producer;
use weir_governor::config;
use weir_governor::run::Governor;
use weir_governor::sensed::Nanos;

// The other tests use the rest of them.
#[allow(dead_code)]
#[path = "governor/kernel.rs"]
mod kernel;
#[allow(dead_code)]
#[path = "governor/producer.rs"]
mod producer;

const MS: u64 = 1_000_000;
const CORES: u16 = 64;

#[test]
fn a_tick_allocates_nothing() {
    for policy in policies() {
        assert_eq!(allocations(&policy), 0, "{policy}");
    }
}

/// All that there are: the refusal of a file that names none lists them.
fn policies() -> Vec<String> {
    let kernel = Kernel::without_processes(1);
    let refused = config::load(&kernel.config_file("{}")).unwrap_err();
    let refused = refused.to_string();
    let (_, names) = refused.split_once("one of ").unwrap();
    names.split(", ").map(str::to_owned).collect()
}

/// In two seconds, without what is done once a second.
fn allocations(policy: &str) -> u64 {
    let kernel = Kernel::without_processes(CORES.into());
    kernel.processes();
    let config = kernel.config(&format!("{{ {policy}: {{}} }}"));
    let mut governor = Governor::start(config, &kernel.root()).unwrap();
    let mut threads: Vec<Producer> = (0..CORES.into())
        .map(|number| {
            kernel.thread(number, 77, number);
            Producer::claim(&kernel, number, number, 77)
        })
        .collect();
    let start = 1_000_000 * MS;
    let mut counted = 0;
    for tick in 0..200 {
        let now = Nanos(start + tick * 10 * MS);
        for (core, thread) in threads.iter_mut().enumerate() {
            let core = Some(core as u16);
            match tick % 3 {
                0 => thread.enter(1, now, core),
                1 => thread.leave(1, now, core),
                _ => {}
            }
        }
        let took = measure(|| {
            governor.tick(now, false);
        });
        // The others are what the first takes for good, and those that look at files once a second.
        if tick > 0 && tick % 100 != 0 {
            counted += took.count_total;
        }
    }
    let book = governor.book().read();
    assert!(book.events.events > 8000, "{policy}: {:?}", book.events);
    counted
}
