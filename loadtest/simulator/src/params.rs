// SPDX-License-Identifier: Apache-2.0
//! Numbers that a text does not give, by name.

/// Why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum UnknownParam {
    #[error("{0:?}: no such parameter; there are {all}", all = .1.join(", "))]
    Name(String, &'static [&'static str]),
    #[error("{0}: {1} is not {2}")]
    Value(String, f64, &'static str),
}

/// A struct `Params` of numbers, each with its reason and its default, and which of them can be meant: in words, and
/// as a comparison.
macro_rules! params {
    ($(#[doc = $about:literal])+ Params: $meant:literal, $compared:tt 0; $($(#[doc = $doc:literal])+ $name:ident: $value:expr,)+) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct Params {
            $($(#[doc = $doc])+ pub $name: f64,)+
        }

        impl Default for Params {
            fn default() -> Self {
                Self { $($name: $value,)+ }
            }
        }

        impl Params {
            /// Of all parameters.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The parameter of this name.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name),)+
                    _ => None,
                }
            }

            /// Sets the parameter of this name.
            ///
            /// # Errors
            /// There is none, or the value cannot be meant.
            pub fn set(&mut self, name: &str, value: f64) -> Result<(), $crate::params::UnknownParam> {
                use $crate::params::UnknownParam;
                if !(value.is_finite() && value $compared 0.0) {
                    return Err(UnknownParam::Value(name.to_owned(), value, $meant));
                }
                match name {
                    $(stringify!($name) => self.$name = value,)+
                    _ => return Err(UnknownParam::Name(name.to_owned(), Self::NAMES)),
                }
                Ok(())
            }
        }
    };
}

pub(crate) use params;
