//! What a statement answered: result sets of typed rows, read by the column's place.

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use tiberius::{ColumnData, CommandItem, CommandStream};
use uuid::Uuid;

use crate::{
    model::{JobId, LeaseId, Timestamp},
    storage::mssql::{failure::Failure, time::from_datetime2},
};

/// All that came back from one call.
#[derive(Debug)]
pub struct Answer {
    what: Arc<str>,
    sets: Vec<Vec<Row>>,
    affected: Vec<u64>,
}

impl Answer {
    /// Reads to the end. An error of the server is reported after the whole answer was read, so that the connection
    /// stands where the next call begins.
    pub(super) async fn read(
        what: &str,
        mut stream: CommandStream<'_>,
    ) -> Result<Self, tiberius::error::Error> {
        let what: Arc<str> = what.into();
        let mut sets: Vec<Vec<Row>> = Vec::new();
        let mut columns: Arc<[String]> = Arc::default();
        let mut affected = Vec::new();
        while let Some(item) = stream.try_next().await? {
            match item {
                CommandItem::Metadata(meta) => {
                    columns =
                        meta.columns().iter().map(|column| column.name().to_owned()).collect();
                    sets.push(Vec::new());
                }
                CommandItem::Row(row) => {
                    let row = Row {
                        what: what.clone(),
                        columns: columns.clone(),
                        values: row.into_iter().collect(),
                    };
                    if let Some(set) = sets.last_mut() {
                        set.push(row);
                    }
                }
                CommandItem::RowsAffected(count) => affected.push(count),
                CommandItem::ReturnStatus(_) | CommandItem::ReturnValue(_) => {}
            }
        }
        Ok(Self { what, sets, affected })
    }

    /// What a batch answered: its result sets.
    pub(super) fn of_batch(what: &str, sets: Vec<Vec<tiberius::Row>>) -> Self {
        let what: Arc<str> = what.into();
        let row = |row: tiberius::Row| Row {
            what: what.clone(),
            columns: row.columns().iter().map(|column| column.name().to_owned()).collect(),
            values: row.into_iter().collect(),
        };
        let sets = sets.into_iter().map(|set| set.into_iter().map(row).collect()).collect();
        Self { what, sets, affected: Vec::new() }
    }

    /// The result sets, of which there must be `N`.
    ///
    /// # Errors
    /// There are more or fewer.
    pub fn sets<const N: usize>(self) -> Result<[Vec<Row>; N], Failure> {
        let what = self.what;
        self.sets.try_into().map_err(|sets: Vec<_>| {
            Failure::unreadable(format!(
                "{what} answered {} result sets where {N} are expected",
                sets.len()
            ))
        })
    }

    /// The rows of the only result set.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn rows(self) -> Result<Vec<Row>, Failure> {
        let [rows] = self.sets()?;
        Ok(rows)
    }

    /// Every result set, however many there are.
    pub fn all_sets(self) -> Vec<Vec<Row>> {
        self.sets
    }

    /// The rows of the first result set, where there is one.
    pub fn first_set(self) -> Vec<Row> {
        self.sets.into_iter().next().unwrap_or_default()
    }

    /// The row counts that the server reported, in their order: one for each statement of a batch that does not `SET
    /// NOCOUNT ON`, a SELECT's too, and 0 for one that counts nothing.
    pub fn affected(&self) -> &[u64] {
        &self.affected
    }
}

/// A row.
#[derive(Debug)]
pub struct Row {
    what: Arc<str>,
    columns: Arc<[String]>,
    values: Vec<ColumnData<'static>>,
}

impl Row {
    /// The number of columns.
    #[expect(clippy::len_without_is_empty, reason = "a row always has columns")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The value of a column, counted from 0. `Option<T>` takes NULL too.
    ///
    /// # Errors
    /// There is no such column, or it holds another type, or NULL: the message names statement and column.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T, Failure> {
        let value = self.values.get(index).ok_or_else(|| {
            self.unreadable(index, &format!("is missing, there are {}", self.values.len()))
        })?;
        T::from_column(value).map_err(|Mismatch(expected)| {
            let found = if is_null(value) { "NULL" } else { type_of(value) };
            self.unreadable(index, &format!("holds {found} where {expected} is expected"))
        })
    }

    /// The failure of a value that this program would not have written.
    pub(super) fn unreadable(&self, index: usize, problem: &str) -> Failure {
        let name = self.columns.get(index).map_or("", |name| &**name);
        Failure::unreadable(format!(
            "the answer to {} cannot be read: column {index} ({name:?}) {problem}",
            self.what
        ))
    }
}

/// The value is not what was asked for: what that is.
#[derive(Debug)]
pub struct Mismatch(&'static str);

/// What a column can be read as.
pub trait FromColumn: Sized {
    /// The value, or the name of the type that is expected.
    ///
    /// # Errors
    /// The column holds another type, or NULL.
    fn from_column(value: &ColumnData<'static>) -> Result<Self, Mismatch>;
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(value: &ColumnData<'static>) -> Result<Self, Mismatch> {
        // A NULL of any type: an expression that is always NULL comes as an int.
        if is_null(value) { Ok(None) } else { T::from_column(value).map(Some) }
    }
}

macro_rules! from_column {
    ($($type:ty as $name:literal: $($pattern:pat => $value:expr),+;)+) => {$(
        impl FromColumn for $type {
            fn from_column(value: &ColumnData<'static>) -> Result<Self, Mismatch> {
                match value {
                    $($pattern => $value,)+
                    _ => None,
                }
                .ok_or(Mismatch($name))
            }
        }
    )+};
}

from_column! {
    i32 as "int": ColumnData::I32(v) => *v, ColumnData::I16(v) => v.map(i32::from), ColumnData::U8(v) => v.map(i32::from);
    i64 as "bigint": ColumnData::I64(v) => *v, ColumnData::I32(v) => v.map(i64::from), ColumnData::I16(v) => v.map(i64::from),
        ColumnData::U8(v) => v.map(i64::from);
    u32 as "a count": ColumnData::I64(v) => v.and_then(|v| v.try_into().ok()), ColumnData::I32(v) => v.and_then(|v| v.try_into().ok());
    u64 as "a count": ColumnData::I64(v) => v.and_then(|v| v.try_into().ok()), ColumnData::I32(v) => v.and_then(|v| v.try_into().ok());
    // An expression has no bits: its 1 and 0 are of type int.
    bool as "bit": ColumnData::Bit(v) => *v, ColumnData::I32(v) => v.map(|v| v != 0);
    f64 as "float": ColumnData::F64(v) => *v, ColumnData::F32(v) => v.map(f64::from);
    Uuid as "uniqueidentifier": ColumnData::Guid(v) => *v;
    JobId as "uniqueidentifier": ColumnData::Guid(v) => v.map(|id| Self::from_bytes(id.into_bytes()));
    LeaseId as "uniqueidentifier": ColumnData::Guid(v) => v.map(|id| Self::from_bytes(id.into_bytes()));
    // The statements answer times and durations in milliseconds.
    Timestamp as "a time": ColumnData::I64(v) => v.map(Self::from_unix_ms), ColumnData::DateTime2(v) => v.and_then(from_datetime2);
    Duration as "a duration": ColumnData::I64(v) => v.map(|ms| Self::from_millis(ms.try_into().unwrap_or(0)));
    String as "nvarchar": ColumnData::String(v) => v.as_deref().map(str::to_owned), ColumnData::Xml(v) => v.as_ref().map(ToString::to_string);
}

fn is_null(value: &ColumnData<'static>) -> bool {
    match value {
        ColumnData::U8(v) => v.is_none(),
        ColumnData::I16(v) => v.is_none(),
        ColumnData::I32(v) => v.is_none(),
        ColumnData::I64(v) => v.is_none(),
        ColumnData::F32(v) => v.is_none(),
        ColumnData::F64(v) => v.is_none(),
        ColumnData::Bit(v) => v.is_none(),
        ColumnData::String(v) => v.is_none(),
        ColumnData::Guid(v) => v.is_none(),
        ColumnData::Binary(v) => v.is_none(),
        ColumnData::Numeric(v) => v.is_none(),
        ColumnData::Xml(v) => v.is_none(),
        ColumnData::DateTime(v) => v.is_none(),
        ColumnData::SmallDateTime(v) => v.is_none(),
        ColumnData::Time(v) => v.is_none(),
        ColumnData::Date(v) => v.is_none(),
        ColumnData::DateTime2(v) => v.is_none(),
        ColumnData::DateTimeOffset(v) => v.is_none(),
    }
}

fn type_of(value: &ColumnData<'static>) -> &'static str {
    match value {
        ColumnData::U8(_) => "tinyint",
        ColumnData::I16(_) => "smallint",
        ColumnData::I32(_) => "int",
        ColumnData::I64(_) => "bigint",
        ColumnData::F32(_) => "real",
        ColumnData::F64(_) => "float",
        ColumnData::Bit(_) => "bit",
        ColumnData::String(_) => "text",
        ColumnData::Guid(_) => "uniqueidentifier",
        ColumnData::Binary(_) => "varbinary",
        ColumnData::Numeric(_) => "decimal",
        ColumnData::Xml(_) => "xml",
        ColumnData::DateTime(_) | ColumnData::SmallDateTime(_) => "datetime",
        ColumnData::Time(_) => "time",
        ColumnData::Date(_) => "date",
        ColumnData::DateTime2(_) => "datetime2",
        ColumnData::DateTimeOffset(_) => "datetimeoffset",
    }
}
