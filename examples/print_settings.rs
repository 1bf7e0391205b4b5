//! Prints `chokaq.example.toml`: every setting, its default and its variable.

fn main() {
    print!("{}", chokaq::config::example_toml());
}
