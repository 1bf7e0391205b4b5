//! The values of options.

use std::time::Duration;

use crate::storage::mssql::options::Encryption;

/// The login packet counts these in 128 UTF-16 units.
pub(super) fn login_text(value: &str, part: &str) -> Result<String, String> {
    if value.encode_utf16().count() > 128 {
        return Err(format!("has a {part} of more than 128 characters"));
    }
    Ok(value.to_owned())
}

pub(super) fn program(value: &str) -> Result<String, String> {
    // The role is added to it.
    let fits = (1..=100).contains(&value.encode_utf16().count());
    if fits { Ok(value.to_owned()) } else { Err("expected 1 to 100 characters".to_owned()) }
}

pub(super) fn encryption(value: &str) -> Result<Encryption, String> {
    Ok(match &*value.to_ascii_lowercase() {
        "true" | "yes" | "mandatory" | "required" => Encryption::Required,
        "strict" => Encryption::Strict,
        "false" | "no" | "optional" | "login" => Encryption::LoginOnly,
        "plaintext" | "danger_plaintext" => Encryption::Plaintext,
        _ => {
            return Err(
                "expected `true`, `strict`, `login` (the login only) or `plaintext`".to_owned()
            );
        }
    })
}

pub(super) fn yes_or_no(value: &str) -> Result<bool, String> {
    match &*value.to_ascii_lowercase() {
        "true" | "yes" | "sspi" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err("expected `true` or `false`".to_owned()),
    }
}

pub(super) fn pool_size(value: &str) -> Result<usize, String> {
    let size = value.parse().ok().filter(|size| (1..=1_000).contains(size));
    size.ok_or_else(|| "expected a whole number from 1 to 1000".to_owned())
}

/// `5s`, `500ms`; a number alone is seconds, as other drivers write it.
pub(super) fn duration(value: &str) -> Result<Duration, String> {
    let read = match value.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => humantime::parse_duration(value).ok(),
    };
    let fits = |d: &Duration| (Duration::from_millis(100)..=Duration::from_hours(1)).contains(d);
    read.filter(fits).ok_or_else(|| "expected a duration from 100ms to 1h, such as `5s`".to_owned())
}
