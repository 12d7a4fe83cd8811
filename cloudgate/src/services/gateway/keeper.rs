//! Who looks after servers while nobody asks for them?
//!
//! One thread of the process, which never waits for a server itself: it starts coroutines that close idle connections, and
//! that ask servers whether they are well.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::super::request_id::Id;
use super::Group;
use super::build::Plan;
use super::exchange::{Exchange, Upload};
use super::health::{self, milliseconds};
use super::rewrite::{self, Outbound, OutboundLength};
use super::settings::Active;
use crate::message::{Deadline, Request};
use crate::net::dial::Dialer;
use crate::net::home;

/// How often it looks.
const TICK: Duration = Duration::from_millis(200);

/// How often idle connections are looked at, in milliseconds.
const PRUNE: u64 = 1000;

static PLANS: Mutex<Vec<Weak<Plan>>> = Mutex::new(Vec::new());

/// Has a gateway looked after for as long as it is there.
///
/// # Errors
/// When there is no thread for that.
pub(super) fn look_after(plan: &Arc<Plan>) -> Result<(), String> {
    static THREAD: OnceLock<Result<(), String>> = OnceLock::new();
    {
        let mut plans = plans();
        plans.retain(|known| known.strong_count() > 0);
        let known = Arc::downgrade(plan);
        if !plans.iter().any(|other| other.ptr_eq(&known)) {
            plans.push(known);
        }
    }
    THREAD
        .get_or_init(|| {
            let begun = thread::Builder::new()
                .name("cloudgate-gateway".to_owned())
                .spawn(run);
            begun
                .map(drop)
                .map_err(|error| format!("there is no thread to look after servers with: {error}"))
        })
        .clone()
}

fn run() {
    let mut pruned = 0;
    loop {
        thread::sleep(TICK);
        if !home::is_running() {
            continue;
        }
        let now = health::now();
        let prune = now.saturating_sub(pruned) >= PRUNE;
        if prune {
            pruned = now;
        }
        let plans: Vec<_> = plans().iter().filter_map(Weak::upgrade).collect();
        for plan in plans {
            let Ok(group) = plan.group() else { continue };
            if prune {
                close_idle(&group);
            }
            if let Some(rules) = &group.settings.active {
                ask_all(&group, rules, now);
            }
        }
    }
}

fn close_idle(group: &Arc<Group>) {
    if group.servers.iter().all(|server| server.pool.len() == 0) {
        return;
    }
    for worker in 0..home::workers() {
        let group = Arc::clone(group);
        // Where there is no stack for it, the next time will do.
        let _ = home::spawn(worker, "prune", move || {
            let Ok(dialer) = Dialer::get() else { return };
            let most = milliseconds(group.settings.times.pool);
            for server in &group.servers {
                server.pool.prune(dialer.now(), most);
            }
        });
    }
}

fn ask_all(group: &Arc<Group>, rules: &Active, now: u64) {
    for (index, server) in group.servers.iter().enumerate() {
        if !server.is_due(now, milliseconds(rules.interval)) {
            continue;
        }
        let (group, rules) = (Arc::clone(group), rules.clone());
        let _ = home::spawn(index % home::workers(), "health", move || {
            let good = ask(&group, index, &rules);
            let server = &group.servers[index];
            if server
                .health
                .asked(good.is_ok(), rules.rise, rules.fall, health::now())
            {
                let name = &group.settings.name;
                match good {
                    Ok(()) => log::info!("{name}: {} is well again", server.address),
                    Err(why) => log::warn!("{name}: {} is not well: {why}", server.address),
                }
            }
            server.was_asked();
        });
    }
}

/// Asks a server whether it is well.
fn ask(group: &Arc<Group>, index: usize, rules: &Active) -> Result<(), String> {
    let dialer = Dialer::get().map_err(|error| error.to_string())?;
    let server = &group.servers[index];
    let limit = milliseconds(rules.timeout);
    let until = Deadline::after(dialer.present(), limit);
    // Not in the count of requests, which may be full for reasons of its own.
    let link = server
        .connect(dialer, rules.timeout)
        .map_err(|error| error.to_string())?;
    let mut request = Request::get(&rules.path).with_header("User-Agent", "cloudgate");
    let mut buffers = group.shelf.take();
    let with = Outbound {
        settings: &group.settings,
        server: &server.address,
        id: &Id::of(&request),
        length: OutboundLength::None,
        upgrade: false,
        expects_continue: false,
    };
    rewrite::request(&mut buffers.output, &request, &with);
    let times = &group.settings.times;
    let exchange = Exchange::new(dialer, times, until, &mut request, link, buffers);
    let mut nothing = Upload::new(OutboundLength::None);
    let answered = exchange
        .run(&mut nothing, false)
        .map_err(|failure| failure.to_string())?;
    let status = answered.head.status.as_u16();
    let (first, last) = rules.statuses;
    if (first..=last).contains(&status) {
        Ok(())
    } else {
        Err(format!("it answered {status}"))
    }
}

fn plans() -> std::sync::MutexGuard<'static, Vec<Weak<Plan>>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}
