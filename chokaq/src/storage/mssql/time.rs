//! datetime2(3) and milliseconds since 1970.

use jiff::{SignedDuration, civil::DateTime};
use tiberius::time::{Date, DateTime2, Time};

use crate::model::Timestamp;

/// Days from 0001-01-01, where SQL Server counts from, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_162;
const DAY_MS: i64 = 86_400_000;
/// 9999-12-31, the last day of datetime2.
const LAST_DAY: i64 = 3_652_058;
/// Its last millisecond, since 1970.
pub(super) const LAST_MOMENT_MS: i64 = (LAST_DAY - EPOCH_DAYS + 1) * DAY_MS - 1;
/// 0001-01-01, the first moment of datetime2, in milliseconds since 1970.
const FIRST_MOMENT_MS: i64 = -EPOCH_DAYS * DAY_MS;

/// The moment as datetime2(3); `None` outside the years 1 to 9999.
pub(super) fn to_datetime2(time: Timestamp) -> Option<DateTime2> {
    let ms = time.as_unix_ms();
    let day = ms.div_euclid(DAY_MS) + EPOCH_DAYS;
    let date = u32::try_from(day).ok().filter(|_| day <= LAST_DAY)?;
    let in_day = u64::try_from(ms.rem_euclid(DAY_MS)).ok()?;
    Some(DateTime2::new(Date::new(date), Time::new(in_day, 3)))
}

/// The moment as text that a conversion to datetime2 reads the same under every language setting; one that datetime2
/// lacks as the nearest that it has.
pub(super) fn to_iso(time: Timestamp) -> String {
    let ms = time.as_unix_ms().clamp(FIRST_MOMENT_MS, LAST_MOMENT_MS);
    let time = DateTime::constant(1970, 1, 1, 0, 0, 0, 0) + SignedDuration::from_millis(ms);
    format!("{time:.3}")
}

/// The moment, cut to milliseconds; `None` for bytes that are no datetime2.
pub(super) fn from_datetime2(value: DateTime2) -> Option<Timestamp> {
    let days = i64::from(value.date().days());
    let (increments, scale) = (value.time().increments(), value.time().scale());
    let in_day = match scale {
        0..=3 => increments.checked_mul(10_u64.pow(3 - u32::from(scale)))?,
        4..=7 => increments / 10_u64.pow(u32::from(scale) - 3),
        _ => return None,
    };
    let in_day = i64::try_from(in_day).ok().filter(|ms| *ms < DAY_MS)?;
    (days <= LAST_DAY).then(|| Timestamp::from_unix_ms((days - EPOCH_DAYS) * DAY_MS + in_day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_the_way_there_and_back() {
        for ms in [
            0,
            1,
            -1,
            999,
            86_399_999,
            86_400_000,
            -62_135_596_800_000,
            253_402_300_799_999,
            1_772_366_400_250,
        ] {
            let time = Timestamp::from_unix_ms(ms);
            let stored = to_datetime2(time).expect("a year of datetime2");
            assert_eq!(from_datetime2(stored), Some(time), "{ms}");
        }
    }

    #[test]
    fn finer_fractions_are_cut_and_coarser_ones_scaled() {
        let at = |increments, scale| {
            let time = DateTime2::new(Date::new(719_162), Time::new(increments, scale));
            from_datetime2(time).map(Timestamp::as_unix_ms)
        };
        assert_eq!(at(12_345_678, 7), Some(1_234));
        assert_eq!(at(1_234, 3), Some(1_234));
        assert_eq!(at(12, 1), Some(1_200));
        assert_eq!(at(1, 0), Some(1_000));
        assert_eq!(at(864_000_000_000, 7), None);
        assert_eq!(at(u64::MAX, 0), None);
        assert_eq!(at(0, 9), None);
    }

    #[test]
    fn years_that_datetime2_lacks_have_no_form() {
        for ms in [-62_135_596_800_001, 253_402_300_800_000, i64::MIN, i64::MAX] {
            assert!(to_datetime2(Timestamp::from_unix_ms(ms)).is_none(), "{ms}");
        }
    }
}
