//! Every option of a connection string once: its names, and what it accepts.

use std::time::Duration;

use crate::storage::mssql::{
    options::{Authentication, Encryption, MssqlOptions, SchemaName, Secret, Trust},
    url,
    values::{duration, encryption, login_text, pool_size, program, yes_or_no},
};

/// Which form is read; messages say how a value is quoted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Url,
    Ado,
    Jdbc,
}

/// Options as far as they are read.
pub(super) struct Draft {
    form: Form,
    host: Option<String>,
    port: Option<u16>,
    pub(super) instance_without_port: bool,
    user: Option<String>,
    password: Option<String>,
    trusts_anyone: bool,
    authority: Option<String>,
    certificate_host: Option<String>,
    options: MssqlOptions,
    /// The part before was a password: this one may be a piece of it.
    after_password: bool,
}

/// What other drivers know and a job system does not need; taken so that a copied string works as it is.
const IGNORED: &[&str] = &[
    "applicationintent",
    "asynchronousprocessing",
    "authenticationscheme",
    "columnencryptionsetting",
    "connectretrycount",
    "connectretryinterval",
    "enlist",
    "loadbalancetimeout",
    "minpoolsize",
    "multipleactiveresultsets",
    "multisubnetfailover",
    "packetsize",
    "persistsecurityinfo",
    "pooling",
    "sendstringparametersasunicode",
    "workstationid",
    "wsid",
];

impl Draft {
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            host: None,
            port: None,
            instance_without_port: false,
            user: None,
            password: None,
            trusts_anyone: false,
            authority: None,
            certificate_host: None,
            options: MssqlOptions {
                host: String::new(),
                port: MssqlOptions::DEFAULT_PORT,
                database: String::new(),
                schema: SchemaName::new("chokaq").expect("a good name"),
                authentication: None,
                encryption: Encryption::Required,
                trust: Trust::System,
                certificate_host: None,
                application_name: "chokaq".to_owned(),
                connect_timeout: Duration::from_secs(5),
                command_timeout: Duration::from_secs(30),
                pool_wait: Duration::from_secs(10),
                pool_size: 8,
                rewrite: None,
            },
            after_password: false,
        }
    }

    /// Sets what `key` names, however it is spelled: `pool_size`, `Pool Size`, `poolSize`.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let name: String = key.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).collect();
        let name = name.to_ascii_lowercase();
        let after_password =
            std::mem::replace(&mut self.after_password, matches!(&*name, "password" | "pwd"));
        let options = &mut self.options;
        let bad = |what: String| format!("has a bad {key:?}: {what}");
        match &*name {
            "server" | "servername" | "datasource" | "address" | "addr" | "networkaddress" => {
                return self.set_address(value);
            }
            "port" | "portnumber" => {
                let port = value.trim().parse().ok().filter(|port| *port > 0);
                self.port = Some(port.ok_or("has a port that is not a number from 1 to 65535")?);
            }
            "database" | "databasename" | "initialcatalog" => {
                options.database = login_text(value, "database")?;
            }
            "user" | "userid" | "uid" | "username" => self.user = Some(login_text(value, "user")?),
            "password" | "pwd" => self.password = Some(login_text(value, "password")?),
            "encrypt" => options.encryption = encryption(value).map_err(bad)?,
            "trustservercertificate" => self.trusts_anyone = yes_or_no(value).map_err(bad)?,
            "ca" | "trustservercertificateca" | "servercertificate" => {
                self.authority = Some(value.to_owned());
            }
            "hostnameincertificate" => self.certificate_host = Some(value.to_owned()),
            "applicationname" | "app" => options.application_name = program(value).map_err(bad)?,
            "schema" => options.schema = SchemaName::new(value).map_err(|e| bad(e.to_string()))?,
            "connecttimeout" | "connectiontimeout" | "logintimeout" | "timeout" => {
                options.connect_timeout = duration(value).map_err(bad)?;
            }
            "commandtimeout" | "querytimeout" => {
                options.command_timeout = duration(value).map_err(bad)?;
            }
            "poolwait" => options.pool_wait = duration(value).map_err(bad)?,
            "poolsize" | "maxpoolsize" => options.pool_size = pool_size(value).map_err(bad)?,
            "integratedsecurity" | "trustedconnection" if yes_or_no(value) != Ok(false) => {
                return Err(format!(
                    "asks for {key:?}, which chokaq cannot do: name a SQL login, or give access tokens"
                ));
            }
            "authentication"
                if !matches!(
                    &*value.to_ascii_lowercase(),
                    "sqlpassword" | "sql password" | "notspecified"
                ) =>
            {
                return Err(format!(
                    "asks for {key:?} other than SqlPassword: give access tokens in code instead"
                ));
            }
            "integratedsecurity" | "trustedconnection" | "authentication" => {}
            name if IGNORED.contains(&name) => {}
            _ => return Err(self.unknown((!after_password).then_some(key))),
        }
        Ok(())
    }

    /// ADO.NET's `tcp:host\instance,port`; JDBC's `serverName` may hold an instance, but no port.
    fn set_address(&mut self, value: &str) -> Result<(), String> {
        let value = value.trim();
        let (protocol, address) = value.split_once(':').unwrap_or(("", value));
        match (self.form, &*protocol.to_ascii_lowercase()) {
            (Form::Ado, "tcp") => url::set_server(self, address.trim(), ','),
            (Form::Ado, "np" | "lpc" | "admin") => {
                Err(format!("asks for the protocol {protocol:?}: chokaq speaks TCP only"))
            }
            _ => url::set_server(self, value, ','),
        }
    }

    pub(super) fn set_host(&mut self, host: &str) -> Result<(), String> {
        let host = match host.trim() {
            "." | "(local)" => "localhost",
            host => host,
        };
        if host.is_empty() {
            return Err("names no host".to_owned());
        }
        // `%` and `:` for IPv6 addresses with a zone.
        let good = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.len() > 255 || !host.chars().all(good) {
            return Err(
                "has a host that is neither a name nor an address (a password with an `@`, `/`, `?` or `:` is percent-encoded)"
                    .to_owned(),
            );
        }
        self.host = Some(host.to_owned());
        Ok(())
    }

    pub(super) fn finish(self) -> Result<MssqlOptions, String> {
        let mut options = self.options;
        options.host = self.host.ok_or("names no host")?;
        if self.instance_without_port && self.port.is_none() {
            return Err("names an instance and no port: give the instance's port, chokaq does not ask the SQL Server Browser".to_owned());
        }
        options.port = self.port.unwrap_or(options.port);
        options.trust = match (self.authority, self.trusts_anyone) {
            (Some(_), true) => {
                return Err("has both a `ca` and `trust_server_certificate`: a certificate is checked or it is not".to_owned());
            }
            (Some(path), false) => Trust::Authority(path),
            (None, true) => Trust::Anyone,
            (None, false) => Trust::System,
        };
        // `*.database.windows.net`, as the Azure portal writes it, is what the host's own name is checked against.
        options.certificate_host = self.certificate_host.filter(|name| !name.starts_with('*'));
        options.authentication = match (self.user, self.password) {
            (Some(user), password) if !user.is_empty() => {
                Some(Authentication::Login { user, password: Secret(password.unwrap_or_default()) })
            }
            (_, Some(password)) if !password.is_empty() => {
                return Err("has a password and no user".to_owned());
            }
            _ => None,
        };
        Ok(options)
    }

    /// A key that looks like a name is shown; anything else may be a piece of a password.
    fn unknown(&self, key: Option<&str>) -> String {
        let is_name = |key: &&str| {
            key.len() <= 40
                && key.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '_' | '-'))
        };
        let shown = key.filter(is_name).map(|key| format!(" {key:?}")).unwrap_or_default();
        let hint = match self.form {
            Form::Url => "a password with an `&`, `/` or `?` is percent-encoded",
            Form::Ado => "a password with a `;` stands in quotes",
            Form::Jdbc => "a password with a `;` stands in braces",
        };
        format!("has an option{shown} that chokaq does not know ({hint})")
    }
}
