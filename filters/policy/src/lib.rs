// SPDX-License-Identifier: Apache-2.0
//! Which host gets a request: tables in memory and the pure decision over them.
