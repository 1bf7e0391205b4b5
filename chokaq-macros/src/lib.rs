//! The `#[job]` attribute of chokaq. Use it through the `chokaq` crate.

mod args;
mod argument;
mod attributes;
mod backoff;
mod errors;
mod expand;
mod item;
mod values;

use proc_macro::TokenStream;
use quote::quote;

use crate::{args::Args, errors::Errors, item::Target};

/// Declares a job.
#[proc_macro_attribute]
pub fn job(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args.into(), &mut errors);
    let target = item::check(item.into(), &args, &mut errors);
    expand(&args, &target, errors).into()
}

fn expand(args: &Args, target: &Target, mut errors: Errors) -> proc_macro2::TokenStream {
    let input = match target {
        Target::Type(input) => input,
        Target::Other(tokens) => {
            let errors = errors.to_compile_errors();
            return quote!(#errors #tokens);
        }
    };
    let key = item::key(input, args, &mut errors);
    args.check_aliases(&key.value(), &mut errors);
    let item = expand::item(input, args);
    let enqueue = expand::enqueue(input, args, &key);
    let registration =
        (errors.is_empty() && !args.enqueue_only).then(|| expand::registration(input, args));
    let errors = errors.to_compile_errors();
    quote!(#item #enqueue #registration #errors)
}
