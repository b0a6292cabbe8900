// SPDX-License-Identifier: Apache-2.0
//! The executor of a host.
