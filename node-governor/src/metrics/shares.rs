// SPDX-License-Identifier: Apache-2.0
//! Of the service's cores and the jobs; absent where cores are not divided.

use std::fmt;

use super::{Family, Labels};
use crate::book::shares::{JobBook, PeerBook, STATES, SharesBook, state_name};
use crate::cores::Cores;

pub(super) fn write(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    service(family, book)?;
    shared(family, book)?;
    mesh(family, book)?;
    jobs(family, book)?;
    peers(family, book)
}

fn service(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    family.gauge(
        "service_cores",
        "Cores that the service has, as planned",
        Some(book.service.len() as f64),
    )?;
    let other = |(name, cores): &(String, Cores)| {
        let labels = vec![("other_service", name.clone())];
        (labels, cores.len() as f64)
    };
    family.gauges(
        "other_service_cores",
        "Cores that a service beside the first has, as planned",
        book.others.iter().map(other),
    )?;
    family.gauge(
        "service_cpu_cores",
        "Cores that the service used on average in the last tick; none while that is not known",
        book.cpu,
    )?;
    family.counter(
        "service_moves",
        "Times that the service's cores changed",
        book.moves,
    )?;
    family.counter(
        "core_write_errors",
        "Writes of cores, freezing and thawing that failed",
        book.write_errors,
    )
}

fn shared(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    let (resources, ceilings) = (&book.resources, &book.ceilings);
    family.gauge(
        "network_others_bytes_per_second",
        "What others than jobs send by the interface of the configuration; none while that is not known",
        resources.egress.map(|bits| bits / 8.0),
    )?;
    family.gauge(
        "network_jobs_ceiling_bytes_per_second",
        "What all jobs together may send by that interface, as planned; none where no policy sets it",
        ceilings.egress.map(|bits| bits as f64 / 8.0),
    )?;
    family.gauge(
        "service_slowest_hertz",
        "Frequency of the slowest of the service's cores; none where no policy goes by it",
        resources.slowest.map(|khz| f64::from(khz.0) * 1e3),
    )?;
    family.gauge(
        "jobs_speed_ceiling_ratio",
        "How fast jobs' cores may be, as planned, from 0, their lowest frequency, to 1, their highest; none where no policy sets it",
        ceilings.speed,
    )?;
    memory(family, book)
}

fn memory(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    let (read, ceilings) = (book.resources.memory, &book.ceilings);
    family.gauge(
        "memory_bandwidth_bytes_per_second",
        "What everybody reads from memory and writes, at the L3 cache with most of it; none where resctrl does not measure it for a policy",
        read.map(|read| read.total),
    )?;
    family.gauge(
        "memory_bandwidth_jobs_bytes_per_second",
        "What jobs read from memory and write there; none where resctrl does not measure it for a policy",
        read.map(|read| read.jobs),
    )?;
    family.gauge(
        "jobs_cache_ways",
        "Ways of the L3 cache that jobs may fill, as planned; none where no policy sets it",
        ceilings.ways.map(f64::from),
    )?;
    family.gauge(
        "jobs_memory_bandwidth_ceiling_ratio",
        "Share of a core's bandwidth of memory that each of jobs' cores may use, as planned; none where no policy sets it",
        ceilings.bandwidth.map(|percent| f64::from(percent) / 100.0),
    )
}

fn mesh(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    family.gauge(
        "mesh_pressed",
        "1 while the mesh refuses requests to the service's host or is about to",
        Some(f64::from(book.pressed)),
    )?;
    let delay = book.row.and_then(|row| row.delay);
    family.gauge(
        "mesh_queuing_delay_seconds",
        "For how long requests wait at the service's host, as the mesh said last; none while it does not say",
        delay.map(|delay| delay.as_secs_f64()),
    )?;
    family.gauge(
        "capacity_cores",
        "Cores of the service times their speed, as reported to the mesh; none while nothing is",
        book.capacity_millicores
            .map(|thousandths| f64::from(thousandths) / 1e3),
    )
}

fn jobs(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    let progress = book.progress();
    family.gauge("jobs", "Batch jobs", Some(progress.jobs as f64))?;
    family.gauge(
        "jobs_ended",
        "Batch jobs that have ended, well or not",
        Some(progress.ended as f64),
    )?;
    let state = |job: &JobBook| {
        let (name, now) = (job.name.clone(), job.state);
        STATES.map(|state| {
            let labels = vec![
                ("batch_job", name.clone()),
                ("state", state_name(state).to_owned()),
            ];
            (labels, f64::from(state == now))
        })
    };
    family.gauges(
        "job_state",
        "1 for the state in which the job is, 0 for the others",
        book.jobs.iter().flat_map(state),
    )?;
    family.gauges(
        "job_cores",
        "Cores on which the job runs; 0 while it does not",
        each(book, |job| Some(job.cores.len() as f64)),
    )?;
    family.gauges(
        "job_memory_high_bytes",
        "Memory above which the kernel takes some back from the job, as planned; none where no policy sets it",
        each(book, |job| Some(job.limits.memory? as f64)),
    )?;
    family.gauges(
        "job_disk_weight",
        "Weight of the job among those who wait for a disk, as planned; none where no policy sets it",
        each(book, |job| Some(f64::from(job.limits.disk?))),
    )?;
    family.counters(
        "job_running_seconds",
        "Time in which the job was running",
        each(book, |job| Some(job.ran.as_secs_f64())),
    )?;
    family.counters(
        "job_paused_seconds",
        "Time in which the job was frozen",
        each(book, |job| Some(job.paused.as_secs_f64())),
    )?;
    family.counters(
        "job_pauses",
        "Times that the job was frozen",
        each(book, |job| Some(job.pauses as f64)),
    )?;
    family.counters(
        "job_cpu_seconds",
        "CPU time that the job has used, where that is known",
        each(book, |job| Some(job.cpu?.as_secs_f64())),
    )?;
    family.gauges(
        "job_exit_code",
        "How the job ended: its exit code, or 128 and the signal; none before",
        each(book, |job| Some(f64::from(job.code?))),
    )
}

fn peers(family: &mut Family<'_, '_>, book: &SharesBook) -> fmt::Result {
    let of = |peer: &PeerBook| vec![("node", peer.node.clone())];
    family.gauges(
        "peer_answers",
        "1 while the governor of another node says how far its jobs are that jobs here wait for",
        book.peers
            .iter()
            .map(|peer| (of(peer), f64::from(peer.answers))),
    )?;
    family.gauges(
        "peer_job_ended",
        "1 if a job of another node has ended for which jobs here wait, 0 if not; none while that is not known",
        book.peers.iter().flat_map(|peer| {
            peer.jobs.iter().filter_map(move |(job, ended)| {
                let mut labels = of(peer);
                labels.push(("batch_job", job.clone()));
                Some((labels, f64::from((*ended)?)))
            })
        }),
    )
}

fn each(
    book: &SharesBook,
    value: impl Fn(&JobBook) -> Option<f64>,
) -> impl Iterator<Item = (Labels, f64)> {
    let series = move |job: &JobBook| Some((vec![("batch_job", job.name.clone())], value(job)?));
    book.jobs.iter().filter_map(series)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::book::{Book, Shared};
    use crate::cores::Ceilings;
    use crate::jobs::State;
    use crate::node::Khz;
    use crate::sensed::{Bandwidth, Nanos, Resources, Row};

    fn page(shares: Option<SharesBook>) -> String {
        let book = Book {
            shares,
            ..Book::default()
        };
        let mut page = String::new();
        let registry = crate::metrics::registry(Shared::new(book));
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        page
    }

    #[test]
    fn the_page_says_who_has_what_and_how_jobs_ended() {
        let job = |name: &str, state| JobBook {
            name: name.into(),
            state,
            cores: [2, 3].into(),
            ran: Duration::from_millis(1500),
            paused: Duration::from_millis(500),
            pauses: 3,
            ..JobBook::default()
        };
        let ended = JobBook {
            cpu: Some(Duration::from_secs(3)),
            code: Some(137),
            cores: [].into(),
            ..job("vips", State::Failed)
        };
        let page = page(Some(SharesBook {
            service: [0, 1].into(),
            others: vec![("nginx".to_owned(), [4, 5, 6].into())],
            cpu: Some(1.25),
            row: Some(Row {
                at: Nanos(1),
                refuses: false,
                delay: Some(Duration::from_millis(30)),
            }),
            capacity_millicores: Some(1800),
            pressed: true,
            resources: Resources {
                egress: Some(8e6),
                watts: None,
                slowest: Some(Khz(2_000_000)),
                memory: Some(Bandwidth {
                    at: Nanos(1),
                    jobs: 3e9,
                    total: 5e9,
                }),
            },
            ceilings: Ceilings {
                egress: Some(80_000),
                speed: Some(0.9),
                ways: Some(7),
                bandwidth: Some(40),
            },
            moves: 4,
            jobs: vec![job("dedup", State::Running), ended],
            peers: vec![PeerBook {
                node: "four".into(),
                answers: true,
                jobs: vec![("ferret".into(), Some(true)), ("fft".into(), None)],
            }],
            ..SharesBook::default()
        }));
        for line in [
            "service_cores 2.0",
            "other_service_cores{other_service=\"nginx\"} 3.0",
            "service_cpu_cores 1.25",
            "service_moves_total 4.0",
            "network_others_bytes_per_second 1000000.0",
            "network_jobs_ceiling_bytes_per_second 10000.0",
            "service_slowest_hertz 2000000000.0",
            "jobs_speed_ceiling_ratio 0.9",
            "memory_bandwidth_bytes_per_second 5000000000.0",
            "memory_bandwidth_jobs_bytes_per_second 3000000000.0",
            "jobs_cache_ways 7.0",
            "jobs_memory_bandwidth_ceiling_ratio 0.4",
            "mesh_pressed 1.0",
            "mesh_queuing_delay_seconds 0.03",
            "capacity_cores 1.8",
            "core_write_errors_total 0.0",
            "jobs 2.0",
            "jobs_ended 1.0",
            "job_state{batch_job=\"dedup\",state=\"running\"} 1.0",
            "job_state{batch_job=\"dedup\",state=\"failed\"} 0.0",
            "job_state{batch_job=\"vips\",state=\"failed\"} 1.0",
            "job_cores{batch_job=\"dedup\"} 2.0",
            "job_cores{batch_job=\"vips\"} 0.0",
            "job_running_seconds_total{batch_job=\"dedup\"} 1.5",
            "job_paused_seconds_total{batch_job=\"dedup\"} 0.5",
            "job_pauses_total{batch_job=\"dedup\"} 3.0",
            "job_cpu_seconds_total{batch_job=\"vips\"} 3.0",
            "job_exit_code{batch_job=\"vips\"} 137.0",
            "peer_answers{node=\"four\"} 1.0",
            "peer_job_ended{node=\"four\",batch_job=\"ferret\"} 1.0",
        ] {
            let line = format!("\nweir_governor_{line}\n");
            assert!(page.contains(&line), "{line}\n{page}");
        }
        for none in [
            "job_exit_code{batch_job=\"dedup\"}",
            "job_cpu_seconds_total{batch_job=\"dedup\"}",
            "peer_job_ended{node=\"four\",batch_job=\"fft\"}",
        ] {
            assert!(!page.contains(none), "{none}\n{page}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_there() {
        let page_of_nothing = page(Some(SharesBook::default()));
        for none in [
            "service_cpu_cores",
            "mesh_queuing",
            "capacity_cores",
            "network_",
            "service_slowest",
            "jobs_speed",
            "memory_bandwidth",
            "jobs_cache",
        ] {
            assert!(!page_of_nothing.contains(none), "{page_of_nothing}");
        }
        let page = page(None);
        for none in ["service_", "mesh_", "governor_job", "core_write_errors"] {
            assert!(!page.contains(none), "{page}");
        }
    }
}
