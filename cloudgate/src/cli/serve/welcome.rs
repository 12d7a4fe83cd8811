//! What does a person who has started it want to know?

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::super::say;
use super::qr;
use crate::net::listener::Address;
use crate::run;

/// The lines of the text besides the square, and the prompt.
const OTHER_LINES: usize = 6;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Terminal {
    pub(super) fn of_stdout() -> Option<Terminal> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(Terminal {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
    }
}

/// The address as a browser takes it.
pub(super) fn url(address: &Address) -> String {
    run::url(address)
}

/// The same port on another of the machine's addresses.
fn at(address: &Address, ip: IpAddr) -> Address {
    match address {
        Address::Tcp(socket) => Address::Tcp(SocketAddr::new(ip, socket.port())),
        Address::Tls(socket) => Address::Tls(SocketAddr::new(ip, socket.port())),
        Address::Unix(path) => Address::Unix(path.clone()),
    }
}

/// The text at the start; the square for the first address of the network only on a terminal that has
/// room for it.
pub(super) fn text(
    folder: &Path,
    address: &Address,
    lan: &[IpAddr],
    terminal: Option<Terminal>,
) -> String {
    let mut text = format!(
        "cloudgate {} serves {}\n  {}\n",
        env!("CARGO_PKG_VERSION"),
        say::path(folder),
        url(address)
    );
    let others: Vec<String> = lan.iter().map(|ip| url(&at(address, *ip))).collect();
    for other in &others {
        text += &format!("  {other} on the network\n");
    }
    if let Some(terminal) = terminal {
        let square = others.first().and_then(|other| qr::square(other));
        let fits = |square: &qr::Square| {
            square.columns <= terminal.columns && square.lines.len() + OTHER_LINES <= terminal.rows
        };
        if let Some(square) = square.filter(fits) {
            text += &square.lines.join("\n");
            text.push('\n');
        }
        text += "Ctrl-C stops it.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = concat!("cloudgate ", env!("CARGO_PKG_VERSION"), " serves public\n");

    fn of(address: &str, lan: &[&str], terminal: Option<(usize, usize)>) -> String {
        let lan: Vec<IpAddr> = lan.iter().map(|ip| ip.parse().unwrap()).collect();
        let terminal = terminal.map(|(columns, rows)| Terminal { columns, rows });
        text(
            Path::new("public"),
            &Address::Tcp(address.parse().unwrap()),
            &lan,
            terminal,
        )
    }

    #[test]
    fn it_names_the_folder_and_where_it_can_be_seen() {
        assert_eq!(
            of("127.0.0.1:3000", &[], None),
            format!("{HERE}  http://127.0.0.1:3000\n")
        );
        assert_eq!(
            of("[::]:80", &["192.0.2.7", "2001:db8::7"], None),
            format!(
                "{HERE}  http://localhost:80\n  http://192.0.2.7:80 on the network\n  http://[2001:db8::7]:80 on the network\n"
            )
        );
    }

    #[test]
    fn where_tls_is_spoken_the_addresses_say_so() {
        let address = Address::Tls("0.0.0.0:3000".parse().unwrap());
        let lan = ["192.0.2.7".parse().unwrap()];
        assert_eq!(
            text(Path::new("public"), &address, &lan, None),
            format!("{HERE}  https://localhost:3000\n  https://192.0.2.7:3000 on the network\n")
        );
    }

    #[test]
    fn the_square_comes_only_where_it_fits() {
        let lan = &["192.0.2.7"][..];
        let last = "Ctrl-C stops it.\n";
        for (address, lan, terminal, want) in [
            ("0.0.0.0:80", lan, Some((33, 23)), 17),
            ("0.0.0.0:80", lan, Some((32, 23)), 0),
            ("0.0.0.0:80", lan, Some((33, 22)), 0),
            ("0.0.0.0:80", lan, None, 0),
            ("127.0.0.1:80", &[], Some((200, 200)), 0),
        ] {
            let text = of(address, lan, terminal);
            assert_eq!(text.matches("\x1b[30;107m").count(), want, "{terminal:?}");
            assert_eq!(text.ends_with(last), terminal.is_some());
        }
    }
}
