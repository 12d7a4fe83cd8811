//! Which Host fields name a host, and which host is the request's?

use super::Sent::{Host, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

const INVALID: &str = "400 close; Refused(InvalidHost)";
const MISSING: &str = "400 close; Refused(MissingHost)";
const REPEATED: &str = "400 close; Refused(RepeatedHost)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("a host with a port", "9110 7.2", Host("Host: h:80\r\n"), "200 h:80; open"),
    row("a host in mixed case", "9110 7.2", Host("Host: ExAmPlE.test\r\n"), "200 ExAmPlE.test; open"),
    row("a host with an empty port", "3986 3.2.3", Host("Host: h:\r\n"), "200 h:; open"),
    row("the last port", "9110 7.2", Host("Host: h:65535\r\n"), "200 h:65535; open"),
    row("a host that ends with a dot", "3986 3.2.2", Host("Host: example.test.\r\n"), "200 example.test.; open"),
    row("a host with an underscore", "3986 3.2.2", Host("Host: a_b.test\r\n"), "200 a_b.test; open"),
    row("a host with sub-delimiters", "3986 3.2.2", Host("Host: 0.0.0.0=5000\r\n"), "200 0.0.0.0=5000; open"),
    row("an IPv4 address", "3986 3.2.2", Host("Host: 192.0.2.1:80\r\n"), "200 192.0.2.1:80; open"),
    row("an IPv6 address", "3986 3.2.2", Host("Host: [2001:db8::1]\r\n"), "200 [2001:db8::1]; open"),
    row("an IPv6 address with a port", "3986 3.2.2", Host("Host: [::1]:80\r\n"), "200 [::1]:80; open"),
    row("an IPv6 address that ends as an IPv4 one", "3986 3.2.2", Host("Host: [::ffff:192.0.2.1]\r\n"), "200 [::ffff:192.0.2.1]; open"),
    row("an encoded byte in a host", "3986 3.2.2", Host("Host: caf%C3%A9.test\r\n"), "200 caf%C3%A9.test; open"),
    row("the name Host in mixed case, spaces around its value", "9110 5.5", Host("hOsT:   h  \r\n"), "200 h; open"),
    row("tabs around a host", "9110 5.6.3", Host("Host:\th\t\r\n"), "200 h; open"),
    row("a host without a space in front", "9112 5.1", Host("Host:h\r\n"), "200 h; open"),
    row("Host as the last of several fields", "9110 5.3", Host("A: b\r\nC: d\r\nHost: h\r\n"), "200 h; open"),
    row("an empty Host", "9112 3.2", Host("Host:\r\n"), "200; open").because("Http11Probe wants 400; it is what a client without an authority must send"),
    row("an empty Host of white space", "9112 3.2", Host("Host: \t \r\n"), "200; open"),
    row("fields that only resemble Host", "9112 3.2", Host("Host: h\r\nHosts: a\r\nX-Host: b\r\nHos: c\r\n"), "200 h; open"),
    row("no Host in HTTP/1.0", "9112 3.2", Wire("GET /host HTTP/1.0\r\n\r\n"), "200 close none; Finished"),
    row("a Host in HTTP/1.0", "9112 3.2", Wire("GET /host HTTP/1.0\r\nHost: h\r\n\r\n"), "200 close h; Finished"),

    row("no field at all", "9112 3.2", Host(""), MISSING).because("gunicorn and llhttp leave that to the application"),
    row("fields, but no Host", "9112 3.2", Host("A: b\r\n"), MISSING),
    row("no Host in HTTP/1.2", "9112 3.2", Wire("GET /host HTTP/1.2\r\nA: b\r\n\r\n"), MISSING),
    row("two equal Hosts", "9112 3.2", Host("Host: h\r\nHost: h\r\n"), REPEATED),
    row("two Hosts", "9112 3.2", Host("Host: h\r\nHost: other\r\n"), REPEATED),
    row("two Hosts, the names in different case", "9112 3.2", Host("Host: h\r\nhOST: other\r\n"), REPEATED),
    row("two Hosts, the second empty", "9112 3.2", Host("Host: h\r\nHost:\r\n"), REPEATED),
    row("two Hosts, far from each other", "9112 3.2", Host("Host: h\r\nA: b\r\nC: d\r\nHost: other\r\n"), REPEATED),
    row("two Hosts in HTTP/1.0", "9112 3.2", Wire("GET /host HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n"), REPEATED),
    row("two Hosts and an absolute target", "9112 3.2", Wire("GET http://h/host HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"), REPEATED),
    row("an invalid Host beside an absolute target", "9112 3.2", Wire("GET http://h/host HTTP/1.1\r\nHost: a b\r\n\r\n"), INVALID),
    row("an invalid Host in HTTP/1.0", "9112 3.2", Wire("GET /host HTTP/1.0\r\nHost: a b\r\n\r\n"), INVALID),
    row("a space in a host", "9112 3.2", Host("Host: a b\r\n"), INVALID),
    row("a tab in a host", "9112 3.2", Host("Host: a\tb\r\n"), INVALID),
    row("a path behind a host", "9112 3.2", Host("Host: a/b\r\n"), INVALID),
    row("a query behind a host", "9112 3.2", Host("Host: a?b\r\n"), INVALID),
    row("a fragment behind a host", "9112 3.2", Host("Host: a#b\r\n"), INVALID),
    row("a scheme in front of a host", "9112 3.2", Host("Host: http://h\r\n"), INVALID),
    row("a user in front of a host", "9110 7.2", Host("Host: u@h\r\n"), INVALID),
    row("a user and a password in front of a host", "9110 7.2", Host("Host: u:1@h\r\n"), INVALID),
    row("a backslash in a host", "3986 3.2.2", Host("Host: a\\b\r\n"), INVALID),
    row("angle brackets around a host", "3986 3.2.2", Host("Host: <h>\r\n"), INVALID),
    row("quotes around a host", "3986 3.2.2", Host("Host: \"h\"\r\n"), INVALID),
    row("a vertical bar in a host", "3986 3.2.2", Host("Host: a|b\r\n"), INVALID),
    row("a comma in a host", "3986 3.2.2", Host("Host: a,b\r\n"), INVALID).because("valid as a name, and how two Hosts look once joined"),
    row("a letter of UTF-8 in a host", "3986 3.2.2", Host("Host: caf\u{c3}\u{a9}\r\n"), INVALID),
    row("a letter of Latin-1 in a host", "3986 3.2.2", Host("Host: caf\u{e9}\r\n"), INVALID),
    row("a percent sign without digits in a host", "3986 2.1", Host("Host: a%zz\r\n"), INVALID),
    row("a percent sign at the end of a host", "3986 2.1", Host("Host: a%\r\n"), INVALID),
    row("a percent sign with one digit in a host", "3986 2.1", Host("Host: a%4:80\r\n"), INVALID),
    row("letters as port", "3986 3.2.3", Host("Host: h:http\r\n"), INVALID),
    row("a port past the last one", "9110 7.2", Host("Host: h:65536\r\n"), INVALID),
    row("a negative port", "3986 3.2.3", Host("Host: h:-80\r\n"), INVALID),
    row("a port with a sign", "3986 3.2.3", Host("Host: h:+80\r\n"), INVALID),
    row("two ports", "3986 3.2.3", Host("Host: h:80:80\r\n"), INVALID),
    row("a space in front of a port", "3986 3.2.3", Host("Host: h: 80\r\n"), INVALID),
    row("a port alone", "9110 4.2.1", Host("Host: :80\r\n"), INVALID),
    row("half an IPv6 address", "3986 3.2.2", Host("Host: [::1\r\n"), INVALID),
    row("an IPv6 address without brackets", "3986 3.2.2", Host("Host: 2001:db8::1\r\n"), INVALID),
    row("a name in brackets", "3986 3.2.2", Host("Host: [h]\r\n"), INVALID),
    row("empty brackets", "3986 3.2.2", Host("Host: []\r\n"), INVALID),
    row("letters behind an IPv6 address", "3986 3.2.2", Host("Host: [::1]h\r\n"), INVALID),
    row("an IPv6 address with a zone", "3986 3.2.2", Host("Host: [fe80::1%eth0]\r\n"), INVALID),
    row("an address of a version to come", "3986 3.2.2", Host("Host: [v1.a]\r\n"), INVALID).because("valid as syntax, and nobody can have such an address"),
    row("a NUL in a host", "9110 5.5", Host("Host: a\0b\r\n"), "400 close; Refused(InvalidFieldValue)"),
    row("a control byte in a host", "9110 5.5", Host("Host: a\x01b\r\n"), "400 close; Refused(InvalidFieldValue)"),
    row("a space behind the name Host", "9112 5.1", Host("Host : h\r\n"), "400 close; Refused(InvalidFieldName)"),
    row("a space in front of the name Host", "9112 2.2", Host(" Host: h\r\n"), "400 close; Refused(InvalidFieldName)"),
    row("a folded Host", "9112 5.2", Host("Host:\r\n h\r\n"), "400 close; Refused(InvalidFieldName)"),
];
