//! What does the attribute of a route say: which methods, which pattern, which options?

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, Lit, LitStr, Token, token};

use crate::mistakes::Mistakes;
use crate::options::{self, Options};
use crate::spelling::{METHODS, likeliest, nearest, refusal};

/// Which of the macros it is: `#[route]`, or one that stands for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Route,
    /// The name of the macro, and the method.
    Method(&'static str, &'static str),
}

impl Attribute {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Attribute::Route => "route",
            Attribute::Method(name, _) => name,
        }
    }
}

/// The parsed argument list of the attribute.
pub(crate) struct Route {
    /// At least one: `GET` if the list names none.
    pub(crate) methods: Vec<&'static str>,
    /// Whether it is a valid pattern is decided by the library's own `const fn`: the grammar of patterns exists once.
    pub(crate) pattern: Option<LitStr>,
    pub(crate) options: Options,
}

/// Reads the whole list and notes every mistake in it.
pub(crate) fn parse(
    attribute: Attribute,
    arguments: TokenStream,
    mistakes: &mut Mistakes,
) -> Route {
    let mut list = List {
        attribute,
        methods: Vec::new(),
        pattern: None,
        pattern_was_tried: false,
        options: Options::default(),
        seen: Vec::new(),
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
        let missing = match attribute {
            Attribute::Route => {
                "the pattern is missing: write #[route(\"/path\")], or with a method #[route(POST, \"/path\")]".to_owned()
            }
            Attribute::Method(name, _) => {
                format!("the pattern is missing: write #[{name}(\"/path\")]")
            }
        };
        list.mistakes.at(Span::call_site(), missing);
    }
    match attribute {
        Attribute::Method(_, method) => list.methods.push(method),
        Attribute::Route if list.methods.is_empty() => list.methods.push("GET"),
        Attribute::Route => {}
    }
    Route {
        methods: list.methods,
        pattern: list.pattern,
        options: list.options,
    }
}

struct List<'a> {
    attribute: Attribute,
    methods: Vec<&'static str>,
    pattern: Option<LitStr>,
    /// Something stood where the pattern belongs and was reported: "missing" would be one message too many.
    pattern_was_tried: bool,
    options: Options,
    /// The names of the options that were there.
    seen: Vec<&'static str>,
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
            self.mistakes.at(input.span(), self.allowed());
            skip_to_comma(input)?;
        }
        Ok(())
    }

    /// What may stand in the list.
    fn allowed(&self) -> String {
        let options = options::NAMES.map(|name| format!("`{name}`")).join(", ");
        match self.attribute {
            Attribute::Route => format!(
                "#[route] takes methods (GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS), then one pattern, and then options ({options}), \
                 such as #[route(POST, \"/orders/{{id}}\", body_limit = \"10 MiB\")]"
            ),
            Attribute::Method(name, _) => format!(
                "#[{name}] takes one pattern, and then options ({options}), such as #[{name}(\"/orders/{{id}}\", timeout = \"5s\")]"
            ),
        }
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
            let name = self.attribute.name();
            self.mistakes.on(
                &literal,
                format_args!("a route has one pattern: for another one write a second #[{name}(...)] above the same function"),
            );
        } else {
            self.pattern = Some(literal);
        }
    }

    /// A name is an option or a method, unless what follows it makes it something else.
    fn take_name(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if let Some(option) = options::NAMES.into_iter().find(|option| name == option) {
            return self.take_option(option, name.span(), input);
        }
        if input.peek(Token![=]) || input.peek(token::Paren) {
            self.refuse_option(name);
            skip_to_comma(input)
        } else if input.peek(Token![::]) {
            self.mistakes.at(
                name.span(),
                format_args!(
                    "a method is written as one word, such as POST: {}",
                    self.allowed()
                ),
            );
            skip_to_comma(input)
        } else {
            match self.attribute {
                Attribute::Route => self.take_method(name),
                Attribute::Method(attribute, method) => {
                    self.refuse_method(name, attribute, method);
                }
            }
            Ok(())
        }
    }

    fn take_option(
        &mut self,
        option: &'static str,
        place: Span,
        input: ParseStream<'_>,
    ) -> syn::Result<()> {
        if self.seen.contains(&option) {
            self.mistakes.at(
                place,
                match option {
                    "params" | "wrap" => {
                        format!("`{option}` is written twice: make one list of both")
                    }
                    _ => format!("`{option}` is written twice: once is enough"),
                },
            );
        } else if self.pattern.is_none() && !self.pattern_was_tried {
            self.mistakes.at(
                place,
                format_args!(
                    "`{option}` comes after the pattern, such as #[{}(\"/path\", {})]",
                    self.attribute.name(),
                    options::example(option)
                ),
            );
        }
        self.seen.push(option);
        let attribute = self.attribute.name();
        self.options
            .read(option, place, attribute, input, self.mistakes)
    }

    fn refuse_option(&mut self, name: &Ident) {
        let meant = likeliest(&name.to_string().to_ascii_lowercase(), &options::NAMES);
        match meant {
            Some(option) => self.mistakes.at(
                name.span(),
                format_args!(
                    "`{name}` is not an option: did you mean `{}`?",
                    options::example(option)
                ),
            ),
            None => self.mistakes.at(
                name.span(),
                format_args!("`{name}` is not an option: {}", self.allowed()),
            ),
        }
    }

    fn take_method(&mut self, name: &Ident) {
        let text = name.to_string();
        let Some(method) = METHODS.into_iter().find(|method| *method == text) else {
            if self.pattern.is_some() && nearest(&text.to_ascii_uppercase()).is_none() {
                self.refuse_option(name);
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

    /// A single word in an attribute that stands for a method already.
    fn refuse_method(&mut self, name: &Ident, attribute: &str, method: &str) {
        let upper = name.to_string().to_ascii_uppercase();
        if upper == method {
            self.mistakes.at(
                name.span(),
                format_args!("#[{attribute}] stands for {method} already: leave `{name}` out"),
            );
        } else if METHODS.contains(&&*upper) {
            self.mistakes.at(
                name.span(),
                format_args!(
                    "#[{attribute}] is for {method} alone: leave `{name}` out, or write #[route({method}, {upper}, \"/path\")] for both"
                ),
            );
        } else {
            self.refuse_option(name);
        }
    }
}

/// After a mistake: the next entry may hold another one.
pub(crate) fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Thread;

    fn read(arguments: &str) -> (Route, Vec<String>) {
        read_as(Attribute::Route, arguments)
    }

    fn read_as(attribute: Attribute, arguments: &str) -> (Route, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let route = parse(attribute, arguments.parse().unwrap(), &mut mistakes);
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
        refuses_as(Attribute::Route, arguments, starts);
    }

    #[track_caller]
    fn refuses_as(attribute: Attribute, arguments: &str, starts: &[&str]) {
        let (_, messages) = read_as(attribute, arguments);
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
            assert_eq!(route.options.thread, want, "{arguments}");
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
        refuses(
            "\"/\", timeout",
            &["`timeout` takes a value, such as #[route(\"/path\", timeout = \"5s\")]"],
        );
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
        refuses("\"/\", timeout = 5", &["the unit is missing"]);
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
    fn an_option_is_recognised_although_it_is_misspelt() {
        for (arguments, start) in [
            (
                "\"/\", timeuot = \"5s\"",
                "`timeuot` is not an option: did you mean `timeout = \"5s\"`?",
            ),
            (
                "\"/\", param(\"a\")",
                "`param` is not an option: did you mean `params(\"name\", \"age\")`?",
            ),
            (
                "\"/\", bodylimit = 5",
                "`bodylimit` is not an option: did you mean `body_limit = \"10 MiB\"`?",
            ),
            (
                "\"/\", Private",
                "`Private` is not an option: did you mean `private`?",
            ),
            (
                "\"/\", name = \"x\"",
                "`name` is not an option: #[route] takes methods",
            ),
        ] {
            refuses(arguments, &[start]);
        }
    }

    #[test]
    fn an_attribute_of_a_method_takes_no_methods() {
        let get = Attribute::Method("get", "GET");
        let (route, messages) = read_as(get, "\"/a\", private, blocking,");
        assert_eq!(messages, [""; 0]);
        assert_eq!(route.methods, ["GET"]);
        assert_eq!(route.pattern.unwrap().value(), "/a");
        assert!(route.options.private && route.options.thread == Thread::Blocking);
        for (arguments, start) in [
            ("", "the pattern is missing: write #[get(\"/path\")]"),
            (
                "GET, \"/\"",
                "#[get] stands for GET already: leave `GET` out",
            ),
            (
                "get, \"/\"",
                "#[get] stands for GET already: leave `get` out",
            ),
            (
                "POST, \"/\"",
                "#[get] is for GET alone: leave `POST` out, or write #[route(GET, POST, \"/path\")] for both",
            ),
            ("\"/\", POST", "#[get] is for GET alone"),
            (
                "ANY, \"/\"",
                "`ANY` is not an option: #[get] takes one pattern",
            ),
            (
                "\"/\", private()",
                "`private` is written alone, such as #[get(",
            ),
        ] {
            refuses_as(get, arguments, &[start]);
        }
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
