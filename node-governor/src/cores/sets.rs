// SPDX-License-Identifier: Apache-2.0
//! A node's cores in three sets: the service's, those of either, jobs'.

use super::places::Places;
use super::{Cores, JobPlan, Refused, Seen, check_cores};
use crate::jobs::Job;

/// No core is in two of them.
pub(super) struct Sets<'a> {
    /// The service's, always.
    pub(super) least: &'a Cores,
    /// The service has them from the lowest number on.
    pub(super) elastic: &'a Cores,
    /// Jobs', always. None on a machine of two cores: then all jobs take turns on what the service leaves.
    pub(super) batch: &'a Cores,
}

/// Who has which.
pub(super) struct Divided {
    pub(super) service: Cores,
    pub(super) jobs: Vec<JobPlan>,
    /// No job needs the elastic ones that the service leaves.
    pub(super) no_jobs: bool,
}

impl Sets<'_> {
    /// # Errors
    /// A set is empty and not `batch`, has cores that the machine does not have or that another set has.
    pub(super) fn check(&self, machine: &Cores) -> Result<(), Refused> {
        let sets = [
            ("least", self.least),
            ("elastic", self.elastic),
            ("batch", self.batch),
        ];
        for (index, (field, set)) in sets.into_iter().enumerate() {
            if field != "batch" || !set.is_empty() {
                check_cores(field, set, machine)?;
            }
            for (other, cores) in &sets[..index] {
                let shared = set.shared(cores);
                if !shared.is_empty() {
                    return Err(Refused::new(field, format!("{shared}: in {other}, too")));
                }
            }
        }
        Ok(())
    }

    /// So many elastic cores are the service's; the small place's job has the others, else the large one's where it
    /// has threads for them, else the service.
    pub(super) fn divide(
        &self,
        given: usize,
        places: &mut Places,
        jobs: &[Job],
        seen: &Seen,
    ) -> Divided {
        places.fill(jobs, seen, self.batch);
        let elastic = self.elastic.numbers();
        let taken: Cores = elastic.iter().copied().take(given).collect();
        let left = self.elastic.without(&taken);
        let mut service = self.least.with(&taken);
        let mut large = self.batch.clone();
        let wide =
            |job: usize| usize::try_from(jobs[job].threads).unwrap_or(usize::MAX) > large.len();
        let mut no_jobs = false;
        if places.small.is_none() {
            if places.large.is_some_and(wide) {
                large = large.with(&left);
            } else {
                service = self.least.with(self.elastic);
                no_jobs = true;
            }
        }
        Divided {
            service,
            jobs: places.plan(jobs, seen, &large, &left),
            no_jobs,
        }
    }
}
