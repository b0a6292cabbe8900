// SPDX-License-Identifier: Apache-2.0
//! Lists of all variants of an enum.

/// An array of every variant of `Self`, each with the fields that are given. A list that lacks a variant does not
/// compile.
#[macro_export]
macro_rules! every {
    ($($variant:ident $(($($value:expr),+))? $({ $($field:ident: $of:expr),+ })?),+ $(,)?) => {{
        // No arm for others: this is what the compiler refuses.
        let _ = |variant: &Self| match variant {
            $(Self::$variant { .. } => (),)+
        };
        [$(Self::$variant $(($($value),+))? $({ $($field: $of),+ })?),+]
    }};
}
