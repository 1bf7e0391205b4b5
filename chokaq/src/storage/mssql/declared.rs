//! `schema.sql`, read as a description of the tables: its form is regular, and a test holds it to the migrations.

use crate::storage::drift::{Column, Index, Schema, Table};

/// What the text creates.
///
/// # Errors
/// The statement whose form is not known.
pub(super) fn parse(text: &str) -> Result<Schema, String> {
    let mut schema = Schema::default();
    for statement in statements(text) {
        add(&mut schema, &statement)
            .ok_or_else(|| format!("the statement {statement:?} has a form that is not known"))?;
    }
    Ok(schema)
}

/// The tables whose `LOCK_ESCALATION` a migration sets, and to what.
pub(super) fn lock_escalations(migration: &str) -> Vec<(String, String)> {
    let set = |statement: String| {
        let (table, rest) = statement.strip_prefix("ALTER TABLE [chokaq].")?.split_once(' ')?;
        let value = rest.strip_prefix("SET (LOCK_ESCALATION = ")?.strip_suffix(')')?;
        Some((table.to_owned(), value.to_owned()))
    };
    statements(migration).into_iter().filter_map(set).collect()
}

/// Without comments, each on one line with single spaces.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    let plain: String = lines.flat_map(|line| [line, " "]).collect();
    let words = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.split(';').map(words).filter(|statement| !statement.is_empty()).collect()
}

fn add(schema: &mut Schema, statement: &str) -> Option<()> {
    if let Some(rest) = statement.strip_prefix("CREATE TABLE [chokaq].") {
        let (name, body) = rest.split_once(" (")?;
        schema.tables.push(table(name, body.strip_suffix(')')?)?);
    } else {
        let (table, index) = index(statement)?;
        schema.tables.iter_mut().find(|known| known.name == table)?.indexes.push(index);
    }
    Some(())
}

fn table(name: &str, body: &str) -> Option<Table> {
    let mut table = Table::new("table", name);
    for item in outer_items(body) {
        match item.strip_prefix("CONSTRAINT ") {
            Some(key) => table.indexes.push(primary_key(key)?),
            None => table.columns.push(column(item)?),
        }
    }
    Some(table)
}

/// `PK_JobsHot PRIMARY KEY CLUSTERED (Seq) WITH (...)`
fn primary_key(text: &str) -> Option<Index> {
    let (name, rest) = text.split_once(' ')?;
    let (kind, rest) = rest.split_once(" (")?;
    let (keys, _) = rest.split_once(')')?;
    Some(Index {
        name: name.to_owned(),
        kind: kind.to_owned(),
        keys: list(keys),
        included: Vec::new(),
        filter: None,
        is_disabled: false,
    })
}

/// `Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL`, `Seq bigint IDENTITY(1, 1) NOT NULL`,
/// `IsPaused bit NOT NULL CONSTRAINT DF_Queues_IsPaused DEFAULT 0`
fn column(text: &str) -> Option<Column> {
    let text = text.replace("IDENTITY(1, 1)", "IDENTITY");
    let (definition, default) = match text.split_once(" CONSTRAINT ") {
        Some((definition, constraint)) => (definition, constraint.contains(" DEFAULT ")),
        None => (&*text, false),
    };
    let mut words: Vec<&str> = definition.split(' ').collect();
    let is_nullable = words.pop()? == "NULL" && words.last() != Some(&"NOT");
    if !is_nullable {
        words.pop();
    }
    let is_identity = words.last() == Some(&"IDENTITY");
    let (name, kind, collation) = match words.as_slice() {
        [name, kind] | [name, kind, "IDENTITY"] => (name, kind, None),
        [name, kind, "COLLATE", collation] => (name, kind, Some((*collation).to_owned())),
        _ => return None,
    };
    Some(Column {
        name: unquoted(name),
        kind: if is_identity { format!("{kind} IDENTITY") } else { (*kind).to_owned() },
        collation,
        is_nullable,
        fills_itself: default || is_identity,
    })
}

/// `CREATE UNIQUE NONCLUSTERED INDEX IX ON [chokaq].JobsHot (A, B DESC) INCLUDE (C) WHERE D = 0 WITH (...)`, with its table.
fn index(text: &str) -> Option<(&str, Index)> {
    let (kind, rest) = text.strip_prefix("CREATE ")?.split_once(" INDEX ")?;
    let (name, rest) = rest.split_once(" ON [chokaq].")?;
    let (table, rest) = rest.split_once(" (")?;
    let (keys, rest) = rest.split_once(')')?;
    let rest = rest.rsplit_once(" WITH (").map_or(rest, |(rest, _)| rest);
    let (included, filter) = match rest.split_once(" WHERE ") {
        Some((included, filter)) => (included, Some(filter.to_owned())),
        None => (rest, None),
    };
    let included = match included.trim() {
        "" => Vec::new(),
        included => list(included.strip_prefix("INCLUDE (")?.strip_suffix(')')?),
    };
    let index = Index {
        name: name.to_owned(),
        kind: kind.to_owned(),
        keys: list(keys),
        included,
        filter,
        is_disabled: false,
    };
    Some((table, index))
}

fn list(names: &str) -> Vec<String> {
    names.split(", ").map(unquoted).collect()
}

/// A name without the brackets that one needs which is also a keyword.
fn unquoted(name: &str) -> String {
    name.replace(['[', ']'], "")
}

/// What the commas outside parentheses separate.
fn outer_items(text: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(text[start..].trim());
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- The tables.
CREATE TABLE [chokaq].Jobs (
    Seq bigint IDENTITY(1, 1) NOT NULL,
    -- Whose; it is.
    Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,
    IsReady bit NOT NULL CONSTRAINT DF_Jobs_IsReady DEFAULT 0,
    [DueUtc] datetime2(3) NULL,
    CONSTRAINT PK_Jobs PRIMARY KEY CLUSTERED (Queue, Seq) WITH (DATA_COMPRESSION = PAGE)
);
CREATE UNIQUE NONCLUSTERED INDEX IX_Jobs_Due ON [chokaq].Jobs (Queue, [DueUtc] DESC) INCLUDE (Seq, IsReady)
    WHERE IsReady = 1 AND DueUtc IS NOT NULL WITH (STATISTICS_NORECOMPUTE = ON);
";

    #[test]
    fn a_table_is_read_with_its_columns_and_indexes() {
        let schema = parse(TEXT).expect("a known form");
        let [table] = schema.tables.as_slice() else { panic!("{schema:?}") };
        assert_eq!(table.name, "Jobs");
        let columns: Vec<String> =
            table.columns.iter().map(|column| format!("{} {column}", column.name)).collect();
        assert_eq!(
            columns,
            [
                "Seq bigint IDENTITY NOT NULL with a default",
                "Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL",
                "IsReady bit NOT NULL with a default",
                "DueUtc datetime2(3) NULL",
            ]
        );
        let indexes: Vec<String> =
            table.indexes.iter().map(|index| format!("{} {index}", index.name)).collect();
        assert_eq!(
            indexes,
            [
                "PK_Jobs PRIMARY KEY CLUSTERED (Queue, Seq)",
                "IX_Jobs_Due UNIQUE NONCLUSTERED (Queue, DueUtc DESC) INCLUDE (Seq, IsReady) \
                 WHERE IsReady = 1 AND DueUtc IS NOT NULL",
            ]
        );
    }

    #[test]
    fn a_form_that_is_not_known_is_refused_with_its_text() {
        for text in [
            "DROP TABLE [chokaq].Jobs;",
            "CREATE TABLE [chokaq].Jobs (Seq bigint SPARSE NULL);",
            "CREATE NONCLUSTERED INDEX IX ON [chokaq].Nothing (A) WITH (FILLFACTOR = 90);",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(text.trim_end_matches(';')), "{error}");
        }
    }

    #[test]
    fn the_escalations_that_a_migration_sets_are_found() {
        let text = "ALTER TABLE [chokaq].Jobs SET (LOCK_ESCALATION = DISABLE); ALTER TABLE [chokaq].Jobs ADD A int NULL;";
        assert_eq!(lock_escalations(text), [("Jobs".to_owned(), "DISABLE".to_owned())]);
    }
}
