// SPDX-License-Identifier: Apache-2.0
// What a run is told in its environment (k6 run -e NAME=VALUE). Whatever is missing or wrong stops it before
// anything is sent.

const NEEDED = {
  PLAN: 'the plan of the scenario, absolute path: weir-replay workload scenario --report FILE',
  WORKLOAD: 'its requests, absolute path: weir-replay workload scenario --out FILE',
  TARGETS: 'where to send, as http://IP:PORT, separated by commas: the callers take turns',
};

const missing = Object.keys(NEEDED).filter((name) => !__ENV[name]);
if (missing.length > 0) {
  const lines = missing.map((name) => `  -e ${name}=...  ${NEEDED[name]}`);
  throw new Error(`settings are missing:\n${lines.join('\n')}`);
}

export const workload = __ENV.WORKLOAD;

export const targets = __ENV.TARGETS.split(',').map((target) => {
  const [, host] = /^http:\/\/([^/:]+|\[[0-9a-f:]+\]):[0-9]+\/?$/.exec(target) || [];
  if (host === undefined) {
    throw new Error(`TARGETS: ${target} is not of the form http://IP:PORT`);
  }
  const own = /^127\.|^localhost$|^\[::1\]$/.test(host);
  if (!own && __ENV.ALLOW_REMOTE !== '1') {
    throw new Error(`TARGETS: ${target} is not on this machine; -e ALLOW_REMOTE=1 permits it`);
  }
  return target;
});

// The host that requests name; none: the target.
export const hostHeader = __ENV.HOST_HEADER;

export const plan = JSON.parse(open(__ENV.PLAN));
for (const field of ['scenario', 'deadline_ms', 'priorities', 'stages', 'requests', 'thresholds', 'capacity']) {
  if (plan[field] === undefined) {
    throw new Error(`PLAN: ${__ENV.PLAN}: ${field}: is missing; is it the --report of weir-replay workload scenario?`);
  }
}
