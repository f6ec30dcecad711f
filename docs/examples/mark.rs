// SPDX-License-Identifier: MIT

//! The same in Rust: panics end a scope like everything else, and what threads hand on has a key.
//!
//! usage: mark [REQUESTS]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

tlob::mark!(REQUEST = request);
tlob::key_mark!(JOB = job);

fn handle_request(number: usize) -> Result<(), String> {
    let _window = REQUEST.scope();

    if number % 10 == 0 {
        thread::sleep(Duration::from_millis(50));
        return Err("it was a long one".into());
    }
    thread::sleep(Duration::from_millis(1));
    Ok(())
}

fn main() {
    let n = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let (jobs, queue) = mpsc::channel();

    // Its windows begin here, and end there.
    let worker = thread::spawn(move || {
        for number in queue {
            JOB.end(number);
        }
    });
    for number in 1..=n {
        JOB.begin(number);
        if let Err(error) = handle_request(number) {
            println!("Request {number}: {error}");
        }
        jobs.send(number).expect("the worker goes on to the end");
    }
    drop(jobs);
    worker.join().expect("the worker does not panic");
}
