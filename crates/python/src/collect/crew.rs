//! The framework's own threads as helpers. Between two operations of a training step they wait by spinning, on all
//! cores: threads of ours would have to take the cores from them, so large tensors are measured by them.
//!
//! OpenMP keeps a team for each thread that computes with it; asked on the thread that runs a hook, it is the team
//! of the operation before. Its size is never chosen here: another size would end threads or start some.

#![allow(unsafe_code, reason = "entry points of another library")]

use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use msprobe_tensor::Crew;

/// A team of few shares a tensor of at least this many elements: less is done before the others have noticed.
const LEAST_ELEMENTS: usize = 1 << 17;
/// A larger team takes longer to gather.
const FEW_THREADS: usize = 8;

/// `GOMP_parallel(function, data, threads, flags)`; no threads means as many as the team has.
type Parallel = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);
/// `omp_get_max_threads()`
type MaxThreads = unsafe extern "C" fn() -> c_int;

/// Where [`Parallel`] is: the same library for all sessions of a process.
static PARALLEL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The threads of the framework, if it computes with OpenMP.
pub(crate) struct FrameworkThreads {
    max_threads: Option<MaxThreads>,
    /// In a forked child the team is gone, and whoever asks for it waits for ever.
    process: u32,
}

impl FrameworkThreads {
    /// `addresses` are those of `GOMP_parallel` and `omp_get_max_threads` in the library the framework computes with.
    pub(crate) fn new(addresses: Option<(usize, usize)>) -> FrameworkThreads {
        let known = addresses.filter(|&(parallel, max_threads)| parallel != 0 && max_threads != 0);
        let max_threads = known.map(|(parallel, max_threads)| {
            PARALLEL.store(parallel as *mut c_void, Ordering::Release);
            // SAFETY: the adapter found it under this name in the library; it has been `int(void)` in all versions.
            unsafe { std::mem::transmute::<*const c_void, MaxThreads>(max_threads as *const c_void) }
        });
        FrameworkThreads { max_threads, process: std::process::id() }
    }

    /// Who helps to measure so many elements on this thread, if that is worth it.
    pub(crate) fn for_elements(&self, numel: usize) -> Option<Crew> {
        if numel < LEAST_ELEMENTS || self.process != std::process::id() {
            return None;
        }
        // SAFETY: takes nothing and changes nothing.
        let threads = unsafe { self.max_threads?() };
        let threads = usize::try_from(threads).ok().filter(|&threads| threads > 1)?;
        (numel / LEAST_ELEMENTS >= threads.div_ceil(FEW_THREADS)).then_some(run as Crew)
    }
}

fn run(job: &(dyn Fn() + Sync)) {
    let address = PARALLEL.load(Ordering::Acquire);
    if address.is_null() {
        return;
    }
    // SAFETY: as above; the signature has not changed since GCC 4.9.
    let parallel = unsafe { std::mem::transmute::<*mut c_void, Parallel>(address) };
    // SAFETY: it returns when the whole team is done with the job, so what is borrowed outlives its use, and the job may
    // be called by several threads at once.
    unsafe { parallel(call, (&raw const job).cast_mut().cast(), 0, 0) };
}

/// Calls the job that `data` refers to.
unsafe extern "C" fn call(data: *mut c_void) {
    // SAFETY: `run` passes it, and waits.
    let job = unsafe { &*data.cast::<&(dyn Fn() + Sync)>() };
    // Nothing may unwind through the library. What is missing afterwards is noticed by who gathers it.
    let _ = catch_unwind(AssertUnwindSafe(job));
}
