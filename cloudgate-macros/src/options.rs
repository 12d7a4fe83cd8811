//! What do the options behind a route's pattern say?

use std::time::Duration;

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, LitInt, LitStr, Pat, Token, parenthesized, token};

use crate::attr::skip_to_comma;
use crate::mistakes::Mistakes;

/// What the options of one route say; what is not said is left to the application.
#[derive(Default)]
pub(crate) struct Options {
    /// In bytes.
    pub(crate) body_limit: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    /// Whether it is a valid host is decided by the library's own `const fn`.
    pub(crate) host: Option<LitStr>,
    /// Parameters that a request must have.
    pub(crate) params: Vec<LitStr>,
    pub(crate) private: bool,
    pub(crate) thread: Thread,
    /// Middlewares, the first one outermost.
    pub(crate) wrap: Vec<Expr>,
}

/// Where the handler runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thread {
    /// On the worker of the connection, which serves others only while the handler waits.
    #[default]
    Worker,
    /// On one that may block.
    Blocking,
}

pub(crate) const NAMES: [&str; 7] = [
    "body_limit",
    "timeout",
    "host",
    "params",
    "private",
    "blocking",
    "wrap",
];

/// How an option is written, for messages.
pub(crate) fn example(option: &str) -> &'static str {
    match option {
        "body_limit" => "body_limit = \"10 MiB\"",
        "timeout" => "timeout = \"5s\"",
        "host" => "host = \"api.example.com\"",
        "params" => "params(\"name\", \"age\")",
        "private" => "private",
        "blocking" => "blocking",
        _ => "wrap(check_token)",
    }
}

impl Options {
    /// Reads what follows the name of an option and notes what is wrong with it.
    pub(crate) fn read(
        &mut self,
        option: &str,
        place: Span,
        attribute: &str,
        input: ParseStream<'_>,
        mistakes: &mut Mistakes,
    ) -> syn::Result<()> {
        let wanted = match option {
            "private" | "blocking" => input.is_empty() || input.peek(Token![,]),
            "params" | "wrap" => input.peek(token::Paren),
            _ => input.peek(Token![=]) && !input.peek(Token![==]),
        };
        if !wanted {
            let how = match option {
                "private" | "blocking" => "is written alone",
                "params" | "wrap" => "takes a list in parentheses",
                _ => "takes a value",
            };
            let example = example(option);
            mistakes.at(
                place,
                format_args!("`{option}` {how}, such as #[{attribute}(\"/path\", {example})]"),
            );
            return skip_to_comma(input);
        }
        match option {
            "private" => self.private = true,
            "blocking" => self.thread = Thread::Blocking,
            "params" => self.params = names(input, place, mistakes)?,
            "wrap" => {
                self.wrap = expressions(input, place, mistakes)?;
                check_closures(&self.wrap, mistakes);
            }
            _ => {
                input.parse::<Token![=]>()?;
                let value = value(option, input, mistakes)?;
                match (option, value) {
                    ("body_limit", Some(value)) => self.body_limit = size(&value, mistakes),
                    ("timeout", Some(value)) => self.timeout = duration(&value, mistakes),
                    (_, Some(Lit::Str(host))) => self.host = Some(host),
                    (_, Some(other)) => mistakes.on(
                        other,
                        "a host is a text, such as host = \"api.example.com\" or \"*.example.com\"",
                    ),
                    (_, None) => {}
                }
            }
        }
        Ok(())
    }
}

/// The literal behind the `=`.
fn value(
    option: &str,
    input: ParseStream<'_>,
    mistakes: &mut Mistakes,
) -> syn::Result<Option<Lit>> {
    if input.peek(Lit) {
        return input.parse().map(Some);
    }
    let message = format!(
        "the value of `{option}` is written out where the route is, such as {}",
        example(option)
    );
    match input.parse::<Expr>() {
        Ok(other) => mistakes.on(other, message),
        Err(error) => {
            mistakes.at(error.span(), message);
            skip_to_comma(input)?;
        }
    }
    Ok(None)
}

/// The units of sizes, and their bytes.
const SIZES: [(&str, u64); 8] = [
    ("B", 1),
    ("KB", 1000),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The units of times, and their milliseconds.
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// A number with a unit.
struct Measure {
    option: &'static str,
    units: &'static [(&'static str, u64)],
    /// The units as messages name them.
    shown: &'static str,
    example: &'static str,
    /// What nothing would mean.
    zero: &'static str,
}

const SIZE: Measure = Measure {
    option: "body_limit",
    units: &SIZES,
    shown: "B, KB, KiB, MB, MiB, GB and GiB",
    example: "\"10 MiB\", or a number of bytes without quotes",
    zero: "a limit of 0 refuses every body: write how many bytes the largest one may have, or leave `body_limit` out for that of the server",
};

const TIME: Measure = Measure {
    option: "timeout",
    units: &TIMES,
    shown: "ms, s, m and h",
    example: "\"500ms\", \"5s\", \"2m\" or \"1h\"",
    zero: "no handler is done in no time: write how long it may take, or leave `timeout` out",
};

/// A size in bytes.
fn size(value: &Lit, mistakes: &mut Mistakes) -> Option<u64> {
    if let Lit::Int(bytes) = value
        && bytes.suffix().is_empty()
    {
        return match bytes.base10_parse() {
            Ok(0) => {
                mistakes.on(value, SIZE.zero);
                None
            }
            Ok(bytes) => Some(bytes),
            Err(_) if bytes.base10_digits().starts_with('-') => {
                mistakes.on(value, SIZE.malformed());
                None
            }
            Err(_) => {
                mistakes.on(value, too_large(&SIZE));
                None
            }
        };
    }
    SIZE.read(value, mistakes)
}

fn duration(value: &Lit, mistakes: &mut Mistakes) -> Option<Duration> {
    TIME.read(value, mistakes).map(Duration::from_millis)
}

fn too_large(measure: &Measure) -> String {
    format!(
        "this is more than `{}` can be: write a smaller number",
        measure.option
    )
}

impl Measure {
    fn read(&self, value: &Lit, mistakes: &mut Mistakes) -> Option<u64> {
        let read = match value {
            Lit::Str(text) => self.parse(text.value().trim()),
            Lit::Int(number) => Err(self.quoted(number)),
            _ => Err(self.malformed()),
        };
        read.map_err(|message| mistakes.on(value, message)).ok()
    }

    fn parse(&self, text: &str) -> Result<u64, String> {
        let end = text
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        if number.is_empty() || unit.starts_with(['.', ',', '_']) {
            return Err(self.malformed());
        }
        let unit = match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, unit)) => *unit,
            None => return Err(self.no_unit(number, unit)),
        };
        // What is not digits is refused above, so this one is too long.
        let number: u64 = number.parse().map_err(|_| too_large(self))?;
        match number.checked_mul(unit) {
            Some(0) => Err(self.zero.to_owned()),
            Some(all) => Ok(all),
            None => Err(too_large(self)),
        }
    }

    fn malformed(&self) -> String {
        let Measure {
            option, example, ..
        } = self;
        format!("`{option}` is a whole number with its unit, such as {example}")
    }

    fn no_unit(&self, number: &str, unit: &str) -> String {
        let Measure { shown, example, .. } = self;
        if unit.is_empty() {
            return format!("the unit is missing: write {example}");
        }
        let meant = self
            .units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        match meant {
            Some((name, _)) => format!("unknown unit `{unit}`: did you mean \"{number} {name}\"?"),
            None => format!("unknown unit `{unit}`: the units are {shown}"),
        }
    }

    /// For `5` and `5s`, which are numbers in the eyes of the compiler.
    fn quoted(&self, number: &LitInt) -> String {
        match number.suffix() {
            "" => self.no_unit(number.base10_digits(), ""),
            _ => format!(
                "a number with its unit is written in quotes: \"{}\"",
                number.token()
            ),
        }
    }
}

/// The names of `params(...)`.
fn names(input: ParseStream<'_>, place: Span, mistakes: &mut Mistakes) -> syn::Result<Vec<LitStr>> {
    let mut names: Vec<LitStr> = Vec::new();
    for entry in expressions(input, place, mistakes)? {
        let name = match entry {
            Expr::Lit(literal) => match literal.lit {
                Lit::Str(name) => Ok(name),
                other => Err(Expr::Lit(syn::ExprLit {
                    attrs: Vec::new(),
                    lit: other,
                })),
            },
            other => Err(other),
        };
        match name {
            Err(other) => mistakes.on(
                other,
                "a parameter is named in quotes, such as params(\"name\", \"age\")",
            ),
            Ok(name) if name.value().is_empty() => {
                mistakes.on(name, "a parameter has a name, such as params(\"name\")");
            }
            Ok(name) if names.iter().any(|known| known.value() == name.value()) => {
                mistakes.on(name, "this parameter is named twice: once is enough");
            }
            Ok(name) => names.push(name),
        }
    }
    Ok(names)
}

/// Notes closures whose arguments have no types: behind a trait of ours the compiler cannot find them out.
fn check_closures(middlewares: &[Expr], mistakes: &mut Mistakes) {
    for middleware in middlewares {
        let Expr::Closure(closure) = middleware else {
            continue;
        };
        if closure
            .inputs
            .iter()
            .any(|input| !matches!(input, Pat::Type(_)))
        {
            mistakes.on(
                &closure.inputs,
                "the arguments of a closure have their types here: |request: &mut Request<'_>, next: Next<'_>|",
            );
        }
    }
}

/// The list in the parentheses, which holds something.
fn expressions(
    input: ParseStream<'_>,
    place: Span,
    mistakes: &mut Mistakes,
) -> syn::Result<Vec<Expr>> {
    let list;
    parenthesized!(list in input);
    if list.is_empty() {
        mistakes.at(
            place,
            "this list is empty: write what belongs into it, or leave the option out",
        );
    }
    let list = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?;
    Ok(list.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;
    use crate::attr::{self, Attribute};

    fn read(options: &str) -> (Options, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let list = format!("\"/\", {options}").parse().unwrap();
        let route = attr::parse(Attribute::Route, list, &mut mistakes);
        (route.options, mistakes.messages())
    }

    #[track_caller]
    fn accepts(options: &str) -> Options {
        let (read, messages) = read(options);
        assert_eq!(messages, [""; 0], "{options}");
        read
    }

    #[track_caller]
    fn refuses(options: &str, starts: &[&str]) {
        let (_, messages) = read(options);
        assert_eq!(messages.len(), starts.len(), "{options}: {messages:#?}");
        for (message, start) in messages.iter().zip(starts) {
            assert!(
                message.starts_with(start),
                "{options}: {message:?} does not start with {start:?}"
            );
        }
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        for (value, bytes) in [
            ("1", 1),
            ("10_000", 10_000),
            ("0x10", 16),
            ("18446744073709551615", u64::MAX),
            ("\"1 B\"", 1),
            ("\"10KB\"", 10_000),
            ("\"10 kB\"", 10_000),
            ("\"10 KiB\"", 10 << 10),
            ("\"3 MB\"", 3_000_000),
            ("\" 10  MiB \"", 10 << 20),
            ("\"2 GB\"", 2_000_000_000),
            ("\"2 GiB\"", 2 << 30),
            ("\"17179869183 GiB\"", 17_179_869_183 << 30),
        ] {
            let read = accepts(&format!("body_limit = {value}")).body_limit;
            assert_eq!(read, Some(bytes), "{value}");
        }
        for (value, start) in [
            ("0", "a limit of 0 refuses every body"),
            ("\"0 MiB\"", "a limit of 0 refuses every body"),
            (
                "\"17179869184 GiB\"",
                "this is more than `body_limit` can be",
            ),
            (
                "18446744073709551616",
                "this is more than `body_limit` can be",
            ),
            (
                "\"18446744073709551616 B\"",
                "this is more than `body_limit` can be",
            ),
            ("-1", "`body_limit` is a whole number with its unit"),
            (
                "10MB",
                "a number with its unit is written in quotes: \"10MB\"",
            ),
            (
                "\"10\"",
                "the unit is missing: write \"10 MiB\", or a number of bytes",
            ),
            ("\"10 mib\"", "unknown unit `mib`: did you mean \"10 MiB\"?"),
            ("\"10 TB\"", "unknown unit `TB`: the units are B, KB"),
            (
                "\"1.5 MiB\"",
                "`body_limit` is a whole number with its unit",
            ),
            ("\"-1 B\"", "`body_limit` is a whole number with its unit"),
            ("\"\"", "`body_limit` is a whole number with its unit"),
            ("\"MiB\"", "`body_limit` is a whole number with its unit"),
            ("1.5", "`body_limit` is a whole number with its unit"),
            ("true", "`body_limit` is a whole number with its unit"),
            (
                "LIMIT",
                "the value of `body_limit` is written out where the route is",
            ),
            ("10 << 20", "expected `,`"),
        ] {
            refuses(&format!("body_limit = {value}"), &[start]);
        }
        refuses("body_limit", &["`body_limit` takes a value"]);
        refuses("body_limit(5)", &["`body_limit` takes a value"]);
        refuses(
            "body_limit =",
            &["the value of `body_limit` is written out"],
        );
        refuses(
            "body_limit = 1, private, body_limit = 2",
            &["`body_limit` is written twice: once is enough"],
        );
    }

    #[test]
    fn times_have_units() {
        for (value, milliseconds) in [
            ("1ms", 1),
            ("500 ms", 500),
            ("5s", 5000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("18446744073709551615ms", u64::MAX),
        ] {
            let read = accepts(&format!("timeout = \"{value}\"")).timeout;
            assert_eq!(read, Some(Duration::from_millis(milliseconds)), "{value}");
        }
        for (value, start) in [
            ("\"0s\"", "no handler is done in no time"),
            ("5", "the unit is missing: write \"500ms\", \"5s\""),
            ("5s", "a number with its unit is written in quotes: \"5s\""),
            ("\"5\"", "the unit is missing"),
            ("\"5 S\"", "unknown unit `S`: did you mean \"5 s\"?"),
            (
                "\"5 min\"",
                "unknown unit `min`: the units are ms, s, m and h",
            ),
            ("\"1.5s\"", "`timeout` is a whole number with its unit"),
            (
                "\"18446744073709552s\"",
                "this is more than `timeout` can be",
            ),
            (
                "Duration::from_secs(5)",
                "the value of `timeout` is written out",
            ),
        ] {
            refuses(&format!("timeout = {value}"), &[start]);
        }
    }

    #[test]
    fn hosts_params_and_middlewares() {
        let read = accepts(
            "wrap(trace, Cors::new().origin(\"a\"), |request: &mut Request<'_>, next: Next<'_>| next.run(request),), host = \"*.h\", params(\"a\", \"b\"), private",
        );
        assert_eq!(read.host.unwrap().value(), "*.h");
        assert!(read.private);
        let names: Vec<_> = read.params.iter().map(LitStr::value).collect();
        assert_eq!(names, ["a", "b"]);
        let wrap: Vec<_> = read
            .wrap
            .iter()
            .map(|each| each.to_token_stream().to_string().replace(' ', ""))
            .collect();
        assert_eq!(
            wrap,
            [
                "trace",
                "Cors::new().origin(\"a\")",
                "|request:&mutRequest<'_>,next:Next<'_>|next.run(request)"
            ]
        );
        refuses("host = 5", &["a host is a text"]);
        refuses("host", &["`host` takes a value"]);
        refuses("params", &["`params` takes a list in parentheses"]);
        refuses("params = \"a\"", &["`params` takes a list in parentheses"]);
        refuses("params()", &["this list is empty"]);
        refuses(
            "params(name, \"\", 5, \"a\", \"a\")",
            &[
                "a parameter is named in quotes",
                "a parameter has a name",
                "a parameter is named in quotes",
                "this parameter is named twice",
            ],
        );
        refuses(
            "params(\"a\"), params(\"b\")",
            &["`params` is written twice: make one list"],
        );
        refuses("wrap = trace", &["`wrap` takes a list in parentheses"]);
        refuses("wrap()", &["this list is empty"]);
        refuses(
            "wrap(|request, next: Next<'_>| next.run(request))",
            &["the arguments of a closure have their types"],
        );
        refuses("wrap(a b)", &["expected `,`"]);
        refuses("private = true", &["`private` is written alone"]);
        refuses("timeout = \"5s\" private", &["expected `,`"]);
    }
}
