// SPDX-License-Identifier: Apache-2.0
// The last fifteen minutes: what the server kept, and what has come since.

import { inOrder } from './order.js';

const ROWS = 180;
const STATES = { u: 'up', d: 'draining', x: 'down' };
const LETTERS = { up: 'u', draining: 'd', down: 'x' };
const ALL = 4096;

export const nameOf = (cluster, host) => `${cluster}\n${host}`;

export class Past {
  constructor() {
    this.clear();
  }

  clear() {
    this.everyMs = 5000;
    this.times = [];
    this.hosts = new Map();
    this.traffic = new Map();
    this.counted = new Map();
    this.leftOut = 0;
  }

  /** Takes what the server has kept. */
  async load() {
    const answer = await fetch('past');
    if (!answer.ok) return;
    const past = await answer.json();
    this.clear();
    this.everyMs = past.every_ms;
    this.leftOut = past.left_out;
    this.times = past.unix_ms;
    for (const host of past.hosts) {
      const { in_progress, queued, delay_ms, level, state } = host;
      this.hosts.set(nameOf(host.cluster, host.host), { in_progress, queued, delay_ms, level, state: [...state] });
    }
    for (const { cluster, offered, shed } of past.clusters) {
      this.traffic.set(cluster, { offered, shed });
    }
  }

  /** Adds the frame if a row is due. True where it was. False where rows are missing: `load` again. */
  add(frame) {
    const last = this.times.at(-1);
    const since = frame.unix_ms - (last ?? 0);
    if (last != null && since >= 0 && since < this.everyMs - 500) return false;
    this.times.push(frame.unix_ms);
    for (const [cluster, { hosts }] of Object.entries(frame.clusters)) {
      for (const host of hosts) this.#column(nameOf(cluster, host.host)).now = host;
    }
    const long = this.times.length;
    for (const [name, column] of this.hosts) {
      const host = column.now;
      column.now = null;
      column.in_progress.push(host?.in_progress ?? -1);
      column.queued.push(host?.queued ?? -1);
      column.delay_ms.push(host?.delay_ms ?? -1);
      column.level.push(host ? host.level ?? ALL : 0);
      column.state.push(LETTERS[host?.state] ?? '-');
      if (long > ROWS) for (const figures of Object.values(column)) figures?.shift?.();
      if (column.state.every((letter) => letter === '-')) this.hosts.delete(name);
    }
    this.#count(frame.traffic, long);
    if (long > ROWS) this.times.shift();
    return true;
  }

  #column(name) {
    let column = this.hosts.get(name);
    if (!column) {
      const missing = this.times.length - 1;
      const blank = (value) => new Array(missing).fill(value);
      column = { in_progress: blank(-1), queued: blank(-1), delay_ms: blank(-1), level: blank(0), state: blank('-') };
      this.hosts.set(name, column);
    }
    return column;
  }

  #count(traffic, long) {
    for (const [cluster, counters] of Object.entries(traffic)) {
      const total = { offered: sum(counters.offered), shed: sum(counters.shed) };
      const before = this.counted.get(cluster) ?? total;
      this.counted.set(cluster, total);
      if (!this.traffic.has(cluster)) this.traffic.set(cluster, { offered: [], shed: [] });
      for (const [name, values] of Object.entries(this.traffic.get(cluster))) {
        while (values.length < long - 1) values.push(0);
        values.push(Math.max(0, total[name] - before[name]));
        if (values.length > ROWS) values.shift();
      }
    }
  }

  /** Whether rows between the last and `frame` are missing. */
  hasGap(frame) {
    return this.times.length > 0 && Math.abs(frame.unix_ms - this.times.at(-1)) > 3 * this.everyMs;
  }

  /** The loads of a host, oldest first; -1 is not known. */
  loads(name) {
    const column = this.hosts.get(name);
    if (!column) return [];
    return column.in_progress.map((jobs, row) => load(jobs, column.queued[row]));
  }

  /** The frame of so many rows ago, as far as it was kept. */
  frame(ago, now) {
    const row = this.times.length - 1 - ago;
    if (row < 0) return null;
    const clusters = {};
    for (const [name, cluster] of Object.entries(now.clusters)) {
      clusters[name] = { ...cluster, table_age_ms: null, version: null, trouble: [], hosts: [] };
    }
    for (const [name, column] of this.hosts) {
      const [cluster, host] = name.split('\n');
      const state = STATES[column.state[row]];
      if (!state || !clusters[cluster]) continue;
      const known = (value) => (value < 0 ? undefined : value);
      clusters[cluster].hosts.push({
        host,
        state,
        in_progress: known(column.in_progress[row]),
        queued: known(column.queued[row]),
        delay_ms: known(column.delay_ms[row]),
        level: column.level[row] === ALL ? undefined : column.level[row],
      });
    }
    for (const cluster of Object.values(clusters)) {
      cluster.total = totals(cluster.hosts);
      cluster.panics = false;
      cluster.health_ignored = false;
    }
    inOrder(clusters);
    return { ...now, unix_ms: this.times[row], clusters, isPast: true, row };
  }

  /** Requests a second of a row, by cluster. */
  rates(cluster, row) {
    const values = this.traffic.get(cluster);
    if (!values) return null;
    const seconds = this.everyMs / 1000;
    const missing = this.times.length - values.offered.length;
    const rate = (counts) => (counts[row - missing] ?? 0) / seconds;
    return { offered: rate(values.offered), shed: rate(values.shed) };
  }
}

export const sum = (byClass) => Object.values(byClass).reduce((all, one) => all + one, 0);

/** Jobs that run or are queued; those queued where that is all that is known, and -1 where nothing is. */
export function load(inProgress, queued) {
  return [inProgress, queued].find((jobs) => jobs != null && jobs >= 0) ?? -1;
}

function totals(hosts) {
  const total = { hosts: hosts.length, up: 0, draining: 0, down: 0, stale: 0, restricted: 0, in_progress: 0, queued: 0, worst_delay_ms: null };
  for (const host of hosts) {
    total[host.state] += 1;
    total.restricted += host.level == null ? 0 : 1;
    total.in_progress += host.in_progress ?? 0;
    total.queued += host.queued ?? 0;
    if (host.delay_ms != null) total.worst_delay_ms = Math.max(total.worst_delay_ms ?? 0, host.delay_ms);
  }
  return total;
}
