//! What `#[job]` accepts, and what it says about what it refuses.
//!
//! After a change of a message, `TRYBUILD=overwrite cargo test -p chokaq-tests --test ui` writes the new ones: read them
//! before they are committed.

use chokaq::Enqueue;

#[test]
fn job_attribute_accepts_what_it_documents_and_explains_what_it_refuses() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail_args/*.rs");
    cases.compile_fail("ui/fail_item/*.rs");
    cases.compile_fail("ui/fail_job/*.rs");
}

#[test]
fn job_attribute_works_through_a_renamed_dependency() {
    assert_eq!(chokaq_renamed::ByPath::JOB_TYPE.key, "by_path");
    assert_eq!(chokaq_renamed::ByPath::JOB_TYPE.rust_name, "chokaq_renamed::ByPath");
    assert_eq!(chokaq_renamed::ByString::JOB_TYPE.key, "by_string");
}
