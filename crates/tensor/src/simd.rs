//! Runtime choice of vector instructions.
//!
//! Kernels are written once as plain loops over fixed lanes and compiled once per instruction set. No
//! compilation reorders floating-point arithmetic or fuses multiply and add, so every level gives the same
//! bits; only the speed differs.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set a kernel was compiled for, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the target triple guarantees (SSE2 on x86-64, NEON on aarch64).
    Baseline = 1,
    Avx2 = 2,
    Avx512 = 3,
}

impl Level {
    /// The best level of this machine, detected once.
    pub(crate) fn detected() -> Level {
        static CACHE: AtomicU8 = AtomicU8::new(0);
        match CACHE.load(Ordering::Relaxed) {
            1 => Level::Baseline,
            2 => Level::Avx2,
            3 => Level::Avx512,
            _ => {
                let level = Self::detect();
                CACHE.store(level as u8, Ordering::Relaxed);
                level
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Level {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            Level::Avx512
        } else if has!("avx2") {
            Level::Avx2
        } else {
            Level::Baseline
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Level {
        Level::Baseline
    }

    /// Every level this machine can run.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Level> {
        [Level::Baseline, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(|&level| level <= Self::detected())
            .collect()
    }
}

/// Defines a function whose body is compiled for each [`Level`] and chosen by its first argument, which
/// must not exceed [`Level::detected`].
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident [$generic:ident: $bound:path] ($level:ident, $($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name<$generic: $bound>($level: $crate::simd::Level, $($arg: $type),*) {
            #[inline(always)]
            fn body<$generic: $bound>($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2<$generic: $bound>($($arg: $type),*) { body::<$generic>($($arg),*) }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512<$generic: $bound>($($arg: $type),*) { body::<$generic>($($arg),*) }
                debug_assert!($level <= $crate::simd::Level::detected());
                match $level {
                    // SAFETY: the level was detected on this machine, so the instructions exist.
                    #[allow(unsafe_code, reason = "runtime dispatch")]
                    $crate::simd::Level::Avx512 => return unsafe { avx512::<$generic>($($arg),*) },
                    // SAFETY: as above.
                    #[allow(unsafe_code, reason = "runtime dispatch")]
                    $crate::simd::Level::Avx2 => return unsafe { avx2::<$generic>($($arg),*) },
                    $crate::simd::Level::Baseline => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = $level;
            body::<$generic>($($arg),*)
        }
    };
}
pub(crate) use multiversion;
