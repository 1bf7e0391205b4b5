//! Queues, type keys and aliases that cannot be stored.

use chokaq::prelude::*;

#[job(enqueue_only, queue = "", type_key = " padded ", aliases = ["", "tab\t"])]
struct EmptyOrPadded;

#[job(
    enqueue_only,
    queue = "sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters.sixteen letters."
)]
struct TooLong;

#[job(enqueue_only, queue = mail, type_key = 7, aliases = "old")]
struct NoStrings;

#[job(enqueue_only, aliases = ["old", old, 7])]
struct NoStringsInList;

#[job(enqueue_only, aliases = ["old", "older", "old", "repeated"])]
struct Repeated;

#[job(enqueue_only, type_key = "mail", aliases = ["mail"])]
struct SameAsKey;

#[job(enqueue_only, type_key = "", aliases = ["key_unknown"])]
struct KeyUnknown;

fn main() {}
