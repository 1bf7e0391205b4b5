//! A text as statements under IF, WHILE and BEGIN, and what is run before what.

use crate::tokens::{Token, render, tokens};

/// One statement, without the `;` that ends it.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) tokens: Vec<Token>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Statement(Statement),
    /// `IF condition then ELSE otherwise`.
    If {
        condition: Statement,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    While {
        condition: Statement,
        body: Vec<Node>,
    },
}

/// What a statement begins with, and so what a condition ends before.
const STARTERS: [&str; 26] = [
    "ALTER",
    "BEGIN",
    "BREAK",
    "COMMIT",
    "CONTINUE",
    "CREATE",
    "DECLARE",
    "DELETE",
    "DROP",
    "EXEC",
    "EXECUTE",
    "GOTO",
    "INSERT",
    "MERGE",
    "PRINT",
    "RAISERROR",
    "RETURN",
    "ROLLBACK",
    "SAVE",
    "SELECT",
    "SET",
    "THROW",
    "TRUNCATE",
    "UPDATE",
    "WAITFOR",
    "WITH",
];

impl Statement {
    pub(crate) fn line(&self) -> u64 {
        self.tokens.first().map_or(0, |token| token.line)
    }

    /// Whether it begins with these words.
    pub(crate) fn starts(&self, words: &[&str]) -> bool {
        self.tokens.len() >= words.len()
            && self.tokens.iter().zip(words).all(|(token, word)| token.is(word))
    }

    /// The name in its `/* chokaq:name */`.
    pub(crate) fn tag(&self) -> Option<&str> {
        let mut comments = self.tokens.iter().filter_map(|token| token.comment.as_deref());
        comments.find_map(|comment| comment.strip_prefix("chokaq:"))
    }
}

/// The text as a tree.
pub(crate) fn flow(text: &str) -> Vec<Node> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let nodes = parser.many();
    assert_eq!(parser.at, tokens.len(), "an END without its BEGIN");
    nodes
}

/// Every statement and condition, in the order of the text.
pub(crate) fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    collect(flow(text), &mut found);
    found
}

fn collect(nodes: Vec<Node>, found: &mut Vec<Statement>) {
    for node in nodes {
        match node {
            Node::Statement(statement) => found.push(statement),
            Node::If { condition, then, otherwise } => {
                found.push(condition);
                collect(then, found);
                collect(otherwise, found);
            }
            Node::While { condition, body } => {
                found.push(condition);
                collect(body, found);
            }
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn is(&self, word: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is(word))
    }

    fn next_is(&self, words: &[&str]) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| token.is_any(words))
    }

    fn skip_semicolons(&mut self) {
        while self.is(";") || self.is("GO") {
            self.at += 1;
        }
    }

    /// Up to the END that closes them, or the end of the text.
    fn many(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.skip_semicolons();
        while self.at < self.tokens.len() && !self.is("END") {
            self.one(&mut nodes);
            self.skip_semicolons();
        }
        nodes
    }

    fn one(&mut self, nodes: &mut Vec<Node>) {
        if self.is("IF") {
            let condition = self.condition();
            let (mut then, mut otherwise) = (Vec::new(), Vec::new());
            self.one(&mut then);
            self.skip_semicolons();
            if self.is("ELSE") {
                self.at += 1;
                self.one(&mut otherwise);
            }
            nodes.push(Node::If { condition, then, otherwise });
        } else if self.is("WHILE") {
            let condition = self.condition();
            let mut body = Vec::new();
            self.one(&mut body);
            nodes.push(Node::While { condition, body });
        } else if self.is("BEGIN") && !self.next_is(&["TRAN", "TRANSACTION"]) {
            self.at += 1;
            if self.is("TRY") || self.is("CATCH") {
                self.at += 1;
            }
            nodes.append(&mut self.many());
            assert!(self.is("END"), "a BEGIN without its END");
            self.at += 1;
            if self.is("TRY") || self.is("CATCH") {
                self.at += 1;
            }
        } else {
            nodes.push(Node::Statement(self.statement()));
        }
    }

    /// IF or WHILE, up to the statement under it.
    fn condition(&mut self) -> Statement {
        let start = self.at;
        self.at += 1;
        let is_end = |token: &Token| token.depth == 0 && token.is_any(&STARTERS);
        while self.at < self.tokens.len() && !is_end(&self.tokens[self.at]) && !self.is("IF") {
            self.at += 1;
        }
        Statement { tokens: self.tokens[start..self.at].to_vec() }
    }

    /// Up to its `;`, or to an ELSE or END that is no CASE's. A procedure's head ends at its AS.
    fn statement(&mut self) -> Statement {
        let (start, mut cases) = (self.at, 0_usize);
        let is_procedure = self.is("CREATE") && self.procedure_follows();
        while self.at < self.tokens.len() {
            let token = &self.tokens[self.at];
            if token.is("CASE") {
                cases += 1;
            } else if token.is("END") && cases > 0 {
                cases -= 1;
            } else if cases == 0
                && (token.is(";") || (self.at > start && token.is_any(&["END", "ELSE"])))
            {
                break;
            } else if is_procedure && token.depth == 0 && token.is("AS") {
                self.at += 1;
                break;
            }
            self.at += 1;
        }
        Statement { tokens: self.tokens[start..self.at].to_vec() }
    }

    fn procedure_follows(&self) -> bool {
        let head = &self.tokens[self.at..self.tokens.len().min(self.at + 4)];
        head.iter().any(|token| token.is_any(&["PROCEDURE", "PROC"]))
    }
}

fn rendered(text: &str) -> Vec<String> {
    statements(text).iter().map(|statement| render(&statement.tokens)).collect()
}

#[test]
fn statements_are_split_under_their_conditions() {
    let text = "SET @a = CASE WHEN @b = 1 THEN 2 ELSE 3 END;\nIF @a > 0\n UPDATE t SET x = 1;\nELSE IF @a = 0\nBEGIN\n SELECT 1;\nEND\nWHILE @a < 3 SET @a = @a + 1;\nBEGIN TRANSACTION;\nCOMMIT TRANSACTION;";
    assert_eq!(
        rendered(text),
        [
            "SET @a = CASE WHEN @b = 1 THEN 2 ELSE 3 END",
            "IF @a > 0",
            "UPDATE t SET x = 1",
            "IF @a = 0",
            "SELECT 1",
            "WHILE @a < 3",
            "SET @a = @a + 1",
            "BEGIN TRANSACTION",
            "COMMIT TRANSACTION",
        ]
    );
}

#[test]
fn a_procedure_is_its_head_and_its_body() {
    let text = "CREATE OR ALTER PROCEDURE [c].P @a int, @b bit = 0 AS\nBEGIN\nSET NOCOUNT ON;\nSELECT 1 AS One;\nEND";
    let found = rendered(text);
    assert_eq!(found[0], "CREATE OR ALTER PROCEDURE [c].P @a int, @b bit = 0 AS");
    assert_eq!(found[1..], ["SET NOCOUNT ON", "SELECT 1 AS One"]);
}
