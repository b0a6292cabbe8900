// SPDX-License-Identifier: Apache-2.0
// Sends the requests of a scenario open-loop: each at its moment, whatever became of those before it.
//
//   k6 run -e PLAN=... -e WORKLOAD=... -e TARGETS=http://127.0.0.1:10000 loadtest/k6/load.js
//
// Durations count from the moment when a request was due. Nothing is tried again.

import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import { sleep } from 'k6';

import { GRACE_MS, LEAD_MS, executor } from './arrivals.js';
import { lines, thresholds } from './objectives.js';
import { hostHeader, plan, targets, workload } from './settings.js';

// Whether a good answer came within the deadline.
const success = new Rate('weir_success');
// Of the good answers, from the moment when the request was due.
const duration = new Trend('weir_duration', true);
// How far k6 itself was behind that moment.
const lag = new Trend('weir_lag', true);
// The first moment of the workload, in milliseconds since 1970.
const began = new Gauge('weir_began_ms');
// What the good answers needed of a core, in the stage in which they came.
const goodWork = new Counter('weir_good_work_ms');
// What became of requests.
const outcomes = new Counter('weir_outcomes');

const requests = new SharedArray('requests', () => {
  const all = open(workload).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
  if (all.length !== plan.requests) {
    throw new Error(`WORKLOAD has ${all.length} requests and PLAN is of ${plan.requests}: they are not of one run`);
  }
  return all;
});

const arrivals = new SharedArray('arrivals', () => [executor(requests, plan.deadline_ms)]);

export const options = {
  // Each virtual user reads this file; only the first to do so is asked for the options.
  scenarios: __VU === 0 ? { [plan.scenario]: arrivals[0] } : {},
  thresholds: thresholds(plan),
  discardResponseBodies: true,
  // Of what k6 measures itself, in many thousand samples, nothing else is looked at.
  systemTags: ['status'],
  summaryTrendStats: ['count', 'avg', 'min', 'p(50)', 'p(90)', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  for (const line of lines(plan)) {
    console.log(line);
  }
}

// Milliseconds from the first moment of the workload.
function now() {
  return Date.now() - exec.scenario.startTime - LEAD_MS;
}

function stageAt(ms) {
  const stage = plan.stages.find(({ to_s: to }) => ms < to * 1e3);
  return stage === undefined ? 'over' : stage.name;
}

function headers(request) {
  const all = {
    'x-weir-priority': request.priority,
    'x-emulate-run-us': `${request.run_us}`,
    'x-emulate-bytes': `${request.bytes}`,
  };
  if (request.key !== '') {
    all['x-weir-key'] = request.key;
  }
  if (request.user !== '') {
    all['x-weir-user'] = request.user;
  }
  if (hostHeader) {
    all.host = hostHeader;
  }
  return all;
}

function outcome(status, took) {
  if (status >= 200 && status < 300) {
    return took <= plan.deadline_ms ? 'good' : 'late';
  }
  if (status === 429 || status === 503) {
    return 'refused';
  }
  // Nobody listening is found out at once.
  const given = status === 0 && took >= plan.deadline_ms;
  return status === 504 || status === 408 || given ? 'timed_out' : 'failed';
}

export default function () {
  const index = exec.scenario.iterationInTest;
  if (index >= requests.length) {
    return;
  }
  if (index === 0) {
    began.add(exec.scenario.startTime + LEAD_MS);
  }
  const request = requests[index];
  const due = request.t_us / 1e3;
  const early = due - now();
  if (early > 0) {
    sleep(early / 1e3);
  }
  lag.add(Math.max(0, now() - due));
  const response = http.get(targets[index % targets.length], {
    headers: headers(request),
    timeout: plan.deadline_ms + GRACE_MS,
    // One name for all, or k6 keeps figures for each.
    tags: { name: 'request' },
  });
  const ended = now();
  const took = ended - due;
  const what = outcome(response.status, took);
  const tags = { stage: stageAt(due), priority: request.priority };
  success.add(what === 'good', tags);
  outcomes.add(1, { stage: tags.stage, priority: request.priority, outcome: what });
  if (what === 'good') {
    duration.add(took, tags);
    goodWork.add(request.run_us / 1e3, { stage: stageAt(ended) });
  }
}
