//! What `#[job]` writes.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, LitStr, ext::IdentExt};

use crate::{
    args::{Args, OnCrash},
    attributes::{self, Serde},
    backoff::Backoff,
    item,
};

/// The struct, with serde's derives.
pub(crate) fn item(input: &DeriveInput, args: &Args) -> TokenStream {
    let mut input = input.clone();
    if args.serde {
        let place = attributes::place_of_derives(&input.attrs);
        let attrs = serde_attributes(&Serde::of(&input.attrs), args);
        input.attrs.splice(place..place, attrs);
    }
    quote!(#input)
}

fn serde_attributes(written: &Serde, args: &Args) -> Vec<syn::Attribute> {
    let krate = &args.krate;
    let serde = quote!(#krate::__private::serde);
    // A derive above `#[job]` cannot be seen from here. The compiler's error about the second impl names this path.
    let derives = quote!(#krate::__private::job_stands_above_derives);
    let mut attrs = Vec::new();
    if !written.derives_serialize {
        attrs.push(syn::parse_quote!(#[derive(#derives::Serialize)]));
    }
    if !written.derives_deserialize {
        attrs.push(syn::parse_quote!(#[derive(#derives::Deserialize)]));
    }
    if !attrs.is_empty() && !written.has_crate {
        let path = serde.to_string().replace(' ', "");
        attrs.push(syn::parse_quote!(#[serde(crate = #path)]));
    }
    attrs
}

/// `impl Enqueue`, and for a unit struct the function that goes with it; under bounds after a mistake.
pub(crate) fn enqueue(
    input: &DeriveInput,
    args: &Args,
    key: &LitStr,
    bounds: Option<&TokenStream>,
) -> TokenStream {
    let krate = &args.krate;
    let name = &input.ident;
    let (generics, arguments, _) = input.generics.split_for_impl();
    let job_type = job_type(input, args, key);
    let unit = item::is_unit(input).then(|| unit_enqueue(input, args, bounds));
    quote! {
        #[automatically_derived]
        #[allow(deprecated, clippy::needless_update)]
        impl #generics #krate::__private::Enqueue for #name #arguments #bounds {
            const JOB_TYPE: #krate::__private::JobType = #job_type;
        }
        #unit
    }
}

/// The bounds of impls that only stand in after a mistake, so that it brings no others: they must hold for generic
/// structs, and for those without serde's impls. (Without `for<'__any>` the compiler would check the bound at once.)
pub(crate) fn stand_in_bounds(input: &DeriveInput, args: &Args) -> TokenStream {
    let krate = &args.krate;
    let others = input.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    quote! {
        where
            for<'__any> Self: #krate::__private::serde::Serialize + ::core::marker::Send + 'static,
            #(#others),*
    }
}

fn job_type(input: &DeriveInput, args: &Args, key: &LitStr) -> TokenStream {
    let krate = &args.krate;
    let name = input.ident.unraw().to_string();
    let aliases = &args.aliases;
    let aliases = (!aliases.is_empty()).then(|| quote!(.with_aliases(&[#(#aliases),*])));
    let queue = args.queue.as_ref().map(|queue| quote!(.with_queue(#queue)));
    let priority = args.priority.map(|priority| quote!(.with_priority(#priority)));
    let policy = policy(args).map(|policy| quote!(.with_policy(#policy)));
    quote! {
        #krate::__private::JobType::new(
            #key,
            ::core::concat!(::core::module_path!(), "::", #name),
            ::core::concat!(::core::file!(), ":", ::core::line!()),
        )
        #aliases #queue #priority #policy
    }
}

/// The policy, unless it is all inherited.
fn policy(args: &Args) -> Option<TokenStream> {
    let private = private(args);
    let some = |value: TokenStream| quote!(::core::option::Option::Some(#value));
    let mut fields = Vec::new();
    if let Some(retries) = args.retries {
        let retries = some(quote!(#retries));
        fields.push(quote!(retries: #retries));
    }
    if let Some(timeout) = args.timeout {
        let timeout = some(duration(&private, timeout));
        fields.push(quote!(timeout: #timeout));
    }
    if let Some(max_age) = args.max_age {
        let max_age = some(duration(&private, max_age));
        fields.push(quote!(max_age: #max_age));
    }
    if let Some(backoff) = &args.backoff {
        let backoff = some(backoff_value(&private, backoff));
        fields.push(quote!(backoff: #backoff));
    }
    if let Some(on_crash) = args.on_crash {
        let on_crash = match on_crash {
            OnCrash::DeadLetter => quote!(DeadLetter),
            OnCrash::Retry => quote!(Retry),
        };
        fields.push(quote!(on_crash: #private::OnCrash::#on_crash));
    }
    (!fields.is_empty())
        .then(|| quote!(#private::JobPolicy { #(#fields,)* ..#private::JobPolicy::INHERIT }))
}

fn private(args: &Args) -> TokenStream {
    let krate = &args.krate;
    quote!(#krate::__private)
}

fn duration(private: &TokenStream, duration: Duration) -> TokenStream {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    quote!(#private::Duration::new(#seconds, #nanos))
}

fn backoff_value(private: &TokenStream, backoff: &Backoff) -> TokenStream {
    match backoff {
        Backoff::Exponential { base, max, factor } => {
            let (base, max) = (duration(private, *base), duration(private, *max));
            quote!(#private::Backoff::Exponential { base: #base, max: #max, factor: #factor })
        }
        Backoff::Fixed(delay) => {
            let delay = duration(private, *delay);
            quote!(#private::Backoff::Fixed(#delay))
        }
        Backoff::Function(path) => quote!(#private::Backoff::Custom(#path)),
    }
}

/// `MyJob::enqueue(&pool)`, beside the trait's `MyJob.enqueue(&pool)`.
fn unit_enqueue(input: &DeriveInput, args: &Args, bounds: Option<&TokenStream>) -> TokenStream {
    let krate = &args.krate;
    let (vis, name) = (&input.vis, &input.ident);
    let (generics, arguments, _) = input.generics.split_for_impl();
    let doc = format!("Puts one `{}` in the database: set options, then `.await`.", name.unraw());
    quote! {
        #[automatically_derived]
        #[allow(deprecated, dead_code, unreachable_pub)]
        impl #generics #name #arguments #bounds {
            #[doc = #doc]
            #vis fn enqueue(pool: &#krate::Pool) -> #krate::EnqueueOne {
                #krate::__private::Enqueue::enqueue(Self, pool)
            }
        }
    }
}

/// The entry in the registry that a worker reads at start-up.
pub(crate) fn registration(input: &DeriveInput, args: &Args) -> TokenStream {
    let private = private(args);
    let name = &input.ident;
    let constructor = quote_spanned!(name.span()=> of::<#name>());
    quote! {
        #[allow(deprecated)]
        const _: () = {
            #private::inventory::submit! { #private::Registration::#constructor }
        };
    }
}
