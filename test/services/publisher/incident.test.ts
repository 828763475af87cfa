import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PostBody } from '#schemas/post.ts';
import { type Bundle, bundled, bundleOf } from '#services/admin/audit-bundle.ts';
import { playBundle, readBundle } from '#services/admin/audit-replay-bundle.ts';
import type { Admin } from '#services/admin/context.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/**
 * Incidents in a file. `fixtures/incidents/` has bundles that `npm run audit -- bundle` wrote: what happened then must be decided
 * in the same way today. To keep an incident as a test, put its bundle there.
 */

const accountId = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001';
const incidents = path.resolve(import.meta.dirname, '../../fixtures/incidents');

suite('a bundle of an incident', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
  });
  t.after(() => world?.close());

  const incident = async (): Promise<Bundle> => {
    const publisher = world.publisher();
    const account = await world.connect(await world.client(), 'x');
    const text = 'Nobody may read this [[sandbox:rate_limit once 100ms]]';
    const { targetIds } = await world.schedule([account], { text, dueAt: Date.now() });
    await world.all(targetIds, 'published');
    await publisher.stop();
    const { eventStore, codec } = world;
    return bundleOf({ eventStore, codec, operator: { clock: Date.now } } as unknown as Admin, targetIds[0] ?? '');
  };
  const changed = (
    bundle: Bundle,
    change: (stream: string, event: { type: string; data: object }) => object,
  ): Bundle => ({
    ...bundle,
    streams: Object.fromEntries(
      Object.entries(bundle.streams).map(([stream, events]) => [
        stream,
        events.map((event) => ({ ...event, data: change(stream, event) as Record<string, unknown> })),
      ]),
    ),
  });

  /** What the sandbox keeps of the account of a bundle. */
  const madeOn = async (bundle: Bundle): Promise<number> => {
    const [account = ''] = Object.keys(bundle.streams).filter((stream) => stream.startsWith('account-'));
    const { rowCount } = await world.pool.query('select from sandbox.ledger where account_id = $1 or target_id = $2', [
      account.replace('account-', ''),
      bundle.targetId,
    ]);
    return rowCount ?? 0;
  };

  t('a text that a person or a network wrote is in no place of it, whatever its member is called', () => {
    const words = 'Nobody may read these words';
    const about = { id: 'e', revision: 0, metadata: { actor: { type: 'member', id: 'm' } } };
    const of = (stream: string, type: string, data: object) =>
      JSON.stringify(bundled({ ...about, stream, type, data } as unknown as Parameters<typeof bundled>[0]));
    const overrides = { title: words, boardId: 'b-1', visibility: 'public', other: { deep: [words] } };
    const variants = [
      { platform: 'x', contentOverride: words, mediaIds: null, overrides },
    ] as unknown as PostBody['variants'];
    const body = postBody({ content: words, variants, mediaAltTexts: { [accountId]: words } });
    const drafted = of('post-1', 'PostDrafted', {
      clientId: accountId,
      createdBy: { type: 'member', id: accountId },
      body,
    });
    const failure = { code: 'refused', message: words, platformCode: '190', platformMessage: words, permanent: true };
    const failed = of('target-1', 'TargetFailed', { attempt: 1, takeover: 0, failure });
    const step = of('target-1', 'TargetPublishCheckpointed', {
      ...{
        attempt: 1,
        takeover: 0,
        step: 'boundary',
        data: { handle: 'h-1', said: words, token: 'abc' },
        deadline: null,
      },
    });
    for (const text of [drafted, failed, step]) assert.doesNotMatch(text, /Nobody|these|abc/);
    for (const kept of ['"b-1"', '"public"', '"x"', accountId, '"UTC"']) assert.ok(drafted.includes(kept), drafted);
    for (const kept of ['"refused"', '"190"']) assert.ok(failed.includes(kept), failed);
    for (const kept of ['"boundary"', '"h-1"']) assert.ok(step.includes(kept), step);
  });

  t('has no text and nobody in it, is decided again as it was, and names what differs', async () => {
    const bundle = await incident();
    const text = JSON.stringify(bundle);
    assert.doesNotMatch(text, /Nobody|sandbox:rate_limit/);
    const before = await madeOn(bundle);
    const played = await playBundle(bundle, world.sandbox);
    assert.deepEqual(played.differences, []);
    assert.equal(played.attempts, 2);
    assert.ok(played.decided >= 5, text);
    assert.equal(await madeOn(bundle), before, 'a play makes nothing on an account of somebody');

    const otherAttempt = changed(bundle, (_, { type, data }) =>
      type === 'TargetPublished' ? { ...data, attempt: 7 } : data,
    );
    assert.match(
      (await playBundle(otherAttempt, null)).differences.join(),
      /^revision \d+: TargetPublished was recorded, and RecordPublished decides a refusal, claim_lost$/,
    );
    const tooLong = changed(bundle, (stream, { data }) =>
      stream.startsWith('post-') && 'body' in data
        ? { ...data, body: { ...(data.body as object), content: 'x'.repeat(400) } }
        : data,
    );
    assert.match(
      (await playBundle(tooLong, world.sandbox)).differences.join('\n'),
      /attempt 2: TargetPublished was recorded, and the sandbox ends with TargetFailed/,
    );

    const folder = mkdtempSync(path.join(tmpdir(), 'incident-'));
    const file = path.join(folder, 'incident.json');
    writeFileSync(file, text);
    assert.deepEqual(await readBundle(file), bundle);
    writeFileSync(file, '{}');
    await assert.rejects(readBundle(file), /is no bundle/);
    rmSync(folder, { recursive: true });
  });

  t('a post that its network put off and then took', async () => {
    const played = await playBundle(await readBundle(path.join(incidents, 'rate-limited.json')), world.sandbox);
    assert.deepEqual(played.differences, []);
    assert.equal(played.attempts, 2);
  });
});
