//! A future that holds an `Rc` across an await cannot move between the worker's threads.

use std::rc::Rc;

use chokaq::prelude::*;

#[job]
struct HoldsRc;

impl Job for HoldsRc {
    type Output = ();

    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let shared = Rc::new(1);
        ctx.cancelled().await;
        println!("{shared}");
        Ok(())
    }
}

fn main() {}
