/** Limits as the real server counts them. */
import assert from 'node:assert/strict';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { orMissing } from '#test/support/missing.ts';
import { blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { startPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, the test is left out, and says so. */
const opened = await orMissing(startPds({ limits: true }).then((pds) => ({ pds })));

/** Points that an account may spend in an hour; a record that is created costs three (docs.bsky.app, "Rate Limits"). */
const pointsAnHour = 5_000;
const aRecord = 3;
/** Writes that the server takes in one call. */
const atOnce = 200;

suite('limits of bluesky', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('counts as the real server', opened.missing);
  const { pds } = opened;

  t(
    'an account that has spent its hour waits until the server says, and posts are counted as the server counts them',
    async () => {
      const observed: (readonly ObservedWindow[])[] = [];
      const it = await blueskyWorld(pds, { onLimits: (_, windows) => void observed.push(windows) });
      const ann = await pds.identity();
      const account = await it.connected(ann);
      const write = (at: number) => ({
        ...{ $type: 'com.atproto.repo.applyWrites#create', collection: 'app.bsky.feed.post' },
        value: { $type: 'app.bsky.feed.post', text: `${at}`, createdAt: new Date().toISOString() },
      });
      const input = { repo: ann.did, writes: Array.from({ length: atOnce }, (_, at) => write(at)) };
      for (let left = pointsAnHour; left > atOnce * aRecord; left -= atOnce * aRecord)
        await pds.call('com.atproto.repo.applyWrites', { input, auth: `Bearer ${ann.accessJwt}` });
      const tries = Array.from({ length: atOnce }, (_, at) => it.request(account, { content: `Post ${at}` }));
      let published = 0;
      for (const request of tries) {
        const { outcome } = await it.publish(request);
        if (outcome.kind !== 'published') {
          assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
          const waits = Date.parse(outcome.retryAt) - Date.now();
          assert.ok(waits > 0 && waits <= 3_600_000, outcome.retryAt);
          break;
        }
        published += 1;
      }
      const hours = observed.flat().filter(({ seconds }) => seconds === 3_600);
      assert.ok(published > 1 && published < atOnce, `${published} posts went out`);
      const [first, second] = hours.slice(-3).map(({ used }) => used) as [number, number];
      assert.equal(second - first, 1, 'a post is one of what an account may publish');
      assert.equal(hours.at(-1)?.limit, hours.at(-1)?.used, 'nothing is left, as the server says itself');
    },
  );
});
