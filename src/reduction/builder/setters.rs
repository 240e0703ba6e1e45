//! The setters of options that are plain data.

use super::Builder;
use crate::config::{OnStoreFailure, PreviewLength, StoredNames, TokenCounter, options, see};
use crate::hint::Language;
use crate::preview::Preview;

/// Declares setters.
macro_rules! setters {
    ($(
        $(#[$meta:meta])*
        $option:ident: $type:ty = $default:expr
            $(, set($argument:ty) $(in place of $($code:ident).+)?)?
            $(, tool($own_argument:ty): $own:ty $(, in place of $($own_code:ident).+)? $(, read by $read:literal)?)?
            $(, elsewhere($($name:literal),*))?;
    )*) => {
        impl Builder {
            $($(
                #[doc = see!($option)]
                pub fn $option(mut self, $option: $argument) -> Self {
                    self.settings.$option = $option.into();
                    self.set.insert(stringify!($option));
                    $(self.$($code).+ = None;)?
                    self
                }
            )?)*
        }
    };
}

options!(setters);
