//! A statement file: its name, its text for a schema, and the types of its parameters.
//!
//! The types stand in the comment at its top, a line each, as `sp_executesql` takes them; what follows a comma explains:
//!
//! ```sql
//! -- @leases nvarchar(max), [{"s": Seq, "l": LeaseId}]
//! -- @worker nvarchar(255)
//! ```
//!
//! They are part of the plan's key. The driver would declare each string by the length of its value, `nvarchar(4000)` or
//! `nvarchar(max)`, which multiplies plans and converts the column's side of comparisons.

use std::collections::HashSet;

use crate::storage::mssql::{failure::Failure, options::SchemaName};

/// A named statement, as its file has it.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    pub(super) name: &'static str,
    text: &'static str,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    BigInt,
    Bit,
    Float,
    UniqueIdentifier,
    DateTime2,
    /// With its length in UTF-16 units; `None`: max.
    NVarChar(Option<usize>),
}

/// A statement as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    /// For the Query Store it begins with `/* chokaq:name */`.
    pub(super) sql: String,
    /// `@a int, @b nvarchar(max)`.
    pub(super) declarations: String,
    /// In the order of the declarations; names without `@`.
    pub(super) parameters: Vec<(String, Type)>,
}

impl Statement {
    /// A statement from its file.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }

    /// Tells it from every other.
    pub(super) fn key(&self) -> (&'static str, usize) {
        (self.name, self.text.as_ptr().addr())
    }

    /// The text in the schema, and the types of its parameters.
    pub(super) fn render(&self, schema: &SchemaName) -> Result<Rendered, Failure> {
        let (headings, body) = split(self.text);
        let parameters = parameters(headings)
            .map_err(|what| Failure::permanent(format!("the statement {}: {what}", self.name)))?;
        let declarations: Vec<String> =
            parameters.iter().map(|(name, _, kind)| format!("@{name} {kind}")).collect();
        let mut sql = schema.in_text(body);
        let mark = format!("/* chokaq:{} */", self.name);
        if !sql.starts_with(&mark) {
            sql.insert_str(0, &format!("{mark}\n"));
        }
        Ok(Rendered {
            sql,
            declarations: declarations.join(", "),
            parameters: parameters.into_iter().map(|(name, kind, _)| (name, kind)).collect(),
        })
    }
}

/// The comment lines at the top, and the rest.
fn split(text: &str) -> (&str, &str) {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let line_is_heading = line.trim().is_empty() || line.trim_start().starts_with("--");
        if !line_is_heading {
            break;
        }
        end += line.len();
    }
    let (headings, body) = text.split_at(end);
    (headings, body.trim_end())
}

/// The lines that begin with `-- @`: each declares a parameter.
fn parameters(headings: &str) -> Result<Vec<(String, Type, &str)>, String> {
    let mut seen = HashSet::new();
    let mut parameters = Vec::new();
    for line in headings.lines().filter_map(|line| line.trim().strip_prefix("-- @")) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let type_name = rest.split([',', ' ']).next().unwrap_or_default();
        let kind = kind(type_name).ok_or_else(|| {
            format!("the parameter @{name} has a type that is not known: {type_name:?}")
        })?;
        // The procedure's own two, which values are matched to by name.
        if matches!(name, "stmt" | "params") || !seen.insert(name.to_ascii_lowercase()) {
            return Err(format!("the parameter @{name} needs another name"));
        }
        parameters.push((name.to_owned(), kind, type_name));
    }
    Ok(parameters)
}

fn kind(name: &str) -> Option<Type> {
    Some(match name {
        "int" => Type::Int,
        "bigint" => Type::BigInt,
        "bit" => Type::Bit,
        "float" => Type::Float,
        "uniqueidentifier" => Type::UniqueIdentifier,
        "datetime2(3)" => Type::DateTime2,
        "nvarchar(max)" => Type::NVarChar(None),
        _ => {
            let length: usize = name.strip_prefix("nvarchar(")?.strip_suffix(')')?.parse().ok()?;
            (1..=4_000).contains(&length).then_some(Type::NVarChar(Some(length)))?
        }
    })
}

impl SchemaName {
    /// The text of a file with this schema in it: `[chokaq]`, the string `'chokaq'` and what stands in front of a name
    /// as `chokaq.` are its name, in strings that hold names too.
    pub fn in_text(&self, sql: &str) -> String {
        let quoted = self.quoted();
        let sql = sql.replace("[chokaq]", &quoted).replace("'chokaq'", &format!("'{self}'"));
        let mut out = String::with_capacity(sql.len() + 64);
        let mut rest = &*sql;
        while let Some(place) = rest.find("chokaq.") {
            let (before, from) = rest.split_at(place);
            let after = &from["chokaq.".len()..];
            let is_inside_a_name =
                before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '.'));
            let names_something =
                after.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '['));
            out.push_str(before);
            if names_something && !is_inside_a_name {
                out.push_str(&quoted);
                out.push('.');
            } else {
                out.push_str("chokaq.");
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &'static str) -> Result<Rendered, Failure> {
        Statement::new("keep_alive", text).render(&SchemaName::new("ops").expect("a good name"))
    }

    #[test]
    fn a_file_becomes_a_statement_with_its_types() {
        let text = "-- Caller: the heartbeat.\n-- Intent: beat.\n--   @not here\n-- @beats nvarchar(max), [{\"s\": Seq}]\n\
                    -- @worker nvarchar(255)\n-- @limit int, at most\n-- @at datetime2(3)\n-- Answers: nothing.\n\nUPDATE chokaq.JobsHot SET x = 1 -- chokaq.\nFROM [chokaq].[Queues] WHERE mychokaq.y = OBJECT_ID(N'chokaq.Queues')\n";
        let rendered = rendered(text).expect("a good file");
        assert_eq!(
            rendered.declarations,
            "@beats nvarchar(max), @worker nvarchar(255), @limit int, @at datetime2(3)"
        );
        assert_eq!(rendered.parameters[1], ("worker".to_owned(), Type::NVarChar(Some(255))));
        assert_eq!(rendered.parameters.len(), 4);
        assert_eq!(
            rendered.sql,
            "/* chokaq:keep_alive */\nUPDATE [ops].JobsHot SET x = 1 -- chokaq.\nFROM [ops].[Queues] WHERE mychokaq.y = OBJECT_ID(N'[ops].Queues')"
        );
    }

    #[test]
    fn a_migration_names_the_schema_in_every_way() {
        let schema = SchemaName::new("ops").expect("a good name");
        let sql = "IF SCHEMA_ID(N'chokaq') IS NULL EXEC (N'CREATE SCHEMA [chokaq]'); SELECT 'my chokaq' FROM chokaq.[a b]";
        assert_eq!(
            schema.in_text(sql),
            "IF SCHEMA_ID(N'ops') IS NULL EXEC (N'CREATE SCHEMA [ops]'); SELECT 'my chokaq' FROM [ops].[a b]"
        );
        // The default is as good as any other name.
        let schema = SchemaName::new("chokaq").expect("a good name");
        assert_eq!(schema.in_text("chokaq.a [chokaq].b"), "[chokaq].a [chokaq].b");
    }

    #[test]
    fn a_file_may_have_no_parameters_and_its_own_mark() {
        let rendered = rendered("/* chokaq:keep_alive */\nSELECT 1;").expect("a good file");
        assert_eq!(rendered.sql, "/* chokaq:keep_alive */\nSELECT 1;");
        assert_eq!((&*rendered.declarations, rendered.parameters.len()), ("", 0));
    }

    #[test]
    fn a_declaration_that_cannot_be_used_is_refused_with_the_statement() {
        for text in [
            "-- @a",
            "-- @a varchar(10)",
            "-- @a nvarchar(4001)",
            "-- @a int\n-- @A bigint",
            "-- @stmt int",
        ] {
            let error = rendered(text).expect_err(text).to_string();
            assert!(error.contains("keep_alive"), "{error}");
        }
    }
}
