//! SQL Server's error numbers: what they mean for a call, and what a person does about them.

/// What a caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The same call may succeed later.
    Transient,
    /// It will not pass by itself.
    Permanent,
    /// A unique key is taken.
    Conflict,
    /// The schema is missing, older, or too new for this program.
    Schema,
}

/// Whether the login that failed was the first of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// No connection has ever succeeded: a wrong name is likelier than a database on the move.
    FirstConnect,
    /// It worked before.
    ConnectedBefore,
}

/// The class of a server's error.
pub fn class_of(number: u32, history: History) -> Class {
    match number {
        2601 | 2627 => Class::Conflict,
        4060 if history == History::FirstConnect => Class::Permanent,
        _ if transient(number).is_some() => Class::Transient,
        _ => Class::Permanent,
    }
}

/// What to do about an error that may pass.
fn transient(number: u32) -> Option<&'static str> {
    Some(match number {
        1205 => "it lost a deadlock: the call can be repeated",
        1222 => {
            "it waited too long for a lock of another session: look for long transactions (sys.dm_tran_locks)"
        }
        1204 => "the server has no locks left: look for huge transactions, or give it more memory",
        3960 => "another session changed the row first: the call can be repeated",
        701 | 8645 => "the server is short of memory: look for what uses it up",
        9002 => "the transaction log is full: back it up, or let it grow",
        976 | 978 | 983 => {
            "the replica does not take this connection: name the availability group's listener, or wait for a failover to end"
        }
        3906 => {
            "the database is read-only here: a failover moved the primary, or the connection went to a secondary"
        }
        4060 => "the database cannot be opened just now: it may be moving, restoring or offline",
        921 | 922 => "the database is being recovered",
        4221 => "the secondary replica waits for old transactions to end",
        596 => "the session was killed",
        6005 | 17142 => "the server is stopping or paused",
        18401 => "the server is being upgraded",
        17809 => {
            "the server takes no more connections: raise `user connections`, or lower pool_size"
        }
        10928 | 10929 | 10936 => {
            "a resource limit of the database's tier is reached: lower pool_size, or choose a larger tier"
        }
        40197 | 40143 | 40540 | 40613 => "the service moved or restarted the database",
        40501 | 49918 | 49919 | 49920 => "the service is busy",
        40549..=40553 => {
            "the service ended the session for a long transaction, too many locks, or too much log, tempdb or memory"
        }
        _ => return None,
    })
}

/// What a person does about an error, where something can be said.
pub(super) fn remedy(number: u32) -> Option<&'static str> {
    transient(number).or(match number {
        2601 | 2627 => Some("a unique key is taken"),
        18456 => Some("the login was refused: check the user, the password (or access token) and the login's rights"),
        18452 => Some("the login is a Windows account: name a SQL login"),
        18470 => Some("the login is disabled"),
        18486 => Some("the login is locked out"),
        18487 | 18488 => Some("the login's password has expired: change it with another tool first"),
        40615 | 40914 => Some("the service's firewall refuses this address: add a rule for it"),
        208 => Some("a table is missing: check the schema in the URL, and that it was migrated"),
        229 | 230 | 262 | 297 | 300 => Some("the login lacks a permission"),
        1934 | 1935 => Some("the database's SET options do not fit filtered indexes"),
        2628 | 8152 => Some("a value is too long for its column"),
        _ => None,
    })
}

/// Whether a connection is of no more use after the error: severity 20 and above end the session; the others say that
/// the database is not here any more.
pub(super) fn ends_the_session(number: u32, severity: u8) -> bool {
    severity >= 20
        || matches!(
            number,
            596 | 976 | 978 | 983 | 3906 | 6005 | 40143 | 40197 | 40540 | 40549..=40553 | 40613
        )
}

/// Errors of a service on the move, after which a transaction may stand all the same.
pub(super) fn leaves_the_outcome_open(number: u32) -> bool {
    matches!(number, 40143 | 40197 | 40613)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_known_for_every_transient_number() {
        for number in 1..60_000 {
            if class_of(number, History::ConnectedBefore) != Class::Permanent {
                assert!(remedy(number).is_some(), "{number}");
            }
        }
    }

    #[test]
    fn a_missing_database_is_final_only_before_the_first_connect() {
        assert_eq!(class_of(4060, History::FirstConnect), Class::Permanent);
        assert_eq!(class_of(4060, History::ConnectedBefore), Class::Transient);
        assert_eq!(class_of(1205, History::FirstConnect), Class::Transient);
    }
}
