// SPDX-License-Identifier: Apache-2.0
// The table of hosts: only rows in sight have elements, and only cells that changed are written.

import { UNKNOWN, attribute, byId, count, delay, el, span, text } from './dom.js';
import { load, nameOf } from './past.js';
import { draw, trend } from './trend.js';

const ALL = 4096;
const SPARE = 6;
const ORDER = { down: 0, draining: 1, up: 2 };

const number = (of) => (a, b) => of(b) - of(a);
const COLUMNS = [
  { key: 'host', name: 'Host', sort: () => 0 },
  { key: 'state', name: 'State', sort: (a, b) => ORDER[a.host.state] - ORDER[b.host.state] },
  { key: 'load', name: 'Load', hint: 'jobs running + queued', number: true, sort: number((row) => row.load) },
  { key: 'delay', name: 'Queuing delay', number: true, sort: number((row) => row.host.delay_ms ?? -1) },
  { key: 'level', name: 'Admission level', hint: 'ranks admitted, of 4,096', number: true, sort: (a, b) => (a.host.level ?? ALL) - (b.host.level ?? ALL) },
  { key: 'keys', name: 'Keys cached', number: true, sort: number((row) => row.host.keys ?? -1) },
  { key: 'age', name: 'Age', hint: 'of the figures, and their source', number: true, sort: number((row) => row.host.age_ms ?? Infinity) },
  { key: 'trend', name: 'Load, 15 min' },
];

export class Hosts {
  constructor(scroll, filter, past) {
    this.scroll = scroll;
    this.past = past;
    this.rows = [];
    this.pool = [];
    this.sorted = 'host';
    this.words = '';
    this.build();
    scroll.addEventListener('scroll', () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(scroll);
    filter.addEventListener('input', () => {
      this.words = filter.value.trim().toLowerCase();
      this.arrange();
    });
  }

  build() {
    this.heads = COLUMNS.map(({ key, name, hint, sort, number: isNumber }) => {
      const kind = `${key}${isNumber ? ' number' : ''}`;
      const inside = sort ? el('button', { type: 'button', title: hint }, name) : name;
      const head = el('th', { scope: 'col', role: 'columnheader', class: kind }, inside);
      if (sort) inside.addEventListener('click', () => this.sortBy(key));
      return head;
    });
    this.above = el('tr', { 'aria-hidden': 'true', class: 'space' }, el('td', { colspan: COLUMNS.length }));
    this.below = this.above.cloneNode(true);
    this.body = el('tbody', { role: 'rowgroup' }, this.above, this.below);
    this.table = el('table', { class: 'hosts', role: 'table' },
      el('caption', { class: 'hidden' }, 'Hosts with load, queuing delay, admission level, cache and age of figures'),
      el('thead', { role: 'rowgroup' }, el('tr', { role: 'row', 'aria-rowindex': 1 }, ...this.heads)), this.body);
    this.scroll.append(this.table);
    this.markSorted();
  }

  sortBy(key) {
    this.sorted = key;
    this.markSorted();
    this.arrange();
  }

  markSorted() {
    COLUMNS.forEach(({ key, sort }, index) => {
      const down = key === 'host' || key === 'state' || key === 'level' ? 'ascending' : 'descending';
      attribute(this.heads[index], 'aria-sort', sort ? (key === this.sorted ? down : 'none') : null);
    });
  }

  show(frame) {
    this.all = [];
    for (const [cluster, { hosts }] of Object.entries(frame.clusters)) {
      for (const host of hosts) {
        this.all.push({ cluster, host, name: nameOf(cluster, host.host), load: load(host.in_progress, host.queued) });
      }
    }
    this.leftOut = Object.values(frame.clusters).reduce((all, { total, hosts }) => all + total.hosts - hosts.length, 0);
    this.severalClusters = Object.keys(frame.clusters).length > 1;
    this.arrange();
  }

  arrange() {
    if (!this.all) return;
    const { words } = this;
    const found = ({ cluster, host }) =>
      `${cluster} ${host.host} ${host.zone ?? ''} ${host.state} ${host.stale ? 'stale' : ''} ${host.trouble ?? ''}`.toLowerCase().includes(words);
    this.rows = words ? this.all.filter(found) : this.all;
    const { sort } = COLUMNS.find(({ key }) => key === this.sorted);
    // By host they come.
    if (this.sorted !== 'host') this.rows = [...this.rows].sort(sort);
    const most = this.rows.reduce((top, row) => Math.max(top, row.load), 1);
    this.most = most;
    const left = this.leftOut > 0 ? `, ${count(this.leftOut)} more are in /tables` : '';
    text(byId('hosts-count'), words ? `${count(this.rows.length)} of ${count(this.all.length)}${left}` : `${count(this.all.length)}${left}`);
    attribute(this.table, 'aria-rowcount', this.rows.length + 1);
    this.draw();
  }

  /** All rows in sight, anew: hosts, their order or the height have changed. */
  draw() {
    this.row = parseFloat(getComputedStyle(this.scroll).getPropertyValue('--row')) || 36;
    this.sight = Math.ceil(this.scroll.clientHeight / this.row) + 2 * SPARE;
    // There may be fewer rows than before.
    const many = Math.min(this.sight, this.rows.length);
    while (this.pool.length < many) this.pool.push(this.newRow());
    while (this.pool.length > many) this.pool.pop().row.remove();
    this.first = this.firstInSight();
    this.pool.forEach((cells, index) => this.fill(cells, this.first + index));
    this.spaces();
  }

  /** Rows that left at one end are filled anew at the other. */
  scrolled() {
    const first = this.firstInSight();
    if (first === this.first) return;
    if (Math.abs(first - this.first) >= this.pool.length) {
      this.draw();
      return;
    }
    for (; this.first < first; this.first += 1) {
      const cells = this.pool.shift();
      this.pool.push(cells);
      this.body.insertBefore(cells.row, this.below);
      this.fill(cells, this.first + this.pool.length);
    }
    for (; this.first > first; this.first -= 1) {
      const cells = this.pool.pop();
      this.pool.unshift(cells);
      this.above.after(cells.row);
      this.fill(cells, this.first - 1);
    }
    this.spaces();
  }

  /** Rows have one height, which the style sets. */
  firstInSight() {
    const last = Math.max(0, this.rows.length - this.sight);
    return Math.min(last, Math.max(0, Math.floor(this.scroll.scrollTop / this.row) - SPARE));
  }

  spaces() {
    const space = (row, rows) => {
      const wanted = `${rows * this.row}px`;
      if (row.firstChild.style.height !== wanted) row.firstChild.style.height = wanted;
    };
    space(this.above, this.first);
    space(this.below, this.rows.length - this.first - this.pool.length);
  }

  newRow() {
    const cells = {};
    const row = el('tr', { role: 'row' });
    for (const { key, number: isNumber } of COLUMNS) {
      const kind = `${key}${isNumber ? ' number' : ''}`;
      const cell = key === 'host'
        ? el('th', { scope: 'row', role: 'rowheader', class: kind })
        : el('td', { role: 'cell', class: kind });
      cells[key] = cell;
      row.append(cell);
    }
    cells.name = el('span', { class: 'name' });
    cells.more = el('span', { class: 'quiet more' });
    cells.host.append(cells.name, cells.more);
    cells.bar = el('span', { class: 'gauge', 'aria-hidden': 'true' });
    cells.jobs = el('span', { class: 'jobs' });
    cells.load.append(cells.bar, cells.jobs);
    cells.line = trend();
    cells.trend.append(cells.line);
    this.body.insertBefore(row, this.below);
    return { row, cells };
  }

  fill({ row, cells }, index) {
    const shown = this.rows[index];
    const { host, cluster, name } = shown;
    attribute(row, 'aria-rowindex', index + 2);
    attribute(row, 'data-state', host.stale ? `${host.state} stale` : host.state);
    text(cells.name, host.host);
    const more = [this.severalClusters ? cluster : null, host.zone, host.trouble].filter(Boolean).join(' · ');
    text(cells.more, more);
    attribute(cells.more, 'title', more || null);
    text(cells.state, host.state);
    const queued = host.queued > 0 ? ` + ${count(host.queued)}` : '';
    const running = Math.max(0, shown.load - (host.queued ?? 0));
    text(cells.jobs, shown.load < 0 ? UNKNOWN : `${count(running)}${queued}`);
    const part = `${Math.max(0, shown.load) / this.most * 100}%`;
    if (cells.part !== part) {
      cells.part = part;
      cells.bar.style.setProperty('--part', part);
    }
    text(cells.delay, delay(host.delay_ms));
    text(cells.level, host.level == null ? 'all' : count(host.level));
    cells.level.classList.toggle('bad', host.level != null);
    text(cells.keys, host.keys == null ? UNKNOWN : count(host.keys));
    text(cells.age, host.age_ms == null ? UNKNOWN : `${span(host.age_ms)}${host.from ? ` ${host.from}` : ''}`);
    const drawn = `${name} ${this.past.times.at(-1)} ${this.most}`;
    if (cells.drawn !== drawn) {
      cells.drawn = drawn;
      draw(cells.line, this.past.loads(name), Math.max(8, this.most));
    }
  }

  /** Brings a host into sight. */
  reveal(host) {
    const index = this.rows.findIndex((row) => row.host.host === host);
    if (index < 0) return;
    this.scroll.scrollTop = Math.max(0, (index - 2) * this.row);
    this.scroll.focus();
    this.draw();
    const found = this.pool.find(({ cells }) => cells.name.textContent === host);
    found?.row.classList.add('found');
    setTimeout(() => found?.row.classList.remove('found'), 2000);
  }
}
