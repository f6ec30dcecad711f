/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program in Rust, to be measured. It keeps its own record of each call, in the form
 * "NAME START END TID", and prints "result N" at its end: what that is with and without probes must
 * be the same.
 *
 * usage: ruster trait|panic|threads
 */

use std::panic;
use std::thread;
use std::time::Duration;

const CALLS: usize = 100;

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    fn gettid() -> i32;
}

/* The clock of the reports, which the standard library keeps to itself. */
fn now() -> i64 {
    let mut time = Timespec { sec: 0, nsec: 0 };

    unsafe { clock_gettime(1, &mut time) };
    time.sec * 1_000_000_000 + time.nsec
}

trait Task {
    fn run(&self, n: usize) -> usize;
}

struct Sleeper {
    time: Duration,
}

struct Spinner {
    time: Duration,
}

impl Task for Sleeper {
    #[inline(never)]
    fn run(&self, n: usize) -> usize {
        thread::sleep(self.time);
        n
    }
}

impl Task for Spinner {
    #[inline(never)]
    fn run(&self, n: usize) -> usize {
        let end = now() + self.time.as_nanos() as i64;

        while now() < end {}
        2 * n
    }
}

/* Each second call panics, through a frame that has something to drop. */
#[inline(never)]
fn fail(n: usize) -> usize {
    let text = n.to_string();

    if n % 2 == 1 {
        panic!("no {}", text);
    }
    text.len()
}

/* What it has returned; 1000 if it did not. */
fn record(f: impl FnOnce() -> usize) -> usize {
    let start = now();
    let result = f();
    let end = now();

    println!("call {} {} {}", start, end, unsafe { gettid() });
    result
}

fn each(task: &dyn Task) -> usize {
    (0..CALLS).map(|n| record(|| task.run(n))).sum()
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    let sleeper = Sleeper { time: Duration::from_millis(1) };
    let spinner = Spinner { time: Duration::from_micros(200) };
    let result = match way.as_str() {
        "trait" => each(&sleeper) + each(&spinner),
        "panic" => {
            panic::set_hook(Box::new(|_| {}));
            (0..CALLS).map(|n| record(|| panic::catch_unwind(|| fail(n)).unwrap_or(1000))).sum()
        }
        "threads" => {
            let threads: Vec<_> = (0..4)
                .map(|_| thread::spawn(|| each(&Spinner { time: Duration::from_micros(200) })))
                .collect();

            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        }
        _ => std::process::exit(2),
    };

    println!("result {}", result);
}
