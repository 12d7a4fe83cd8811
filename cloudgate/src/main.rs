//! Where does the program `cloudgate` begin?

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudgate::cli::main()
}
