//! The `#[job]` attribute of chokaq. Use it through the `chokaq` crate.

use proc_macro::TokenStream;

/// Declares a job.
#[proc_macro_attribute]
pub fn job(_args: TokenStream, item: TokenStream) -> TokenStream {
    item
}
