//! The three forms of a connection string: a URL, ADO.NET's and JDBC's.
//!
//! Messages name the part at fault. They quote nothing that may be a piece of a password, which is anything where the
//! form is broken: an unescaped `/` or `;` in a password makes a port or a key of its rest.

use crate::{
    Error, Result,
    storage::mssql::{
        keys::{Draft, Form},
        options::MssqlOptions,
        pairs::{self, Quoting},
    },
};

impl MssqlOptions {
    /// Reads `mssql://user:password@host:port/database?option=value`, an ADO.NET or a JDBC connection string. All
    /// three know the same options.
    ///
    /// # Errors
    /// A part that is missing or cannot be used: the message names it and shows no password.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(Error::config(
                "the database URL has a control character or a line break in it",
            ));
        }
        let draft = if let Some(rest) = strip(text, "jdbc:sqlserver://") {
            jdbc(rest)
        } else if let Some(rest) = strip(text, "mssql://").or_else(|| strip(text, "sqlserver://")) {
            url(rest)
        } else if text.contains('=') && !text.contains("://") {
            ado(text)
        } else {
            Err("begins with none of `mssql://`, `jdbc:sqlserver://` and `Server=`".to_owned())
        };
        let options = draft.and_then(Draft::finish);
        options.map_err(|problem| Error::config(format!("the SQL Server URL {problem}")))
    }
}

fn strip<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let start = text.get(..scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
}

fn url(rest: &str) -> Result<Draft, String> {
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if rest.contains('@') {
        return Err(
            "has an `@` after its host: in the user and the password write `/` as %2F and `?` as %3F, elsewhere `@` as %40"
                .to_owned(),
        );
    }
    let mut draft = Draft::new(Form::Url);
    let server = match authority.rsplit_once('@') {
        None => authority,
        Some((login, server)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            draft.set("user", &decode(user, "user")?)?;
            draft.set("password", &decode(password, "password")?)?;
            server
        }
    };
    set_server(&mut draft, &decode(server, "host")?, ':')?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let database = path.strip_prefix('/').unwrap_or(path);
    if database.contains('/') {
        return Err(
            "has a `/` after its database: what follows the database begins with `?`".to_owned()
        );
    }
    if !database.is_empty() {
        draft.set("database", &decode(database, "database")?)?;
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            "has an option without `=`: options are `name=value`, joined by `&`".to_owned()
        })?;
        let key = decode(key, "option's name")?;
        draft.set(&key, &decode(value, &format!("option {key:?}"))?)?;
    }
    Ok(draft)
}

fn jdbc(rest: &str) -> Result<Draft, String> {
    let (server, properties) = rest.split_once(';').unwrap_or((rest, ""));
    let mut draft = Draft::new(Form::Jdbc);
    if !server.is_empty() {
        set_server(&mut draft, server, ':')?;
    }
    set_all(draft, properties, Quoting::Jdbc)
}

fn ado(text: &str) -> Result<Draft, String> {
    set_all(Draft::new(Form::Ado), text, Quoting::Ado)
}

fn set_all(mut draft: Draft, text: &str, quoting: Quoting) -> Result<Draft, String> {
    let pairs =
        pairs::read(text, quoting).map_err(|problem| format!("cannot be read: {problem}"))?;
    for (key, value) in pairs {
        draft.set(&key, &value)?;
    }
    Ok(draft)
}

/// `host`, `host:port`, `[::1]:port`, and a named instance in front of the port.
pub(super) fn set_server(draft: &mut Draft, text: &str, before_port: char) -> Result<(), String> {
    let (host, after) = match text.strip_prefix('[') {
        Some(rest) => {
            rest.split_once(']').ok_or("has a host that begins with `[` and has no `]`")?
        }
        None => text.split_at(text.find(before_port).unwrap_or(text.len())),
    };
    let (host, instance) = host.split_once('\\').map_or((host, None), |(h, i)| (h, Some(i)));
    draft.set_host(host)?;
    match (after.trim().strip_prefix(before_port), instance) {
        (Some(port), _) => draft.set("port", port),
        (None, _) if !after.trim().is_empty() => {
            Err("has something after its host that is not a port".to_owned())
        }
        (None, None) => Ok(()),
        (None, Some(_)) => {
            draft.instance_without_port = true;
            Ok(())
        }
    }
}

/// Percent-decoding; `+` is a plus.
fn decode(text: &str, part: &str) -> Result<String, String> {
    let broken = || {
        format!("has a {part} with a `%` that no two hexadecimal digits follow: write a `%` as %25")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(broken)?;
        let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let (high, low) =
            (digit(digits[0]).ok_or_else(broken)?, digit(digits[1]).ok_or_else(broken)?);
        bytes.push(high << 4 | low);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| format!("has a {part} whose escapes are not UTF-8"))
}
