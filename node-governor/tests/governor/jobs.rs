// SPDX-License-Identifier: Apache-2.0
//! Batch jobs as processes, with this machine's cgroups and without any.

mod ends;
mod forget;
mod kills;
mod others;
mod place;
mod starts;
mod windows;
