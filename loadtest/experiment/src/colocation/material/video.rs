// SPDX-License-Identifier: Apache-2.0
//! A raw video: a pattern that moves, squares that move across it, and noise.
//!
//! YUV4MPEG2 as mjpegtools' yuv4mpeg(5) lays it out: a line of parameters, then for each frame the line `FRAME`
//! and its three planes, with 4:2:0 chroma.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use weir_replay::rng::SplitMix64;

const WIDTH: usize = 320;
const HEIGHT: usize = 240;
const SQUARES: u64 = 6;
const SIDE: u64 = 40;

/// Writes so many frames.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, frames: u32, seed: u64) -> Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::new(file);
    y4m(&mut out, frames, seed)
        .and_then(|()| out.flush())
        .with_context(|| format!("writing {}", path.display()))
}

fn y4m(out: &mut impl Write, frames: u32, seed: u64) -> std::io::Result<()> {
    writeln!(out, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420mpeg2")?;
    let mut random = SplitMix64::new(seed);
    // Where each begins, and how far it goes in a frame.
    let squares: Vec<[u64; 4]> = (0..SQUARES)
        .map(|_| {
            let mut below = |most: u64| random.next_u64() % most;
            [
                below(WIDTH as u64),
                below(HEIGHT as u64),
                1 + below(5),
                1 + below(5),
            ]
        })
        .collect();
    let mut luma = vec![0; WIDTH * HEIGHT];
    let mut chroma = vec![0; WIDTH * HEIGHT / 4];
    for frame in 0..u64::from(frames) {
        out.write_all(b"FRAME\n")?;
        for (index, pixel) in luma.iter_mut().enumerate() {
            let (x, y) = ((index % WIDTH) as u64, (index / WIDTH) as u64);
            let covered = squares.iter().position(|[left, top, right, down]| {
                let left = (left + frame * right) % WIDTH as u64;
                let top = (top + frame * down) % HEIGHT as u64;
                (left..left + SIDE).contains(&x) && (top..top + SIDE).contains(&y)
            });
            let plain = match covered {
                Some(square) => 40 + 30 * square as u64,
                None => 64 + (x + 2 * y + 3 * frame) % 128,
            };
            // Video levels are 16 to 235.
            *pixel = (plain + random.next_u64() % 12) as u8;
        }
        out.write_all(&luma)?;
        for plane in 0..2 {
            for (index, pixel) in chroma.iter_mut().enumerate() {
                let (x, y) = ((index % (WIDTH / 2)) as u64, (index / (WIDTH / 2)) as u64);
                *pixel = (64 + (x + plane * y + frame) % 128) as u8;
            }
            out.write_all(&chroma)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(frames: u32, seed: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        y4m(&mut bytes, frames, seed).unwrap();
        bytes
    }

    #[test]
    fn a_video_is_a_line_and_whole_frames_and_the_same_for_a_seed() {
        let two = made(2, 7);
        let head = two.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(two.len(), head + 2 * (6 + WIDTH * HEIGHT * 3 / 2));
        assert_eq!(&two[head..head + 6], b"FRAME\n");
        assert!(two == made(2, 7));
        assert!(two != made(2, 8));
        // A longer one begins with the shorter one.
        assert!(made(3, 7).starts_with(&two));
    }

    #[test]
    fn frames_differ_and_stay_within_video_levels() {
        let two = made(2, 7);
        let frame = 6 + WIDTH * HEIGHT * 3 / 2;
        let (first, second) = (
            &two[two.len() - 2 * frame..two.len() - frame],
            &two[two.len() - frame..],
        );
        assert!(first != second);
        let levels = second[6..].iter().all(|level| (16..=235).contains(level));
        assert!(levels);
    }
}
