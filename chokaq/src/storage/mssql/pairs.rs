//! `key=value;key=value`: the form that ADO.NET and JDBC strings share, with the quoting of each.
//!
//! Own code rather than the driver's: that one hides what it read (host, user and database are needed for messages),
//! takes no letter outside ASCII, not even in a password, and lets a misspelt key pass, `Encript=true` for one.

use std::{iter::Peekable, str::Chars};

/// Which quotes a value may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    /// `'..'` and `".."` with the quote doubled inside; `{..}` too.
    Ado,
    /// `{..}` with `}` doubled inside; quotes are letters.
    Jdbc,
}

/// The pairs in their order. The error names the key at fault and holds no value.
pub(super) fn read(text: &str, quoting: Quoting) -> Result<Vec<(String, String)>, String> {
    let mut rest = text.chars().peekable();
    let mut pairs = Vec::new();
    loop {
        while rest.next_if(|c| *c == ';' || c.is_whitespace()).is_some() {}
        if rest.peek().is_none() {
            return Ok(pairs);
        }
        let key = key(&mut rest, pairs.len())?;
        let value =
            value(&mut rest, quoting).map_err(|what| format!("the value of {key:?} {what}"))?;
        pairs.push((key, value));
    }
}

/// Up to the `=`. A part without one may be a piece of a password with a `;` in it: its place is named, not its text.
fn key(rest: &mut Peekable<Chars<'_>>, before: usize) -> Result<String, String> {
    let mut key = String::new();
    while let Some(c) = rest.next_if(|c| *c != ';') {
        if c != '=' {
            key.push(c);
            continue;
        }
        let key = key.trim();
        if key.is_empty() {
            return Err(format!("part {} has a value without a key", before + 1));
        }
        return Ok(key.to_owned());
    }
    Err(format!(
        "part {} has no `=`: the parts are `key=value`, joined by `;`, and a value with a `;` in it stands in quotes or braces",
        before + 1
    ))
}

fn value(rest: &mut Peekable<Chars<'_>>, quoting: Quoting) -> Result<String, &'static str> {
    while rest.next_if(|c| c.is_whitespace()).is_some() {}
    let end = match (rest.peek(), quoting) {
        (Some('{'), _) => '}',
        (Some(quote @ ('\'' | '"')), Quoting::Ado) => *quote,
        _ => {
            let mut value = String::new();
            while let Some(c) = rest.next_if(|c| *c != ';') {
                value.push(c);
            }
            return Ok(value.trim_end().to_owned());
        }
    };
    rest.next();
    let mut value = String::new();
    loop {
        match rest.next() {
            None => return Err("opens a quote or brace that nothing closes"),
            Some(c) if c != end => value.push(c),
            // Doubled, it is a letter of the value.
            Some(c) if rest.next_if_eq(&end).is_some() => value.push(c),
            Some(_) => break,
        }
    }
    while rest.next_if(|c| c.is_whitespace()).is_some() {}
    match rest.peek() {
        None | Some(';') => Ok(value),
        Some(_) => Err("goes on after its closing quote or brace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ado(text: &str) -> Vec<(String, String)> {
        read(text, Quoting::Ado).expect(text)
    }

    #[test]
    fn values_come_out_of_their_quotes() {
        for (text, value) in [
            ("Password='a;b''c\"d'", "a;b'c\"d"),
            ("Password=\"a=b;\"\"c\"", "a=b;\"c"),
            ("Password={a;b}", "a;b"),
            ("Password={a}}b}", "a}b"),
            ("Password=  plain = text  ", "plain = text"),
            ("Password=пароль🔑", "пароль🔑"),
            ("Password=", ""),
        ] {
            assert_eq!(ado(text), [("Password".to_owned(), value.to_owned())]);
        }
        let jdbc = read("password='x';user={a;}}b}", Quoting::Jdbc).expect("both");
        assert_eq!(jdbc[0].1, "'x'");
        assert_eq!(jdbc[1].1, "a;}b");
    }

    #[test]
    fn stray_separators_are_nothing() {
        assert_eq!(ado(";; a=1 ;; b=2;"), ado("a=1;b=2"));
        assert!(ado(" ; ").is_empty());
    }

    #[test]
    fn an_error_names_the_key_and_no_value() {
        for text in [
            "Password='hunter2",
            "Password={hunter2",
            "Password='hunter2'hunter2",
            "Password=x;hunter2",
            "=hunter2",
        ] {
            let error = read(text, Quoting::Ado).expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
