//! serde's derives: added, seen, completed, or left to the user.

use std::collections::BTreeMap;

use chokaq::prelude::*;
use serde::de::DeserializeOwned;

macro_rules! nothing {
    ($($job:ident)*) => {$(
        impl Job for $job {
            type Output = ();
            async fn run(self, _: &JobContext) -> Result<(), JobError> {
                Ok(())
            }
        }
    )*};
}

#[job]
#[derive(Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Added {
    order_id: u64,
    #[serde(default, rename = "to")]
    recipient: String,
}

#[job]
#[derive(Debug, serde::Serialize, serde::Deserialize, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
struct Seen {
    order: u64,
}

mod imported {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[job]
    #[derive(Deserialize, Serialize)]
    struct SeenImported(u8);
    nothing!(SeenImported);

    #[job]
    #[derive(Serialize)]
    #[serde(transparent)]
    struct DeserializeAdded(u8);
    nothing!(DeserializeAdded);

    #[job]
    #[derive(::serde::Deserialize)]
    struct SerializeAdded(u8);
    nothing!(SerializeAdded);
}

/// Resolved before `#[job]` expands, on both sides.
#[job]
#[cfg_attr(all(), derive(serde::Serialize), serde(rename_all = "UPPERCASE"))]
#[cfg_attr(any(), derive(serde::Deserialize))]
struct Conditional {
    #[serde(alias = "id")]
    number: u8,
}

/// The derives through chokaq, for crates that have no serde of their own.
#[job]
#[derive(chokaq::serde::Serialize)]
#[serde(crate = "chokaq::serde")]
struct OwnCratePath(u8);

#[derive(chokaq::serde::Serialize, chokaq::serde::Deserialize, Debug, PartialEq)]
#[serde(crate = "chokaq::serde")]
enum Nested {
    One { by_name: BTreeMap<String, u8> },
}

#[job]
struct WithNested(Nested);

#[job(serde = false)]
struct ByHand;

impl serde::Serialize for ByHand {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("by hand")
    }
}

impl<'de> serde::Deserialize<'de> for ByHand {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <String as serde::Deserialize>::deserialize(deserializer).map(|_| Self)
    }
}

#[job(serde = true)]
struct SaidTrue;

/// Above `#[job]` its derives are out of sight: with `serde = false` it need not see them.
#[derive(serde::Serialize, serde::Deserialize)]
#[job(serde = false)]
#[serde(transparent)]
struct DerivedAbove(u8);

/// Other derives may stand on either side.
#[derive(Debug, Clone)]
#[job]
#[derive(PartialEq)]
struct OthersAbove(u8);

nothing!(Added Seen Conditional OwnCratePath WithNested ByHand SaidTrue DerivedAbove OthersAbove);

fn json<T: Enqueue + DeserializeOwned>(job: &T) -> String {
    let json = serde_json::to_string(job).unwrap();
    let back: T = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), json);
    json
}

fn main() {
    let added = Added { order_id: 7, recipient: "ada".into() };
    assert_eq!(json(&added), r#"{"orderId":7,"to":"ada"}"#);
    assert!(serde_json::from_str::<Added>(r#"{"orderId":7,"other":1}"#).is_err());
    assert_eq!(json(&Seen { order: 7 }), r#"{"ORDER":7}"#);
    assert_eq!(json(&Conditional { number: 1 }), r#"{"NUMBER":1}"#);
    assert_eq!(json(&OwnCratePath(1)), "1");
    assert_eq!(
        json(&WithNested(Nested::One { by_name: BTreeMap::new() })),
        r#"{"One":{"by_name":{}}}"#
    );
    assert_eq!(json(&ByHand), r#""by hand""#);
    assert_eq!(json(&SaidTrue), "null");
    assert_eq!(json(&DerivedAbove(3)), "3");
    assert_eq!(OthersAbove(1).clone(), OthersAbove(1));
}
