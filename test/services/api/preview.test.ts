import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AccountCommand, account } from '#domain/account.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Issue } from '#schemas/issues.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { assetEvents, readyAsset } from '#test/support/assets.ts';
import { type Composer, composedWorld, composer, tomorrow } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

interface Warned {
  readonly code: string;
  readonly path: string;
  readonly willFail: boolean;
  readonly mediaId: string | null;
  readonly postId: string | null;
}
interface ShownVerdict {
  readonly platform: string;
  readonly accountId: string | null;
  readonly ok: boolean;
  readonly errors: readonly Issue[];
  readonly warnings: readonly Warned[];
  readonly text: string;
  readonly title: string | null;
  readonly length: { readonly used: number; readonly limit: number };
  readonly terms: readonly { readonly name: string; readonly url: string }[];
  readonly media: readonly Readonly<Record<string, unknown>>[];
  readonly scheduledAt: string | null;
  readonly latestAt: string | null;
  readonly scheduleMode: string;
  readonly scheduleModeReason: string | null;
}
interface Preview {
  readonly approvalRequired: boolean;
  readonly valid: boolean;
  readonly problems: readonly { readonly at: string; readonly code: string; readonly errors: readonly Issue[] }[];
  readonly warnings: readonly Warned[];
  readonly verdicts: readonly ShownVerdict[];
  readonly quota: unknown;
  readonly cadence: unknown;
}

const {
  world,
  tester,
  composed: all,
} = await composedWorld(['x', 'bluesky', 'youtube', 'tiktok'], {
  timezone: 'Europe/Berlin',
  zones: { x: 'Asia/Tokyo' },
});
const twin = testTwinIdOf(world.workspaceId);

suite('the preview of a post', (t) => {
  const previewed = async (body: Record<string, unknown>, by = tester): Promise<Preview> => {
    const before = await world.head();
    const answer = await by.post('/posts/preview', body);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(await world.head(), before, 'a preview stored events');
    return answer.data as unknown as Preview;
  };
  const verdictOf = ({ verdicts }: Preview, platform: string): ShownVerdict => {
    const found = verdicts.find((one) => one.platform === platform);
    assert.ok(found, platform);
    return found;
  };
  const codes = (issues: readonly { readonly code: string; readonly path: string }[]) =>
    issues.map(({ code, path }) => `${code} ${path}`);
  const clip = async (options = {}): Promise<string> => (await readyAsset(world.store, twin, 'video', options)).id;
  const to = (platforms: readonly string[]) => ({
    targets: { mode: 'group', clientId: all.clientId, platforms },
  });

  t('shows each account what its network would get, and writes neither events nor rows', async () => {
    const counted = async () =>
      (
        await world.pool.query(
          `select (select count(*) from ${view('posts')}) + (select count(*) from ${view('post_targets')}) as n`,
        )
      ).rows[0].n;
    const rows = await counted();
    const video = await clip();
    const preview = await previewed(
      all.body({
        content: 'A word from us.',
        mediaIds: [video],
        schedule: { type: 'at', scheduledLocal: `${tomorrow().slice(0, 10)}T09:00`, spreadMinutes: 30 },
        scheduleMode: 'native',
        variants: [
          { platform: 'x', contentOverride: 'Short.' },
          { platform: 'tiktok', overrides: { privacyLevel: 'SELF_ONLY' } },
        ],
      }),
    );
    assert.deepEqual([preview.valid, preview.problems, preview.warnings], [true, [], []]);
    assert.deepEqual(preview.quota, { limit: null, remaining: null, needed: 4 });
    assert.deepEqual(
      Object.fromEntries(preview.verdicts.map(({ platform, accountId }) => [platform, accountId])),
      all.accounts,
    );
    for (const { platform, ok, errors, warnings } of preview.verdicts)
      assert.deepEqual([ok, errors, warnings], [true, [], []], platform);
    const x = verdictOf(preview, 'x');
    assert.deepEqual([x.text, x.title, x.length], ['Short.', null, { used: 6, limit: 280 }]);
    assert.equal(x.scheduledAt?.slice(11, 16), '00:00');
    assert.equal(Date.parse(x.latestAt ?? '') - Date.parse(x.scheduledAt ?? ''), 30 * 60_000);
    assert.deepEqual([x.scheduleMode, x.scheduleModeReason], ['managed', 'platform_has_no_scheduler']);
    const youtube = verdictOf(preview, 'youtube');
    assert.deepEqual([youtube.text, youtube.title], ['A word from us.', 'A word from us.']);
    const file = { mediaId: video, kind: 'video', use: 'feed', status: 'not_needed', failure: null, rendition: null };
    assert.deepEqual(x.media, [file]);
    await world.settled();
    assert.equal(await counted(), rows);
  });

  t('reports every problem at once, and the first is the one with which the call is refused', async () => {
    const [unknown, stranger] = [randomUUID(), randomUUID()];
    const other = await composer(world, ['x']);
    const body = all.body({
      content: 'x'.repeat(301),
      mediaIds: [unknown],
      timezone: 'Mars/Olympus',
      targets: { mode: 'selection', accountIds: [all.accounts.x, all.accounts.tiktok, stranger, other.accounts.x] },
      variants: [{ platform: 'tiktok', overrides: { privacyLevel: 'FOLLOWER_OF_CREATOR' } }, { platform: 'tiktok' }],
      campaignId: randomUUID(),
    });
    const preview = await previewed(body);
    assert.equal(preview.valid, false);
    const problems = preview.problems.map(({ at, code, errors }) => [at, code, errors.map(({ path }) => path)]);
    assert.deepEqual(problems, [
      ['create', 'validation_failed', ['/timezone', '/variants/1/platform']],
      ['create', 'validation_failed', ['/targets/accountIds/2']],
      ['create', 'account_not_in_client', ['/targets/accountIds/3']],
      ['create', 'validation_failed', ['/campaignId']],
      ['create', 'validation_failed', ['/mediaIds/0']],
      ['create', 'validation_failed', ['/content', '/variants/0/overrides/privacyLevel', '/content']],
    ]);
    const answer = await tester.post('/posts', body);
    assert.equal(answer.status, 422);
    const every = preview.problems.flatMap(({ errors }) => errors);
    assert.deepEqual([answer.body.code, answer.body.errors], [preview.problems[0]?.code, every]);
    const draft = await tester.post('/posts', { ...body, saveDraft: true });
    const ofDraft = (await previewed({ ...body, saveDraft: true })).problems.filter(({ at }) => at === 'create');
    assert.ok(ofDraft.length > 1, 'the draft has faults of several checks');
    assert.deepEqual(
      draft.body.errors,
      ofDraft.flatMap(({ errors }) => errors),
    );
    const tiktok = verdictOf(preview, 'tiktok');
    assert.equal(tiktok.ok, false);
    assert.deepEqual(codes(tiktok.errors), [
      'unknown_id /mediaIds/0',
      'override_not_granted /variants/0/overrides/privacyLevel',
    ]);
    assert.ok(tiktok.errors.every((one) => one.accountId === all.accounts.tiktok));
    const foreign = preview.verdicts.find((one) => one.accountId === other.accounts.x);
    assert.deepEqual(codes(foreign?.errors ?? []), [
      'account_not_in_client /targets/accountIds/3',
      'unknown_id /mediaIds/0',
      'text_too_long /content',
    ]);
  });

  t('a missing required override refuses nothing, and says with which code the target would fail', async () => {
    const long = 'y'.repeat(101);
    const body = { mediaIds: [await clip()], content: `${long}\nmore`, ...to(['tiktok', 'youtube']) };
    const preview = await previewed(all.body(body));
    assert.equal(preview.valid, true);
    const failing = ({ warnings }: ShownVerdict) => warnings.filter((one) => one.willFail);
    assert.deepEqual(codes(failing(verdictOf(preview, 'tiktok'))), ['tiktok_privacy_level_required /variants']);
    assert.deepEqual(codes(failing(verdictOf(preview, 'youtube'))), ['youtube_title_required /content']);
    assert.equal(verdictOf(preview, 'youtube').title, null);
    const titled = { variants: [{ platform: 'youtube', overrides: { title: '<b>' } }] };
    const wrong = await previewed(all.body({ ...body, ...titled }));
    assert.deepEqual(codes(failing(verdictOf(wrong, 'youtube'))), [
      'youtube_title_required /variants/0/overrides/title',
    ]);
    assert.equal((await tester.post('/posts', all.body(body))).status, 200);
  });

  t('tells what authors agree to by posting, where the network wants people to read it first', async () => {
    const terms = async (overrides: object) => {
      const variants = [{ platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE', ...overrides } }];
      const preview = await previewed(all.body({ mediaIds: [await clip()], variants, ...to(['tiktok', 'x']) }));
      assert.deepEqual(verdictOf(preview, 'x').terms, []);
      return verdictOf(preview, 'tiktok').terms.map(({ name, url }) => [name, new URL(url).hostname]);
    };
    const music = ['Music Usage Confirmation', 'www.tiktok.com'];
    assert.deepEqual(await terms({}), [music]);
    assert.deepEqual(await terms({ brandedContent: true }), [['Branded Content Policy', 'www.tiktok.com'], music]);
  });

  t('shows how far each rendition is, and warns of one that failed', async () => {
    const need = [{ platform: 'x', use: 'feed' }] as const;
    const shown = async (id: string, platform = 'x') =>
      verdictOf(await previewed(all.body({ mediaIds: [id], ...to([platform]) })), platform);
    const more = async (
      events: readonly { readonly type: string; readonly data: unknown }[],
      needs: typeof need | [],
    ) => {
      const id = randomUUID();
      const stored = [...assetEvents(twin, id, 'image', { needs }), ...events];
      await world.store.append(`media-${id}`, -1, stored, contextOf(world.operator, twin), `media-${id}`);
      await world.settled();
      return id;
    };
    const statuses = async (id: string, platform = 'x') => (await shown(id, platform)).media.map((one) => one.status);
    assert.deepEqual(await statuses(await more([], [...need])), ['not_needed']);
    assert.deepEqual(await statuses(await more([], []), 'bluesky'), ['not_needed'], 'by its probe: nobody asked yet');
    const wanted = {
      type: 'MediaRenditionsRequested',
      data: { needs: need, for: { kind: 'target', id: randomUUID() } },
    };
    assert.deepEqual(await statuses(await more([wanted], [])), ['preparing']);
    const why = { code: 'media_too_heavy', message: 'It cannot be made small enough.' };
    const failed = { type: 'MediaRenditionFailed', data: { ...need[0], rendition: null, failure: why } };
    const id = await more([wanted, failed], []);
    const verdict = await shown(id);
    assert.deepEqual(verdict.media, [
      { mediaId: id, kind: 'image', use: 'feed', status: 'failed', failure: why, rendition: null },
    ]);
    assert.deepEqual(
      verdict.warnings.map(({ code, path, willFail, mediaId }) => [code, path, willFail, mediaId]),
      [['media_too_heavy', '/mediaIds/0', true, id]],
    );
    const heavy = await clip({ needs: [], probe: { durationMs: 10_800_000, bytes: 900_000_000 } });
    const refused = await shown(heavy);
    assert.deepEqual([refused.ok, refused.errors[0]?.mediaId, refused.media[0]?.status], [false, heavy, 'failed']);
  });

  t('warns of the same text on the same account within 24 hours, and of no other', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    const at = (hours: number) => ({
      schedule: { type: 'at', scheduledAt: new Date(Date.now() + hours * 3_600_000).toISOString() },
    });
    const made = async (more: Record<string, unknown>): Promise<Answered> => {
      const answer = await tester.post('/posts', own.body(more));
      assert.equal(answer.status, 200, answer.text);
      return answer;
    };
    const text = 'Twice said.';
    const first = await made({
      content: text,
      ...at(30),
      variants: [{ platform: 'bluesky', contentOverride: 'Else.' }],
    });
    const warned = async (more: Record<string, unknown>, by: Composer = own) => {
      const preview = await previewed(by.body({ content: text, ...at(31), ...more }));
      return Object.fromEntries(
        preview.verdicts.map(({ platform, warnings }) => [
          platform,
          warnings.map(({ code, willFail, postId }) => [code, willFail, postId]),
        ]),
      );
    };
    const duplicate = [['duplicate_text', false, first.data.id]];
    assert.deepEqual(await warned({}), { x: duplicate, bluesky: [] });
    assert.deepEqual(await warned({ content: 'Else.' }), { x: [], bluesky: duplicate });
    assert.deepEqual(await warned(at(55)), { x: [], bluesky: [] });
    assert.deepEqual(await warned(at(5)), { x: [], bluesky: [] });
    assert.deepEqual(await warned(at(7)), { x: duplicate, bluesky: [] });
    assert.deepEqual(await warned({}, await composer(world, ['x'])), { x: [] });
    const segments = [{ content: text }, { content: 'and more' }];
    assert.deepEqual(await warned({ thread: { segments }, content: 'Other.' }), { x: duplicate, bluesky: [] });
    for (const { id } of first.data.targets as { id: string }[]) await tester.post(`/post-targets/${id}/cancel`);
    assert.deepEqual(await warned({}), { x: [], bluesky: [] });
  });

  t('warns of a possible duplicate where the client retries and the network lists its own posts', async () => {
    const own = await composer(world, ['x', 'telegram', 'facebook']);
    const warned = async (more: Record<string, unknown> = {}) => {
      const { verdicts } = await previewed(own.body(more));
      const all = verdicts.map(({ platform, warnings }) => [platform, codes(warnings)] as const);
      return Object.fromEntries(all);
    };
    const at = { schedule: { type: 'at', scheduledAt: new Date(Date.now() + 3_600_000).toISOString() } };
    assert.deepEqual(await warned(), { x: [], telegram: [], facebook: [] });
    const rules = async (unknownOutcome: string) =>
      assert.equal((await tester.patch(`/clients/${own.clientId}`, { rules: { unknownOutcome } })).status, 200);
    await rules('retry_when_absent');
    const duplicate = ['duplicate_possible /clientId'];
    // Telegram has no list of posts, and a post in the network's own scheduler is on none.
    assert.deepEqual(await warned(), { x: duplicate, telegram: [], facebook: duplicate });
    assert.deepEqual(await warned({ ...at, scheduleMode: 'native' }), { x: duplicate, telegram: [], facebook: [] });
    await rules('hold');
    assert.deepEqual(await warned(), { x: [], telegram: [], facebook: [] });
  });

  t('compares with what each target says, also after a revise that came too late for it', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    const at = { schedule: { type: 'at', scheduledAt: tomorrow() } };
    const made = await tester.post('/posts', own.body({ content: 'As it went out.', ...at }));
    const targets = made.data.targets as { readonly id: string; readonly platform: string }[];
    const onX = targets.find(({ platform }) => platform === 'x')?.id ?? '';
    const publishedAt = new Date().toISOString();
    const out = { attempt: 1, takeover: 0, externalId: 'x-1', permalink: null, publishedAt };
    const events = [
      { type: 'TargetPublishStarted', data: { attempt: 1, takeover: 0 } },
      { type: 'TargetPublished', data: out },
    ];
    await world.store.append(`target-${onX}`, 0, events, contextOf(world.operator, twin), made.data.id);
    await world.settled();
    const revised = await tester.post(`/posts/${made.data.id}/revise`, { content: 'As it was revised.' });
    assert.equal(revised.status, 200, revised.text);
    await world.settled();
    const warned = async (content: string) =>
      (await previewed(own.body({ content, ...at }))).verdicts
        .filter(({ warnings }) => warnings.some(({ postId }) => postId === made.data.id))
        .map(({ platform }) => platform);
    assert.deepEqual([await warned('As it went out.'), await warned('As it was revised.')], [['x'], ['bluesky']]);
  });

  t('warns of members that change nothing, of accounts to renew and of networks without an account', async () => {
    const named = { mode: 'selection', accountIds: [all.accounts.x], platforms: ['x'] };
    const preview = await previewed(all.body({ targets: named, requestApproval: true }));
    assert.deepEqual(codes(preview.warnings), [
      'member_without_effect /targets/platforms',
      'approval_not_required /requestApproval',
    ]);
    const ignored = await previewed(all.body({ targets: { ...named, platforms: ['threads'] } }));
    assert.deepEqual(
      ignored.verdicts.map(({ platform }) => platform),
      ['x'],
    );
    const lapsed = await composer(world, ['x']);
    const command: AccountCommand = { type: 'RequireReauth', reason: 'expired' };
    await execute(world.store, account, lapsed.accounts.x ?? '', command, contextOf(world.operator, twin));
    await world.settled();
    const warned = await previewed(lapsed.body());
    assert.deepEqual(codes(verdictOf(warned, 'x').warnings), ['account_reauth_required /targets']);
    assert.equal(verdictOf(warned, 'x').warnings[0]?.willFail, true);
    const missing = await previewed(all.body(to(['x', 'threads'])));
    assert.equal(missing.valid, true);
    const threads = verdictOf(missing, 'threads');
    assert.deepEqual([threads.accountId, threads.scheduledAt, threads.ok], [null, null, true]);
    assert.deepEqual(codes(threads.warnings), ['no_account /targets/platforms']);
    const nowhere = await previewed(all.body(to(['threads'])));
    assert.deepEqual(
      nowhere.problems.map(({ code }) => code),
      ['no_targets'],
    );
  });

  t('of a draft it says whether the draft is accepted, and what its publication needs', async () => {
    const body = all.body({
      saveDraft: true,
      content: 'x'.repeat(301),
      schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' },
      ...to(['x']),
    });
    const preview = await previewed(body);
    assert.equal(preview.valid, true);
    assert.deepEqual(
      preview.problems.map(({ at, code }) => [at, code]),
      [
        ['publish', 'schedule_in_past'],
        ['publish', 'validation_failed'],
      ],
    );
    assert.deepEqual(codes(verdictOf(preview, 'x').errors), ['schedule_in_past /schedule', 'text_too_long /content']);
    assert.equal((await tester.post('/posts', body)).status, 200);
    const wrong = await previewed({ ...body, timezone: 'Mars/Olympus' });
    assert.equal(wrong.valid, false);
    assert.deepEqual(
      wrong.problems.map(({ at, errors }) => [at, errors[0]?.path]),
      [
        ['create', '/timezone'],
        ['publish', '/content'],
      ],
    );
  });

  t('names a zone or a wall-clock time that does not exist, beside the zones of the accounts', async () => {
    const [local, zone] = ['2027-12-01T09:00', 'Europe/Berlin'];
    for (const [scheduledLocal, timezone, paths] of [
      [local, 'Mars/Olympus', ['/timezone']],
      [local, '0'.repeat(99), ['/timezone']],
      ['2027-02-31T09:00', zone, ['/schedule/scheduledLocal']],
      ['2027-02-31T09:00', 'Mars/Olympus', ['/timezone', '/schedule/scheduledLocal']],
    ] as const) {
      const preview = await previewed({
        ...all.body(to(['x', 'bluesky'])),
        timezone,
        schedule: { type: 'at', scheduledLocal },
      });
      const errors = preview.problems.flatMap((one) => one.errors.map(({ path }) => path));
      assert.deepEqual(errors, paths, `${scheduledLocal} in ${timezone}`);
    }
  });

  t('a body that is too large, an archived client, a role that needs approval', async () => {
    const large = await previewed(
      all.body({ variants: [{ platform: 'x', overrides: { junk: 'x'.repeat(410_000) } }] }),
    );
    assert.deepEqual(
      [large.valid, large.verdicts.length, codes(large.problems[0]?.errors ?? [])],
      [false, 0, ['too_many_bytes ']],
    );
    const gone = await composer(world, ['x']);
    await tester.delete(`/clients/${gone.clientId}`);
    const archived = await previewed(gone.body());
    assert.equal(archived.problems[0]?.code, 'client_archived');
    const member = await world.memberOf(world.workspaceId, 'creator');
    const creator = await world.keyOf(world.workspaceId, member, { mode: 'test' });
    const held = await previewed(all.body({ requestApproval: true, ...to(['x']) }), creator.caller);
    assert.deepEqual([held.valid, held.approvalRequired, held.warnings], [true, true, []]);
  });

  t(
    'a body that does not fit its schema is refused as everywhere, and ids of other workspaces are unknown',
    async () => {
      assert.equal((await tester.post('/posts/preview', { content: 7 })).status, 422);
      const stranger = await world.agency('Other');
      const seen = await previewed(all.body(), stranger.tester);
      assert.deepEqual(codes(seen.problems[0]?.errors ?? []), ['unknown_id /clientId']);
      assert.deepEqual(seen.verdicts, []);
    },
  );
});
