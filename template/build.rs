//! Rebuild when a file comes into `api/` or leaves it.

fn main() {
    println!("cargo::rerun-if-changed=api");
}
