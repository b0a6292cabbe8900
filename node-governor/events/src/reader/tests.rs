// SPDX-License-Identifier: Apache-2.0

mod lies;
mod model;
mod world;
