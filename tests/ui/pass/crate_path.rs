//! chokaq under another path: through a crate that re-exports it, or by another name in this one.

use chokaq_renamed::chokaq as queue_of_jobs;
use queue_of_jobs::{job, prelude::*};

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

#[job(crate = chokaq_renamed::chokaq)]
struct ReExported {
    number: u8,
}

#[job(crate = "chokaq_renamed::chokaq")]
struct ReExportedInString {
    number: u8,
}

#[job(crate = ::chokaq_renamed::chokaq)]
struct Absolute;

#[job(crate = crate::queue_of_jobs)]
struct LocalName;

#[job(crate = self::queue_of_jobs, backoff = fixed("1s"))]
struct RelativeName;

macro_rules! declare {
    ($name:ident) => {
        #[job(crate = $crate::queue_of_jobs, serde = false)]
        #[derive(
            $crate::queue_of_jobs::serde::Serialize, $crate::queue_of_jobs::serde::Deserialize,
        )]
        #[serde(crate = "crate::queue_of_jobs::serde")]
        struct $name;
    };
}

declare!(CrateOfMacro);

nothing!(CrateOfMacro ReExported ReExportedInString Absolute LocalName RelativeName);

fn main() {
    let _ = (ReExported { number: 1 }, ReExportedInString { number: 1 });
    assert_eq!(Absolute::JOB_TYPE.key, "absolute");
    assert_eq!(LocalName::JOB_TYPE.key, "local_name");
    assert_eq!(RelativeName::JOB_TYPE.key, "relative_name");
    assert!(ReExported::JOB_TYPE.rust_name.ends_with("::ReExported"));
}
