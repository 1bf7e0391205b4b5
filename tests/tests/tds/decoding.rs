//! Answers of every type.

use chokaq::{
    JobId, Timestamp,
    storage::mssql::{Answer, Class, FromColumn, Outcome, Role},
};
use uuid::Uuid;

use crate::{
    answers::{Cell, Column, Step, one, text},
    connected, probe,
    server::{Script, Server},
    within,
};

async fn answer(steps: Vec<Step>) -> Answer {
    let server = Server::start(Script::always(steps)).await;
    within(connected(&server, "").await.run(Role::Worker, &probe()))
        .await
        .expect("the script lets it pass")
}

async fn value<T: FromColumn>(column: Column, cell: Cell) -> T {
    let rows = answer(vec![one("value", column, cell)]).await.rows().expect("one set");
    rows[0].get(0).expect("its type")
}

#[tokio::test]
async fn every_type_is_read() {
    assert_eq!(value::<i32>(Column::Int, Cell::Int(-7)).await, -7);
    assert_eq!(value::<i32>(Column::IntNotNull, Cell::Int(i32::MIN.into())).await, i32::MIN);
    assert_eq!(value::<i32>(Column::TinyInt, Cell::Int(255)).await, 255);
    assert_eq!(value::<i64>(Column::BigInt, Cell::Int(i64::MIN)).await, i64::MIN);
    assert_eq!(value::<i64>(Column::Int, Cell::Int(7)).await, 7);
    assert!(value::<bool>(Column::Bit, Cell::Int(1)).await);
    assert!(value::<f64>(Column::Float, Cell::Float(0.25)).await.to_bits() == 0.25_f64.to_bits());
    assert_eq!(value::<String>(Column::NVarChar(255), text("Zoë 🔑")).await, "Zoë 🔑");
    assert_eq!(value::<String>(Column::NVarChar(255), text("")).await, "");
    assert_eq!(value::<String>(Column::NVarCharMax, text("")).await, "");
}

#[tokio::test]
async fn a_uniqueidentifier_comes_out_in_the_order_it_is_written_in() {
    let stored = [
        0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ];
    let id: Uuid = value(Column::UniqueIdentifier, Cell::Guid(stored)).await;
    assert_eq!(id, Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff));
    let id: JobId = value(Column::UniqueIdentifier, Cell::Guid(stored)).await;
    assert_eq!(id.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
}

#[tokio::test]
async fn times_of_every_scale_become_milliseconds() {
    for (scale, increments) in
        [(0, 3_600), (2, 360_025), (3, 3_600_250), (4, 36_002_509), (7, 36_002_509_999)]
    {
        let cell = Cell::DateTime2 { days: 719_163, increments };
        let ms = if scale == 0 { 0 } else { 250 };
        let time: Timestamp = value(Column::DateTime2(scale), cell).await;
        assert_eq!(time, Timestamp::from_unix_ms(86_400_000 + 3_600_000 + ms), "{scale}");
    }
}

#[tokio::test]
async fn long_texts_arrive_whole() {
    let long = "Zoë 🔑 ".repeat(160_000);
    assert!(long.len() > 1_000_000);
    assert_eq!(value::<String>(Column::NVarCharMax, text(&*long)).await, long);
}

#[tokio::test]
async fn half_a_character_does_not_make_a_batch_unreadable() {
    let broken = Cell::Units(vec![u16::from(b'a'), 0xD83D, u16::from(b'b')]);
    assert_eq!(value::<String>(Column::NVarChar(10), broken.clone()).await, "a\u{FFFD}b");
    assert_eq!(value::<String>(Column::NVarCharMax, broken).await, "a\u{FFFD}b");
}

#[tokio::test]
async fn null_is_none_for_every_type_and_an_error_where_a_value_is_needed() {
    let columns = vec![
        ("Int", Column::Int),
        ("BigInt", Column::BigInt),
        ("Bit", Column::Bit),
        ("Float", Column::Float),
        ("Text", Column::NVarChar(10)),
        ("Max", Column::NVarCharMax),
        ("Id", Column::UniqueIdentifier),
        ("At", Column::DateTime2(3)),
    ];
    let rows = vec![vec![Cell::Null; columns.len()]];
    let rows = answer(vec![Step::Rows(columns, rows)]).await.rows().expect("one set");
    let row = &rows[0];
    assert_eq!(row.get::<Option<i32>>(0).expect("NULL"), None);
    assert_eq!(row.get::<Option<i64>>(1).expect("NULL"), None);
    assert_eq!(row.get::<Option<bool>>(2).expect("NULL"), None);
    assert!(row.get::<Option<f64>>(3).expect("NULL").is_none());
    assert_eq!(row.get::<Option<String>>(4).expect("NULL"), None);
    assert_eq!(row.get::<Option<String>>(5).expect("NULL"), None);
    assert_eq!(row.get::<Option<Uuid>>(6).expect("NULL"), None);
    assert_eq!(row.get::<Option<Timestamp>>(7).expect("NULL"), None);
    // An expression that is NULL in every row has the type int.
    assert_eq!(row.get::<Option<String>>(0).expect("NULL"), None);

    let failure = row.get::<Timestamp>(7).expect_err("a value is needed");
    let text = failure.to_string();
    assert!(text.contains("probe") && text.contains("\"At\"") && text.contains("NULL"), "{text}");
}

#[tokio::test]
async fn a_value_of_another_type_is_an_error_that_names_statement_and_column() {
    let columns = vec![("Name", Column::NVarChar(10)), ("Blob", Column::VarBinary(10))];
    let rows = vec![vec![text("x"), Cell::Bytes(vec![1])]];
    let rows = answer(vec![Step::Rows(columns, rows)]).await.rows().expect("one set");
    let failure = rows[0].get::<i64>(0).expect_err("a text");
    let expected = (Class::Permanent, Outcome::Unknown);
    assert_eq!((failure.class(), failure.outcome()), expected, "the statement did its work");
    let message = failure.to_string();
    for part in ["probe", "column 0", "\"Name\"", "text", "bigint"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(rows[0].get::<String>(1).expect_err("bytes").to_string().contains("varbinary"));
    assert!(rows[0].get::<i64>(2).expect_err("no such column").to_string().contains("column 2"));
}

#[tokio::test]
async fn several_result_sets_come_apart_and_empty_ones_count() {
    let set = |cells: &[i64]| {
        Step::Rows(vec![("n", Column::Int)], cells.iter().map(|n| vec![Cell::Int(*n)]).collect())
    };
    let steps =
        vec![set(&[1, 2]), Step::Count(5), set(&[]), Step::Info("changed database"), set(&[3])];
    let answer = answer(steps).await;
    assert_eq!(answer.affected(), [2, 5, 0, 1]);
    let [first, second, third] = answer.sets().expect("three sets");
    assert_eq!((first.len(), second.len(), third.len()), (2, 0, 1));
    assert_eq!(first[1].get::<i32>(0).expect("an int"), 2);
}

#[tokio::test]
async fn a_wrong_number_of_result_sets_is_an_error_that_names_the_statement() {
    let steps = || vec![one("n", Column::Int, Cell::Int(1))];
    let failure = answer(steps()).await.sets::<2>().expect_err("one set");
    assert!(
        failure.to_string().contains("probe") && failure.to_string().contains("1 result sets"),
        "{failure}"
    );
    answer(vec![]).await.rows().expect_err("no set");
}
