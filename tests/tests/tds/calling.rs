//! What a call is on the wire.

use chokaq::{
    JobId, Timestamp,
    storage::mssql::{Call, Class, Role, Statement, Value},
};
use uuid::Uuid;

use crate::{
    connected,
    requests::{Form, Sent, Wire},
    server::{Script, Server},
};

static EVERY_TYPE: Statement = Statement::new(
    "every_type",
    "-- Intent: each type once.\n\
     -- @int int\n-- @bigint bigint\n-- @bit bit\n-- @float float\n-- @id uniqueidentifier\n\
     -- @at datetime2(3)\n-- @name nvarchar(255)\n-- @payload nvarchar(max), JSON\n\
     -- Twin: none.\n\
     SELECT @int FROM chokaq.JobsHot;\n",
);

static NULLS: Statement = Statement::new(
    "nulls",
    "-- @a int\n-- @b bigint\n-- @c bit\n-- @d float\n-- @e uniqueidentifier\n-- @f nvarchar(255)\n\
     -- @g nvarchar(max)\n-- @h datetime2(3)\n\
     SELECT @a;",
);

fn every_type() -> Call {
    Call::new(&EVERY_TYPE)
        .bind("payload", "{}")
        .bind("int", -7)
        .bind("bigint", i64::MAX)
        .bind("bit", true)
        .bind("float", 0.5)
        .bind("id", Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff))
        .bind("at", Timestamp::from_unix_ms(86_400_250))
        .bind("name", "Zoë 🔑")
}

/// The only statement that the server got.
fn procedure(server: &Server) -> (String, String, Vec<Sent>) {
    let mut statements = server.statements();
    assert_eq!(statements.len(), 1);
    let request = statements.remove(0);
    match request.form {
        Form::Procedure { name, leading_names, declarations, values } => {
            assert_eq!(name, "sp_executesql");
            assert!(leading_names.iter().all(String::is_empty), "the first two go by their place");
            (request.sql, declarations.unwrap_or_default(), values)
        }
        Form::Batch => panic!("a procedure call was expected"),
    }
}

#[tokio::test]
async fn the_declarations_on_the_wire_are_those_of_the_file() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "schema=ops").await;
    connections.run(Role::Worker, &every_type()).await.expect("the script lets it pass");
    let (sql, declarations, values) = procedure(&server);
    assert_eq!(sql, "/* chokaq:every_type */\nSELECT @int FROM [ops].JobsHot;");
    assert_eq!(
        declarations,
        "@int int, @bigint bigint, @bit bit, @float float, @id uniqueidentifier, @at datetime2(3), @name nvarchar(255), \
         @payload nvarchar(max)"
    );
    let sent: Vec<_> = values.iter().map(|sent| (&*sent.name, &sent.value)).collect();
    // The first three groups of a uniqueidentifier are little-endian.
    let guid = [
        0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ];
    assert_eq!(
        sent,
        [
            ("@int", &Wire::Int(-7)),
            ("@bigint", &Wire::Int(i64::MAX)),
            ("@bit", &Wire::Int(1)),
            ("@float", &Wire::Float(0.5)),
            ("@id", &Wire::Guid(guid)),
            ("@at", &Wire::DateTime2 { days: 719_163, increments: 250 }),
            ("@name", &Wire::Text("Zoë 🔑".to_owned())),
            ("@payload", &Wire::Text("{}".to_owned())),
        ]
    );
    assert_eq!(values[5].wire_type, "datetime2(3)");
}

#[tokio::test]
async fn the_length_of_a_value_changes_nothing_that_a_plan_is_kept_by() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "").await;
    for payload in ["", "x", &"x".repeat(4_000), &"🔑".repeat(2_001), &"é".repeat(500_000)] {
        let call = Call::new(&EVERY_TYPE);
        let nulls = ["int", "bigint", "bit", "float", "id", "at", "name"];
        let values: [Value; 7] = [
            Value::Int(None),
            Value::BigInt(None),
            Value::Bit(None),
            Value::Float(None),
            Value::Uuid(None),
            Value::Time(None),
            Value::Text(None),
        ];
        let call =
            nulls.into_iter().zip(values).fold(call, |call, (name, null)| call.bind(name, null));
        connections
            .run(Role::Worker, &call.bind("payload", payload))
            .await
            .expect("the script lets it pass");
    }
    let statements = server.statements();
    assert_eq!(statements.len(), 5);
    for (request, length) in statements.iter().zip([0, 1, 4_000, 2_001, 500_000]) {
        let Form::Procedure { declarations, values, .. } = &request.form else {
            panic!("a procedure call")
        };
        assert_eq!(request.sql, statements[0].sql);
        assert!(
            declarations
                .as_deref()
                .is_some_and(|all| all.ends_with("@name nvarchar(255), @payload nvarchar(max)"))
        );
        assert!(values[..7].iter().all(|sent| sent.value == Wire::Null));
        let Wire::Text(payload) = &values[7].value else { panic!("a text") };
        assert_eq!(payload.chars().count(), length);
    }
}

#[tokio::test]
async fn a_null_has_a_type_that_converts_to_its_declaration() {
    let server = Server::start(Script::always(vec![])).await;
    let call = Call::new(&NULLS)
        .bind("a", None::<i32>)
        .bind("b", None::<i64>)
        .bind("c", None::<bool>)
        .bind("d", None::<f64>)
        .bind("e", None::<JobId>)
        .bind("f", None::<String>)
        .bind("g", None::<&str>)
        .bind("h", None::<Timestamp>);
    connected(&server, "").await.run(Role::Worker, &call).await.expect("the script lets it pass");
    let (_, _, values) = procedure(&server);
    let types: Vec<_> = values.iter().map(|sent| &*sent.wire_type).collect();
    assert_eq!(
        types,
        ["int(4)", "int(8)", "bit(1)", "float(8)", "guid(16)", "int(4)", "int(4)", "null"]
    );
    assert!(values.iter().all(|sent| sent.value == Wire::Null));
}

#[tokio::test]
async fn a_statement_without_parameters_is_the_same_kind_of_call() {
    let server = Server::start(Script::always(vec![])).await;
    connected(&server, "")
        .await
        .run(Role::Worker, &crate::probe())
        .await
        .expect("the script lets it pass");
    assert_eq!(
        procedure(&server),
        ("/* chokaq:probe */\nSELECT 1;".to_owned(), String::new(), vec![])
    );
}

#[tokio::test]
async fn a_value_that_would_be_cut_or_converted_is_not_sent() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "").await;
    for (call, part) in [
        (every_type().bind("extra", 1), "@extra"),
        (Call::new(&EVERY_TYPE), "@int has no value"),
        (every_type().bind("int", 1), "two values"),
    ] {
        let failure = connections.run(Role::Worker, &call).await.expect_err("a wrong call");
        assert_eq!(failure.class(), Class::Permanent);
        assert!(
            failure.to_string().contains("every_type") && failure.to_string().contains(part),
            "{failure}"
        );
    }
    assert!(server.statements().is_empty());
    connections
        .run(Role::Worker, &every_type())
        .await
        .expect("the connection is as good as before");
    assert_eq!(server.logins().len(), 1);
}
