// SPDX-License-Identifier: Apache-2.0
// A line of the last fifteen minutes.

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 120;
const HEIGHT = 22;
const ROWS = 180;

/** An empty one. It repeats what the cells beside it say, so that a reader of the screen passes it by. */
export function trend() {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute('class', 'trend');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  svg.append(path);
  return svg;
}

/** Draws values, the newest at the right; -1 is a gap. `mark` is how many rows ago is shown. */
export function draw(svg, values, most) {
  const scale = (HEIGHT - 3) / Math.max(most, 1);
  const begin = ROWS - values.length;
  let path = '';
  let pen = 'M';
  values.forEach((value, row) => {
    if (value < 0) {
      pen = 'M';
      return;
    }
    const x = ((begin + row) / (ROWS - 1) * WIDTH).toFixed(1);
    path += `${pen}${x} ${(HEIGHT - 1.5 - value * scale).toFixed(1)}`;
    pen = 'L';
  });
  svg.firstChild.setAttribute('d', path);
}
