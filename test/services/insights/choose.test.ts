import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Platform } from '#schemas/common.ts';
import { choose, type Holder, openTo } from '#services/insights/choose.ts';
import type { DueAccount } from '#services/insights/due.ts';
import { suite } from '#test/support/suite.ts';

let made = 0;
const accounts = (workspaceId: string, platform: Platform, count: number): readonly DueAccount[] =>
  Array.from({ length: count }, () => {
    made += 1;
    return { accountId: `a${made}`, workspaceId, platform };
  });
const share = (all: readonly Holder[], key: string) =>
  all.filter(({ workspaceId, platform }) => workspaceId === key || platform === key).length;

suite('choice of the account for a free slot', (t) => {
  t('a workspace with 100,000 due accounts leaves slots to waiting workspaces and takes the free rest', () => {
    const large = accounts('large', 'x', 50).flatMap((one, at) => [
      one,
      ...accounts('large', at % 2 ? 'threads' : 'bluesky', 1),
    ]);
    const others = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].flatMap((name) => accounts(name, 'linkedin', 2));
    const chosen = choose([...large, ...others], [], 8);
    ok(chosen.length >= 7 && share(chosen, 'large') <= 4, `${share(chosen, 'large')} of ${chosen.length}`);
    ok(share(chosen, 'linkedin') >= 4, 'theirs have half of the places');
    const same = choose([...accounts('large', 'x', 100), ...accounts('small', 'x', 1)], [], 8);
    ok(share(same, 'small') === 1 && share(same, 'large') === 6, 'all but the reserve');
    // All that is under way is its own: whoever comes next finds a place.
    deepEqual(choose([...accounts('large', 'x', 9), ...accounts('small', 'threads', 1)], same, 8).length, 1);
  });

  t('networks that hang never hold all slots, however many of them hang', () => {
    let held: readonly DueAccount[] = [];
    for (const network of ['x', 'instagram', 'tiktok'] as const) {
      const due = Array.from({ length: 40 }, (_, at) => accounts(`${network}${at}`, network, 1)).flat();
      const chosen = choose(due, held, 16);
      ok(chosen.length > 0, `${network} finds a place beside ${held.length}`);
      held = [...held, ...chosen];
    }
    const [other] = choose(accounts('w', 'bluesky', 1), held.slice(0, 15), 16);
    equal(other?.platform, 'bluesky');
  });

  t('while another network waits, none has more than half of the remaining slots', () => {
    const x = Array.from({ length: 40 }, (_, at) => accounts(`x${at}`, 'x', 1)).flat();
    const linkedin = Array.from({ length: 40 }, (_, at) => accounts(`l${at}`, 'linkedin', 1)).flat();
    const chosen = choose([...x, ...linkedin], [], 16);
    ok(share(chosen, 'x') <= 8 && share(chosen, 'linkedin') >= 6, `${share(chosen, 'x')} of x`);
    deepEqual(openTo(['x', 'linkedin'], x.slice(0, 15), 16), ['linkedin']);
    deepEqual(openTo(['x', 'linkedin'], x.slice(0, 16), 16), []);
  });

  t('a single slot and a single network are used', () => {
    equal(choose(accounts('w', 'x', 5), [], 1).length, 1);
    equal(choose(accounts('w', 'x', 50), [], 16).length, 14);
    equal(choose([], [], 8).length, 0);
  });

  t('among equals the order of the queue decides', () => {
    const due = ['a', 'b', 'c'].flatMap((name) => accounts(name, 'x', 1));
    deepEqual(
      choose(due, accounts('z', 'bluesky', 4), 8).map(({ workspaceId }) => workspaceId),
      ['a', 'b', 'c'],
    );
  });
});
