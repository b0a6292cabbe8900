// SPDX-License-Identifier: Apache-2.0
//! The ways of choosing a host that are compared, as data.

use std::net::SocketAddr;

use anyhow::Result;
use http::HeaderValue;

use crate::bench::load::AnsweredBy;
use crate::sidecar::HOSTS;

/// weir-control's table for the selection `dynamic`; that of [`HOSTS`] has the defaults.
pub(super) const DYNAMIC: &str = "rules-dynamic";
/// The table for decisions that name one host, and no next ones for retries.
pub(super) const ONE: &str = "rules-one";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// Envoy alone, with its least_request.
    Plain,
    /// The same with the header rules alone that Weir needs: nobody names a host.
    Rules,
    /// As plain, with a module of WebAssembly that does nothing.
    NoOp,
    /// As plain, with a dynamic module that does nothing.
    NativeNoOp,
    /// With its defaults.
    Weir,
    /// The same filter as a dynamic module.
    Native,
    /// The same that names one host, of which it tells Envoy by a call.
    NativeOne,
    /// Weir that has no table: it reads the request and leaves it to Envoy.
    Untold,
    NativeUntold,
    /// Weir that takes every cluster for this one and trusts every caller, so that it asks Envoy for neither.
    Unasked,
    NativeUnasked,
    /// Hosts tell their load on every answer, and the filter takes it in.
    WeirLoads,
    /// Weir with the selection `dynamic`, which leaves the host that has the key for nothing.
    Dynamic,
    /// A table in Lua, the same headers.
    Lua,
    /// Weir's decision by `dynamic` on Weir's tables, in another process.
    Picker,
    /// The same, which knows as much as Weir does: it is told of answers, too.
    ToldPicker,
    /// The picker of the Kubernetes inference gateway.
    Epp,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain Envoy",
            Self::Rules => "header rules only",
            Self::NoOp => "no-op Wasm",
            Self::NativeNoOp => "no-op native",
            Self::Weir => "Weir",
            Self::Native => "Weir, native",
            Self::NativeOne => "Weir, native, one host named",
            Self::Untold => "Weir without a table",
            Self::NativeUntold => "Weir without a table, native",
            Self::Unasked => "Weir, whatever cluster and caller",
            Self::NativeUnasked => "Weir, whatever cluster and caller, native",
            Self::WeirLoads => "Weir, load on answers",
            Self::Dynamic => "Weir, dynamic",
            Self::Lua => "Lua",
            Self::Picker => "ext_proc, Weir's decision (dynamic)",
            Self::ToldPicker => "ext_proc, told of answers",
            Self::Epp => "ext_proc, EPP 1.3.0",
        }
    }

    /// What the sidecar is called; two ways share one.
    pub(super) fn node(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rules => "rules",
            Self::NoOp => "no-op",
            Self::NativeNoOp => "native-no-op",
            Self::Native => "native",
            Self::NativeOne => "native-one",
            Self::Untold => "untold",
            Self::NativeUntold => "native-untold",
            Self::Unasked => "unasked",
            Self::NativeUnasked => "native-unasked",
            Self::Weir | Self::WeirLoads => "weir",
            Self::Dynamic => "weir-dynamic",
            Self::Lua => "lua",
            Self::Picker => "picker",
            Self::ToldPicker => "told-picker",
            Self::Epp => "epp",
        }
    }

    /// The table of weir-control that it decides by.
    pub(super) fn table(self) -> Option<&'static str> {
        match self {
            Self::Weir | Self::Native | Self::WeirLoads | Self::Unasked | Self::NativeUnasked => {
                Some(HOSTS)
            }
            Self::NativeOne => Some(ONE),
            Self::Dynamic | Self::Picker | Self::ToldPicker => Some(DYNAMIC),
            Self::Plain
            | Self::Rules
            | Self::NoOp
            | Self::NativeNoOp
            | Self::Untold
            | Self::NativeUntold
            | Self::Lua
            | Self::Epp => None,
        }
    }

    /// Whether the filter decides, and counts why.
    pub(super) fn is_weir(self) -> bool {
        matches!(
            self,
            Self::Weir
                | Self::Native
                | Self::NativeOne
                | Self::Unasked
                | Self::NativeUnasked
                | Self::WeirLoads
                | Self::Dynamic
        )
    }

    /// Who must answer a request for a key that this host has.
    pub(super) fn answered_by(self, holder: SocketAddr) -> Result<AnsweredBy> {
        let holder = HeaderValue::try_from(holder.to_string())?;
        Ok(match self {
            Self::Plain
            | Self::Rules
            | Self::NoOp
            | Self::NativeNoOp
            | Self::Untold
            | Self::NativeUntold => AnsweredBy::Any,
            Self::Epp => AnsweredBy::TheNamed,
            Self::Weir
            | Self::Native
            | Self::NativeOne
            | Self::Unasked
            | Self::NativeUnasked
            | Self::WeirLoads => AnsweredBy::Preferably(holder),
            Self::Dynamic | Self::Lua | Self::Picker | Self::ToldPicker => AnsweredBy::This(holder),
        })
    }
}
