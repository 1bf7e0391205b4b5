//! One call: a statement with values, on its way to the wire.
//!
//! It travels as the remote procedure call `sp_executesql` with the statement, our declarations and the values, as the
//! reference clients send it. Of what tiberius 0.13 offers only `Command` can do that. What the others put on the wire for
//! a short and a long string, read off the scripted server:
//!
//! - `query` and `execute` write the declarations themselves: `@P2 nvarchar(4000)`, then `@P2 nvarchar(max)`, two plans;
//! - `query("EXEC sp_executesql @P1, @P2, @a = @P3", ..)` nests: the outer text is a plan of its own, declared by length
//!   again, and the server runs two calls for one;
//! - `Command` sends one call, `sp_executesql` by its name, `@a int, @b nvarchar(max)` as it stands in the file. Only a
//!   value's own type still goes by its length, and the server converts that to the declaration before the plan sees it.

use std::{borrow::Cow, time::Duration};

use tiberius::{ColumnData, Command};
use uuid::Uuid;

use crate::{
    model::{JobId, LeaseId, Timestamp, WorkerId},
    storage::mssql::{
        failure::Failure,
        statement::{Rendered, Statement, Type},
        time::to_datetime2,
    },
};

/// A value for a parameter. NULL is a `None` of the type that is meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// int
    Int(Option<i32>),
    /// bigint
    BigInt(Option<i64>),
    /// bit
    Bit(Option<bool>),
    /// float
    Float(Option<f64>),
    /// uniqueidentifier
    Uuid(Option<Uuid>),
    /// datetime2(3)
    Time(Option<Timestamp>),
    /// nvarchar
    Text(Option<String>),
}

macro_rules! value_from {
    ($($from:ty => $variant:ident($convert:expr);)+) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(Some(($convert)(value)))
            }
        }
        impl From<Option<$from>> for Value {
            fn from(value: Option<$from>) -> Self {
                Self::$variant(value.map($convert))
            }
        }
    )+};
}

value_from! {
    i32 => Int(std::convert::identity);
    i64 => BigInt(std::convert::identity);
    u32 => BigInt(i64::from);
    bool => Bit(std::convert::identity);
    f64 => Float(std::convert::identity);
    Uuid => Uuid(std::convert::identity);
    JobId => Uuid(|id: JobId| Uuid::from_bytes(*id.as_bytes()));
    LeaseId => Uuid(|id: LeaseId| Uuid::from_bytes(*id.as_bytes()));
    Timestamp => Time(std::convert::identity);
    String => Text(std::convert::identity);
    &str => Text(str::to_owned);
    &WorkerId => Text(|id: &WorkerId| id.as_str().to_owned());
}

/// A statement with its values.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is run"]
pub struct Call {
    pub(super) statement: &'static Statement,
    values: Vec<(&'static str, Value)>,
    pub(super) limit: Option<Duration>,
}

impl Call {
    /// A call of the statement.
    pub fn new(statement: &'static Statement) -> Self {
        Self { statement, values: Vec::new(), limit: None }
    }

    /// Sets the parameter `@name`; `name` is written without the `@`.
    pub fn bind(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.push((name, value.into()));
        self
    }

    /// Gives a parameter that has a value another one.
    pub(super) fn rebind(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.retain(|(bound, _)| *bound != name);
        self.bind(name, value)
    }

    /// Lets the call take this long instead of the URL's `command_timeout`. One wait for a lock takes half of the latter at
    /// most, whatever stands here.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// `what` a message says failed.
    pub(super) fn what(&self) -> String {
        format!("the statement {}", self.statement.name)
    }

    /// The procedure call, its values in the order of the declarations.
    pub(super) fn command<'a>(&'a self, rendered: &'a Rendered) -> Result<Command<'a>, Failure> {
        let wrong = |what: String| Failure::permanent(format!("{}: {what}", self.what()));
        if let Some((name, _)) = self.values.iter().find(|(name, _)| !rendered.declares(name)) {
            return Err(wrong(format!("it declares no parameter @{name}")));
        }
        let mut command = Command::new("sp_executesql");
        // Without names: the first two are taken by their place.
        command.bind_param("", &*rendered.sql);
        if !rendered.parameters.is_empty() {
            command.bind_param("", &*rendered.declarations);
        }
        for (name, kind) in &rendered.parameters {
            let mut given = self.values.iter().filter(|(given, _)| given == name);
            let value = match (given.next(), given.next()) {
                (Some((_, value)), None) => value,
                (None, _) => return Err(wrong(format!("the parameter @{name} has no value"))),
                (_, Some(_)) => return Err(wrong(format!("the parameter @{name} has two values"))),
            };
            let value = encode(value, *kind)
                .map_err(|what| wrong(format!("the parameter @{name} {what}")))?;
            command.bind_param(format!("@{name}"), value);
        }
        Ok(command)
    }
}

impl Rendered {
    fn declares(&self, name: &str) -> bool {
        self.parameters.iter().any(|(declared, _)| declared == name)
    }
}

/// The value as the driver sends it. Nothing is left for the server to convert in a way that could cut or fail.
fn encode(value: &Value, kind: Type) -> Result<ColumnData<'_>, String> {
    Ok(match (value, kind) {
        (Value::Int(v), Type::Int) => ColumnData::I32(*v),
        (Value::Int(v), Type::BigInt) => ColumnData::I64(v.map(i64::from)),
        (Value::BigInt(v), Type::BigInt) => ColumnData::I64(*v),
        (Value::Bit(v), Type::Bit) => ColumnData::Bit(*v),
        (Value::Float(v), Type::Float) => ColumnData::F64(*v),
        (Value::Uuid(v), Type::UniqueIdentifier) => ColumnData::Guid(*v),
        (Value::Time(None), Type::DateTime2) => ColumnData::DateTime2(None),
        (Value::Time(Some(time)), Type::DateTime2) => {
            let stored = to_datetime2(*time)
                .ok_or_else(|| format!("is {time}, a year that datetime2 lacks"))?;
            ColumnData::DateTime2(Some(stored))
        }
        // A NULL string goes as a NULL int, which converts. The driver has a form of its own for it, a value without a
        // type, that Babelfish refuses (8009).
        (Value::Text(None), Type::NVarChar(_)) => ColumnData::I32(None),
        (Value::Text(Some(text)), Type::NVarChar(length)) => {
            // Too long for its declaration, it would be cut without a word.
            match length {
                Some(most) if text.encode_utf16().count() > most => {
                    return Err(format!("is longer than nvarchar({most})"));
                }
                _ => ColumnData::String(Some(Cow::Borrowed(text))),
            }
        }
        (_, kind) => return Err(format!("is declared as {kind:?} and was given another type")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::mssql::options::SchemaName;

    static STATEMENT: Statement =
        Statement::new("probe", "-- @a int\n-- @b nvarchar(3)\nSELECT 1;");

    fn refused(call: &Call) -> String {
        let rendered =
            STATEMENT.render(&SchemaName::new("chokaq").expect("a name")).expect("a statement");
        call.command(&rendered).expect_err("a wrong call").to_string()
    }

    #[test]
    fn a_call_that_does_not_fit_its_statement_is_not_sent() {
        let call = || Call::new(&STATEMENT);
        assert!(refused(&call().bind("a", 1)).contains("@b has no value"));
        assert!(
            refused(&call().bind("a", 1).bind("b", "x").bind("c", 2)).contains("no parameter @c")
        );
        assert!(refused(&call().bind("a", 1).bind("b", "x").bind("b", "y")).contains("two values"));
        assert!(refused(&call().bind("a", "x").bind("b", "x")).contains("@a is declared as Int"));
        assert!(refused(&call().bind("a", 1_i64).bind("b", "x")).contains("@a is declared as Int"));
        // Counted as the server does: a character outside the BMP is two.
        assert!(
            refused(&call().bind("a", 1).bind("b", "🔑🔑")).contains("longer than nvarchar(3)")
        );
    }
}
