// SPDX-License-Identifier: Apache-2.0
//! Simulations side by side.

/// Runs each, as many at a time as the machine has cores; what came of them is in the order of the tasks.
pub fn at_once<T: Sync, R: Send>(tasks: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = &run;
    let mut all = Vec::with_capacity(tasks.len());
    for some in tasks.chunks(cores) {
        std::thread::scope(|scope| {
            let start = |task| scope.spawn(move || run(task));
            let runs: Vec<_> = some.iter().map(start).collect();
            all.extend(runs.into_iter().map(|run| match run.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
        });
    }
    all
}
