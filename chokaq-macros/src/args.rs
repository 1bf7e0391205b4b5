//! The arguments of `#[job(...)]`: what they are, and what is wrong with them.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::{Ident, LitStr, Path, parse::Parser};

use crate::{
    argument::{self, Argument},
    backoff::{self, Backoff},
    errors::{Errors, refuse},
    values,
};

/// More retries than this is a mistake: with any backoff the job outlives its `max_age` long before.
const MAX_RETRIES: u32 = 1_000;

/// What the attribute says. `None` is the default.
pub(crate) struct Args {
    pub(crate) queue: Option<LitStr>,
    pub(crate) retries: Option<u32>,
    pub(crate) type_key: Option<LitStr>,
    /// Whether there is a `type_key`, good or bad.
    pub(crate) names_its_key: bool,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) priority: Option<i32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) enqueue_only: bool,
    pub(crate) serde: bool,
    pub(crate) krate: Path,
}

#[derive(Clone, Copy)]
pub(crate) enum OnCrash {
    DeadLetter,
    Retry,
}

impl Args {
    /// Reads what stands between the parentheses of `#[job(...)]`. A bad argument counts as not given.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self {
            queue: None,
            retries: None,
            type_key: None,
            names_its_key: false,
            aliases: Vec::new(),
            priority: None,
            timeout: None,
            max_age: None,
            backoff: None,
            on_crash: None,
            enqueue_only: false,
            serde: true,
            krate: syn::parse_quote!(::chokaq),
        };
        let arguments = argument::split.parse2(tokens);
        let mut seen: Vec<Ident> = Vec::new();
        for argument in errors.keep(arguments).into_iter().flatten() {
            let Some(argument) = errors.keep(argument) else { continue };
            if seen.contains(&argument.name) {
                errors.push(&argument.name, argument.says("is given twice: remove one of them"));
                continue;
            }
            let result = args.set(&argument);
            errors.keep(result);
            seen.push(argument.name);
        }
        args.check_crate(errors);
        args
    }

    /// serde takes a path as text, and as text `$crate` means nothing.
    fn check_crate(&mut self, errors: &mut Errors) {
        if let Some(root) = self.krate.segments.first()
            && root.ident == "$crate"
            && self.serde
        {
            self.serde = false;
            errors.push(
                root,
                "serde's derives cannot follow `$crate`: name the crate, or write `serde = false` and derive them",
            );
        }
    }

    fn set(&mut self, argument: &Argument) -> syn::Result<()> {
        match argument.name.to_string().as_str() {
            "queue" => self.queue = Some(values::name(argument)?),
            "retries" => self.retries = Some(values::integer(argument, 0, MAX_RETRIES)?),
            "type_key" => {
                self.names_its_key = true;
                self.type_key = Some(values::name(argument)?);
            }
            "aliases" => self.aliases = values::names(argument)?,
            "priority" => self.priority = Some(values::integer(argument, i32::MIN, i32::MAX)?),
            "timeout" => self.timeout = Some(values::duration(argument)?),
            "max_age" => self.max_age = Some(values::duration(argument)?),
            "backoff" => self.backoff = Some(backoff::parse(argument)?),
            "on_crash" => self.on_crash = Some(on_crash(argument)?),
            "enqueue_only" => {
                argument.no_value()?;
                self.enqueue_only = true;
            }
            "serde" => {
                // Who writes another value than `true` means no derives.
                self.serde = argument.value().is_err();
                self.serde = values::boolean(argument)?;
            }
            "crate" => self.krate = values::path(argument)?,
            // `Argument` lets no other name through.
            _ => {}
        }
        Ok(())
    }

    /// Checks the aliases against the type key and each other.
    pub(crate) fn check_aliases(&self, key: &str, errors: &mut Errors) {
        let key = (self.type_key.is_some() || !self.names_its_key).then_some(key);
        for (n, alias) in self.aliases.iter().enumerate() {
            let text = alias.value();
            if Some(text.as_str()) == key {
                errors.push(
                    alias,
                    format_args!("{text:?} is the type key itself: remove it from `aliases`"),
                );
            } else if self.aliases[..n].iter().any(|earlier| earlier.value() == text) {
                errors.push(alias, format_args!("the alias {text:?} is given twice: remove one"));
            }
        }
    }
}

fn on_crash(argument: &Argument) -> syn::Result<OnCrash> {
    let text = values::string(argument)?;
    match text.value().as_str() {
        "dead_letter" => Ok(OnCrash::DeadLetter),
        "retry" => Ok(OnCrash::Retry),
        other => refuse(
            &text,
            format_args!("`on_crash` is \"dead_letter\" (the default) or \"retry\", not {other:?}"),
        ),
    }
}
