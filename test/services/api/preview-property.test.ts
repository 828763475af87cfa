import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import sharp from 'sharp';
import { testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/target.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import type { Platform } from '#schemas/common.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { assetEvents, readyAsset } from '#test/support/assets.ts';
import { readyClip } from '#test/support/clip.ts';
import { type Composer, composedWorld, composer } from '#test/support/composing.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What a preview promises, against what POST /posts and the sandbox then do. */

interface Warned {
  readonly code: string;
  readonly willFail: boolean;
}
interface Verdict {
  readonly accountId: string;
  readonly platform: string;
  readonly ok: boolean;
  readonly warnings: readonly Warned[];
}
interface Problem {
  readonly at: string;
  readonly code: string;
  readonly errors: readonly unknown[];
}

const networks: readonly Platform[] = ['x', 'bluesky', 'youtube', 'tiktok', 'pinterest', 'telegram', 'instagram'];
const { world, tester, composed: all } = await composedWorld(networks);
const twin = testTwinIdOf(world.workspaceId);

const often = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });

const contents = often(
  'Hello from all of us.',
  ...['', '  ', 'x'.repeat(281), 'é'.repeat(801), `${'y'.repeat(101)}\nmore`, '<b>bold</b>', 'z'.repeat(2_201)],
);
const levels = ['SELF_ONLY', 'PUBLIC_TO_EVERYONE', 'FOLLOWER_OF_CREATOR', 'EVERYBODY', null] as const;
const overridesOf: Readonly<Record<string, fc.Arbitrary<object>>> = {
  tiktok: fc.record({ privacyLevel: often<unknown>('SELF_ONLY', ...levels), brandedContent: often(false, true) }),
  pinterest: fc.record({ boardId: often<unknown>('918', '', null, 7), title: often<unknown>('Pin', 'p'.repeat(101)) }),
  youtube: fc.record(
    { title: often<unknown>('Film', '<b>', 't'.repeat(101), 7), description: fc.constantFrom('About.', 'a < b') },
    { requiredKeys: [] },
  ),
};
const variants = fc
  .tuple(
    ...['tiktok', 'pinterest', 'youtube', 'x'].map((platform) =>
      fc.option(
        fc.record({
          platform: fc.constant(platform),
          overrides: overridesOf[platform] ?? fc.constant({}),
          contentOverride: often<string | null>(null, '', 'Short.', 'o'.repeat(300)),
        }),
        { freq: 4 },
      ),
    ),
  )
  .map((some) => some.filter((one) => one !== null));

suite('a preview keeps its word', { timeoutMs: 180_000 }, (t) => {
  const stop = new AbortController();
  let publishing: Promise<void>;
  let sandbox: SandboxNetwork;
  let workDir = '';
  let files: { readonly clip: string; readonly image: string; readonly pending: string; readonly foreign: string };
  let other: Composer;

  t.before(async () => {
    const { store, pool, deps, logger, db } = world;
    other = await composer(world, ['x']);
    const jpeg = await sharp({ create: { width: 1080, height: 1080, channels: 3, background: '#369' } })
      .jpeg()
      .toBuffer();
    const probe = { width: 1080, height: 1080 };
    const pending = randomUUID();
    const unfinished = assetEvents(twin, pending, 'image').slice(0, 4);
    await store.append(`media-${pending}`, -1, unfinished, contextOf(world.operator, twin), `media-${pending}`);
    files = {
      clip: (await readyClip(store, twin, deps.blobs)).id,
      image: (await readyAsset(store, twin, 'image', { body: jpeg, blobs: deps.blobs, probe })).id,
      pending,
      foreign: (await readyAsset(store, twin, 'image', { clientId: other.clientId })).id,
    };
    await world.settled();
    await migrateLeases(pool);
    sandbox = new SandboxNetwork({ database: { url: db.url }, ...quickNetwork });
    await sandbox.migrate();
    workDir = await mkdtemp(path.join(tmpdir(), 'postline-preview-'));
    const given = { store, pool, blobs: deps.blobs, workDir, adapterOf: () => sandbox, config: quick, logger };
    publishing = runPublisher({ ...given, clock: wallClock, pollMs: 25 }, stop.signal);
  });
  t.after(async () => {
    stop.abort();
    await publishing;
    await sandbox?.close();
    await rm(workDir, { recursive: true, force: true });
  });

  const bodies = () =>
    fc
      .record({
        content: contents,
        variants,
        platforms: fc.subarray([...networks], { minLength: 1 }),
        media: often<readonly (keyof typeof files | 'unknown')[]>(
          ['clip'],
          ...([['image'], [], ['clip', 'image'], ['pending'], ['foreign'], ['unknown'], ['image', 'unknown']] as const),
        ),
        mode: often('group', 'selection', 'accounts', 'stranger', 'unknown'),
        thread: often<readonly string[] | null>(null, ['first', 'second'], ['first', ' '], ['f', 's'.repeat(501)]),
        schedule: often<object>(
          { type: 'now' },
          { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' },
          { type: 'at', scheduledAt: '2090-01-01T00:00:00Z' },
          { type: 'at' },
        ),
        timezone: often('UTC', 'Mars/Olympus'),
        saveDraft: often(false, true),
      })
      .map(({ platforms, media, mode, thread, ...rest }): Record<string, unknown> => {
        const accounts = platforms.map((one) => all.accounts[one]);
        const extra = mode === 'stranger' ? [other.accounts.x] : mode === 'unknown' ? [randomUUID()] : [];
        return {
          clientId: all.clientId,
          ...rest,
          targets:
            mode === 'group'
              ? { mode, clientId: all.clientId, platforms }
              : { mode: mode === 'accounts' ? 'accounts' : 'selection', accountIds: [...accounts, ...extra] },
          mediaIds: media.map((one) => (one === 'unknown' ? randomUUID() : files[one])),
          ...(thread === null ? {} : { thread: { segments: thread.map((content) => ({ content })) } }),
        };
      });

  t(
    'what it calls valid is accepted and goes out; what it refuses is refused with the same codes and pointers',
    async () => {
      const awaited = new Map<string, { readonly code: string | null; readonly platform: string }>();
      const counts = { valid: 0, refused: 0, drafts: 0 };
      await fc.assert(
        fc.asyncProperty(bodies(), async (body) => {
          const preview = await tester.post('/posts/preview', body);
          assert.equal(preview.status, 200, preview.text);
          const { valid, problems, verdicts } = preview.data as unknown as {
            readonly valid: boolean;
            readonly problems: readonly Problem[];
            readonly verdicts: readonly Verdict[];
          };
          const made = await tester.post('/posts', body);
          assert.equal(made.status, valid ? 200 : 422, `${preview.text}\n${made.text}`);
          if (!valid) {
            counts.refused += 1;
            const [first] = problems;
            const { code, errors = [] } = made.body;
            assert.deepEqual(
              { at: first?.at, code: first?.code, errors: first?.errors },
              { at: 'create', code, errors },
            );
            return;
          }
          if (body.saveDraft === true) {
            counts.drafts += 1;
            const published = await tester.post(`/posts/${made.data.id}/publish`);
            const [first] = problems;
            assert.equal(published.body.code, first?.code, published.text);
            assert.deepEqual(published.body.errors ?? [], first?.errors ?? []);
            return;
          }
          counts.valid += 1;
          for (const one of made.data.targets as { id: string; accountId: string; platform: string }[]) {
            const verdict = verdicts.find(({ accountId }) => accountId === one.accountId);
            assert.ok(verdict?.ok, `${one.platform}: ${preview.text}`);
            const code = verdict.warnings.find(({ willFail }) => willFail)?.code ?? null;
            awaited.set(one.id, { code, platform: one.platform });
          }
        }),
        { seed: seeded('previews').seed, numRuns: 150 },
      );
      process.stdout.write(`  ${JSON.stringify(counts)}, ${awaited.size} targets\n`);
      assert.ok(counts.valid > 5 && counts.refused > 5, JSON.stringify(counts));
      const left = new Set(awaited.keys());
      await until(
        'every target has ended',
        async () => {
          for (const id of left) {
            const { state } = await world.store.load(target, id);
            if (state.status !== 'published' && state.status !== 'failed') continue;
            left.delete(id);
            const { code, platform } = awaited.get(id) ?? {};
            const ended = state.status === 'failed' ? state.failure.code : null;
            assert.equal(ended, code, `${platform}: ${JSON.stringify(state)}`);
          }
          return left.size === 0;
        },
        { withinMs: 90_000 },
      );
    },
  );
});
