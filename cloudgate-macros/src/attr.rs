//! What does `#[route(...)]` say: which methods, which pattern, on which thread?

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, Lit, LitStr, Token, token};

use crate::mistakes::Mistakes;

/// The parsed argument list of the attribute.
pub(crate) struct Route {
    /// At least one: `GET` if the list names none.
    pub(crate) methods: Vec<&'static str>,
    /// Whether it is a valid pattern is decided by the library's own `const fn`: the grammar of patterns exists once.
    pub(crate) pattern: Option<LitStr>,
    pub(crate) thread: Thread,
}

/// Where the handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// On the worker of the connection, which serves others only while the handler waits.
    Worker,
    /// On one that may block.
    Blocking,
}

/// Reads the whole list and notes every mistake in it.
pub(crate) fn parse(arguments: TokenStream, mistakes: &mut Mistakes) -> Route {
    let mut list = List {
        methods: Vec::new(),
        pattern: None,
        pattern_was_tried: false,
        thread: Thread::Worker,
        mistakes,
    };
    let read = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            list.read_entry(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    })
    .parse2(arguments);
    if let Err(error) = read {
        list.mistakes.push(error);
    }
    if list.pattern.is_none() && !list.pattern_was_tried {
        list.mistakes.at(
            Span::call_site(),
            "the pattern is missing: write #[route(\"/path\")], or with a method #[route(POST, \"/path\")]",
        );
    }
    if list.methods.is_empty() {
        list.methods.push("GET");
    }
    Route {
        methods: list.methods,
        pattern: list.pattern,
        thread: list.thread,
    }
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const ALLOWED: &str = "#[route] takes methods (GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS), then one pattern, and then `blocking` \
                       where that is wanted, such as #[route(POST, \"/orders/{id}\", blocking)]";

/// The option for a handler that may hold its thread for long.
const BLOCKING: &str = "blocking";

struct List<'a> {
    methods: Vec<&'static str>,
    pattern: Option<LitStr>,
    /// Something stood where the pattern belongs and was reported: "missing" would be one message too many.
    pattern_was_tried: bool,
    thread: Thread,
    mistakes: &'a mut Mistakes,
}

impl List<'_> {
    fn read_entry(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(Lit) {
            self.take_literal(input.parse()?);
        } else if input.peek(Ident::peek_any) {
            let name = input.call(Ident::parse_any)?;
            self.take_name(&name, input)?;
        } else {
            self.mistakes.at(input.span(), ALLOWED);
            skip_to_comma(input)?;
        }
        Ok(())
    }

    fn take_literal(&mut self, literal: Lit) {
        let Lit::Str(literal) = literal else {
            self.pattern_was_tried = true;
            self.mistakes
                .on(literal, "the pattern is a string, such as \"/users/{id}\"");
            return;
        };
        if let Some(method) = METHODS
            .into_iter()
            .find(|method| literal.value().eq_ignore_ascii_case(method))
        {
            self.mistakes.on(
                &literal,
                format_args!("a method is written without quotes: {method}"),
            );
        } else if self.pattern.is_some() {
            self.mistakes.on(
                &literal,
                "a route has one pattern: for another one write a second #[route(...)] above the same function",
            );
        } else {
            self.pattern = Some(literal);
        }
    }

    /// A name is the option or a method, unless what follows it makes it something else.
    fn take_name(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if name == BLOCKING && (input.is_empty() || input.peek(Token![,])) {
            self.take_blocking(name);
            Ok(())
        } else if name == BLOCKING {
            self.mistakes.at(
                name.span(),
                "`blocking` is written alone, such as #[route(\"/path\", blocking)]",
            );
            skip_to_comma(input)
        } else if input.peek(Token![=]) || input.peek(token::Paren) {
            self.mistakes.at(
                name.span(),
                format_args!("`{name}` is not an option: {ALLOWED}"),
            );
            skip_to_comma(input)
        } else if input.peek(Token![::]) {
            self.mistakes.at(
                name.span(),
                format_args!("a method is written as one word, such as POST: {ALLOWED}"),
            );
            skip_to_comma(input)
        } else {
            self.take_method(name);
            Ok(())
        }
    }

    fn take_blocking(&mut self, name: &Ident) {
        if self.pattern.is_none() && !self.pattern_was_tried {
            self.mistakes.at(
                name.span(),
                "`blocking` comes after the pattern, such as #[route(\"/path\", blocking)]",
            );
        } else if self.thread == Thread::Blocking {
            self.mistakes
                .at(name.span(), "`blocking` is written twice: once is enough");
        }
        self.thread = Thread::Blocking;
    }

    fn take_method(&mut self, name: &Ident) {
        let text = name.to_string();
        let Some(method) = METHODS.into_iter().find(|method| *method == text) else {
            let nearest = nearest(&text.to_ascii_uppercase());
            if self.pattern.is_some() && nearest.is_none() {
                self.mistakes.at(
                    name.span(),
                    format_args!("`{name}` is not an option: {ALLOWED}"),
                );
            } else {
                self.mistakes.at(name.span(), refusal(&text));
            }
            return;
        };
        if self.pattern.is_some() {
            self.mistakes.at(
                name.span(),
                "methods come before the pattern, such as #[route(POST, \"/path\")]",
            );
        } else if self.methods.contains(&method) {
            self.mistakes.at(
                name.span(),
                format_args!("{method} is named twice: name each method once"),
            );
        } else {
            self.methods.push(method);
        }
    }
}

fn refusal(name: &str) -> String {
    match name.to_ascii_uppercase().as_str() {
        "TRACE" => {
            "TRACE cannot be a route: its answer repeats the request, and so shows its cookies and credentials to scripts".to_owned()
        }
        "CONNECT" => "CONNECT cannot be a route: it names a host and a port, not a path that a pattern could match".to_owned(),
        upper => match nearest(upper) {
            Some(method) => format!("unknown method `{name}`: did you mean {method}?"),
            None => format!("unknown method `{name}`: the methods are GET, POST, PUT, PATCH, DELETE, HEAD and OPTIONS"),
        },
    }
}

/// The method that was probably meant: the same up to two letters, or cut short.
fn nearest(upper: &str) -> Option<&'static str> {
    let cut_short = METHODS
        .into_iter()
        .find(|method| upper.len() >= 3 && method.starts_with(upper));
    cut_short.or_else(|| {
        METHODS
            .into_iter()
            .map(|method| (distance(upper, method), method))
            .filter(|(distance, method)| *distance <= 2 && *distance < method.len() - 1)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, method)| method)
    })
}

/// Levenshtein: how many letters are to be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other_letter) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other_letter);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// After a mistake: the next entry may hold another one.
fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> (Route, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let route = parse(arguments.parse().unwrap(), &mut mistakes);
        (route, mistakes.messages())
    }

    #[track_caller]
    fn accepts(arguments: &str, methods: &[&str], pattern: &str) {
        let (route, messages) = read(arguments);
        assert_eq!(messages, [""; 0], "{arguments}");
        assert_eq!(route.methods, methods, "{arguments}");
        assert_eq!(route.pattern.unwrap().value(), pattern, "{arguments}");
    }

    /// Each of `starts` begins the message of one mistake, in order, and there are no others.
    #[track_caller]
    fn refuses(arguments: &str, starts: &[&str]) {
        let (_, messages) = read(arguments);
        assert_eq!(messages.len(), starts.len(), "{arguments}: {messages:#?}");
        for (message, start) in messages.iter().zip(starts) {
            assert!(
                message.starts_with(start),
                "{arguments}: {message:?} does not start with {start:?}"
            );
        }
    }

    #[test]
    fn methods_and_pattern() {
        accepts("\"/\"", &["GET"], "/");
        accepts("\"/a\",", &["GET"], "/a");
        accepts("POST, \"/a\"", &["POST"], "/a");
        accepts("GET, POST, \"/a\"", &["GET", "POST"], "/a");
        accepts(
            "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, r\"/a\",",
            &METHODS,
            "/a",
        );
    }

    #[test]
    fn blocking_comes_after_the_pattern() {
        for (arguments, want) in [
            ("\"/\", blocking", Thread::Blocking),
            ("GET, POST, \"/\", blocking,", Thread::Blocking),
            ("GET, \"/\"", Thread::Worker),
        ] {
            let (route, messages) = read(arguments);
            assert_eq!(messages, [""; 0], "{arguments}");
            assert_eq!(route.thread, want, "{arguments}");
        }
        refuses("blocking, \"/\"", &["`blocking` comes after the pattern"]);
        refuses(
            "blocking",
            &[
                "`blocking` comes after the pattern",
                "the pattern is missing",
            ],
        );
        refuses(
            "\"/\", blocking, blocking",
            &["`blocking` is written twice"],
        );
        refuses("\"/\", blocking = true", &["`blocking` is written alone"]);
        refuses("\"/\", blocking(4)", &["`blocking` is written alone"]);
        refuses("\"/\", Blocking", &["`Blocking` is not an option"]);
        refuses("\"/\", timeout", &["`timeout` is not an option"]);
        refuses(
            "\"/\", post",
            &["unknown method `post`: did you mean POST?"],
        );
    }

    #[test]
    fn each_mistake_has_its_message() {
        refuses("", &["the pattern is missing"]);
        refuses("POST", &["the pattern is missing"]);
        refuses("get, \"/\"", &["unknown method `get`: did you mean GET?"]);
        refuses(
            "PSOT, \"/\"",
            &["unknown method `PSOT`: did you mean POST?"],
        );
        refuses(
            "Option, \"/\"",
            &["unknown method `Option`: did you mean OPTIONS?"],
        );
        refuses(
            "DEL, \"/\"",
            &["unknown method `DEL`: did you mean DELETE?"],
        );
        refuses(
            "FETCH, \"/\"",
            &["unknown method `FETCH`: did you mean PATCH?"],
        );
        refuses(
            "ANY, \"/\"",
            &["unknown method `ANY`: the methods are GET, POST"],
        );
        refuses("TRACE, \"/\"", &["TRACE cannot be a route"]);
        refuses("connect, \"/\"", &["CONNECT cannot be a route"]);
        refuses("GET, GET, \"/\"", &["GET is named twice"]);
        refuses("\"/\", GET", &["methods come before the pattern"]);
        refuses(
            "\"post\", \"/\"",
            &["a method is written without quotes: POST"],
        );
        refuses("Method::POST, \"/\"", &["a method is written as one word"]);
        refuses("\"/\", \"/b\"", &["a route has one pattern"]);
        refuses("\"/\", timeout = 5", &["`timeout` is not an option"]);
        refuses("methods(GET, POST), \"/\"", &["`methods` is not an option"]);
        refuses("b\"/\"", &["the pattern is a string"]);
        refuses("404", &["the pattern is a string"]);
        refuses(
            "&PATH",
            &["#[route] takes methods", "the pattern is missing"],
        );
        refuses("GET \"/\"", &["expected `,`", "the pattern is missing"]);
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        refuses(
            "get, POST, POST, \"/\", name = \"x\", \"/b\"",
            &[
                "unknown method `get`",
                "POST is named twice",
                "`name` is not an option",
                "a route has one pattern",
            ],
        );
    }
}
