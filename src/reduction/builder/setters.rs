//! The setters of options that are plain data.

use super::Builder;
use crate::config::{OnStoreFailure, PreviewLength, StoredNames, TokenCounter};
use crate::hint::Language;
use crate::preview::Preview;

/// Declares setters for fields of [`Settings`], one a row: `field(argument)`, and the user's code
/// that it replaces.
macro_rules! setters {
    ($($field:ident($argument:ty) $(, in place of $($code:ident).+)?;)*) => {
        impl Builder {
            $(
                #[doc = concat!("See [`Settings::", stringify!($field), "`](crate::Settings::", stringify!($field), ").")]
                pub fn $field(mut self, $field: $argument) -> Self {
                    self.settings.$field = $field.into();
                    $(self.$($code).+ = None;)?
                    self
                }
            )*
        }
    };
}

setters! {
    root_dir(impl Into<String>);
    names(StoredNames);
    skip_truncation(bool);
    skip_clear(bool);
    keep_file_reads(bool);
    preview(Preview), in place of hooks.preview;
    preview_length(impl Into<PreviewLength>);
    stub_length(impl Into<PreviewLength>);
    token_counter(TokenCounter), in place of counter;
    max_tokens_for_clear(u64);
    clear_retention_suffix_limit(usize);
    clear_tool_inputs(bool);
    clear_tool_inputs_above(usize);
    clear_user_texts_above(impl Into<Option<usize>>);
    keep_errors(bool);
    on_offload_error(OnStoreFailure);
    language(Language);
}
