//! A short chaos with real processes; the long one is run by hand.

use std::process::Command;

#[test]
fn a_short_chaos_violates_nothing() {
    let seed = fastrand::u64(..1_000_000).to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_chokaq-chaos"))
        .args(["chaos", "--minutes", "0.3", "--jobs", "1500", "--processes", "3", "--seed", &seed])
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "run it again with --seed {seed}");
    assert!(told.contains("0 violations"), "{told}");
}

#[test]
fn handlers_that_block_every_thread_keep_their_leases() {
    let output = Command::new(env!("CARGO_BIN_EXE_chokaq-chaos"))
        .args(["blocked", "--threads", "4", "--seconds", "3"])
        .output()
        .expect("the program runs");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success());
}

#[test]
fn a_stalled_database_makes_no_zombies() {
    let output = Command::new(env!("CARGO_BIN_EXE_chokaq-chaos"))
        .args(["stall", "--jobs", "20", "--lease", "2"])
        .output()
        .expect("the program runs");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success());
}
