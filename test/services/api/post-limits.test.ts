/** The largest post that the specification allows, and the delay that a target gets. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, refused } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

interface Target {
  readonly accountId: string;
  readonly scheduledAt: string;
  readonly jitterSeconds: number;
}

const { world, tester, composed: all } = await composedWorld(['x', 'bluesky', 'linkedin', 'telegram']);
const at = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 86_400_000).toISOString();
const spread = (spreadMinutes: number) => ({ type: 'at', scheduledAt: at, spreadMinutes });
const targetsOf = async (id: string): Promise<readonly Target[]> => {
  const answer = await tester.get(`/posts/${id}`);
  return answer.data.targets as readonly Target[];
};

suite('the limits of a post', (t) => {
  t('50,000 characters, 20 files and alt texts of 2,000 characters are kept as they were sent', async () => {
    const files = await Promise.all(
      Array.from({ length: 20 }, () => readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image')),
    );
    await world.settled();
    const mediaIds = files.map(({ id }) => id);
    const content = 'x'.repeat(50_000);
    const mediaAltTexts = Object.fromEntries(mediaIds.map((id) => [id, 'y'.repeat(2_000)]));
    const made = await tester.post('/posts', all.body({ saveDraft: true, content, mediaIds, mediaAltTexts }));
    assert.equal(made.status, 200, made.text);
    const read = await tester.get(`/posts/${made.data.id}`);
    assert.deepEqual(
      [read.data.content, read.data.mediaIds, read.data.mediaAltTexts],
      [content, mediaIds, mediaAltTexts],
    );
  });

  t('spreadMinutes delays each target within its minutes, and never makes one early', async () => {
    for (const minutes of [0, 5, 720]) {
      const made = await tester.post('/posts', all.body({ schedule: spread(minutes) }));
      assert.equal(made.status, 200, made.text);
      const targets = await targetsOf(made.data.id);
      assert.equal(targets.length, 4);
      for (const { scheduledAt, jitterSeconds } of targets) {
        assert.equal(Date.parse(scheduledAt), Date.parse(at) + jitterSeconds * 1_000);
        assert.ok(jitterSeconds >= 0 && jitterSeconds <= minutes * 60, `${jitterSeconds} s of ${minutes} minutes`);
      }
      const delays = new Set(targets.map(({ jitterSeconds }) => jitterSeconds));
      assert.equal(delays.size, minutes === 0 ? 1 : 4, 'each target has a delay of its own');
    }
    assert.equal((await tester.post('/posts', all.body({ schedule: spread(721) }))).status, 422);
  });

  t('a time at the ends of the calendar is refused, and its preview says so', async () => {
    const ends: readonly (readonly [object, string, object?])[] = [
      [{ scheduledLocal: '0000-01-01T00:00' }, 'validation_failed'],
      [{ scheduledLocal: '0001-01-01T00:00' }, 'validation_failed', { timezone: 'Asia/Tokyo' }],
      [{ scheduledLocal: '9999-12-31T23:59' }, 'validation_failed', { timezone: 'America/New_York' }],
      [{ scheduledLocal: '0001-01-02T00:00' }, 'schedule_in_past', { timezone: 'Asia/Tokyo' }],
      [{ scheduledLocal: '9999-12-30T23:59' }, 'schedule_too_far', { timezone: 'America/New_York' }],
      [{ scheduledAt: '9999-12-31T23:59:59Z', spreadMinutes: 720 }, 'schedule_too_far'],
    ];
    for (const [time, code, more] of ends) {
      const body = all.body({ schedule: { type: 'at', ...time }, ...more });
      refused(await tester.post('/posts', body), 422, code);
      const preview = await tester.post('/posts/preview', body);
      assert.equal(preview.status, 200, preview.text);
      const problems = preview.data.problems as readonly { readonly code: string }[];
      assert.deepEqual(
        problems.map((one) => one.code),
        [code],
      );
    }
  });

  t(
    '500 accounts that nobody has are looked up a few at a time, so that the reads of others come in between',
    async () => {
      const { store } = world.deps;
      const { readStream } = store;
      let [reading, most, looked] = [0, 0, 0];
      store.readStream = async (stream, ...more) => {
        if (!stream.startsWith('account-')) return readStream.call(store, stream, ...more);
        reading += 1;
        looked += 1;
        most = Math.max(most, reading);
        try {
          return await readStream.call(store, stream, ...more);
        } finally {
          reading -= 1;
        }
      };
      try {
        const targets = { mode: 'accounts', accountIds: Array.from({ length: 500 }, () => randomUUID()) };
        const preview = await tester.post('/posts/preview', all.body({ targets }));
        assert.deepEqual([preview.status, preview.data.valid], [200, false], preview.text);
      } finally {
        store.readStream = readStream;
      }
      assert.equal(looked, 500);
      assert.ok(most <= 16, `${most} at once`);
    },
  );

  t('a draft is delayed when it is published and not before', async () => {
    const draft = await tester.post('/posts', all.body({ saveDraft: true, schedule: spread(720) }));
    assert.deepEqual(await targetsOf(draft.data.id), []);
    assert.equal((draft.data.schedule as { readonly spreadMinutes: number }).spreadMinutes, 720);
    const published = await tester.post(`/posts/${draft.data.id}/publish`);
    assert.equal(published.status, 200, published.text);
    const targets = await targetsOf(draft.data.id);
    assert.ok(
      targets.every(({ jitterSeconds }) => jitterSeconds > 0 && jitterSeconds <= 43_200),
      JSON.stringify(targets),
    );
  });
});
