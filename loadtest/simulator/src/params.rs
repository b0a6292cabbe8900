// SPDX-License-Identifier: Apache-2.0
//! Numbers that a text does not give, by name.

/// Why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum UnknownParam {
    #[error("{0:?}: no such parameter; there are {all}", all = .1.join(", "))]
    Name(String, &'static [&'static str]),
    #[error("{0}: {1} is not a number above 0")]
    Value(String, f64),
}

/// A struct `Params` of positive numbers, each with its reason and its default.
macro_rules! params {
    ($(#[doc = $about:literal])+ Params; $($(#[doc = $doc:literal])+ $name:ident: $value:expr,)+) => {
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
            /// There is none, or the value is not a number above 0.
            pub fn set(&mut self, name: &str, value: f64) -> Result<(), $crate::params::UnknownParam> {
                use $crate::params::UnknownParam;
                if !(value.is_finite() && value > 0.0) {
                    return Err(UnknownParam::Value(name.to_owned(), value));
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
