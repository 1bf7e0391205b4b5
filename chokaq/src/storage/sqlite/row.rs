//! Stored values back into the model: a value of the wrong form is an error that names where it stands.

use std::time::Duration;

use rusqlite::{Row, types::FromSql};

use crate::{
    model::{FailureReason, JobId, LeaseId, Timestamp},
    storage::sqlite::failure::{Fault, Outcome},
};

/// One row of a statement, for which errors name `table`.
pub(super) struct Cells<'r, 's> {
    row: &'r Row<'s>,
    table: &'static str,
}

impl<'r, 's> Cells<'r, 's> {
    pub(super) fn new(table: &'static str, row: &'r Row<'s>) -> Self {
        Self { row, table }
    }

    /// The value of a column as the type that is asked for.
    pub(super) fn get<T: FromSql>(&self, column: usize) -> Outcome<T> {
        self.row.get(column).map_err(|error| self.malformed(column, &error.to_string()))
    }

    pub(super) fn job(&self, column: usize) -> Outcome<JobId> {
        self.get(column).map(JobId::from_bytes)
    }

    pub(super) fn lease(&self, column: usize) -> Outcome<LeaseId> {
        self.get(column).map(LeaseId::from_bytes)
    }

    pub(super) fn time(&self, column: usize) -> Outcome<Timestamp> {
        self.get(column).map(Timestamp::from_unix_ms)
    }

    pub(super) fn time_or_none(&self, column: usize) -> Outcome<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_unix_ms))
    }

    /// A count that cannot be negative.
    pub(super) fn number<T: TryFrom<i64>>(&self, column: usize) -> Outcome<T> {
        let stored = self.get::<i64>(column)?;
        T::try_from(stored)
            .map_err(|_| self.malformed(column, &format!("{stored} is out of its range")))
    }

    pub(super) fn duration(&self, column: usize) -> Outcome<Duration> {
        self.number(column).map(Duration::from_millis)
    }

    pub(super) fn reason(&self, column: usize) -> Outcome<FailureReason> {
        let name: String = self.get(column)?;
        FailureReason::from_name(&name)
            .ok_or_else(|| self.malformed(column, &format!("{name:?} is no failure reason")))
    }

    /// The error for a value that this binary would not have written.
    pub(super) fn malformed(&self, column: usize, why: &str) -> Fault {
        let statement = self.row.as_ref();
        let name = statement.column_name(column).unwrap_or("?");
        let id = statement
            .column_index("Id")
            .ok()
            .and_then(|index| self.row.get::<_, [u8; 16]>(index).ok())
            .map(|bytes| format!(" of job {}", JobId::from_bytes(bytes)))
            .unwrap_or_default();
        Fault::Malformed(format!("{}.{name}{id}: {why}", self.table))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_malformed_value_names_its_table_column_and_job() {
        let connection = Connection::open_in_memory().unwrap();
        let id = JobId::new();
        let mut statement =
            connection.prepare("SELECT ?1 AS Id, -1 AS AttemptCount, 'x' AS Reason").unwrap();
        let mut rows = statement.query([id.as_bytes().as_slice()]).unwrap();
        let row = rows.next().unwrap().unwrap();
        let cells = Cells::new("JobsHot", row);
        let Err(Fault::Malformed(text)) = cells.number::<u32>(1) else { panic!("not refused") };
        assert_eq!(text, format!("JobsHot.AttemptCount of job {id}: -1 is out of its range"));
        assert!(matches!(cells.reason(2), Err(Fault::Malformed(_))));
        assert!(matches!(cells.job(1), Err(Fault::Malformed(_))));
        assert_eq!(cells.job(0).unwrap(), id);
    }
}
