// SPDX-License-Identifier: Apache-2.0
// The thresholds of the plan as those of k6, and the tags that its summary is to tell apart.

// Of the answers that came in time.
const DURATIONS = { p50_ms: 'p(50)', p95_ms: 'p(95)', p99_ms: 'p(99)' };

export const OUTCOMES = ['good', 'late', 'refused', 'timed_out', 'failed'];

function tags(stage, priority) {
  return priority === null ? `{stage:${stage}}` : `{stage:${stage},priority:${priority}}`;
}

// What k6 can judge; none for what compares two stages, which `cargo xtask load` judges.
function expressed(plan, wanted) {
  const { stage, priority, figure, at_least: least, at_most: most } = wanted;
  if (figure === 'goodput') {
    const { from_s: from, to_s: to } = plan.stages.find((each) => each.name === stage);
    if (plan.capacity.cores === null) {
      return null;
    }
    const work = least * plan.capacity.cores * (to - from) * 1e3;
    return [`weir_good_work_ms${tags(stage, null)}`, `count>=${work.toFixed(0)}`];
  }
  if (figure === 'success') {
    return [`weir_success${tags(stage, priority)}`, `rate>=${least}`];
  }
  if (most === undefined) {
    return null;
  }
  return [`weir_duration${tags(stage, priority)}`, `${DURATIONS[figure]}<=${most}`];
}

// k6 tells only of those tags apart that a threshold names: an empty one names them and asks for nothing.
function told(plan) {
  const named = {};
  for (const { name, measured } of plan.stages) {
    if (!measured) {
      continue;
    }
    named[`weir_good_work_ms${tags(name, null)}`] = [];
    for (const priority of [null].concat(plan.priorities)) {
      named[`weir_success${tags(name, priority)}`] = [];
      named[`weir_duration${tags(name, priority)}`] = [];
    }
    for (const priority of plan.priorities) {
      for (const outcome of OUTCOMES) {
        named[`weir_outcomes{stage:${name},priority:${priority},outcome:${outcome}}`] = [];
      }
    }
  }
  return named;
}

export function thresholds(plan) {
  const all = told(plan);
  for (const wanted of plan.thresholds) {
    const [metric, threshold] = expressed(plan, wanted) || [];
    if (metric !== undefined) {
      all[metric] = (all[metric] || []).concat({ threshold, abortOnFail: false });
    }
  }
  return all;
}

// Each threshold with what it is for.
export function lines(plan) {
  return plan.thresholds.map((wanted) => {
    const [metric, threshold] = expressed(plan, wanted) || [];
    const whose = `${wanted.stage}${wanted.priority === null ? '' : `, ${wanted.priority}`}`;
    const judged = metric === undefined ? 'not judged by k6' : `${metric} ${threshold}`;
    return `objective (${whose}, ${wanted.figure}): ${wanted.objective} [${judged}]`;
  });
}
