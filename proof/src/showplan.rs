//! What an actual plan (`SET STATISTICS XML ON`) says against chokaq's rules: no scan of a table, no sort over locked rows, no
//! implicit conversion, nothing parallel, every access of a table a seek that was asked for.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};

/// What was found in the plans of one call: it has one for each statement that ran.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// What breaks a rule.
    pub(crate) faults: BTreeSet<String>,
    /// Indexes that were walked from end to end, or until enough was found.
    pub(crate) walks: BTreeSet<String>,
    /// Rows of tables that were read, whether they were wanted or not.
    pub(crate) rows_read: u64,
}

/// The document that a plan's result set begins with.
pub(crate) fn is_plan(text: &str) -> bool {
    text.trim_start().starts_with("<ShowPlanXML")
}

impl Findings {
    /// Adds what the plan says. Tables of other schemas, and table variables, are not looked at.
    pub(crate) fn add(&mut self, xml: &str, schema: &str) -> Result<(), String> {
        let document = Document::parse(xml).map_err(|error| format!("the plan: {error}"))?;
        let statements = document.descendants().filter(|node| node.has_tag_name_of("QueryPlan"));
        for plan in statements {
            let text = plan.parent().and_then(|statement| statement.attribute("StatementText"));
            Statement { plan, locks: text.unwrap_or_default().contains("UPDLOCK"), schema }
                .look(self);
        }
        Ok(())
    }
}

/// One statement's plan.
struct Statement<'a> {
    plan: Node<'a, 'a>,
    /// It keeps what it reads locked.
    locks: bool,
    schema: &'a str,
}

impl Statement<'_> {
    fn look(&self, found: &mut Findings) {
        for operator in self.plan.descendants().filter(|node| node.has_tag_name_of("RelOp")) {
            let physical = operator.attribute("PhysicalOp").unwrap_or_default();
            match physical {
                "Parallelism" => {
                    found.faults.insert("parallel".to_owned());
                }
                "Sort" if self.locks && self.reads_a_table(operator) => {
                    found.faults.insert("sort over locked rows".to_owned());
                }
                _ => {}
            }
            for (access, index) in self.accesses(operator) {
                found.rows_read += rows_read(operator);
                if physical.ends_with("Scan") {
                    found.walks.insert(index);
                } else if !is_true(access, "ForceSeek") && !is_true(access, "Lookup") {
                    found.faults.insert(format!("{index} without FORCESEEK"));
                }
            }
        }
        for warning in self.plan.descendants() {
            match warning.tag_name().name() {
                "PlanAffectingConvert" => {
                    let expression = warning.attribute("Expression").unwrap_or_default();
                    if expression.contains("CONVERT_IMPLICIT") {
                        found.faults.insert(format!("implicit conversion {expression}"));
                    }
                }
                "SpillToTempDb" | "UnmatchedIndexes" => {
                    found.faults.insert(warning.tag_name().name().to_owned());
                }
                "Warnings" if is_true(warning, "NoJoinPredicate") => {
                    found.faults.insert("no join predicate".to_owned());
                }
                _ => {}
            }
        }
    }

    /// The operator's own accesses of tables of the schema, and `Table.Index` of each.
    fn accesses<'n>(&self, operator: Node<'n, 'n>) -> Vec<(Node<'n, 'n>, String)> {
        let kinds = operator
            .children()
            .filter(|node| node.has_tag_name_of("IndexScan") || node.has_tag_name_of("TableScan"));
        kinds
            .filter_map(|access| {
                let object = access.children().find(|node| node.has_tag_name_of("Object"))?;
                let name = |attribute| {
                    object.attribute(attribute).unwrap_or_default().trim_matches(['[', ']'])
                };
                let index = match name("Index") {
                    "" => "(heap)",
                    index => index,
                };
                (name("Schema") == self.schema).then(|| (access, index.to_owned()))
            })
            .collect()
    }

    fn reads_a_table(&self, operator: Node<'_, '_>) -> bool {
        operator.descendants().any(|below| !self.accesses(below).is_empty())
    }
}

fn is_true(node: Node<'_, '_>, attribute: &str) -> bool {
    matches!(node.attribute(attribute), Some("1" | "true"))
}

/// `ActualRowsRead` counts what a predicate on top of a seek threw away; where there is none, the rows that came out.
fn rows_read(operator: Node<'_, '_>) -> u64 {
    let information = operator.children().find(|node| node.has_tag_name_of("RunTimeInformation"));
    let threads = information.into_iter().flat_map(|node| node.children());
    let count = |thread: Node<'_, '_>| {
        let read = thread.attribute("ActualRowsRead").or_else(|| thread.attribute("ActualRows"));
        read.and_then(|read| read.parse::<u64>().ok()).unwrap_or(0)
    };
    threads.map(count).sum()
}

/// By the local name: the showplan's namespace is the same since 2004, and would only be in the way.
trait LocalName {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl LocalName for Node<'_, '_> {
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.tag_name().name() == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shaped by the published schema of showplans, not by a server: a claim as it should be, then one with every fault.
    const SAMPLE: &str = include_str!("../samples/showplan.xml");

    fn found(statement: usize) -> Findings {
        let mut plans = SAMPLE.split("<!-- next -->");
        let mut found = Findings::default();
        found.add(plans.nth(statement).expect("a plan").trim(), "proof_1").expect("a plan");
        found
    }

    #[test]
    fn a_claim_by_seeks_has_no_fault() {
        let found = found(0);
        assert_eq!(found.faults, BTreeSet::new());
        assert_eq!(found.walks, BTreeSet::new());
        // 102 index rows for 100 claims, and 100 look-ups; the table variable is not counted.
        assert_eq!(found.rows_read, 202);
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let found = found(1);
        let faults: Vec<&str> = found.faults.iter().map(String::as_str).collect();
        assert_eq!(
            faults,
            [
                "IX_JobsHot_Id without FORCESEEK",
                "SpillToTempDb",
                "UnmatchedIndexes",
                "implicit conversion CONVERT_IMPLICIT(nvarchar(255),[h].[Queue],0)=[@queue]",
                "no join predicate",
                "parallel",
                "sort over locked rows",
            ]
        );
        assert_eq!(
            found.walks,
            BTreeSet::from(["IX_JobsHot_Fetch".to_owned(), "PK_JobsHot".to_owned()])
        );
        assert_eq!(found.rows_read, 5_000_000 + 20 + 7);
    }

    #[test]
    fn what_is_no_plan_is_told() {
        assert!(is_plan("<ShowPlanXML xmlns=\"x\">") && !is_plan("00000000-0000"));
        assert!(Findings::default().add("<ShowPlanXML", "s").is_err());
    }
}
