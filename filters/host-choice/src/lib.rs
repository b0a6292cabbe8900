// SPDX-License-Identifier: Apache-2.0
//! The proxy-wasm HTTP filter that picks the upstream host.
