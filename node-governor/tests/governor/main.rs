// SPDX-License-Identifier: Apache-2.0
//! The governor on a kernel made of plain files, in this process and in its own.

mod apply;
mod check;
mod groups;
mod jobs;
mod kernel;
mod power;
mod processes;
mod producer;
mod profile;
mod reaction;
mod resctrl;
mod sense;
mod shares;
mod stuck;
mod two_nodes;
mod uprobe;
