import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import sharp from 'sharp';
import { testTwinIdOf } from '#domain/ids.ts';
import {
  coverFollows,
  coverOf,
  effectiveOverrides,
  overrideRules,
  takesAltText,
  takesCoverFrame,
} from '#domain/platforms/index.ts';
import { contentFor, firstCommentOf } from '#domain/post/content.ts';
import { target } from '#domain/post-target/target.ts';
import { type LedgerRow, SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaUse } from '#schemas/media.ts';
import type { Variant } from '#schemas/post.ts';
import { maxIssues } from '#schemas/validator.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { assetEvents, readyAsset } from '#test/support/assets.ts';
import { readyClip } from '#test/support/clip.ts';
import { type Composer, composedWorld, composer } from '#test/support/composing.ts';
import { someValue } from '#test/support/override-values.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What a preview promises, against what POST /posts and the sandbox then do. */

interface Warned {
  readonly code: string;
  readonly willFail: boolean;
}
interface ShownVerdict {
  readonly accountId: string;
  readonly platform: Platform;
  readonly ok: boolean;
  readonly warnings: readonly Warned[];
  readonly text: string;
  readonly title: string | null;
  readonly media: readonly { readonly mediaId: string; readonly use: MediaUse }[];
  readonly scheduledAt: string | null;
  readonly scheduleMode: string;
}
interface Sent {
  readonly variants: Variant[];
  readonly mediaIds: string[];
  readonly mediaAltTexts: Readonly<Record<string, string>>;
  readonly aiDisclosure: boolean;
  readonly coverMediaId: string | null;
  readonly coverFrameMs: number;
}
/** What became of the preview of one target. */
interface Awaited {
  readonly verdict: ShownVerdict;
  readonly body: Sent;
  readonly scheduledAt: string;
}
interface Targeted {
  readonly id: string;
  readonly accountId: string;
  readonly scheduledAt: string;
}
interface Problem {
  readonly at: string;
  readonly code: string;
  readonly errors: readonly Issue[];
}

const { world, tester, composed: all } = await composedWorld(platforms);
const twin = testTwinIdOf(world.workspaceId);

const often = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });

const contents = often(
  'Hello from all of us.',
  ...['', '  ', 'x'.repeat(281), 'é'.repeat(801), `${'y'.repeat(101)}\nmore`, '<b>bold</b>', 'z'.repeat(2_201)],
);
/** Values without which a target fails, or which the rule of the key alone would seldom meet. */
const usual: Readonly<Partial<Record<Platform, Readonly<Record<string, fc.Arbitrary<unknown>>>>>> = {
  tiktok: { privacyLevel: often<unknown>('SELF_ONLY', 'PUBLIC_TO_EVERYONE', 'FOLLOWER_OF_CREATOR', 'EVERYBODY', null) },
  pinterest: { boardId: often<unknown>('918', '', null, 7) },
  youtube: { title: often<unknown>('Film', '<b>', 't'.repeat(101), 7), description: often('About.', 'a < b') },
};
/** Any keys of the network, with any values; most of them are right, or no post would go out. */
const overridesOf = (platform: Platform): fc.Arbitrary<Record<string, unknown>> => {
  const rules = Object.entries(overrideRules(platform));
  const set = fc.record(
    Object.fromEntries(rules.map(([key, rule]) => [key, usual[platform]?.[key] ?? someValue(rule, 40)])),
  );
  const some = fc.array(fc.constantFrom(...rules.map(([key]) => key)), { maxLength: 3 });
  const required = Object.keys(usual[platform] ?? {}).filter((key) => key !== 'description');
  return fc
    .tuple(set, some, often(required, []), often({}, { nonsense: { deep: [1] } }))
    .map(([values, keys, needed, more]) => ({
      ...Object.fromEntries(Object.entries(values).filter(([key]) => keys.includes(key) || needed.includes(key))),
      ...more,
    }));
};
const variants = fc
  .tuple(
    ...platforms.map((platform) =>
      fc.option(
        fc.record({
          platform: fc.constant(platform),
          overrides: overridesOf(platform),
          contentOverride: often<string | null>(null, '', 'Short.', 'o'.repeat(300)),
        }),
        { freq: 4 },
      ),
    ),
  )
  .map((some) => some.filter((one) => one !== null));

/** An answer names the faults of all problems, or twenty of them. */
const assertReported = (errors: readonly Issue[], problems: readonly Problem[]): void => {
  const every = problems.flatMap((one) => one.errors);
  if (every.length <= maxIssues) assert.deepEqual(errors, every);
  assert.equal(errors.length, Math.min(every.length, maxIssues));
  for (const error of errors) assert.ok(every.some((one) => isDeepStrictEqual(one, error)));
};

/** The first post of a target as its network has it, against what the preview showed. */
/** A cover that its network takes once the post is out; null: there is none. */
const laterCoverOf = ({ platform, media }: ShownVerdict): string | null => {
  const cover = media.find(({ use }) => use === 'cover')?.mediaId ?? null;
  return media.some(({ use }) => coverFollows(platform, use)) ? cover : null;
};

const assertSent = (row: LedgerRow, { verdict, body, scheduledAt }: Awaited): void => {
  const { platform, text, title, media, scheduleMode } = verdict;
  const own = body.variants.find((one) => one.platform === platform);
  assert.equal(row.overrides.description ?? row.content, text, platform);
  const shown =
    typeof row.overrides.title === 'string' && row.overrides.title.trim() !== '' ? row.overrides.title : null;
  assert.equal(shown, title, platform);
  const { aiDisclosure } = body;
  const effective = effectiveOverrides(platform, own?.overrides ?? {}, aiDisclosure, row.media[0]?.use);
  assert.deepEqual(row.overrides, { ...effective, ...(title !== null && { title }) }, platform);
  const files = (some: readonly { readonly mediaId: string; readonly use: string }[]) =>
    some
      .filter(({ use, mediaId }) => use !== 'cover' || mediaId === body.coverMediaId)
      .map(({ mediaId, use }) => [mediaId, use]);
  const later = laterCoverOf(verdict);
  const ahead = media.filter(({ use }) => later === null || use !== 'cover');
  assert.deepEqual(files(row.media), files(ahead), platform);
  if (!coverOf(platform))
    assert.ok(
      row.media.every(({ use }) => use !== 'cover'),
      platform,
    );
  for (const { mediaId, altText, use, contentType } of row.media) {
    const kind = contentType.startsWith('video/') ? 'video' : contentType === 'image/gif' ? 'gif' : 'image';
    const said = takesAltText(platform, { use, kind }) ? (body.mediaAltTexts[mediaId] ?? null) : null;
    if (use !== 'cover') assert.equal(altText, said, platform);
  }
  assert.equal(row.coverFrameMs, takesCoverFrame(platform) ? body.coverFrameMs : null, platform);
  assert.equal(row.scheduledFor?.toISOString() ?? null, scheduleMode === 'native' ? scheduledAt : null, platform);
};

suite('a preview keeps its word', { drawn: true, costs: 8, timeoutMs: 180_000 }, (t) => {
  const stop = new AbortController();
  let publishing: Promise<void>;
  let sandbox: SandboxNetwork;
  let workDir = '';
  let files: { readonly clip: string; readonly image: string; readonly pending: string; readonly foreign: string };
  let other: Composer;

  t.before(async () => {
    const { store, pool, deps, logger, db } = world;
    other = await composer(world, ['x']);
    const size = { width: 1280, height: 720 };
    const body = await sharp({ create: { ...size, channels: 3, background: '#369' } })
      .jpeg()
      .toBuffer();
    const probe = { ...size, digitalSourceType: null };
    // No media worker runs here: the picture fits wherever a post may show it.
    const needs = platforms.flatMap((platform) =>
      (['feed', 'carousel', 'story', 'cover'] as const).map((use) => ({ platform, use })),
    );
    const pending = randomUUID();
    const unfinished = assetEvents(twin, pending, 'image').slice(0, 4);
    await store.append(`media-${pending}`, -1, unfinished, contextOf(world.operator, twin), `media-${pending}`);
    files = {
      clip: (await readyClip(store, twin, deps.blobs)).id,
      image: (await readyAsset(store, twin, 'image', { body, blobs: deps.blobs, probe, needs })).id,
      pending,
      foreign: (await readyAsset(store, twin, 'image', { clientId: other.clientId })).id,
    };
    await world.settled();
    sandbox = new SandboxNetwork({ database: { url: db.url }, ...quickNetwork });
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

  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const bodies = () =>
    fc
      .record({
        content: contents,
        variants,
        networks: fc.subarray([...platforms], { minLength: 1 }),
        media: often<readonly (keyof typeof files | 'unknown')[]>(
          ['clip'],
          ...([['image'], [], ['clip', 'image'], ['pending'], ['foreign'], ['unknown'], ['image', 'unknown']] as const),
        ),
        mode: often('group', 'selection', 'accounts', 'stranger', 'unknown'),
        thread: often<readonly string[] | null>(null, ['first', 'second'], ['first', ' '], ['f', 's'.repeat(501)]),
        time: often<readonly [mode: string, schedule: object]>(
          ['managed', { type: 'now' }],
          ...Array.from({ length: 3 }, () => ['native', { type: 'at', scheduledAt: inAnHour }] as const),
          ['native', { type: 'now' }],
          ['managed', { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' }],
          ['managed', { type: 'at', scheduledAt: '2090-01-01T00:00:00Z' }],
          ['managed', { type: 'at' }],
        ),
        aiDisclosure: fc.boolean(),
        covered: fc.boolean(),
        coverFrameMs: often(1_500, 0, 86_400_000),
        timezone: often('UTC', 'Mars/Olympus'),
        saveDraft: often(false, true),
      })
      .map(({ networks, media, mode, thread, covered, time, ...rest }): Record<string, unknown> => {
        const accounts = networks.map((one) => all.accounts[one]);
        const extra = mode === 'stranger' ? [other.accounts.x] : mode === 'unknown' ? [randomUUID()] : [];
        return {
          clientId: all.clientId,
          ...rest,
          scheduleMode: time[0],
          schedule: time[1],
          targets:
            mode === 'group'
              ? { mode, clientId: all.clientId, platforms: networks }
              : { mode: mode === 'accounts' ? 'accounts' : 'selection', accountIds: [...accounts, ...extra] },
          mediaAltTexts: { [files.clip.toUpperCase()]: 'a clip', [files.image]: 'a picture' },
          ...(covered ? { coverMediaId: files.image } : {}),
          mediaIds: media.map((one) => (one === 'unknown' ? randomUUID() : files[one])),
          ...(thread === null ? {} : { thread: { segments: thread.map((content) => ({ content })) } }),
        };
      });

  /** One post that goes out for each network and mode: a seed may draw none. */
  const certain = (): [body: Record<string, unknown>][] => {
    const needed = { tiktok: { privacyLevel: 'SELF_ONLY' }, pinterest: { boardId: '918' }, youtube: { title: 'Film' } };
    const bodyOf = (platform: Platform, times: object): [body: Record<string, unknown>] => [
      {
        clientId: all.clientId,
        content: 'Hello from all of us.',
        variants: [{ platform, overrides: (needed as Partial<Record<Platform, object>>)[platform] ?? {} }],
        targets: { mode: 'selection', accountIds: [all.accounts[platform]] },
        mediaIds: [files.clip],
        mediaAltTexts: { [files.clip.toUpperCase()]: 'a clip' },
        coverMediaId: files.image,
        coverFrameMs: 1_500,
        ...times,
      },
    ];
    const later = { scheduleMode: 'native', schedule: { type: 'at', scheduledAt: inAnHour } };
    return [
      ...platforms.map((platform) => bodyOf(platform, { schedule: { type: 'now' } })),
      bodyOf('facebook', later),
      bodyOf('youtube', later),
    ];
  };

  t(
    'what it calls valid is accepted and goes out; what it refuses is refused with the same codes and pointers',
    async () => {
      const awaited = new Map<string, Awaited>();
      const counts = { valid: 0, refused: 0, drafts: 0 };
      await fc.assert(
        fc.asyncProperty(bodies(), async (body) => {
          const preview = await tester.post('/posts/preview', body);
          assert.equal(preview.status, 200, preview.text);
          const { valid, problems, verdicts } = preview.data as unknown as {
            readonly valid: boolean;
            readonly problems: readonly Problem[];
            readonly verdicts: readonly ShownVerdict[];
          };
          const made = await tester.post('/posts', body);
          assert.equal(made.status, valid ? 200 : 422, `${preview.text}\n${made.text}`);
          if (!valid) {
            counts.refused += 1;
            const [first] = problems;
            const { code, errors = [] } = made.body;
            assert.deepEqual([first?.at, first?.code], ['create', code]);
            assertReported(
              errors,
              problems.filter(({ at }) => at === 'create'),
            );
            return;
          }
          if (body.saveDraft === true) {
            counts.drafts += 1;
            const published = await tester.post(`/posts/${made.data.id}/publish`);
            const [first] = problems;
            assert.equal(published.body.code, first?.code, published.text);
            assertReported(published.body.errors ?? [], problems);
            return;
          }
          counts.valid += 1;
          const sent = made.data as unknown as Sent;
          for (const { id, accountId, scheduledAt } of made.data.targets as unknown as Targeted[]) {
            const verdict = verdicts.find((one) => one.accountId === accountId);
            assert.ok(verdict?.ok, `${accountId}: ${preview.text}`);
            if (verdict.scheduleMode === 'native' || Date.parse(scheduledAt) < Date.now() + 60_000)
              awaited.set(id, { verdict, body: sent, scheduledAt });
          }
        }),
        { seed: seeded('previews').seed, numRuns: 162, examples: certain() },
      );
      process.stdout.write(`  ${JSON.stringify(counts)}, ${awaited.size} targets\n`);
      assert.ok(counts.valid > 5 && counts.refused > 5, JSON.stringify(counts));
      const modes = new Set([...awaited.values()].map(({ verdict }) => verdict.scheduleMode));
      assert.deepEqual([...modes].sort(), ['managed', 'native']);
      assert.equal(new Set([...awaited.values()].map(({ verdict }) => verdict.platform)).size, platforms.length);
      const left = new Set(awaited.keys());
      await until(
        'every target has ended',
        async () => {
          for (const [id, { verdict }] of awaited) {
            if (!left.has(id)) continue;
            const { state } = await world.store.load(target, id);
            if (!['published', 'failed', 'handed_to_platform'].includes(state.status)) continue;
            left.delete(id);
            const code = verdict.warnings.find(({ willFail }) => willFail)?.code ?? null;
            const ended = state.status === 'failed' ? state.failure.code : null;
            assert.equal(ended, code, `${verdict.platform}: ${JSON.stringify(state)}`);
          }
          return left.size === 0;
        },
        { withinMs: 90_000 },
      );
      const wanted: string[] = [];
      const covers: string[] = [];
      for (const [id, one] of awaited) {
        const { platform, warnings, scheduleMode } = one.verdict;
        const rows = (await sandbox.creates(id)).filter(({ outcome }) => outcome === 'created');
        if (warnings.some(({ willFail }) => willFail)) {
          assert.deepEqual(rows, [], platform);
          continue;
        }
        const [head] = rows;
        assert.ok(head !== undefined, platform);
        assertSent(head, one);
        const own = one.body.variants.filter((variant) => variant.platform === platform);
        const comment = firstCommentOf(
          platform,
          contentFor({ ...one.body, content: '', thread: null, variants: own }, platform).overrides,
        );
        if (comment !== null && scheduleMode === 'managed') wanted.push(`${id} ${comment}`);
        const cover = laterCoverOf(one.verdict);
        if (cover !== null && scheduleMode === 'managed') covers.push(`${id} ${cover}`);
      }
      await until('every cover that follows is there', async () => {
        const made = (await sandbox.afterSteps([...awaited.keys()])).filter(({ outcome }) => outcome === 'done');
        if (made.length < covers.length) return false;
        assert.deepEqual(made.map(({ targetId, mediaId }) => `${targetId} ${mediaId}`).sort(), covers.sort());
        return true;
      });
      await until(
        'every first comment is there',
        async () => {
          const comments = (await sandbox.comments([...awaited.keys()])).map(
            ({ targetId, content }) => `${targetId} ${content}`,
          );
          if (comments.length < wanted.length) return false;
          assert.deepEqual(comments.sort(), wanted.sort());
          return true;
        },
        { withinMs: 30_000 },
      );
    },
  );
});
