//! A T-SQL text as tokens, without comments: strings, brackets and comments cannot be mistaken for anything else.

use std::{fmt::Write as _, ops::Range};

use sqlparser::{
    dialect::MsSqlDialect,
    tokenizer::{Token as Raw, Tokenizer, Whitespace},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, a name or a variable.
    Word,
    /// A name in brackets, without them.
    Bracketed,
    Number,
    /// A string, without its quotes.
    Text,
    Symbol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// How many parentheses are open around it; a parenthesis counts itself out.
    pub(crate) depth: usize,
    pub(crate) line: u64,
    /// Its bytes in the file.
    pub(crate) place: Range<usize>,
    /// The block comment right before it.
    pub(crate) comment: Option<String>,
}

impl Token {
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Symbol) && self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(crate) fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Bracketed)
    }

    /// `@x`, but not `@@x`.
    pub(crate) fn is_variable(&self) -> bool {
        self.kind == Kind::Word && self.text.starts_with('@') && !self.text.starts_with("@@")
    }
}

fn kind_and_text(raw: &Raw) -> (Kind, String) {
    match raw {
        Raw::Word(word) if word.quote_style.is_some() => (Kind::Bracketed, word.value.clone()),
        Raw::Word(word) => (Kind::Word, word.value.clone()),
        Raw::Number(number, _) => (Kind::Number, number.clone()),
        Raw::SingleQuotedString(text) | Raw::NationalStringLiteral(text) => {
            (Kind::Text, text.clone())
        }
        other => (Kind::Symbol, other.to_string()),
    }
}

/// Where each line begins, in bytes.
fn line_starts(text: &str) -> Vec<usize> {
    let after = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(after).collect()
}

fn byte_of(text: &str, starts: &[usize], line: u64, column: u64) -> usize {
    let line = usize::try_from(line).expect("a line number is small") - 1;
    let column = usize::try_from(column).expect("a column is small") - 1;
    let Some(start) = starts.get(line) else { return text.len() };
    let mut characters = text[*start..].char_indices();
    characters.nth(column).map_or(text.len(), |(at, _)| start + at)
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let raw = Tokenizer::new(&MsSqlDialect {}, text).tokenize_with_location();
    let starts = line_starts(text);
    let (mut found, mut depth, mut comment) = (Vec::<Token>::new(), 0_usize, None);
    for raw in raw.unwrap_or_else(|e| panic!("{e} in {text}")) {
        if let Raw::Whitespace(space) = &raw.token {
            if let Whitespace::MultiLineComment(said) = space {
                comment = Some(said.trim().to_owned());
            }
            continue;
        }
        let (kind, text_of) = kind_and_text(&raw.token);
        if kind == Kind::Symbol && text_of == ")" {
            depth = depth.saturating_sub(1);
        }
        let (from, to) = (raw.span.start, raw.span.end);
        let place = byte_of(text, &starts, from.line, from.column)
            ..byte_of(text, &starts, to.line, to.column);
        let opens = kind == Kind::Symbol && text_of == "(";
        let comment = comment.take();
        found.push(Token { kind, text: text_of, depth, line: from.line, place, comment });
        depth += usize::from(opens);
    }
    found
}

/// Whether the tokens are those of a text.
pub(crate) fn are(found: &[Token], text: &str) -> bool {
    let wanted = tokens(text);
    found.len() == wanted.len()
        && found.iter().zip(&wanted).all(|(a, b)| a.kind == b.kind && a.text == b.text)
}

/// The place of the parenthesis that closes the one at `open`, or the last token.
pub(crate) fn close_of(tokens: &[Token], open: usize) -> usize {
    let depth = tokens[open].depth;
    let after = tokens[open + 1..].iter().position(|token| token.depth == depth && token.is(")"));
    after.map_or(tokens.len() - 1, |at| open + 1 + at)
}

/// The ranges between the places where `word` stands at `depth`.
pub(crate) fn split(
    tokens: &[Token],
    range: Range<usize>,
    depth: usize,
    word: &str,
) -> Vec<Range<usize>> {
    let (mut parts, mut start) = (Vec::new(), range.start);
    for at in range.clone() {
        if tokens[at].depth == depth && tokens[at].is(word) {
            parts.push(start..at);
            start = at + 1;
        }
    }
    parts.push(start..range.end);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The tokens as a person writes them, on one line.
pub(crate) fn render(tokens: &[Token]) -> String {
    let mut line = String::new();
    for (n, token) in tokens.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| &tokens[n]);
        let is_call = token.is("(") && before.is_some_and(|t| t.is_name() && !is_keyword(t));
        let is_tight = token.is_any(&[".", ",", ")", ";"])
            || is_call
            || before.is_none_or(|token| token.is_any(&[".", "("]));
        if !is_tight {
            line.push(' ');
        }
        let written = match token.kind {
            Kind::Bracketed => write!(line, "[{}]", token.text),
            Kind::Text => write!(line, "'{}'", token.text),
            _ => write!(line, "{}", token.text),
        };
        written.expect("a string can be written to");
    }
    line
}

fn is_keyword(token: &Token) -> bool {
    token.is_any(&[
        "AND", "AS", "EXISTS", "FROM", "IN", "INTO", "NOT", "ON", "OPTION", "OR", "SELECT",
        "TABLE", "THEN", "TOP", "VALUES", "WHEN", "WHERE", "WITH",
    ])
}

#[test]
fn a_text_becomes_tokens() {
    let text = "-- a; b\nSELECT /* tag; */ N'it''s; -- x' AS [key], @n, @@ROWCOUNT\nFROM (t) WHERE a <= 1;";
    let found = tokens(text);
    let texts: Vec<_> = found.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(texts[..6], ["SELECT", "it's; -- x", "AS", "key", ",", "@n"]);
    assert_eq!(
        texts[6..],
        [",", "@@ROWCOUNT", "FROM", "(", "t", ")", "WHERE", "a", "<=", "1", ";"]
    );
    assert_eq!(found[1].comment.as_deref(), Some("tag;"));
    assert_eq!(found[10].depth, 1);
    assert!(found[5].is_variable() && !found[7].is_variable());
    assert_eq!(&text[found[8].place.clone()], "FROM");
    assert_eq!(found[8].line, 3);
    assert_eq!(render(&found[8..16]), "FROM (t) WHERE a <= 1");
}
