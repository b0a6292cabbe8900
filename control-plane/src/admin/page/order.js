// SPDX-License-Identifier: Apache-2.0
// Hosts in the order in which people count: 10.0.0.9 before 10.0.0.10.

const words = new Intl.Collator('en', { numeric: true });
let ranks = new Map();

/** Sorts the hosts of each cluster. Names are compared when there are other ones, which is seldom. */
export function inOrder(clusters) {
  for (const { hosts } of Object.values(clusters)) {
    if (hosts.some(({ host }) => !ranks.has(host))) rank(clusters);
    hosts.sort((a, b) => ranks.get(a.host) - ranks.get(b.host));
  }
}

function rank(clusters) {
  const names = Object.values(clusters).flatMap(({ hosts }) => hosts.map(({ host }) => host));
  ranks = new Map([...new Set(names)].sort(words.compare).map((name, index) => [name, index]));
}
