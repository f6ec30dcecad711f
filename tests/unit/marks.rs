// SPDX-License-Identifier: LGPL-2.1-or-later

//! The same in Rust: with cfg(other), the other file, which is a crate of its own.

#[cfg(other)]
mod marks {
    tlob::mark!(request);

    /// Compiled where it is used.
    #[inline]
    pub fn other<T: Copy + Into<i64>>(x: T) -> i64 {
        request.begin();
        let y = x.into() * 3;
        request.end();
        y
    }
}

#[cfg(other)]
pub use marks::other;

#[cfg(not(other))]
mod marks {
    tlob::mark!(REQUEST = request);
    tlob::mark!(pub(super) STEP = step);

    fn step(x: i64) -> Result<i64, i64> {
        let _window = STEP.scope();

        if x > 100 {
            return Err(x);
        }
        Ok(if REQUEST.enabled() { 3 * x } else { 5 * x })
    }

    pub fn run(mut n: i64) -> Result<i64, i64> {
        for i in 0..4i32 {
            let _window = REQUEST.scope();

            n += step(n)? + other::other(i);
        }
        Ok(n)
    }
}

#[cfg(not(other))]
#[no_mangle]
pub extern "C" fn marks_run(n: i64) -> i64 {
    marks::run(n).unwrap_or(0)
}

#[cfg(not(other))]
#[allow(dead_code)]
fn main() {
    std::process::exit(i32::from(marks_run(std::env::args().count() as i64) == 0));
}
