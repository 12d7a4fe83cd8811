//! How do the counts of all parts become one text for those who watch the process?
//!
//! ```text
//!  server, gateway, ... ──register──▶ list of the process (each held weakly)
//!                                       │ gather
//!                                       ▼
//!                       Exposition: families, each with its samples ──▶ text format 0.0.4
//! ```
//!
//! A part that counts is a [`Collect`]; it is asked whenever somebody wants to know, and vanishes from
//! the text when it is dropped.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The media type of the text (Prometheus, "Exposition formats": text format 0.0.4).
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A part of the program that counts something.
pub(crate) trait Collect: Send + Sync {
    /// Tells what it has counted so far. It must not wait.
    fn collect(&self, out: &mut Exposition);
}

/// Those of this process.
static COLLECTORS: Mutex<Vec<Weak<dyn Collect>>> = Mutex::new(Vec::new());

/// Asks `collector` too from now on, until it is dropped.
pub(crate) fn register(collector: Weak<dyn Collect>) {
    let mut collectors = COLLECTORS.lock().unwrap_or_else(PoisonError::into_inner);
    collectors.retain(|collector| collector.strong_count() > 0);
    collectors.push(collector);
}

/// Asks every part of this process, in the order in which they were registered.
pub(crate) fn gather(out: &mut Exposition) {
    let collectors: Vec<Arc<dyn Collect>> = {
        let collectors = COLLECTORS.lock().unwrap_or_else(PoisonError::into_inner);
        collectors.iter().filter_map(Weak::upgrade).collect()
    };
    for collector in collectors {
        collector.collect(out);
    }
}

/// What a family of samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A count that never becomes less. Of several with the same labels the sum is told.
    Counter,
    /// A count that rises and falls. Of several with the same labels the sum is told.
    Gauge,
    /// A gauge that cannot be added up, such as a moment. Of several with the same labels the least is told.
    Lowest,
    /// The same, and the greatest is told.
    Highest,
    /// The same, and the one is told whose part was registered last.
    Latest,
    /// How often a value was in which range.
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::Lowest | Kind::Highest | Kind::Latest => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The text while it is made: families in the order in which they were first named.
#[derive(Default)]
pub(crate) struct Exposition {
    families: Vec<Family>,
    places: HashMap<&'static str, usize>,
}

/// All samples of one name.
pub(crate) struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: Vec<Sample>,
    places: HashMap<String, usize>,
}

struct Sample {
    /// What stands between the braces.
    labels: String,
    value: Value,
}

enum Value {
    Number(f64),
    Spread {
        bounds: &'static [f64],
        /// One for each bound, and one for what is above the last.
        counts: Vec<u64>,
        sum: f64,
    },
}

impl Exposition {
    /// The family of this name. What the first who names it says of kind and help counts.
    pub(crate) fn family(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &'static str,
    ) -> &mut Family {
        let families = &mut self.families;
        let place = *self.places.entry(name).or_insert_with(|| {
            families.push(Family {
                name,
                kind,
                help,
                samples: Vec::new(),
                places: HashMap::new(),
            });
            families.len() - 1
        });
        let family = &mut families[place];
        debug_assert_eq!(family.kind, kind, "{name} is of two kinds");
        family
    }
}

impl Family {
    /// Adds a sample with these labels; numbers are exact up to 2 to the 53rd.
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Family {
        let kind = self.kind;
        let (sample, is_first) = self.value(labels, || Value::Number(value));
        match sample {
            Value::Number(number) if !is_first => {
                *number = match kind {
                    Kind::Counter | Kind::Gauge => *number + value,
                    Kind::Lowest => number.min(value),
                    Kind::Highest => number.max(value),
                    Kind::Latest | Kind::Histogram => value,
                };
            }
            Value::Number(_) => {}
            Value::Spread { .. } => debug_assert!(false, "a number in a histogram"),
        }
        self
    }

    /// Adds a spread: `counts` holds how many values were at most the bound of the same place and above
    /// the one before, and behind these how many were above the last bound.
    pub(crate) fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        bounds: &'static [f64],
        counts: &[u64],
        sum: f64,
    ) -> &mut Family {
        debug_assert_eq!(counts.len(), bounds.len() + 1);
        let first = || Value::Spread {
            bounds,
            counts: counts.to_vec(),
            sum,
        };
        if let (
            Value::Spread {
                counts: all,
                sum: whole,
                ..
            },
            false,
        ) = self.value(labels, first)
        {
            *whole += sum;
            for (all, count) in all.iter_mut().zip(counts) {
                *all += count;
            }
        }
        self
    }

    /// The value with these labels, and whether it is `first`, for there was none.
    fn value(
        &mut self,
        labels: &[(&str, &str)],
        first: impl FnOnce() -> Value,
    ) -> (&mut Value, bool) {
        let labels = spelled(labels);
        let samples = &mut self.samples;
        let before = samples.len();
        let place = *self.places.entry(labels).or_insert_with_key(|labels| {
            samples.push(Sample {
                labels: labels.clone(),
                value: first(),
            });
            before
        });
        (&mut samples[place].value, place == before)
    }
}

/// Labels as they stand between the braces.
fn spelled(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        escape(&mut text, value, true);
        text.push('"');
    }
    text
}

/// Adds a text in which these characters cannot stand as they are: `\` and the line feed, and in the value
/// of a label the quote.
fn escape(text: &mut String, value: &str, quoted: bool) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quoted => text.push_str("\\\""),
            _ => text.push(char),
        }
    }
}

impl fmt::Display for Exposition {
    /// The text format; families without a sample are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for family in &self.families {
            if family.samples.is_empty() {
                continue;
            }
            let mut help = String::with_capacity(family.help.len());
            escape(&mut help, family.help, false);
            writeln!(f, "# HELP {} {help}", family.name)?;
            writeln!(f, "# TYPE {} {}", family.name, family.kind.name())?;
            for sample in &family.samples {
                sample.write(f, family.name)?;
            }
        }
        Ok(())
    }
}

impl Sample {
    fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let labels = &self.labels;
        let braced = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        match &self.value {
            Value::Number(number) => writeln!(f, "{name}{braced} {}", Number(*number)),
            Value::Spread {
                bounds,
                counts,
                sum,
            } => {
                let comma = if labels.is_empty() { "" } else { "," };
                let bounds = bounds.iter().copied().chain([f64::INFINITY]);
                // Each bucket holds those before it too.
                let mut total = 0;
                for (bound, count) in bounds.zip(counts) {
                    total += count;
                    writeln!(
                        f,
                        "{name}_bucket{{{labels}{comma}le=\"{}\"}} {total}",
                        Number(bound)
                    )?;
                }
                writeln!(f, "{name}_sum{braced} {}", Number(*sum))?;
                writeln!(f, "{name}_count{braced} {total}")
            }
        }
    }
}

/// A number as the format spells it.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_infinite() {
            return f.write_str(if self.0 > 0.0 { "+Inf" } else { "-Inf" });
        }
        // Rust's own spelling: `NaN`, and else digits with a point where there is a fraction.
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn each_family_has_one_head_and_all_its_samples() {
        let mut out = Exposition::default();
        for service in ["a", "b"] {
            out.family("requests_total", Kind::Counter, "Answered.")
                .sample(&[("service", service), ("code", "2xx")], 7.0);
            out.family("open", Kind::Gauge, "Open now.")
                .sample(&[], 2.0);
        }
        out.family("never", Kind::Gauge, "No sample, no head.");
        assert_eq!(
            out.to_string(),
            "# HELP requests_total Answered.\n\
             # TYPE requests_total counter\n\
             requests_total{service=\"a\",code=\"2xx\"} 7\n\
             requests_total{service=\"b\",code=\"2xx\"} 7\n\
             # HELP open Open now.\n\
             # TYPE open gauge\n\
             open 4\n"
        );
    }

    #[test]
    fn the_same_labels_come_once() {
        let mut out = Exposition::default();
        let place = [("place", "cert.pem")];
        for value in [3.0, 5.0, 4.0] {
            out.family("sum", Kind::Counter, "").sample(&place, value);
            out.family("open", Kind::Gauge, "").sample(&place, value);
            out.family("until", Kind::Lowest, "").sample(&place, value);
            out.family("bad", Kind::Highest, "").sample(&place, value);
            out.family("up", Kind::Latest, "").sample(&place, value);
        }
        let text = out.to_string();
        for (name, kind, value) in [
            ("sum", "counter", 12),
            ("open", "gauge", 12),
            ("until", "gauge", 3),
            ("bad", "gauge", 5),
            ("up", "gauge", 4),
        ] {
            let want = format!("# TYPE {name} {kind}\n{name}{{place=\"cert.pem\"}} {value}\n");
            assert!(text.contains(&want), "{text}");
        }
    }

    #[test]
    fn buckets_hold_what_is_below_them_too() {
        static BOUNDS: [f64; 3] = [0.0005, 0.25, 10.0];
        let mut out = Exposition::default();
        for labels in [&[("service", "a")][..], &[]] {
            let family = out.family("took_seconds", Kind::Histogram, "How long.");
            family.histogram(labels, &BOUNDS, &[1, 0, 2, 1], 1.5);
        }
        let family = out.family("took_seconds", Kind::Histogram, "How long.");
        family.histogram(&[], &BOUNDS, &[1, 0, 0, 0], 0.25);
        assert_eq!(
            out.to_string(),
            "# HELP took_seconds How long.\n\
             # TYPE took_seconds histogram\n\
             took_seconds_bucket{service=\"a\",le=\"0.0005\"} 1\n\
             took_seconds_bucket{service=\"a\",le=\"0.25\"} 1\n\
             took_seconds_bucket{service=\"a\",le=\"10\"} 3\n\
             took_seconds_bucket{service=\"a\",le=\"+Inf\"} 4\n\
             took_seconds_sum{service=\"a\"} 1.5\n\
             took_seconds_count{service=\"a\"} 4\n\
             took_seconds_bucket{le=\"0.0005\"} 2\n\
             took_seconds_bucket{le=\"0.25\"} 2\n\
             took_seconds_bucket{le=\"10\"} 4\n\
             took_seconds_bucket{le=\"+Inf\"} 5\n\
             took_seconds_sum 1.75\n\
             took_seconds_count 5\n"
        );
    }

    #[test]
    fn no_name_breaks_a_line_or_ends_a_label() {
        let mut out = Exposition::default();
        out.family("a", Kind::Gauge, "a \"b\" \\ \n c")
            .sample(&[("name", "x\"} 1\n# TYPE a counter\\"), ("o", "é\r")], 0.5);
        assert_eq!(
            out.to_string(),
            "# HELP a a \"b\" \\\\ \\n c\n\
             # TYPE a gauge\n\
             a{name=\"x\\\"} 1\\n# TYPE a counter\\\\\",o=\"é\r\"} 0.5\n"
        );
    }

    #[test]
    fn numbers_are_spelled_as_the_format_wants_them() {
        for (number, want) in [
            (0.0, "0"),
            (12.0, "12"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (0.0005, "0.0005"),
            (-1.5, "-1.5"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Number(number).to_string(), want);
        }
    }

    struct Fixed(f64);

    impl Collect for Fixed {
        fn collect(&self, out: &mut Exposition) {
            out.family("test_fixed", Kind::Gauge, "Of a test.")
                .sample(&[], self.0);
        }
    }

    /// Gathers until the text is as it should be: whoever gathers meanwhile in another test holds what is dropped for a moment.
    #[track_caller]
    fn wait_until(what: &str, fits: impl Fn(&str) -> bool) {
        let due = Instant::now() + Duration::from_secs(20);
        loop {
            let mut out = Exposition::default();
            gather(&mut out);
            let text = out.to_string();
            if fits(&text) {
                return;
            }
            assert!(Instant::now() < due, "{what} is not so: {text}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_dropped_is_gone() {
        let collectors = [Arc::new(Fixed(1.0)), Arc::new(Fixed(2.0))];
        for collector in &collectors {
            let weak = Arc::downgrade(collector);
            register(weak);
        }
        let [one, two] = collectors;
        wait_until("the sum", |text| text.contains("\ntest_fixed 3\n"));
        drop(two);
        wait_until("what is left", |text| {
            text.contains("\ntest_fixed 1\n") && text.matches("# TYPE test_fixed").count() == 1
        });
        drop(one);
        wait_until("nothing", |text| !text.contains("test_fixed"));
    }
}
