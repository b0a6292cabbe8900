// SPDX-License-Identifier: Apache-2.0
// Who gets tables from here, which they have, and which they refuse.

import { byId, count, el, of, span, table, text, whenChanged } from './dom.js';

export class Sidecars {
  constructor(root) {
    this.root = root;
  }

  show(frame) {
    const { sidecars } = frame;
    const total = sidecars.weir + sidecars.envoy;
    const nacks = sidecars.refusing > 0 ? `, ${count(sidecars.refusing)} refuse a resource` : '';
    text(byId('sidecars-count'), `${of(sidecars.weir, 'filter')}, ${of(sidecars.envoy, 'Envoy', 'Envoys')} on discovery streams, ${count(sidecars.reporting)} report${nacks}`);
    // Ages go by tens of seconds here, or every row would be new each second.
    const rows = sidecars.rows.map((row) => ({ ...row, connected_for_ms: slowly(row.connected_for_ms), refuses: row.refuses.map(aged) }));
    // Those in the table are not said twice.
    const inTable = new Set(rows.flatMap((row) => row.refuses.map((it) => `${row.proxy} ${it.kind}`)));
    const refusals = sidecars.refusals.filter((it) => !inTable.has(`${it.proxy} ${it.kind}`)).map(aged);
    const parts = { rows, refusals, reports: sidecars.reports_refused, more: total - rows.length };
    whenChanged(this.root, parts, () => drawn(parts));
  }
}

const slowly = (ms) => (ms < 60000 ? Math.floor(ms / 10000) * 10000 : Math.floor(ms / 60000) * 60000);
const aged = (refusal) => ({ ...refusal, ms_ago: slowly(refusal.ms_ago) });
const ago = (ms) => (ms < 10000 ? 'just now' : `${span(ms)} ago`);

function drawn({ rows, refusals, reports, more }) {
  if (rows.length === 0) return [el('p', { class: 'quiet' }, 'No sidecar is connected.'), ...notes(refusals, reports)];
  const heads = ['Sidecar', 'Kind', { text: 'Connected', number: true }, 'Tables accepted', 'Refuses (NACK)'];
  const cells = rows.map((row) => [
    el('span', { class: 'name' }, row.proxy, row.peer ? el('span', { class: 'quiet more' }, row.peer) : null),
    [row.kind === 'weir' ? 'filter' : 'Envoy', row.program_version].filter(Boolean).join(' '),
    row.connected_for_ms < 10000 ? 'just now' : span(row.connected_for_ms),
    row.kind === 'weir' ? tables(row) : 'its filter’s',
    row.refuses.length === 0 ? 'nothing' : el('span', { class: 'bad' }, ...row.refuses.map(refusal)),
  ]);
  const note = more > 0 ? el('p', { class: 'quiet' }, `${count(more)} more are in /tables; those that refuse something are shown first.`) : null;
  return [
    el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of sidecars' }, table('Sidecars with versions and refusals', heads, cells)),
    note, ...notes(refusals, reports),
  ].filter(Boolean);
}

function tables(row) {
  if (row.accepted === 0) return 'none yet';
  const named = Object.entries(row.tables).map(([cluster, version]) => `${cluster} ${version}`).join(', ');
  const more = row.accepted - Object.keys(row.tables).length;
  const behind = row.behind > 0 ? `${row.behind} behind the newest` : 'the newest';
  return el('span', {}, `${named}${more > 0 ? ` and ${more} more` : ''}`, el('span', { class: 'quiet more' }, behind));
}

const refusal = ({ kind, reason, ms_ago }) => el('span', { class: 'reason' }, `${kind}: ${reason} (${ago(ms_ago)})`);

function notes(refusals, reports) {
  const parts = [];
  if (refusals.length > 0) {
    parts.push(el('h3', {}, 'Refused before'),
      el('ul', {}, ...refusals.map((it) => el('li', {}, `${it.proxy}: `, refusal(it)))));
  }
  if (reports.length > 0) {
    parts.push(el('h3', {}, 'Reports that are not counted'),
      el('ul', {}, ...reports.map(({ proxy, refused }) =>
        el('li', {}, `${proxy}: ${Object.entries(refused).map(([why, times]) => `${why} ${count(times)}`).join(', ')}`))));
  }
  return parts;
}
