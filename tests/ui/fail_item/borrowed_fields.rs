//! A job is read back from the database: it cannot hold references.

use chokaq::prelude::*;

#[job]
struct Static {
    text: &'static str,
    bytes: &'static [u8],
}

impl Job for Static {
    type Output = ();

    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        println!("{} {}", self.text, self.bytes.len());
        Ok(())
    }
}

fn main() {}
