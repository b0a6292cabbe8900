// SPDX-License-Identifier: Apache-2.0
//! The weir.v1 tables and reports: encoding, decoding and validation.
