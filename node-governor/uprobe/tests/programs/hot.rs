// SPDX-License-Identifier: Apache-2.0
//! Does what it reads, a line each: calls THREADS COUNT. Threads stay until the end.

use std::io::BufRead;
use std::sync::{Arc, Barrier};

mod search {
    #[inline(never)]
    pub fn evaluate(query: u64) -> u64 {
        std::hint::black_box(query.wrapping_mul(31))
    }
}

fn main() {
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let mut words = line.split(' ').skip(1).map(|word| word.parse::<usize>().expect("a number"));
        let (threads, count) = (words.next().expect("threads"), words.next().expect("count"));
        let called = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            let called = Arc::clone(&called);
            std::thread::spawn(move || {
                for query in 0..count {
                    std::hint::black_box(search::evaluate(query as u64));
                }
                called.wait();
                loop {
                    std::thread::park();
                }
            });
        }
        called.wait();
        println!("done");
    }
}
