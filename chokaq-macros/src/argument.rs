//! One argument of `#[job(...)]` as it is written: `name` or `name = value`.

use std::fmt::Display;

use proc_macro2::TokenTree;
use syn::{
    Expr, Ident, Token,
    ext::IdentExt,
    parse::{ParseStream, discouraged::Speculative},
};

use crate::{errors::refuse, values};

/// Every argument with how it is written, in the order of the documentation.
const ARGUMENTS: [(&str, &str); 12] = [
    ("queue", r#"queue = "mail""#),
    ("retries", "retries = 3"),
    ("type_key", r#"type_key = "send_receipt""#),
    ("aliases", r#"aliases = ["old_key"]"#),
    ("priority", "priority = 10"),
    ("timeout", r#"timeout = "15m""#),
    ("max_age", r#"max_age = "1d""#),
    ("backoff", r#"backoff = exponential(base = "3s", max = "1h", factor = 2.0)"#),
    ("on_crash", r#"on_crash = "retry""#),
    ("enqueue_only", "enqueue_only"),
    ("serde", "serde = false"),
    ("crate", "crate = path::to::chokaq"),
];

/// One argument as it is written.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    value: Option<Expr>,
}

/// One result per argument: after a mistake, reading goes on behind the next comma.
pub(crate) fn split(input: ParseStream) -> syn::Result<Vec<syn::Result<Argument>>> {
    let mut arguments = Vec::new();
    while !input.is_empty() {
        arguments.push(Argument::parse(input));
        while !input.is_empty() && !input.peek(Token![,]) {
            input.parse::<TokenTree>()?;
        }
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(arguments)
}

impl Argument {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if !input.peek(Ident::peek_any) {
            let got = input.parse::<TokenTree>()?;
            return refuse(
                got,
                format_args!(
                    "an argument has a name: write `{}`, or one of {}",
                    example("queue"),
                    all_names()
                ),
            );
        }
        let name = input.call(Ident::parse_any)?;
        check_known(&name)?;
        let argument = Self { name, value: None };
        if input.is_empty() || input.peek(Token![,]) {
            return Ok(argument);
        }
        let Ok(equals) = input.parse::<Token![=]>() else {
            let got = input.parse::<TokenTree>()?;
            return refuse(got, argument.wants("an `=` after its name"));
        };
        if input.is_empty() || input.peek(Token![,]) {
            return refuse(equals, argument.wants("a value after the `=`"));
        }
        // What a failed parse leaves inside brackets would hide the mistakes of the other arguments.
        let ahead = input.fork();
        let Ok(value) = ahead.parse() else {
            let got = input.parse::<TokenTree>()?;
            return refuse(got, argument.wants("another value"));
        };
        input.advance_to(&ahead);
        if input.is_empty() || input.peek(Token![,]) {
            return Ok(Self { value: Some(value), ..argument });
        }
        let extra = input.parse::<TokenTree>()?;
        refuse(extra, argument.wants("a `,` before the next argument"))
    }

    /// The value, which the argument must have.
    pub(crate) fn value(&self) -> syn::Result<&Expr> {
        match &self.value {
            Some(value) => Ok(values::ungroup(value)),
            None => refuse(&self.name, self.wants("a value")),
        }
    }

    pub(crate) fn no_value(&self) -> syn::Result<()> {
        match &self.value {
            Some(value) => refuse(value, self.wants("no value")),
            None => Ok(()),
        }
    }

    /// `` `name` does something ``.
    pub(crate) fn says(&self, what: &str) -> String {
        format!("`{}` {what}", self.name)
    }

    /// `` `name` wants this: write `name = ...` ``.
    pub(crate) fn wants(&self, what: impl Display) -> String {
        format!("`{}` wants {what}: write `{}`", self.name, example(&self.name.to_string()))
    }
}

fn example(name: &str) -> &'static str {
    ARGUMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, example)| example)
}

fn all_names() -> String {
    ARGUMENTS.map(|(name, _)| format!("`{name}`")).join(", ")
}

fn check_known(name: &Ident) -> syn::Result<()> {
    match name.to_string().as_str() {
        "cron" | "unique" => refuse(name, format_args!("`{name}` is not supported yet: remove it")),
        text if example(text).is_empty() => refuse(name, unknown(text)),
        _ => Ok(()),
    }
}

fn unknown(name: &str) -> String {
    let nearest =
        ARGUMENTS.map(|(known, example)| (strsim::levenshtein(name, known), known, example));
    match nearest.into_iter().min() {
        // Fewer than half of the letters differ: the same word, misspelt.
        Some((edits, known, example)) if edits * 2 < known.len() => {
            format!("there is no argument `{name}`: did you mean `{known}`, as in `{example}`?")
        }
        _ => format!("there is no argument `{name}`: write one of {}", all_names()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_argument_is_recognised_and_a_strange_one_is_not() {
        assert!(unknown("retry").contains("did you mean `retries`"));
        assert!(unknown("ques").contains("did you mean `queue`"));
        assert!(unknown("enqueueonly").contains("did you mean `enqueue_only`"));
        assert!(unknown("colour").contains("write one of `queue`"));
    }
}
