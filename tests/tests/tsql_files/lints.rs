//! Every lint by its name.

use crate::{
    collation, dates,
    files::{QueryFile, procedures, queries},
    filters, guards, headers, hints, keys, locks,
    schema::Schema,
    sending, shape, types,
};

/// What is wrong with one file.
pub(crate) type Lint = fn(&QueryFile, &Schema) -> Vec<String>;

/// The lints that look at one file at a time.
pub(crate) const LINTS: [(&str, Lint); 12] = [
    ("transitions", guards::transition_faults),
    ("guards", guards::faults),
    ("headers", headers::faults),
    ("shape", shape::faults),
    ("sending", sending::faults),
    ("filters", filters::faults),
    ("hints", hints::faults),
    ("collation", collation::faults),
    ("types", types::faults),
    ("dates", dates::faults),
    ("keys", keys::faults),
    ("locks", locks::faults),
];

/// Holds every file to a lint.
pub(crate) fn hold(lint: Lint) {
    let schema = Schema::read();
    let mut faults = Vec::new();
    for file in queries() {
        let found = lint(&file, &schema);
        faults.extend(found.into_iter().map(|fault| format!("{}.sql: {fault}", file.name)));
    }
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
}

/// Those that a procedure is held to as well: it declares its own parameters, wider than the columns, so that nothing is cut
/// before it is measured, and answers nothing.
const FOR_PROCEDURES: [&str; 7] =
    ["transitions", "sending", "filters", "hints", "collation", "dates", "locks"];

#[test]
fn the_procedures_keep_to_the_rules() {
    let schema = Schema::read();
    let mut faults = Vec::new();
    for (name, lint) in LINTS.iter().filter(|(name, _)| FOR_PROCEDURES.contains(name)) {
        for file in procedures() {
            let found = lint(&file, &schema);
            faults.extend(found.into_iter().map(|fault| format!("{}: {name}: {fault}", file.name)));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// What a lint says of a text.
pub(crate) fn found(lint: Lint, text: &str) -> Vec<String> {
    lint(&QueryFile::planted(text), &Schema::read())
}

/// Holds a lint to pass a text, and to notice each change of it.
pub(crate) fn notices(lint: Lint, good: &str, changes: &[(&str, &str)]) {
    assert_eq!(found(lint, good), [""; 0], "the text is good");
    for (from, to) in changes {
        assert!(good.contains(from), "{from:?} is not in the text");
        let bad = good.replacen(from, to, 1);
        assert!(!found(lint, &bad).is_empty(), "{from:?} -> {to:?}: unnoticed");
    }
}
