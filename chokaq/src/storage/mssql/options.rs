//! What a connection needs to know, and what of it may be printed.

use std::{fmt, sync::Arc, time::Duration};

use tiberius::{AuthMethod, Config, EncryptionLevel};

use crate::{
    Error, Result,
    storage::mssql::{access_token::AccessTokens, session::Role},
};

/// A server, a database and a schema in it, how to log in, and how long to wait.
///
/// `Debug` and messages hold no password and no token.
#[derive(Debug, Clone)]
pub struct MssqlOptions {
    pub(super) host: String,
    pub(super) port: u16,
    /// Empty: the login's default database.
    pub(super) database: String,
    pub(super) schema: SchemaName,
    /// `None`: neither a login nor a source of tokens was given.
    pub(super) authentication: Option<Authentication>,
    pub(super) encryption: Encryption,
    pub(super) trust: Trust,
    /// The name to look for in the certificate, where it is not the host's.
    pub(super) certificate_host: Option<String>,
    pub(super) application_name: String,
    pub(super) connect_timeout: Duration,
    pub(super) command_timeout: Duration,
    pub(super) pool_wait: Duration,
    pub(super) pool_size: usize,
    pub(super) rewrite: Option<Rewrite>,
}

/// For tests on engines that are nearly SQL Server: a statement's name and text, and the text to send instead.
type Rewrite = fn(&str, &str) -> String;

/// Who logs in.
#[derive(Debug, Clone)]
pub(super) enum Authentication {
    Login {
        user: String,
        password: Secret,
    },
    /// Microsoft Entra ID (Azure AD).
    AccessTokens(AccessTokens),
}

/// What is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Everything, or there is no connection.
    Required,
    /// Everything, from the first byte on (TDS 8.0).
    Strict,
    /// The login only, as `Encrypt=false` of other drivers.
    LoginOnly,
    /// Nothing at all, the password neither.
    Plaintext,
}

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Those that the operating system trusts.
    System,
    /// Also those that this file's authority signed.
    Authority(String),
    /// Any.
    Anyone,
}

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The schema that holds the tables: letters, digits and `_`, so that no quoting can be broken out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(Arc<str>);

impl SchemaName {
    /// Checks a name.
    ///
    /// # Errors
    /// It is empty, longer than 128 characters, or has another character than letters, digits and `_`.
    pub fn new(name: &str) -> Result<Self> {
        let fits = (1..=128).contains(&name.len());
        if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Ok(Self(name.into()));
        }
        Err(Error::config(format!(
            "the schema {name:?} cannot be used: a schema's name is 1 to 128 of the letters a to z, digits and `_`"
        )))
    }

    /// The name as it stands in a statement.
    pub(super) fn quoted(&self) -> String {
        format!("[{}]", self.0)
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A server and a database, as messages name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, database } = self;
        if host.contains(':') {
            write!(f, "SQL Server [{host}]:{port}")?;
        } else {
            write!(f, "SQL Server {host}:{port}")?;
        }
        if database.is_empty() { Ok(()) } else { write!(f, ", database {database:?}") }
    }
}

impl MssqlOptions {
    pub(super) const DEFAULT_PORT: u16 = 1433;

    /// Logs in with access tokens of Microsoft Entra ID instead of a password. The source is asked for every new
    /// connection, so it may renew what is about to expire.
    #[must_use]
    pub fn with_access_tokens(mut self, tokens: AccessTokens) -> Self {
        self.authentication = Some(Authentication::AccessTokens(tokens));
        self
    }

    /// The server and the database, for messages and logs.
    pub fn describe(&self) -> String {
        self.place().to_string()
    }

    /// Sends other texts than the statements'; for tests on engines that are nearly SQL Server.
    #[doc(hidden)]
    #[must_use]
    pub fn with_rewrite(mut self, rewrite: Rewrite) -> Self {
        self.rewrite = Some(rewrite);
        self
    }

    /// Checks that there is a way to log in.
    ///
    /// # Errors
    /// Neither a user nor a source of access tokens was given.
    pub fn check_login(&self) -> Result<()> {
        match self.authentication {
            Some(_) => Ok(()),
            None => Err(Error::config(
                "the SQL Server URL names no user: write `mssql://user:password@...`, or give a source of access tokens",
            )),
        }
    }

    /// The schema that holds the tables.
    pub fn schema(&self) -> &SchemaName {
        &self.schema
    }

    pub(super) fn place(&self) -> Place {
        let Self { host, port, database, .. } = self;
        Place { host: host.clone(), port: *port, database: database.clone() }
    }

    /// The name that the server shows for the session; at most 128 characters, checked where it is read.
    pub(super) fn program_name(&self, role: Role) -> String {
        format!("{} {}", self.application_name, role.name())
    }

    /// What the driver is told, for a connection to `host`, which a redirection may have changed.
    pub(super) fn driver_config(
        &self,
        host: &str,
        port: u16,
        role: Role,
        auth: AuthMethod,
    ) -> Config {
        let mut config = Config::new();
        config.host(host);
        config.port(port);
        if !self.database.is_empty() {
            config.database(&self.database);
        }
        config.authentication(auth);
        config.application_name(self.program_name(role));
        config.encryption(match self.encryption {
            Encryption::Required => EncryptionLevel::Required,
            Encryption::Strict => EncryptionLevel::Strict,
            Encryption::LoginOnly => EncryptionLevel::Off,
            Encryption::Plaintext => EncryptionLevel::NotSupported,
        });
        match &self.trust {
            Trust::System => {}
            Trust::Authority(path) => config.trust_cert_ca(path),
            Trust::Anyone => config.trust_cert(),
        }
        if let Some(name) = &self.certificate_host {
            config.hostname_in_certificate(name);
        }
        // The driver's limits count from token to token; ours hold a whole connection or call.
        config.handshake_timeout(None);
        config.command_timeout(None);
        // A lone surrogate, which SQL Server stores without complaint, must not make a whole batch unreadable.
        config.lossy_utf16_decoding(true);
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_could_leave_its_brackets_is_refused() {
        for bad in ["", "a]b", "a.b", "a b", "a'b", "[a]", "a;drop", "schéma", &"a".repeat(129)] {
            let error = SchemaName::new(bad).expect_err(bad);
            assert!(error.is_config() && error.to_string().contains("schema"), "{error}");
        }
        assert_eq!(SchemaName::new("chokaq_2").expect("a good name").quoted(), "[chokaq_2]");
    }

    #[test]
    fn a_place_names_server_port_and_database() {
        let place = |host: &str| Place { host: host.into(), port: 1433, database: "shop".into() };
        assert_eq!(place("db").to_string(), "SQL Server db:1433, database \"shop\"");
        assert_eq!(place("::1").to_string(), "SQL Server [::1]:1433, database \"shop\"");
    }
}
