//! How large the parts of a job may be.

use crate::{Error, Result};

/// The largest sizes that are accepted at enqueue; more is refused, nothing is cut.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Payload and output, in bytes of JSON; default 1 MB.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload_bytes: 1_000_000 }
    }
}

impl Limits {
    /// Queue, type key, idempotency key and creator, in UTF-16 units (what `nvarchar(255)` counts).
    pub const NAME_UNITS: usize = 255;
    /// All tags together as a JSON array, in UTF-16 units.
    pub const TAGS_UNITS: usize = 1_000;
    /// The longest delay, timeout or maximum age, 50 years: SQL Server adds seconds as an int, 68 years at most.
    pub const MAX_DURATION: std::time::Duration = std::time::Duration::from_hours(24 * 365 * 50);

    /// Checks a queue, type key, idempotency key or creator; `what` names it in the error.
    ///
    /// # Errors
    /// Empty, longer than 255, or with white space at either end.
    pub fn check_name(what: &str, text: &str) -> Result<()> {
        let units = text.encode_utf16().count();
        if text.is_empty() {
            Err(Error::invalid(format!("the {what} is empty: give it at least one character")))
        } else if units > Self::NAME_UNITS {
            Err(Error::invalid(format!(
                "the {what} {:?}... has {units} characters; the limit is {}: use a shorter one",
                text.chars().take(40).collect::<String>(),
                Self::NAME_UNITS
            )))
        } else if text.trim() != text {
            Err(Error::invalid(format!("the {what} {text:?} has white space at an end: trim it")))
        } else {
            Ok(())
        }
    }

    /// Checks the tags and writes them as they are stored, a JSON array; `None` when there are none.
    ///
    /// # Errors
    /// A tag that is empty or has white space at an end; more than 1,000 characters in all.
    pub fn check_tags(tags: &[String]) -> Result<Option<String>> {
        if tags.is_empty() {
            return Ok(None);
        }
        for tag in tags {
            Self::check_name("tag", tag)?;
        }
        let json = serde_json::Value::from(tags).to_string();
        let units = json.encode_utf16().count();
        if units > Self::TAGS_UNITS {
            return Err(Error::invalid(format!(
                "the tags take {units} characters as a JSON array; the limit is {}: use fewer or shorter ones",
                Self::TAGS_UNITS
            )));
        }
        Ok(Some(json))
    }

    /// Checks a payload's size.
    ///
    /// # Errors
    /// Larger than `payload_bytes`.
    pub fn check_payload(&self, job_type: &str, payload: &str) -> Result<()> {
        if payload.len() > self.payload_bytes {
            return Err(Error::invalid(format!(
                "the payload of a {job_type:?} job has {} bytes; the limit is {}: store the data elsewhere and enqueue a reference",
                payload.len(),
                self.payload_bytes
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_duration_is_the_50_years_of_the_messages_and_fits_an_int_of_seconds() {
        assert_eq!(Limits::MAX_DURATION.as_secs(), 50 * 365 * 86_400);
        assert!(i32::try_from(Limits::MAX_DURATION.as_secs()).is_ok());
    }
}
