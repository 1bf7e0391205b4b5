//! Every shape and place of a struct.

#![allow(non_camel_case_types)]

use chokaq::{EnqueueOne, Pool, prelude::*};

macro_rules! nothing {
    ($($job:ty)*) => {$(
        impl Job for $job {
            type Output = ();
            async fn run(self, _: &JobContext) -> Result<(), JobError> {
                Ok(())
            }
        }
    )*};
}

#[job]
struct Named {
    text: String,
}

#[job]
pub struct Tuple(u8, pub Vec<String>);

#[job]
pub(crate) struct Unit;

#[job]
struct EmptyBraces {}

#[job]
struct r#type {
    r#type: u8,
}

#[job]
struct r#RawUnit;

#[deprecated]
#[job]
struct Deprecated;

#[job]
#[cfg(any())]
struct ConfiguredOut;

#[job]
#[derive(Debug)]
struct WithField {
    #[cfg(any())]
    gone: NoSuchType,
    kept: u8,
}

nothing!(Named Tuple Unit EmptyBraces r#type RawUnit WithField);

#[allow(deprecated)]
mod deprecated {
    use super::*;
    nothing!(Deprecated);
}

#[job(enqueue_only)]
struct OnlyProduced;

mod outer {
    pub(super) mod inner {
        use chokaq::prelude::*;

        #[job(type_key = "inner.unit")]
        pub(in crate::outer) struct Hidden;

        impl Job for Hidden {
            type Output = ();
            async fn run(self, _: &JobContext) -> Result<(), JobError> {
                Ok(())
            }
        }

        pub(crate) fn key_and_name() -> (&'static str, &'static str) {
            (Hidden::JOB_TYPE.key, Hidden::JOB_TYPE.rust_name)
        }
    }
}

const _: () = {
    #[job]
    struct InConst {
        number: u8,
    }

    nothing!(InConst);
};

/// Both ways to enqueue a unit struct, and both builders.
fn enqueue(pool: &Pool) -> [EnqueueOne; 4] {
    let _ = Tuple::enqueue_all(pool, [Tuple(1, vec![])]);
    let _ = Unit::enqueue_all(pool, [Unit, Unit]);
    [
        Unit::enqueue(pool).queue("other"),
        Unit.enqueue(pool).priority(1),
        RawUnit::enqueue(pool),
        Named { text: String::new() }.enqueue(pool),
    ]
}

fn main() {
    #[job(queue = "local")]
    struct InFunction {
        number: u8,
    }

    impl Job for InFunction {
        type Output = u8;
        async fn run(self, _: &JobContext) -> Result<u8, JobError> {
            Ok(self.number)
        }
    }

    #[job]
    struct LocalUnit;
    nothing!(LocalUnit);

    assert_eq!(Named::JOB_TYPE.key, "named");
    assert_eq!(r#type::JOB_TYPE.key, "type");
    assert!(r#type::JOB_TYPE.rust_name.ends_with("::type"));
    assert_eq!(RawUnit::JOB_TYPE.key, "raw_unit");
    assert_eq!(WithField::JOB_TYPE.key, "with_field");
    let (key, name) = outer::inner::key_and_name();
    assert_eq!(key, "inner.unit");
    assert!(name.ends_with("::outer::inner::Hidden"), "{name}");
    assert_eq!(InFunction::JOB_TYPE.queue, "local");
    assert_eq!(LocalUnit::JOB_TYPE.key, "local_unit");
    for key in ["named", "tuple", "unit", "type", "inner.unit", "in_const", "in_function"] {
        assert!(registered(key), "{key}");
    }
    assert!(!registered("configured_out") && !registered("only_produced"));
    let _ = (enqueue, EmptyBraces {}, InFunction { number: 1 }, r#type { r#type: 1 });
}

/// Whether a worker of this program would know the type.
fn registered(key: &str) -> bool {
    use chokaq::__private::{Registration, inventory};
    let key = format!("key: {key:?}");
    inventory::iter::<Registration>.into_iter().any(|entry| format!("{entry:?}").contains(&key))
}
