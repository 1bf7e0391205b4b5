//! A job is one type, and owns its data.

use chokaq::{Pool, prelude::*};

#[job(enqueue_only)]
struct OfType<T> {
    value: T,
}

#[job(enqueue_only)]
struct OfTypes<A: Clone, B = u8>(A, B)
where
    B: Clone;

#[job(enqueue_only)]
struct Borrowing<'a> {
    text: &'a str,
}

#[job(enqueue_only)]
struct OfSize<const N: usize>;

#[job(enqueue_only)]
struct Bounded
where
    u8: Copy;

/// What the rest of the code does with them adds no errors.
fn use_them(pool: &Pool) {
    let _ = OfType { value: 1 }.enqueue(pool);
    let _ = OfTypes(1, 2).enqueue(pool);
    let _ = Borrowing { text: "static" }.enqueue(pool);
    let _ = OfSize::<3>.enqueue(pool);
    let _ = OfSize::<3>::enqueue(pool);
    let _ = Bounded.enqueue(pool);
}

fn main() {}
