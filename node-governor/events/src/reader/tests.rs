// SPDX-License-Identifier: Apache-2.0

mod interleavings;
mod lies;
mod model;
mod world;
