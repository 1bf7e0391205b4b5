//! The comparison: what a server may have become of `schema.sql`, and what is said of it.

use super::*;

fn differences(change: impl FnOnce(&mut Schema)) -> Vec<String> {
    let expected = expected().expect("schema.sql has a known form");
    // As a server shows what was made of it.
    let mut found = expected.clone();
    for table in &mut found.tables {
        table.options.get_or_insert_with(|| lock_escalation("TABLE"));
        for index in &mut table.indexes {
            index.filter = index.filter.take().map(|filter| as_shown(&filter));
        }
    }
    change(&mut found);
    let schema = SchemaName::new("ops").expect("a good name");
    compare(&expected, &found, &Statements { schema: &schema })
}

/// `Status = 0 AND IsReady = 1` -> `([Status]=(0) AND [IsReady]=(1))`
fn as_shown(filter: &str) -> String {
    let condition = |text: &str| match text.split_once(' ') {
        Some((column, "IS NOT NULL")) => format!("[{column}] IS NOT NULL"),
        Some((column, rest)) => {
            let (operator, value) = rest.split_once(' ').expect("an operator");
            format!("[{column}]{operator}({value})")
        }
        None => unreachable!("{text}"),
    };
    format!("({})", filter.split(" AND ").map(condition).collect::<Vec<_>>().join(" AND "))
}

fn only_difference(table: &str, change: impl FnOnce(&mut Table)) -> String {
    let mut found = differences(|schema| schema.change(table, change));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn index<'a>(table: &'a mut Table, name: &str) -> &'a mut Index {
    table.indexes.iter_mut().find(|index| index.name == name).expect("it is declared")
}

fn a_column(is_nullable: bool, fills_itself: bool) -> Column {
    Column {
        name: "Note".to_owned(),
        kind: "int".to_owned(),
        collation: None,
        is_nullable,
        fills_itself,
    }
}

#[test]
fn what_the_migrations_make_is_no_difference() {
    assert_eq!(differences(|_| {}), [""; 0]);
    assert_eq!(expected().expect("a known form").tables.len(), 8);
}

#[test]
fn a_missing_table_is_one_difference_and_another_one_is_harmless() {
    let missing = differences(|schema| schema.tables.retain(|table| table.name != "JobsDLQ"));
    assert_eq!(missing.len(), 1);
    assert!(missing[0].starts_with("the table JobsDLQ is missing, or the login may not see it:"));
    let more = differences(|schema| schema.tables.push(Table::new("table", "Notes")));
    assert_eq!(
        more,
        ["the table Notes is additional: harmless, chokaq neither reads nor writes it"]
    );
}

#[test]
fn names_are_compared_without_their_case() {
    assert_eq!(
        differences(|schema| {
            schema.change("Queues", |table| {
                table.name = "queues".to_owned();
                table.columns[0].name = "NAME".to_owned();
                table.indexes[0].keys[0] = "name".to_owned();
            });
        }),
        [""; 0]
    );
}

#[test]
fn a_column_that_is_missing_or_changed_says_how_to_put_it_right() {
    assert_eq!(
        only_difference("JobsHot", |table| table.columns.retain(|c| c.name != "CreatedBy")),
        "the column CreatedBy of JobsHot is missing, expected is nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL: \
         ALTER TABLE [ops].JobsHot ADD CreatedBy nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL"
    );
    let changed =
        |change: fn(&mut Column)| only_difference("JobsHot", |table| change(&mut table.columns[2]));
    for (found, change) in [
        (
            "nvarchar(100) COLLATE Latin1_General_100_BIN2 NOT NULL",
            (|c| c.kind = "nvarchar(100)".to_owned()) as fn(&mut Column),
        ),
        ("nvarchar(255) COLLATE Latin1_General_CI_AS NOT NULL", |c| {
            c.collation = Some("Latin1_General_CI_AS".to_owned());
        }),
        ("nvarchar(255) COLLATE Latin1_General_100_BIN2 NULL", |c| c.is_nullable = true),
    ] {
        assert_eq!(
            changed(change),
            format!(
                "the column Queue of JobsHot is {found}, expected is nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL: \
                 ALTER TABLE [ops].JobsHot ALTER COLUMN Queue nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL"
            )
        );
    }
}

#[test]
fn an_additional_column_is_harmless_unless_inserts_must_name_it() {
    let added = |column: Column| only_difference("JobsHot", |table| table.columns.push(column));
    assert!(added(a_column(true, false)).contains("additional (int NULL): harmless"));
    assert!(added(a_column(false, true)).contains("harmless"));
    assert!(added(a_column(false, false)).contains("every insert by chokaq fails"));
}

#[test]
fn an_index_is_held_to_its_keys_their_order_its_columns_and_its_filter() {
    let missing = only_difference("JobsHot", |table| {
        table.indexes.retain(|index| index.name != "IX_JobsHot_QueueStats");
    });
    assert!(
        missing.contains("CREATE NONCLUSTERED INDEX IX_JobsHot_QueueStats ON [ops].JobsHot (Queue) INCLUDE (Status) WHERE Status > 0"),
        "{missing}"
    );
    let changes: [fn(&mut Index); 5] = [
        |index| index.keys.swap(0, 1),
        |index| index.keys[1] = "Priority".to_owned(),
        |index| index.included.push("Id".to_owned()),
        |index| index.filter = Some("([Status]=(0))".to_owned()),
        |index| index.kind = "UNIQUE NONCLUSTERED".to_owned(),
    ];
    for change in changes {
        let changed = only_difference("JobsHot", |table| change(index(table, "IX_JobsHot_Fetch")));
        assert!(
            changed.contains("DROP INDEX IX_JobsHot_Fetch ON [ops].JobsHot; CREATE"),
            "{changed}"
        );
    }
    // The order of included columns means nothing.
    assert_eq!(
        differences(|schema| schema.change("JobsHot", |table| {
            index(table, "IX_JobsHot_FetchedRecovery").included.reverse();
        })),
        [""; 0]
    );
}

#[test]
fn a_primary_key_is_made_anew_as_a_constraint() {
    let changed = only_difference("Queues", |table| {
        index(table, "PK_Queues").kind = "PRIMARY KEY NONCLUSTERED".to_owned();
    });
    assert!(
        changed.ends_with(
            "ALTER TABLE [ops].Queues DROP CONSTRAINT PK_Queues; \
             ALTER TABLE [ops].Queues ADD CONSTRAINT PK_Queues PRIMARY KEY CLUSTERED (Name)"
        ),
        "{changed}"
    );
}

#[test]
fn a_disabled_index_a_trigger_and_the_lock_escalation_are_told() {
    let told = |table: &str, change: fn(&mut Table)| only_difference(table, change);
    let disabled = told("JobsHot", |table| index(table, "IX_JobsHot_Id").is_disabled = true);
    assert!(disabled.ends_with("ALTER INDEX IX_JobsHot_Id ON [ops].JobsHot REBUILD"), "{disabled}");
    let trigger = told("JobsDLQ", |table| table.triggers.push("TR_Audit".to_owned()));
    assert!(trigger.contains("the trigger TR_Audit"), "{trigger}");
    let escalates = told("JobsHot", |table| table.options = Some(lock_escalation("TABLE")));
    assert_eq!(
        escalates,
        "the table JobsHot is LOCK_ESCALATION = TABLE, expected is LOCK_ESCALATION = DISABLE: \
         ALTER TABLE [ops].JobsHot SET (LOCK_ESCALATION = DISABLE)"
    );
    // Of the others every setting will do.
    let others = |schema: &mut Schema| {
        schema.change("JobsDLQ", |table| table.options = Some(lock_escalation("AUTO")));
    };
    assert_eq!(differences(others), [""; 0]);
}

#[test]
fn an_additional_index_is_told_by_what_it_can_do() {
    let added = |kind: &str| {
        let more = Index {
            name: "IX_Mine".to_owned(),
            kind: kind.to_owned(),
            keys: vec!["Tags".to_owned()],
            included: Vec::new(),
            filter: None,
            is_disabled: false,
        };
        only_difference("JobsHot", |table| table.indexes.push(more))
    };
    assert!(added("NONCLUSTERED").contains("additional (NONCLUSTERED (Tags)): harmless"));
    assert!(added("UNIQUE NONCLUSTERED").contains("may refuse rows"));
}

#[test]
fn a_filter_that_the_login_may_not_see_is_no_difference() {
    let mut expected = expected().expect("a known form");
    let mut found = expected.clone();
    found.change("JobsHot", |table| {
        index(table, "IX_JobsHot_Fetch").filter = Some(HIDDEN.to_owned());
        // That there is one at all can be seen.
        index(table, "IX_JobsHot_Id").filter = Some(HIDDEN.to_owned());
    });
    ignore_hidden_filters(&mut expected, &found);
    let schema = SchemaName::new("ops").expect("a good name");
    let found = compare(&expected, &found, &Statements { schema: &schema });
    assert!(matches!(found.as_slice(), [one] if one.contains("IX_JobsHot_Id")), "{found:?}");
}

#[test]
fn types_are_named_as_they_are_declared() {
    for (name, bytes, scale, declared) in [
        ("nvarchar", 510, 0, "nvarchar(255)"),
        ("nvarchar", -1, 0, "nvarchar(max)"),
        ("varchar", 20, 0, "varchar(20)"),
        ("datetime2", 7, 3, "datetime2(3)"),
        ("uniqueidentifier", 16, 0, "uniqueidentifier"),
        ("float", 8, 0, "float"),
    ] {
        assert_eq!(type_name(name, bytes, scale), declared);
    }
}
