// SPDX-License-Identifier: MIT

//! Marks for tlobd: a program names pieces of its own code, and an administrator gives them a budget
//! (`Mark=request` in tlob.binding(5)). tlob-mark(3) explains all of this; these are its marks in Rust.
//!
//! ```
//! tlob::mark!(REQUEST = request);
//! tlob::key_mark!(QUERY = query);
//!
//! fn handle_request() {
//!     let _window = REQUEST.scope(); // to the end of the block, however it is left
//! }
//!
//! fn on_query(id: usize) {
//!     QUERY.begin(id); // a window that any thread, or task, may end
//! }
//!
//! fn on_answer(id: usize) {
//!     QUERY.end(id);
//! }
//! # fn main() {
//! #     handle_request();
//! #     on_query(1);
//! #     on_answer(1);
//! # }
//! ```
//!
//! While nobody listens, a begin or an end is a load and a branch that is not taken. No library is
//! needed, and nothing runs when the program starts. Marks of one name belong together, whatever crate
//! or language of the program they are in.
//!
//! In the program, a mark is a counter of those who listen, and for each place where it begins or ends a
//! nop that is passed only while they do, with a note in the section `.note.stapsdt`: so other tracers
//! see it as the USDT probes `tlob:request__begin` and `tlob:request__end`. These are the same as those
//! of tlob-mark.h: it and this file have to agree.
//!
//! On other targets than ELF on x86-64 and arm64, programs can be built, but have no marks. Only x86-64
//! was tested.

#![no_std]

use core::marker::PhantomData;

/// A window of this thread, which ends when this is dropped. In an `async` function it must not live
/// over an `.await`: use [`key_mark!`] there.
#[must_use = "the window ends when this is dropped"]
pub struct Scope<M: Mark>(M, PhantomData<*const ()>);

impl<M: Mark> Drop for Scope<M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What [`mark!`] makes; its methods are there without it.
pub trait Mark: Copy {
    #[doc(hidden)]
    fn begin(self);
    #[doc(hidden)]
    fn end(self);

    #[doc(hidden)]
    #[inline(always)]
    fn scope(self) -> Scope<Self> {
        self.begin();
        Scope(self, PhantomData)
    }
}

/// The object of a mark, of which the kernel counts in the first member.
#[doc(hidden)]
#[repr(C, align(8))]
pub struct Object {
    listeners: core::cell::UnsafeCell<u16>,
    reserved: [u16; 3],
}

// It is only read here, at once; the kernel writes to it.
unsafe impl Sync for Object {}

impl Object {
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        unsafe { self.listeners.get().read_volatile() != 0 }
    }
}

/// A name in C, of at most 128 characters.
#[doc(hidden)]
pub const fn is_name(name: &str) -> bool {
    let name = name.as_bytes();
    let mut i = 0;

    while i < name.len() {
        if !name[i].is_ascii_alphanumeric() && name[i] != b'_' {
            return false;
        }
        i += 1;
    }
    !name.is_empty() && name.len() <= 128 && !name[0].is_ascii_digit()
}

/// Declares a mark, outside of functions: `mark!(request)`, or `mark!(pub REQUEST = request)` for one
/// that has another name in the program. It has these methods:
///
/// - `begin()`: a window of the calling thread begins;
/// - `end()`: it ends;
/// - `scope()`: both, see [`Scope`];
/// - `enabled()`: whether anybody listens, for what is done only for the sake of the measurement.
///
/// A name that administrators could not write is an error:
///
/// ```compile_fail
/// tlob::mark!(REQUEST = anfrage_für_alle);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! mark {
    ($visibility:vis $item:ident = $name:ident) => {
        $crate::__declare!($visibility $item $name);

        #[allow(dead_code)]
        impl $item {
            #[inline(always)]
            $visibility fn begin(self) {
                if self.enabled() {
                    $crate::__pass!($name "begin" "");
                }
            }

            #[inline(always)]
            $visibility fn end(self) {
                if self.enabled() {
                    $crate::__pass!($name "end" "");
                }
            }

            #[inline(always)]
            $visibility fn scope(self) -> $crate::Scope<Self> {
                $crate::Mark::scope(self)
            }
        }

        impl $crate::Mark for $item {
            #[inline(always)]
            fn begin(self) {
                $item::begin(self);
            }

            #[inline(always)]
            fn end(self) {
                $item::end(self);
            }
        }
    };
    ($visibility:vis $name:ident) => {
        $crate::mark!($visibility $name = $name);
    };
}

/// Declares a mark whose windows have keys, so that another thread, or task, may end them:
/// `begin(key)` and `end(key)`. A key is a `usize`, mostly the address of the object that the work is
/// done for.
#[macro_export]
macro_rules! key_mark {
    ($visibility:vis $item:ident = $name:ident) => {
        $crate::__declare!($visibility $item $name);

        #[allow(dead_code)]
        impl $item {
            #[inline(always)]
            $visibility fn begin(self, key: usize) {
                if self.enabled() {
                    $crate::__pass!($name "begin" key);
                }
            }

            #[inline(always)]
            $visibility fn end(self, key: usize) {
                if self.enabled() {
                    $crate::__pass!($name "end" key);
                }
            }
        }
    };
    ($visibility:vis $name:ident) => {
        $crate::key_mark!($visibility $name = $name);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __declare {
    ($visibility:vis $item:ident $name:ident) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        $visibility struct $item;

        const _: () = assert!(
            $crate::is_name(stringify!($name)),
            "a mark has a name in C, of at most 128 characters"
        );

        $crate::__object!($name);

        #[allow(dead_code)]
        impl $item {
            #[inline(always)]
            $visibility fn enabled(self) -> bool {
                $crate::__enabled!($name)
            }
        }
    };
}

/// Weak, so that the first of several is that of all; not seen by other libraries. With link-time
/// optimisation, those of all crates are one piece of assembly, which may have it once.
///
/// The first piece of the section aligns it to a page. Otherwise it can begin in the page of the file
/// with which another segment ends: lld, which is the linker of newer versions of Rust, gives what is
/// written to only at the start (RELRO) a segment of its own. Both segments map that page, and as the
/// program starts, the kernel counts in the first one that it finds.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[doc(hidden)]
#[macro_export]
macro_rules! __object {
    ($name:ident) => {
        core::arch::global_asm!(
            ".ifndef _.tlob_mark.page",
            ".pushsection .probes, \"awGR\", \"progbits\", .tlob_mark.page, comdat",
            concat!(".balign ", $crate::__page!()),
            ".weak _.tlob_mark.page",
            ".hidden _.tlob_mark.page",
            "_.tlob_mark.page: .8byte 0",
            ".size _.tlob_mark.page, 8",
            ".popsection",
            ".endif",
            concat!(".ifndef tlob_mark_", stringify!($name)),
            ".pushsection .probes, \"aw\", \"progbits\"",
            ".balign 8",
            concat!(".weak tlob_mark_", stringify!($name)),
            concat!(".hidden tlob_mark_", stringify!($name)),
            concat!(".type tlob_mark_", stringify!($name), ", \"object\""),
            concat!(".size tlob_mark_", stringify!($name), ", 8"),
            concat!("tlob_mark_", stringify!($name), ":"),
            ".8byte 0",
            ".popsection",
            ".endif",
        );
    };
}

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[doc(hidden)]
#[macro_export]
macro_rules! __enabled {
    ($name:ident) => {{
        extern "C" {
            #[link_name = concat!("tlob_mark_", stringify!($name))]
            static OBJECT: $crate::Object;
        }
        unsafe { OBJECT.is_enabled() }
    }};
}

/// The largest that kernels have.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! __page {
    () => {
        "4096"
    };
}

#[cfg(not(target_arch = "x86_64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __page {
    () => {
        "65536"
    };
}

// The nop, why it is that, and the note are explained in tlob-mark.h.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_arch = "x86_64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __pass {
    ($name:ident $side:literal "") => {
        $crate::__site!($name $side "",)
    };
    ($name:ident $side:literal $key:ident) => {
        $crate::__site!($name $side "8@%rdi", in("rdi") $key,)
    };
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_arch = "aarch64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __pass {
    ($name:ident $side:literal "") => {
        $crate::__site!($name $side "",)
    };
    ($name:ident $side:literal $key:ident) => {
        $crate::__site!($name $side "8@x0", in("x0") $key,)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($name:ident $side:literal $arguments:literal, $($operands:tt)*) => {
        unsafe {
            core::arch::asm!(
                "990: nop",
                ".pushsection .note.stapsdt, \"?\", \"note\"",
                ".balign 4",
                ".4byte 8, 992f - 991f, 3",
                ".asciz \"stapsdt\"",
                concat!("991: .8byte 990b, _.stapsdt.base, tlob_mark_", stringify!($name)),
                concat!(".asciz \"tlob\", \"", stringify!($name), "__", $side, "\", \"", $arguments, "\""),
                "992: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .byte 0",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                $($operands)*
                options(nostack, preserves_flags)
            )
        }
    };
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __object {
    ($name:ident) => {};
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __enabled {
    ($name:ident) => {
        false
    };
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __pass {
    ($name:ident $side:literal "") => {};
    ($name:ident $side:literal $key:ident) => {
        let _ = $key;
    };
}
