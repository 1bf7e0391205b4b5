//! The `backoff` argument: `exponential(..)`, `fixed(..)` or the path of a function.

use std::time::Duration;

use syn::{Expr, ExprAssign, ExprCall, ExprLit, Lit, Path};

use crate::{
    argument::Argument,
    errors::refuse,
    values::{combine, duration_value, ungroup},
};

const EXPONENTIAL: &str = r#"exponential(base = "3s", max = "1h", factor = 2.0)"#;
const FIXED: &str = r#"fixed("10s")"#;

/// The wait before a retry.
pub(crate) enum Backoff {
    Exponential { base: Duration, max: Duration, factor: f64 },
    Fixed(Duration),
    Function(Path),
}

pub(crate) fn parse(argument: &Argument) -> syn::Result<Backoff> {
    let value = argument.value()?;
    match value {
        Expr::Path(path) if path.path.is_ident("exponential") => {
            refuse(value, format_args!("`exponential` wants parentheses: write `{EXPONENTIAL}`"))
        }
        Expr::Path(path) if path.path.is_ident("fixed") => {
            refuse(value, format_args!("`fixed` wants a duration: write `{FIXED}`"))
        }
        Expr::Path(path) if path.qself.is_none() => Ok(Backoff::Function(path.path.clone())),
        Expr::Call(call) if is_call_of(call, "exponential") => exponential(call),
        Expr::Call(call) if is_call_of(call, "fixed") => fixed(call),
        other => refuse(
            other,
            format_args!(
                "`backoff` is `{EXPONENTIAL}`, `{FIXED}`, or the path of a `fn(u32) -> Duration`"
            ),
        ),
    }
}

fn is_call_of(call: &ExprCall, name: &str) -> bool {
    matches!(&*call.func, Expr::Path(path) if path.path.is_ident(name))
}

fn fixed(call: &ExprCall) -> syn::Result<Backoff> {
    match call.args.iter().collect::<Vec<_>>()[..] {
        [delay] => match ungroup(delay) {
            Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
                Ok(Backoff::Fixed(duration_value(delay, "fixed")?))
            }
            other => refuse(other, format_args!("`fixed` wants a duration: write `{FIXED}`")),
        },
        _ => refuse(call, format_args!("`fixed` wants one duration: write `{FIXED}`")),
    }
}

#[derive(Default)]
struct Parts {
    base: Option<Duration>,
    max: Option<Duration>,
    factor: Option<f64>,
}

fn exponential(call: &ExprCall) -> syn::Result<Backoff> {
    let mut parts = Parts::default();
    let mistakes = call.args.iter().filter_map(|part| parts.set(part).err()).reduce(combine);
    if let Some(mistakes) = mistakes {
        return Err(mistakes);
    }
    let base = parts.base.unwrap_or(Duration::from_secs(3));
    let max = parts.max.unwrap_or(Duration::from_hours(1));
    if base > max {
        let [base, max] = [base, max].map(humantime::format_duration);
        return refuse(
            call,
            format_args!(
                "`base` ({base}) is longer than `max` ({max}): write a `max` of at least {base}"
            ),
        );
    }
    Ok(Backoff::Exponential { base, max, factor: parts.factor.unwrap_or(2.0) })
}

impl Parts {
    fn set(&mut self, part: &Expr) -> syn::Result<()> {
        let Some((name, value)) = named(part) else {
            return refuse(part, format_args!("name each part: write `{EXPONENTIAL}`"));
        };
        let given_before = match name.as_str() {
            "base" => self.base.replace(duration_value(value, "base")?).is_some(),
            "max" => self.max.replace(duration_value(value, "max")?).is_some(),
            "factor" => self.factor.replace(factor(value)?).is_some(),
            _ => {
                return refuse(
                    part,
                    format_args!("`exponential` has no `{name}`: write `base`, `max` or `factor`"),
                );
            }
        };
        if given_before {
            return refuse(part, format_args!("`{name}` is given twice: remove one of them"));
        }
        Ok(())
    }
}

/// `name = value`.
fn named(part: &Expr) -> Option<(String, &Expr)> {
    let Expr::Assign(ExprAssign { left, right, .. }) = part else { return None };
    let Expr::Path(name) = &**left else { return None };
    Some((name.path.get_ident()?.to_string(), right))
}

fn factor(value: &Expr) -> syn::Result<f64> {
    let number = match ungroup(value) {
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    };
    match number {
        Some(factor) if (1.0..=1_000.0).contains(&factor) => Ok(factor),
        _ => refuse(value, "`factor` wants a number from 1.0 to 1000.0: write `factor = 2.0`"),
    }
}
