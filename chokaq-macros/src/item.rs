//! The struct below `#[job]`: what must be true of it, and which of serde's derives it has.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Data, DeriveInput, Field, Fields, GenericParam, Ident, Item, LitStr, Type,
    ext::IdentExt,
};

use crate::{args::Args, attributes, errors::Errors, values};

/// What stands below the attribute.
pub(crate) enum Target {
    /// A struct; or after a mistake an enum, which can stand in for one in the rest of the user's code.
    Type(Box<DeriveInput>),
    /// Something that can only be given back as it was.
    Other(TokenStream),
}

/// Reads the item and checks it.
pub(crate) fn check(tokens: TokenStream, args: &Args, errors: &mut Errors) -> Target {
    let mut input = match syn::parse2::<Item>(tokens.clone()) {
        Ok(Item::Struct(item)) => DeriveInput::from(item),
        Ok(Item::Enum(item)) => {
            errors.push(item.enum_token, wrong_kind("an enum", Some(&item.ident)));
            DeriveInput::from(item)
        }
        Ok(other) => {
            let (place, kind, name) = describe(&other);
            errors.push(place, wrong_kind(kind, name));
            return Target::Other(tokens);
        }
        Err(_) => {
            errors.push(&tokens, wrong_kind("something else", None));
            return Target::Other(tokens);
        }
    };
    remove_repeated(&mut input.attrs, errors);
    check_generics(&input, errors);
    check_fields(&input, args, errors);
    Target::Type(Box::new(input))
}

fn wrong_kind(kind: &str, name: Option<&Ident>) -> String {
    let wrapped = name.map_or_else(String::new, |name| format!("({name})"));
    let advice = match kind {
        "an enum" | "a union" | "a type alias" => {
            format!("wrap it in a struct: write `struct MyJob{wrapped};`")
        }
        "an impl" => "move it up to the struct".into(),
        "a function" => {
            "put its arguments into a struct, and its body into `impl Job for` that struct".into()
        }
        _ => "write it above `struct MyJob { .. }`".into(),
    };
    format!("`#[job]` goes on a struct, and this is {kind}: {advice}")
}

/// Where to point, what it is, and its name where that helps.
fn describe(item: &Item) -> (&dyn ToTokens, &'static str, Option<&Ident>) {
    match item {
        Item::Union(item) => (&item.union_token, "a union", Some(&item.ident)),
        Item::Type(item) => (&item.type_token, "a type alias", Some(&item.ident)),
        Item::Fn(item) => (&item.sig, "a function", None),
        Item::Impl(item) => (&item.impl_token, "an impl", None),
        Item::Trait(item) => (&item.trait_token, "a trait", None),
        Item::Mod(item) => (&item.mod_token, "a module", None),
        other => (other, "something else", None),
    }
}

/// A second `#[job]` would expand to a second set of impls.
fn remove_repeated(attrs: &mut Vec<Attribute>, errors: &mut Errors) {
    attrs.retain(|attr| {
        let repeated = attributes::is_job(attr.path());
        if repeated {
            errors.push(attr, "`#[job]` is given twice: write one with all the arguments");
        }
        !repeated
    });
}

fn check_generics(input: &DeriveInput, errors: &mut Errors) {
    for param in &input.generics.params {
        match param {
            GenericParam::Lifetime(param) => errors.push(
                &param.lifetime,
                format_args!(
                    "a job cannot borrow, it outlives its caller: remove `{}` and hold owned data, such as `String` for `&str`",
                    param.lifetime
                ),
            ),
            GenericParam::Type(param) => errors.push(&param.ident, not_generic(&param.ident)),
            GenericParam::Const(param) => errors.push(&param.ident, not_generic(&param.ident)),
        }
    }
    if let Some(clause) = input.generics.where_clause.as_ref()
        && input.generics.params.is_empty()
    {
        errors.push(clause, "a job has no `where` clause: remove it");
    }
}

fn not_generic(param: &Ident) -> String {
    format!(
        "a job cannot be generic, its type key stands for one type: replace `{param}`, and write a struct for each type that is needed"
    )
}

/// serde's own message for a borrowed field speaks of lifetimes that the user never wrote.
fn check_fields(input: &DeriveInput, args: &Args, errors: &mut Errors) {
    let Data::Struct(data) = &input.data else { return };
    let written = attributes::Serde::of(&input.attrs);
    if args.enqueue_only || !args.serde || written.derives_deserialize {
        return;
    }
    for field in data.fields.iter().filter(|field| !has_serde_attribute(field)) {
        if let Type::Reference(reference) = &field.ty
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident == "static")
        {
            errors.push(
                reference,
                "a job owns its data, it is read back from the database: write `String` for `&str`, `Vec<T>` for `&[T]`",
            );
        }
    }
}

fn has_serde_attribute(field: &Field) -> bool {
    field.attrs.iter().any(|attr| attr.path().is_ident("serde"))
}

/// The persisted name: `type_key`, or the struct's name in snake case.
pub(crate) fn key(input: &DeriveInput, args: &Args, errors: &mut Errors) -> LitStr {
    if let Some(key) = &args.type_key {
        return key.clone();
    }
    let key = snake_case(&input.ident.unraw().to_string());
    if let Err(mistake) = values::check_name(&key) {
        errors.push(
            &input.ident,
            format_args!("the type key made of this name {mistake} (or give a `type_key`)"),
        );
    }
    LitStr::new(&key, input.ident.span())
}

/// Whether the struct's name is also its only value.
pub(crate) fn is_unit(input: &DeriveInput) -> bool {
    matches!(&input.data, Data::Struct(data) if matches!(data.fields, Fields::Unit))
}

/// `SendReceipt` is `send_receipt`, `HTTPGet2` is `http_get2`. The result is stored: it must never change.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 8);
    for (i, letter) in letters.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| letters[i]);
        let after_word = before.is_some_and(|c| c.is_lowercase() || c.is_numeric());
        let last_of_acronym = before.is_some_and(char::is_uppercase)
            && letters.get(i + 1).is_some_and(|c| c.is_lowercase());
        if letter.is_uppercase() && (after_word || last_of_acronym) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_splits_words_and_acronyms() {
        for (name, key) in [
            ("SendReceipt", "send_receipt"),
            ("X", "x"),
            ("HTTPGet", "http_get"),
            ("ParseJSON", "parse_json"),
            ("V2Import", "v2_import"),
            ("Sha256Sum", "sha256_sum"),
            ("SHA256Sum", "sha256_sum"),
            ("already_snake", "already_snake"),
            ("Two_Words", "two_words"),
            ("_Hidden", "_hidden"),
            ("ÄrgerMelden", "ärger_melden"),
        ] {
            assert_eq!(snake_case(name), key, "{name}");
        }
    }
}
