//! Arguments that are not written as arguments.

use chokaq::prelude::*;

#[job("mail")]
struct NoName;

#[job(queue, retries = , timeout =)]
struct NoValue;

#[job(queue("mail"), retries: 3)]
struct NoEquals;

#[job(queue = "mail" retries = 3)]
struct NoComma;

#[job(queue = @, retries = [, ])]
struct NoExpression;

#[job(, enqueue_only)]
struct LeadingComma;

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

nothing!(NoName NoValue NoEquals NoComma NoExpression LeadingComma);

fn main() {}
