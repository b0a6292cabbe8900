// SPDX-License-Identifier: Apache-2.0
// The page: the newest frame of the stream, or one of the last fifteen minutes, shown by each part.
//
//   stream ── frame ──> past (a row each 5 s) ──┐
//                └───────────── or ─────────────┴──> fleet, hosts, traffic, sidecars, search

import { attribute, byId, bytes, clock, count, delay, el, of, span, text, whenChanged } from './dom.js';
import { Fleet } from './fleet.js';
import { Hosts } from './hosts.js';
import { inOrder } from './order.js';
import { Past } from './past.js';
import { Search } from './search.js';
import { Sidecars } from './sidecars.js';
import { follow } from './stream.js';
import { Traffic } from './traffic.js';

/** A reader of the screen hears a change, and no more often than this. */
const SUMMARY_MS = 10000;

const past = new Past();
const hosts = new Hosts(byId('hosts-scroll'), byId('hosts-filter'), past);
const fleet = new Fleet(byId('fleet'), byId('colour'), (host) => hosts.reveal(host));
const traffic = new Traffic(byId('traffic'), past);
const parts = [fleet, hosts, traffic, new Sidecars(byId('sidecars')), new Search(byId('search'), byId('answer'))];
const slider = byId('moment');

let newest = null;
/** The frame that is shown instead of the newest one, and how many rows ago it was kept, if it was. */
let paused = null;
let rowsAgo = 0;
let stream = 'waiting';
let why = '';
let asked = false;
let summarised = -Infinity;

follow(take, (state, reason) => {
  stream = state;
  why = reason ?? '';
  status();
});

function take(frame) {
  newest = frame;
  inOrder(frame.clusters);
  if (!asked || past.hasGap(frame)) {
    asked = true;
    past.load().then(ask, ask);
  }
  const isRow = past.add(frame);
  traffic.count(frame);
  const rows = past.times.length;
  attribute(slider, 'min', -Math.max(1, rows - 1));
  slider.disabled = rows < 2;
  // The moment that is shown stays while time goes on, as long as it is kept.
  if (isRow && paused?.isPast) moveTo(Math.min(rowsAgo + 1, rows - 1));
  else if (!paused) ask();
}

let due = false;
/** Draws with the next picture, however often it is asked. */
function ask() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw(paused ?? newest);
  });
}

function draw(frame) {
  if (!frame) return;
  for (const part of parts) part.show(frame);
  alerts(frame);
  replicas(frame);
  status();
  text(byId('version'), `weir-control ${frame.version}, counted memory ${bytes(frame.memory.counted_bytes)}${frame.memory.limit_bytes ? ` of ${bytes(frame.memory.limit_bytes)}` : ''}.`);
  if (!frame.isPast) summary(frame);
}

function status() {
  const states = {
    waiting: ['waiting', 'Waiting for the first figures'],
    live: ['live', newest ? `Live, ${clock(newest.unix_ms)}` : 'Live'],
    silent: ['bad', `No news since ${newest ? clock(newest.unix_ms) : 'the start'}`],
    refused: ['bad', `No stream: ${why}`],
  };
  const [state, words] = states[stream];
  const shown = paused ? ['past', `${paused.isPast ? 'Past' : 'Paused'}, ${clock(paused.unix_ms)}`] : [state, words];
  attribute(byId('status'), 'data-state', stream === 'live' ? shown[0] : state);
  text(byId('status'), stream === 'live' ? shown[1] : words);
}

function alerts(frame) {
  const all = [];
  if (frame.unready) all.push(frame.unready);
  if (frame.configuration_refused) all.push(`The configuration as it is now is refused: ${frame.configuration_refused}`);
  if (frame.replica?.complaint) all.push(`Lock of the replicas: ${frame.replica.complaint}`);
  for (const [name, cluster] of Object.entries(frame.clusters)) {
    if (cluster.panics) all.push(`${name}: panic mode. So few hosts are up that those which drain are chosen as well.`);
    if (cluster.health_ignored) all.push(`${name}: so many hosts refuse connections that none is taken out.`);
    if (cluster.choices_ignored > 0) all.push(`${name}: Envoy of ${of(cluster.choices_ignored, 'sidecar')} sends requests elsewhere than its filter says.`);
    if (cluster.cache_contents_dropped) all.push(`${name}: cache contents are not kept, because memory.limit was reached.`);
    for (const trouble of cluster.trouble) all.push(`${name}: ${trouble}`);
  }
  if (frame.sidecars.refusing > 0 && !frame.isPast) all.push(`${of(frame.sidecars.refusing, 'sidecar')} refuse${frame.sidecars.refusing === 1 ? 's' : ''} a resource.`);
  whenChanged(byId('alerts'), all, () => all.map((line) => el('li', { class: 'alert' }, line)));
}

function replicas({ replica }) {
  const root = byId('replicas');
  if (!replica) {
    text(byId('replica'), '');
    whenChanged(root, 'one', () => [el('p', { class: 'quiet' }, 'This is the only one: it leads.')]);
    return;
  }
  const roles = { waiting: 'waits to learn who leads', leading: 'leads', following: 'follows' };
  const role = roles[replica.role] ?? replica.role;
  const leader = replica.leader ? `${replica.leader.name} at ${replica.leader.address}` : null;
  text(byId('replica'), `This replica ${role}${leader ? ` ${leader}` : ''}`);
  const since = Math.floor(replica.since_ms / 10000) * 10000;
  const lines = [`This one ${role}${leader ? ` ${leader}` : ''}, since ${since < 10000 ? 'just now' : `${span(since)} ago`}.`];
  if (replica.role === 'leading') lines.push(replica.followers.length ? `Followers: ${replica.followers.join(', ')}.` : 'Nobody follows it.');
  whenChanged(root, lines, () => lines.map((line) => el('p', {}, line)));
}

let said = '';
/** What has changed in number, for readers of the screen. */
function summary(frame) {
  const clusters = Object.entries(frame.clusters).map(([name, { total }]) =>
    `${name}: ${count(total.up)} of ${of(total.hosts, 'host')} up${total.down ? `, ${count(total.down)} down` : ''}${total.restricted ? `, ${count(total.restricted)} restricted` : ''}`);
  const words = `${clusters.join('; ')}. ${of(frame.sidecars.weir + frame.sidecars.envoy, 'sidecar')}${frame.sidecars.refusing ? `, ${count(frame.sidecars.refusing)} refuse a resource` : ''}.`;
  const now = performance.now();
  if (words === said || now - summarised < SUMMARY_MS) return;
  [said, summarised] = [words, now];
  const worst = Object.values(frame.clusters).map(({ total }) => total.worst_delay_ms ?? 0);
  text(byId('summary'), `${words} Worst queuing delay ${delay(Math.max(0, ...worst))}.`);
}

/** Shows the moment of so many rows ago; 0 is now. */
function moveTo(ago) {
  paused = ago === 0 || !newest ? null : past.frame(ago, newest);
  rowsAgo = paused ? ago : 0;
  slider.value = -rowsAgo;
  const words = paused ? `${span(ago * past.everyMs)} ago` : 'now';
  text(byId('moment-text'), words);
  attribute(slider, 'aria-valuetext', words);
  showPaused();
}

function showPaused() {
  byId('now').hidden = !paused;
  attribute(byId('pause'), 'aria-pressed', String(Boolean(paused)));
  byId('then').hidden = !paused?.isPast;
  ask();
}

function pause() {
  if (paused) {
    moveTo(0);
    return;
  }
  paused = newest;
  showPaused();
}

slider.addEventListener('input', () => moveTo(-slider.valueAsNumber));
byId('now').addEventListener('click', () => moveTo(0));
byId('pause').addEventListener('click', pause);

const focus = (id) => () => byId(id).focus();
const KEYS = {
  '/': focus('search-key'),
  f: focus('hosts-filter'),
  t: focus('moment'),
  p: pause,
  n: () => moveTo(0),
  '?': () => {
    byId('help').open = !byId('help').open;
    byId('help').scrollIntoView();
  },
};

document.addEventListener('keydown', (event) => {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  const types = target.matches('input:not([type=range], [type=radio], [type=checkbox]), select, textarea');
  if (types || ctrlKey || metaKey || altKey || !byId('keys').checked || !KEYS[key]) return;
  event.preventDefault();
  KEYS[key]();
});
