//! What connection strings mean, and what is refused.

use std::time::Duration;

use crate::storage::mssql::options::{Authentication, Encryption, MssqlOptions, Trust};

fn read(text: &str) -> MssqlOptions {
    MssqlOptions::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let error = MssqlOptions::parse(text).expect_err(text);
    assert!(error.is_config());
    error.to_string()
}

fn login(options: &MssqlOptions) -> (&str, &str) {
    match &options.authentication {
        Some(Authentication::Login { user, password }) => (user, &password.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_url_sets_every_option() {
    let options = read(
        "mssql://jobs:p%40ss%2F%3F%25@db.example.com:14330/shop%20floor?schema=ops&encrypt=strict&ca=%2Fetc%2Fca.pem\
         &application_name=billing&connect_timeout=3s&command_timeout=45&pool_wait=500ms&pool_size=3\
         &host_name_in_certificate=sql.internal",
    );
    assert_eq!((options.host.as_str(), options.port), ("db.example.com", 14330));
    assert_eq!(options.database, "shop floor");
    assert_eq!(login(&options), ("jobs", "p@ss/?%"));
    assert_eq!(options.schema.to_string(), "ops");
    assert_eq!(options.encryption, Encryption::Strict);
    assert_eq!(options.trust, Trust::Authority("/etc/ca.pem".into()));
    assert_eq!(options.certificate_host.as_deref(), Some("sql.internal"));
    assert_eq!(options.application_name, "billing");
    assert_eq!(options.connect_timeout, Duration::from_secs(3));
    assert_eq!(options.command_timeout, Duration::from_secs(45));
    assert_eq!(options.pool_wait, Duration::from_millis(500));
    assert_eq!(options.pool_size, 3);
}

#[test]
fn what_a_url_leaves_out_has_its_default() {
    let options = read("mssql://sa:x@db");
    assert_eq!((options.port, options.database.as_str()), (1433, ""));
    assert_eq!(options.schema.to_string(), "chokaq");
    assert_eq!((options.encryption, options.trust), (Encryption::Required, Trust::System));
    assert_eq!(
        (options.connect_timeout, options.command_timeout),
        (Duration::from_secs(5), Duration::from_secs(30))
    );
    assert_eq!((options.pool_wait, options.pool_size), (Duration::from_secs(10), 8));
    assert!(read("mssql://db/shop").authentication.is_none());
}

#[test]
fn addresses_and_instances_are_understood() {
    for (text, host, port) in [
        ("mssql://sa:x@[fe80::1%25eth0]:1444/d", "fe80::1%eth0", 1444),
        ("mssql://sa:x@[::1]/d", "::1", 1433),
        ("sqlserver://sa:x@db\\SALES:1444/d", "db", 1444),
        ("MSSQL://sa:a@b@db/d", "db", 1433),
        ("Server=.;User Id=sa", "localhost", 1433),
        ("Server=(local),1444;User Id=sa", "localhost", 1444),
        ("Data Source = tcp:db.example.com , 1444 ; uid=sa", "db.example.com", 1444),
        ("server=db\\SALES,1444;uid=sa", "db", 1444),
        ("jdbc:sqlserver://db\\SALES:1444;user=sa", "db", 1444),
        ("jdbc:sqlserver://;serverName=db;portNumber=1444;user=sa", "db", 1444),
        ("jdbc:sqlserver://[::1]:1444;user=sa", "::1", 1444),
    ] {
        let options = read(text);
        assert_eq!((options.host.as_str(), options.port), (host, port), "{text}");
    }
    for text in [
        "mssql://sa:x@db\\SALES/d",
        "Server=db\\SALES;uid=sa",
        "jdbc:sqlserver://db\\SALES;user=sa",
    ] {
        assert!(refused(text).contains("instance"), "{text}");
    }
    assert!(refused("Server=np:db;uid=sa").contains("np"));
}

#[test]
fn strings_copied_from_the_azure_portal_work() {
    let ado = read(
        "Server=tcp:shop.database.windows.net,1433;Initial Catalog=shop;Persist Security Info=False;User ID=jobs;\
         Password='p;w';MultipleActiveResultSets=False;Encrypt=True;TrustServerCertificate=False;Connection Timeout=30;",
    );
    let jdbc = read(
        "jdbc:sqlserver://shop.database.windows.net:1433;database=shop;user=jobs;password={p;w};encrypt=true;\
         trustServerCertificate=false;hostNameInCertificate=*.database.windows.net;loginTimeout=30;",
    );
    for options in [ado, jdbc] {
        assert_eq!(
            options.place().to_string(),
            "SQL Server shop.database.windows.net:1433, database \"shop\""
        );
        assert_eq!(login(&options), ("jobs", "p;w"));
        assert_eq!(options.connect_timeout, Duration::from_secs(30));
        assert_eq!(options.certificate_host, None);
    }
}

#[test]
fn an_error_names_the_part_at_fault() {
    for (text, part) in [
        ("mssql://", "host"),
        ("mssql://sa:x@/db", "host"),
        ("mssql://sa:x@db:0/d", "port"),
        ("mssql://sa:x@db:99999/d", "port"),
        ("mssql://sa:x@db/a/b", "database"),
        ("mssql://sa:x%zz@db/d", "password"),
        ("mssql://sa%2:x@db/d", "user"),
        ("mssql://sa:x%ff@db/d", "password"),
        ("mssql://sa:x@db/d?schema=a]b", "schema"),
        ("mssql://sa:x@db/d?encrypt=maybe", "encrypt"),
        ("mssql://sa:x@db/d?encript=true", "encript"),
        ("mssql://sa:x@db/d?pool_size=0", "pool_size"),
        ("mssql://sa:x@db/d?pool_size=many", "pool_size"),
        ("mssql://sa:x@db/d?connect_timeout=0", "connect_timeout"),
        ("mssql://sa:x@db/d?command_timeout=forever", "command_timeout"),
        ("mssql://sa:x@db/d?ca=a.pem&trust_server_certificate=yes", "ca"),
        ("mssql://sa:x@db/d?trust_server_certificate=maybe", "trust_server_certificate"),
        ("mssql://:x@db/d", "user"),
        ("mssql://sa:x@[::1/d", "host"),
        ("mssql://sa:x@[::1]x/d", "host"),
        ("mssql://sa:x@db/d?integrated_security=true", "integrated_security"),
        ("Server=db;Integrated Security=SSPI", "Integrated Security"),
        ("Server=db;Authentication=Active Directory Default", "Authentication"),
        ("Database=shop;uid=sa", "host"),
        ("postgres://sa:x@db/d", "mssql://"),
        ("mssql:db", "mssql://"),
        ("", "mssql://"),
    ] {
        assert!(refused(text).contains(part), "{text}: {}", refused(text));
    }
}

#[test]
fn no_error_and_no_debug_output_shows_a_password() {
    // A password that was not escaped falls apart at every separator; no piece of it may be shown.
    for piece in [
        "hunter2",
        "hunter2/HUNTER2",
        "hunter2?HUNTER2",
        "hunter2?HUNTER2=1",
        "hunter2&HUNTER2",
        "hunter2%HUNTER2",
        "hunter2#HUNTER2",
        "hunter2:HUNTER2",
        "hunter2@HUNTER2/",
    ] {
        for text in [
            format!("mssql://sa:{piece}@db:x/d"),
            format!("mssql://sa:{piece}@db/d?encrypt=maybe"),
            format!("mssql://sa:{piece}@db/d/e"),
            format!("mssql://sa:{piece}@[db/d"),
        ] {
            let error = refused(&text).to_ascii_lowercase();
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }
    for text in [
        "Server=db;User Id=sa;Password=hun;hunter2",
        "Server=db;User Id=sa;Password='hunter2",
        "Server=db;User Id=sa;Password=hun;hunter2=hunter2",
        "Server=db;User Id=sa;Password=hun;pass hunter2 word=",
        "mssql://db/d?user=sa&password=hun&hunter2=x",
        "jdbc:sqlserver://db;user=sa;password=hun;hunter2=x",
    ] {
        assert!(!refused(text).contains("hunter2"), "{text}: {}", refused(text));
    }
    assert!(!refused("Server=db;uid=sa;Password=hun;ter=x").contains("\"ter\""));
    for text in [
        "mssql://sa:hunter2@db/d",
        "Server=db;uid=sa;pwd=hunter2",
        "jdbc:sqlserver://db;user=sa;password=hunter2",
    ] {
        assert!(!format!("{:?}", read(text)).contains("hunter2"));
    }
}

#[test]
fn hostile_input_is_refused() {
    let long = "a".repeat(100_000);
    for text in [
        "mssql://sa:x@db\0/d".to_owned(),
        "mssql://sa:x@db/d\r\nGO".to_owned(),
        format!("mssql://sa:x@{long}/d"),
        format!("mssql://sa:{long}@db/d"),
        format!("mssql://{long}:x@db/d"),
        format!("mssql://sa:x@db/{long}"),
        format!("mssql://sa:x@db/d?schema={long}"),
        format!("mssql://sa:x@db/d?application_name={long}"),
        format!("mssql://sa:x@db/d?{long}=1"),
        "mssql://sa:x@db;DROP TABLE x/d".to_owned(),
        "mssql://sa:x@db/d?schema=chokaq%5D.x%3B--".to_owned(),
        "%%%%".to_owned(),
        "====".to_owned(),
    ] {
        refused(&text);
    }
    // The database's name is data: it goes into the login packet, never into a statement.
    assert_eq!(read("mssql://sa:x@db/d%5D%3B--").database, "d];--");
}
