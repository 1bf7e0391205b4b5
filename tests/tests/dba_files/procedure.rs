//! `chokaq.Enqueue`: the text that is read is the text that is run, and its limits are the programs'.

use chokaq::model::{Limits, PolicyDefaults};

use crate::text::{files, read, statements};

fn text() -> String {
    let file = read("procedures/enqueue.sql");
    let at = file.find("CREATE PROCEDURE").expect("it creates the procedure");
    file[at..].trim_end().to_owned()
}

#[test]
fn the_procedure_is_what_its_migration_makes() {
    let migration = files("migrations")
        .into_values()
        .rfind(|migration| migration.contains("PROCEDURE [chokaq].Enqueue"))
        .expect("a migration makes it");
    let (_, string) = migration.split_once("EXEC (N'ALTER ").expect("it is altered");
    let string = string.trim_end().strip_suffix("');").expect("the string ends the file");
    let made = format!("CREATE {}", string.replace("''", "'"));
    assert_eq!(made, text());
    // Nothing ends the string early.
    assert!(!string.replace("''", "").contains('\''));
}

#[test]
fn its_defaults_and_limits_are_those_of_the_programs() {
    let (text, policy) = (text(), PolicyDefaults::default());
    for expected in [
        "@Queue nvarchar(4000) = N'default'".to_owned(),
        "@Priority int = 10".to_owned(),
        format!("@MaxRetries int = {}", policy.retries),
        format!("@TimeoutMs bigint = {}", policy.timeout.as_millis()),
        format!("@MaxAgeMs bigint = {}", policy.max_age.as_millis()),
        "@OnCrash nvarchar(4000) = N'dead_letter'".to_owned(),
        format!("@longest_ms bigint = {}", Limits::MAX_DURATION.as_millis()),
        format!("DATALENGTH(n.Value) / 2 > {}\n", Limits::NAME_UNITS),
        format!("DATALENGTH(@Tags) / 2 > {}\n", Limits::TAGS_UNITS),
        format!("DATALENGTH(@Payload) / 2 > {}\n", Limits::default().payload_bytes),
    ] {
        assert!(text.contains(&expected), "{expected}");
    }
    // NULL stands for the default, which is written twice.
    for (name, default) in [
        ("Payload", "N'null'".to_owned()),
        ("Queue", "N'default'".to_owned()),
        ("Priority", "10".to_owned()),
        ("MaxRetries", policy.retries.to_string()),
        ("TimeoutMs", policy.timeout.as_millis().to_string()),
        ("MaxAgeMs", policy.max_age.as_millis().to_string()),
        ("OnCrash", "N'dead_letter'".to_owned()),
    ] {
        let expected = format!("@{name} = COALESCE(@{name}, {default})");
        assert!(text.contains(&expected), "{expected}");
    }
}

/// White space as `str::trim` has it, in the lists that the procedure compares with.
#[test]
fn it_refuses_the_white_space_that_the_programs_refuse() {
    let text = text();
    let list = text.split("e.Code IN (").nth(1).and_then(|rest| rest.split(')').next());
    let mut codes: Vec<u32> =
        list.expect("a list").split(", ").map(|code| code.parse().expect("a number")).collect();
    for range in text.split("e.Code BETWEEN ").skip(1) {
        let mut ends = range.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
        let (first, last) = (ends.next().expect("a start"), ends.next().expect("an end"));
        codes.extend(first..=last);
    }
    codes.sort_unstable();
    let expected: Vec<u32> = (0..=0xFFFF_u32)
        .filter(|code| char::from_u32(*code).is_some_and(char::is_whitespace))
        .collect();
    assert_eq!(codes, expected);
}

/// In a caller's transaction: nothing that ends it, skips locked rows, or leaves a row of JobsHot unguarded.
#[test]
fn it_leaves_the_callers_transaction_alone() {
    let text = text();
    for word in ["READPAST", "HOLDLOCK", "SERIALIZABLE", "ISOLATION", "SAVE TRAN", "NOLOCK"] {
        let statements = statements(&text);
        assert!(!statements.iter().any(|statement| statement.contains(word)), "{word}");
    }
    let statements = statements(&text);
    for word in ["BEGIN TRANSACTION", "COMMIT TRANSACTION", "ROLLBACK TRANSACTION"] {
        let ends: Vec<_> = statements.iter().filter(|s| s.contains(word)).collect();
        assert_eq!(ends.len(), 1, "{word}");
        assert!(ends[0].contains("IF @own = 1 "), "{}", ends[0]);
    }
    for table in ["JobsHot", "JobsArchive", "JobsDLQ", "Queues"] {
        for reading in text.split(&format!("FROM [chokaq].{table} AS ")).skip(1) {
            let hints = reading.split("WHERE").next().unwrap_or_default();
            let locks = ["READCOMMITTEDLOCK", "INDEX(PK_JobsHot)"];
            assert!(locks.iter().any(|lock| hints.contains(lock)), "{table}: {hints}");
        }
    }
}
