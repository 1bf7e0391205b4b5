//! The values of arguments: strings, names, numbers, durations, paths.

use std::{fmt::Display, str::FromStr, time::Duration};

use syn::{Expr, ExprLit, ExprUnary, Lit, LitStr, Path, UnOp};

use crate::{argument::Argument, errors::refuse};

/// What `nvarchar(255)` counts: UTF-16 units.
const NAME_UNITS: usize = 255;
/// The longest time limit that is stored: 50 years of 365 days.
const MAX_DURATION: Duration = Duration::from_hours(24 * 365 * 50);

/// The expression inside the invisible group that a `macro_rules!` puts around what it passes on.
pub(crate) fn ungroup(mut value: &Expr) -> &Expr {
    while let Expr::Group(group) = value {
        value = &group.expr;
    }
    value
}

pub(crate) fn string(argument: &Argument) -> syn::Result<LitStr> {
    literal_string(argument, argument.value()?)
}

fn literal_string(argument: &Argument, value: &Expr) -> syn::Result<LitStr> {
    match ungroup(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => refuse(other, argument.wants("a string literal")),
    }
}

/// A queue or a type key.
pub(crate) fn name(argument: &Argument) -> syn::Result<LitStr> {
    checked_name(argument, argument.value()?, &argument.says(""))
}

/// The aliases.
pub(crate) fn names(argument: &Argument) -> syn::Result<Vec<LitStr>> {
    let value = argument.value()?;
    let Expr::Array(array) = value else {
        return refuse(value, argument.wants("a list of string literals"));
    };
    let mut names = Vec::new();
    let mut mistakes = Vec::new();
    for element in &array.elems {
        match checked_name(argument, element, "an alias ") {
            Ok(name) => names.push(name),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    match mistakes.into_iter().reduce(combine) {
        Some(mistakes) => Err(mistakes),
        None => Ok(names),
    }
}

/// Both mistakes, each at its own place.
pub(crate) fn combine(mut all: syn::Error, another: syn::Error) -> syn::Error {
    all.combine(another);
    all
}

fn checked_name(argument: &Argument, value: &Expr, what: &str) -> syn::Result<LitStr> {
    let text = literal_string(argument, value)?;
    match check_name(&text.value()) {
        Ok(()) => Ok(text),
        Err(mistake) => refuse(&text, format_args!("{what}{mistake}")),
    }
}

/// The rule of the stored names, the same that enqueueing applies at run time.
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    let units = text.encode_utf16().count();
    if text.is_empty() {
        Err("is empty: write at least one character".into())
    } else if units > NAME_UNITS {
        Err(format!("has {units} characters: write at most {NAME_UNITS}"))
    } else if text.trim() != text {
        Err(format!("has white space at an end: write {:?}", text.trim()))
    } else {
        Ok(())
    }
}

/// A whole number in a range.
pub(crate) fn integer<T>(argument: &Argument, min: T, max: T) -> syn::Result<T>
where
    T: FromStr + Copy + PartialOrd + Display,
{
    let value = argument.value()?;
    match integer_digits(value).and_then(|digits| digits.parse::<T>().ok()) {
        Some(number) if number >= min && number <= max => Ok(number),
        _ => refuse(value, argument.wants(format_args!("a whole number from {min} to {max}"))),
    }
}

/// The digits of an integer literal, with its sign.
fn integer_digits(value: &Expr) -> Option<String> {
    match ungroup(value) {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_digits().to_owned()),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
            integer_digits(expr).map(|digits| format!("-{digits}"))
        }
        _ => None,
    }
}

pub(crate) fn boolean(argument: &Argument) -> syn::Result<bool> {
    match argument.value()? {
        Expr::Lit(ExprLit { lit: Lit::Bool(flag), .. }) => Ok(flag.value),
        other => refuse(other, argument.wants("`true` or `false`")),
    }
}

/// A path, bare or as serde writes it, in a string.
pub(crate) fn path(argument: &Argument) -> syn::Result<Path> {
    match argument.value()? {
        Expr::Path(path) if path.qself.is_none() && path.attrs.is_empty() => Ok(path.path.clone()),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text
            .parse_with(Path::parse_mod_style)
            .or_else(|_| refuse(text, argument.wants("the path of the chokaq crate"))),
        other => refuse(other, argument.wants("the path of the chokaq crate")),
    }
}

pub(crate) fn duration(argument: &Argument) -> syn::Result<Duration> {
    duration_value(argument.value()?, &argument.name.to_string())
}

/// A duration in quotes; `what` names it in errors.
pub(crate) fn duration_value(value: &Expr, what: &str) -> syn::Result<Duration> {
    let value = ungroup(value);
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
        return refuse(
            value,
            format_args!("`{what}` wants a duration in quotes: write `{what} = \"30s\"`"),
        );
    };
    parse_duration(&text.value()).or_else(|mistake| {
        refuse(text, format_args!("`{what}` {mistake}, such as \"30s\" or \"1h 30m\""))
    })
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let Ok(duration) = humantime::parse_duration(text) else {
        return Err(format!("cannot read {text:?} as a duration: write numbers with units"));
    };
    if duration < Duration::from_millis(1) {
        return Err("is shorter than a millisecond: write a longer duration".into());
    }
    if duration > MAX_DURATION {
        return Err("is longer than 18250 days (50 years): write a shorter duration".into());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        assert_eq!(parse_duration("15m"), Ok(Duration::from_mins(15)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_duration("1d"), Ok(Duration::from_hours(24)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("18250days"), Ok(MAX_DURATION));
    }

    #[test]
    fn durations_without_unit_or_out_of_range_are_refused() {
        for text in ["", "15", "m", "-1s", "1.5 weeks of rain", "0s", "999us", "18251days"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_are_counted_in_utf16_units() {
        assert_eq!(check_name(&"a".repeat(255)), Ok(()));
        assert_eq!(check_name(&"😀".repeat(127)), Ok(()));
        for text in ["", " a", "a ", "\u{a0}a", &"a".repeat(256), &"😀".repeat(128)] {
            assert!(check_name(text).is_err(), "{text:?}");
        }
    }
}
