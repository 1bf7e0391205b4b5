//! The attributes that stand below `#[job]`, as far as they matter to it.
//!
//! `#[cfg_attr(..)]` needs no care: the compiler resolves it before it expands any attribute of the item.

use syn::{Attribute, Meta, Path, Token, punctuated::Punctuated};

type List<T> = Punctuated<T, Token![,]>;

/// Which of serde's attributes the user wrote below `#[job]`.
#[derive(Default)]
pub(crate) struct Serde {
    pub(crate) derives_serialize: bool,
    pub(crate) derives_deserialize: bool,
    /// Whether there is a `#[serde(crate = "...")]`.
    pub(crate) has_crate: bool,
}

impl Serde {
    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        let mut found = Self::default();
        for attr in attrs {
            if attr.path().is_ident("derive") {
                for path in attr.parse_args_with(List::<Path>::parse_terminated).iter().flatten() {
                    match serde_derive(path).as_deref() {
                        Some("Serialize") => found.derives_serialize = true,
                        Some("Deserialize") => found.derives_deserialize = true,
                        _ => {}
                    }
                }
            } else if attr.path().is_ident("serde") {
                let options = attr.parse_args_with(List::<Meta>::parse_terminated);
                found.has_crate |=
                    options.iter().flatten().any(|option| option.path().is_ident("crate"));
            }
        }
        found
    }
}

/// The last part of `Serialize`, `serde::Serialize`, `a::b::serde::Serialize`; other crates have derives of that name.
fn serde_derive(path: &Path) -> Option<String> {
    let mut parts = path.segments.iter().rev().map(|segment| segment.ident.to_string());
    let name = parts.next()?;
    let of_serde = parts.next().is_none_or(|parent| parent == "serde" || parent == "serde_derive");
    of_serde.then_some(name)
}

/// Where derives are added: above the first `#[serde(..)]`, which must stand below its derive, else below all others,
/// so that attributes that rewrite the struct for serde (`serde_as`) do so first.
pub(crate) fn place_of_derives(attrs: &[Attribute]) -> usize {
    attrs.iter().position(|attr| attr.path().is_ident("serde")).unwrap_or(attrs.len())
}

/// `job`, or `job` of a crate by its usual name.
pub(crate) fn is_job(path: &Path) -> bool {
    let mut parts = path.segments.iter().rev();
    parts.next().is_some_and(|last| last.ident == "job")
        && parts.next().is_none_or(|parent| parent.ident == "chokaq" || parent.ident == "prelude")
}
