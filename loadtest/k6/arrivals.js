// SPDX-License-Identifier: Apache-2.0
// When requests are due, as k6's executor can tell it: so many iterations in each quarter of a second.
//
//   workload:  | . ..   |  .... . | ...
//   executor:  | n=3    | n=5     |          one quarter earlier, evenly: an iteration then waits for its moment
//
// So an iteration is there before its request is due, and the request leaves at the very moment that
// weir-replay would send it.

export const QUARTER_MS = 250;
// The last iteration of a quarter may be due at the beginning of the next one; and some time for timers.
export const LEAD_MS = QUARTER_MS + 50;

// After its deadline k6 itself gives up on a request, later than the proxy before it does.
export const GRACE_MS = 500;
// By how much an iteration may start late and be sent still.
const LATE_MS = 2000;

// How many requests are due in each quarter.
function counts(requests) {
  const counts = [];
  for (let n = 0; n < requests.length; n += 1) {
    const quarter = Math.floor(requests[n].t_us / 1e3 / QUARTER_MS);
    while (counts.length <= quarter) {
      counts.push(0);
    }
    counts[quarter] += 1;
  }
  return counts;
}

// Most requests that can be under way, if none is answered: those of a deadline's quarters together.
function most(counts, deadlineMs) {
  const width = Math.ceil((deadlineMs + GRACE_MS + LEAD_MS) / QUARTER_MS) + 1;
  let sum = 0;
  let largest = 0;
  for (let n = 0; n < counts.length; n += 1) {
    sum += counts[n] - (counts[n - width] || 0);
    largest = Math.max(largest, sum);
  }
  return largest;
}

// The scenario of k6.
export function executor(requests, deadlineMs) {
  const all = counts(requests);
  const vus = most(all, deadlineMs);
  const stages = [];
  for (const count of all) {
    // From one rate to the next without a slope.
    stages.push({ duration: '0s', target: count }, { duration: `${QUARTER_MS}ms`, target: count });
  }
  // What rounding has left of the last iteration.
  stages.push({ duration: '0s', target: 1 }, { duration: `${QUARTER_MS}ms`, target: 1 });
  // On a busy machine iterations start late, and those that have not when the stages end never do.
  stages.push({ duration: '0s', target: 0 }, { duration: `${LATE_MS}ms`, target: 0 });
  return {
    executor: 'ramping-arrival-rate',
    startRate: 0,
    timeUnit: `${QUARTER_MS}ms`,
    preAllocatedVUs: vus,
    maxVUs: vus,
    stages,
    gracefulStop: `${LEAD_MS + deadlineMs + 2 * GRACE_MS}ms`,
  };
}
