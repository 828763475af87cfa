import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { warningCodes } from '#schemas/http/common.ts';
import { operations } from '#services/api/operations.ts';
import { readGuides } from '#services/pages/docs/guides.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, composer, tomorrow } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

/** What an answer says of members of the body that nothing reads, or that change nothing. */

interface Reported {
  readonly code: string;
  readonly id?: string;
  readonly path?: string;
  readonly message: string;
  readonly platform?: string;
  readonly accountId?: string;
  readonly willFail?: boolean;
}
interface Meta {
  readonly warnings?: readonly Reported[];
  readonly moreWarnings?: number;
}
const metaOf = (answer: Answered): Meta => {
  assert.equal(answer.status, 200, answer.text);
  return (answer.body.meta ?? {}) as Meta;
};
const reportedOf = (answer: Answered): readonly Reported[] => metaOf(answer).warnings ?? [];
const linesOf = (answer: Answered): readonly string[] =>
  reportedOf(answer)
    .map(({ code, path }) => `${code} ${path}`)
    .toSorted();
const messageOf = (answer: Answered, code: string): string =>
  reportedOf(answer).find((one) => one.code === code)?.message ?? '';

/** The next day on which the clocks of Berlin change: the last Sunday of the month. */
const changeOf = (month: number): string => {
  const year = new Date().getUTCFullYear();
  const days = [year, year + 1].map((one) => {
    const last = new Date(Date.UTC(one, month, 0));
    return last.getTime() - last.getUTCDay() * 86_400_000;
  });
  const next = days.find((day) => day > Date.now() + 2 * 86_400_000) ?? assert.fail();
  return new Date(next).toISOString().slice(0, 10);
};

suite('warnings about the body of a call', (t) => {
  let all: Awaited<ReturnType<typeof composedWorld>>;
  t.before(async () => {
    all = await composedWorld(['x', 'bluesky', 'instagram'], { timezone: 'Europe/Berlin' });
  });
  const group = (...platforms: readonly string[]) => ({
    targets: { mode: 'group', clientId: all.composed.clientId, platforms },
  });
  const body = (more: Readonly<Record<string, unknown>> = {}) =>
    all.composed.body({ content: `Word ${randomUUID()}`, ...group('x'), ...more });
  const draft = async () => (await all.tester.post('/posts', body({ saveDraft: true }))).data.id;

  t('a member that nothing reads: its pointer, and the member that was probably meant', async () => {
    const made = await all.tester.post(
      '/posts',
      body({
        saveAsDraft: true,
        scheduledAt: tomorrow(),
        'a/b~c': 1,
        schedule: { type: 'at', scheduledAt: tomorrow(), timezone: 'Europe/Berlin' },
        targets: { ...group('x').targets, accounts: [1] },
        variants: [{ platform: 'x', text: 'Short', overrides: {} }],
        thread: { segments: [{ content: 'One' }, { content: 'Two', media_ids: [] }], kind: 'long' },
      }),
    );
    assert.deepEqual(
      linesOf(made).filter((one) => one.startsWith('unknown_member')),
      [
        'unknown_member /a~1b~0c',
        'unknown_member /saveAsDraft',
        'unknown_member /schedule/timezone',
        'unknown_member /scheduledAt',
        'unknown_member /targets/accounts',
        'unknown_member /thread/kind',
        'unknown_member /thread/segments/1/media_ids',
        'unknown_member /variants/0/text',
      ],
    );
    const words = Object.fromEntries(reportedOf(made).map(({ path = '', message }) => [path, message]));
    assert.match(words['/saveAsDraft'] ?? '', /`saveDraft`/);
    assert.match(words['/scheduledAt'] ?? '', /`schedule\.scheduledAt`/);
    assert.match(words['/schedule/timezone'] ?? '', /`timezone`/);
    assert.match(words['/thread/segments/1/media_ids'] ?? '', /`mediaIds`/);
    for (const { id } of reportedOf(made)) assert.equal(id, made.data.id);
  });

  t('each code is explained in the guide', async () => {
    const guides = await readGuides();
    const text = guides.find(({ name }) => name === 'errors-and-retries')?.text ?? '';
    assert.deepEqual(
      warningCodes.filter((code) => !text.includes(`\`${code}\``)),
      [],
    );
  });

  t('a repeat under the same key warns of the body that it sent', async () => {
    const key = randomUUID();
    const sent = body({
      requestApproval: true,
      variants: [{ platform: 'x', overrides: { reply_settings: 'following' } }],
    });
    const first = await all.tester.post('/posts', { ...sent, saveAsDraft: true }, { key });
    const again = await all.tester.post('/posts', { ...sent, saveAsDraft: true }, { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(reportedOf(again), reportedOf(first));
    assert.deepEqual(linesOf(first), [
      'approval_not_required /requestApproval',
      'unknown_member /saveAsDraft',
      'unknown_override /variants/0/overrides/reply_settings',
    ]);
  });

  t('at most 20, then their number; a long name is not repeated', async () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`member${index}`, 'x'.repeat(10_000)]));
    const made = metaOf(await all.tester.post('/posts', body({ ...many, ['n'.repeat(5_000)]: 1 })));
    assert.deepEqual([made.warnings?.length, made.moreWarnings], [20, 31]);
    const long = await all.tester.post('/posts', body({ ['n'.repeat(5_000)]: 1 }));
    assert.ok(long.text.length < 10_000 && reportedOf(long)[0]?.path === '', long.text.slice(0, 300));
    const settings = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`replySetings${index}`, 1]));
    const over = metaOf(await all.tester.post('/posts', body({ variants: [{ platform: 'x', overrides: settings }] })));
    assert.deepEqual([over.warnings?.length, over.moreWarnings], [20, 2_980]);
  });

  t('every operation with a body tells of members that nothing reads', async () => {
    const bodies = operations.filter(({ body: schema }) => schema !== undefined).map(({ id }) => id);
    assert.ok(bodies.length > 30);
    const { tester, composed } = all;
    const { clientId } = composed;
    const post = await tester.post('/posts', body());
    const [target] = post.data.targets as readonly { readonly id: string }[];
    const campaign = await tester.post('/campaigns', { name: `Winter ${randomUUID()}`, note: 1 });
    const answers: Readonly<Record<string, Answered>> = {
      createCampaign: campaign,
      updateCampaign: await tester.patch(`/campaigns/${campaign.data.id}`, { color: '#aabbcc', colour: 'red' }),
      assignCampaignPosts: await tester.post(`/campaigns/${campaign.data.id}/assign`, {
        postIds: [post.data.id],
        posts: [],
      }),
      shiftCampaign: await tester.post(`/campaigns/${campaign.data.id}/shift`, { minutes: 1, hours: 2 }),
      createClient: await tester.post('/clients', {
        name: `C ${randomUUID()}`,
        type: 'brand',
        timeZone: 'Europe/Berlin',
      }),
      updateClient: await tester.patch(`/clients/${clientId}`, { time_zone: 'Europe/Berlin' }),
      createConnectInvite: await tester.post(`/clients/${clientId}/connect-invites`, {
        platforms: ['x'],
        email: 'a@b.c',
      }),
      registerWebhook: await tester.post('/webhooks', { url: 'https://hooks.example/in', events: ['*'], secret: 's' }),
      presignMedia: await tester.post('/media/presign', {
        ...{ fileName: 'a.png', contentType: 'image/png', bytes: 10, name: 'a' },
      }),
      setPostRecycle: await tester.request('PUT', `/posts/${post.data.id}/recycle`, {
        body: { everyDays: 30, every: 'month' },
      }),
      reschedulePostTarget: await tester.post(`/post-targets/${target?.id}/reschedule`, {
        shiftMinutes: 5,
        minutes: 5,
      }),
      bulkPostTargets: await tester.post('/post-targets/bulk', {
        ...{ action: 'reschedule', targetIds: [target?.id], shiftMinutes: 5, note: 'x' },
      }),
      previewPost: await tester.post('/posts/preview', body({ saveAsDraft: true })),
      createSimulation: await tester.post('/simulations', { clientId, quota: { limit: 3 }, month: '2026-02' }),
      revisePost: await tester.post(`/posts/${post.data.id}/revise`, { content: 'Anew', text: 'x' }),
    };
    for (const [name, answer] of Object.entries(answers)) {
      assert.ok(
        reportedOf(answer).some(({ code }) => code === 'unknown_member'),
        `${name}: ${answer.text.slice(0, 300)}`,
      );
    }
    assert.match(messageOf(answers.updateClient as Answered, 'unknown_member'), /`timezone`/);
    assert.equal(metaOf(await tester.patch(`/clients/${clientId}`, { rules: { tone: 'warm' } })).warnings, undefined);
  });

  t('known members that change nothing: of a draft, a revise, a publication and a bulk action', async () => {
    const id = await draft();
    const replaced = await all.tester.patch(`/posts/${id}`, body({ saveDraft: false }));
    assert.deepEqual(linesOf(replaced), ['member_without_effect /clientId', 'member_without_effect /saveDraft']);
    const published = await all.tester.post(`/posts/${id}/publish`, { content: 'Other', timezone: 'Europe/Berlin' });
    assert.deepEqual(linesOf(published), ['member_without_effect /content', 'member_without_effect /timezone']);
    const targets = { mode: 'group', clientId: all.composed.clientId };
    const revised = await all.tester.post(`/posts/${id}/revise`, {
      content: `Anew ${randomUUID()}`,
      targets,
      scheduleMode: 'native',
    });
    assert.deepEqual(linesOf(revised), ['member_without_effect /scheduleMode', 'member_without_effect /targets']);
    const [target] = revised.data.targets as readonly { readonly id: string }[];
    const canceled = await all.tester.post('/post-targets/bulk', {
      ...{ action: 'cancel', targetIds: [target?.id], scheduledAt: tomorrow() },
    });
    assert.deepEqual(linesOf(canceled), ['member_without_effect /scheduledAt']);
  });

  t('known members that change nothing: of a composed post', async () => {
    const { accounts, clientId } = all.composed;
    const asset = await readyAsset(all.world.store, testTwinIdOf(all.world.workspaceId), 'image');
    const of = async (more: Readonly<Record<string, unknown>>) => linesOf(await all.tester.post('/posts', body(more)));
    const at = { type: 'at', scheduledAt: tomorrow() };
    assert.deepEqual(await of({ targets: { ...group().targets, platforms: ['x'], accountIds: [accounts.bluesky] } }), [
      'member_without_effect /targets/accountIds',
    ]);
    const selected = { mode: 'selection', clientId, accountIds: [accounts.x], platforms: ['x'] };
    assert.deepEqual(await of({ targets: selected }), [
      'member_without_effect /targets/clientId',
      'member_without_effect /targets/platforms',
    ]);
    assert.deepEqual(await of({ schedule: { ...at, from: tomorrow(), to: 'soon' } }), [
      'member_without_effect /schedule/from',
      'member_without_effect /schedule/to',
    ]);
    const local = `${tomorrow().slice(0, 10)}T23:00`;
    assert.deepEqual(await of({ schedule: { ...at, scheduledLocal: local } }), [
      'member_without_effect /schedule/scheduledAt',
    ]);
    assert.deepEqual(await of({ timezone: 'America/New_York' }), ['member_without_effect /timezone']);
    assert.deepEqual(await of({ mediaAltTexts: { [asset.id]: 'A cup.' } }), [
      `member_without_effect /mediaAltTexts/${asset.id}`,
    ]);
    assert.deepEqual(await of({ variants: [{ platform: 'bluesky', contentOverride: 'There' }] }), [
      'member_without_effect /variants/0',
    ]);
    const thread = { segments: [{ content: `One ${randomUUID()}` }, { content: 'Two' }] };
    assert.deepEqual(await of({ thread, variants: [{ platform: 'x', contentOverride: 'There' }] }), [
      'member_without_effect /content',
      'member_without_effect /variants/0/contentOverride',
    ]);
    assert.deepEqual(await of({ ...group('bluesky'), thread, scheduleMode: 'native', coverFrameMs: 5 }), [
      'member_without_effect /coverFrameMs',
      'member_without_effect /scheduleMode',
      'member_without_effect /thread',
    ]);
    const onInstagram = { platform: 'instagram', overrides: { shareToFeed: true } };
    assert.deepEqual(await of({ ...group('instagram'), mediaIds: [asset.id], variants: [onInstagram] }), [
      'member_without_effect /variants/0/overrides/shareToFeed',
    ]);
  });

  t('a wall-clock time that the clocks of the zone skip or show twice, wherever it is sent', async () => {
    const { tester } = all;
    const at = (month: number, time: string) => ({ type: 'at', scheduledLocal: `${changeOf(month)}T${time}` });
    const [skipped, repeated, plain] = [at(3, '02:30'), at(10, '02:30'), at(3, '03:30')];
    const path = '/schedule/scheduledLocal';
    const made = await tester.post('/posts', body({ schedule: skipped }));
    assert.deepEqual(linesOf(made), [`local_time_skipped ${path}`]);
    const words = /Europe\/Berlin skip \S+T02:30: it counts as \S+T01:30:00\.000Z, when they show \S+T03:30/;
    assert.match(messageOf(made, 'local_time_skipped'), words);
    const [one] = made.data.targets as readonly { readonly scheduledAt: string }[];
    assert.ok(messageOf(made, 'local_time_skipped').includes(one?.scheduledAt ?? '?'));
    assert.deepEqual(linesOf(await tester.post('/posts', body({ schedule: plain }))), []);
    const twice = [`local_time_repeated ${path}`];
    const preview = await tester.post('/posts/preview', body({ schedule: repeated }));
    const [verdict] = preview.data.verdicts as readonly {
      readonly warnings: readonly Reported[];
      readonly ok: boolean;
    }[];
    assert.deepEqual([verdict?.ok, verdict?.warnings.map(({ code }) => `${code} ${path}`)], [true, twice]);
    const saved = await tester.post('/posts', body({ schedule: repeated, saveDraft: true }));
    assert.deepEqual(linesOf(saved), twice);
    assert.deepEqual(linesOf(await tester.post(`/posts/${saved.data.id}/publish`, {})), twice);
    const revised = await tester.post(`/posts/${made.data.id}/revise`, { schedule: repeated });
    assert.deepEqual(linesOf(revised), twice);
    assert.match(messageOf(revised, 'local_time_repeated'), /T00:30:00\.000Z and at \S+T01:30:00\.000Z: the first/);
    // The targets keep their times, and nobody named one in this call.
    const reworded = await tester.post(`/posts/${made.data.id}/revise`, { content: `Anew ${randomUUID()}` });
    assert.deepEqual(linesOf(reworded), []);
    const bulk = await tester.post('/posts/bulk', { posts: [body(), body({ schedule: skipped })] });
    assert.deepEqual(linesOf(bulk), [`local_time_skipped /posts/1${path}`]);
  });

  t('known members that change nothing: of a client or a file that is there already', async () => {
    const name = `Taken ${randomUUID()}`;
    const key = randomUUID();
    const first = { name, type: 'brand', timezone: 'Europe/Berlin' };
    assert.deepEqual(reportedOf(await all.tester.post('/clients', first, { key })), []);
    const again = await all.tester.post('/clients', { name, type: 'influencer', timezone: 'Europe/Berlin' });
    assert.deepEqual(linesOf(again), ['member_without_effect /type']);
    assert.equal(again.data.type, 'brand');
    assert.deepEqual(reportedOf(await all.tester.post('/clients', first, { key })), []);
    const asset = await readyAsset(all.world.store, testTwinIdOf(all.world.workspaceId), 'image');
    const registered = await all.tester.post('/media', { assetId: asset.id, altText: 'A cup.', folder: 'Winter' });
    assert.deepEqual(linesOf(registered), ['member_without_effect /altText', 'member_without_effect /folder']);
  });

  t('settings that no network knows: the nearest key, in every spelling, and the network that has it', async () => {
    const variants = [
      { platform: 'x', overrides: { reply_settings: 'following', 'quote-tweet-id': '1', boardId: '2', mood: 'calm' } },
      { platform: 'instagram', overrides: { contentTyp: 'reel', __proto__: 1 } },
    ];
    const sent = body({ ...group('x'), variants });
    const preview = await all.tester.post('/posts/preview', sent);
    assert.equal(preview.data.valid, true, preview.text);
    const made = await all.tester.post('/posts', sent);
    const words = Object.fromEntries(
      reportedOf(made).map(({ path = '', message }) => [path.split('/').at(-1), message]),
    );
    assert.match(words.reply_settings ?? '', /`replySettings`/);
    assert.match(words['quote-tweet-id'] ?? '', /`quoteTweetId`/);
    assert.match(words.boardId ?? '', /Pinterest/);
    assert.match(words.mood ?? '', /^X has no setting of this name and does not get it$/);
    assert.match(words.contentTyp ?? '', /`contentType`/);
    const verdicts = preview.data.verdicts as readonly { readonly warnings: readonly Reported[] }[];
    const shown = [...(preview.data.warnings as readonly Reported[]), ...verdicts.flatMap(({ warnings }) => warnings)];
    const lines = (some: readonly Reported[]) => some.map(({ code, path }) => `${code} ${path}`).toSorted();
    assert.deepEqual(lines(reportedOf(made)), lines(shown));
  });

  t('all that a preview warns of: in POST, PATCH, publish, revise and bulk', async () => {
    const { tester, world } = all;
    const own = await composer(world, ['tiktok', 'x'], { timezone: 'Europe/Berlin' });
    const content = `Word ${randomUUID()}`;
    const due = tomorrow();
    const sent = (more: Readonly<Record<string, unknown>> = {}) =>
      own.body({ content, schedule: { type: 'at', scheduledAt: due }, ...more });
    const media = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'video');
    const onTiktok = { mediaIds: [media.id], targets: { mode: 'accounts', accountIds: [own.accounts.tiktok] } };
    const missing = 'tiktok_privacy_level_required /variants';
    const made = await tester.post('/posts', sent(onTiktok));
    assert.deepEqual(linesOf(made), [missing]);
    assert.deepEqual(
      reportedOf(made).map(({ platform, accountId, willFail, id }) => [platform, accountId, willFail, id]),
      [['tiktok', own.accounts.tiktok, true, made.data.id]],
    );
    await world.settled();
    const both = [missing, 'duplicate_text /content'].toSorted();
    assert.deepEqual(linesOf(await tester.post('/posts', sent(onTiktok))), both);
    const saved = await tester.post('/posts', sent({ ...onTiktok, saveDraft: true }));
    assert.deepEqual(linesOf(saved), both);
    const { clientId: _, ...replaced } = sent(onTiktok);
    assert.deepEqual(linesOf(await tester.patch(`/posts/${saved.data.id}`, replaced)), both);
    assert.deepEqual(linesOf(await tester.post(`/posts/${saved.data.id}/publish`, {})), both);
    await world.settled();
    assert.deepEqual(linesOf(await tester.post(`/posts/${saved.data.id}/revise`, { aiDisclosure: true })), both);
    const bulk = await tester.post('/posts/bulk', {
      posts: [
        sent({ content: `Word ${randomUUID()}`, targets: { mode: 'group', clientId: own.clientId, platforms: ['x'] } }),
        sent({ ...onTiktok, note: 1 }),
      ],
      all: true,
    });
    assert.deepEqual(linesOf(bulk), [
      'duplicate_text /posts/1/content',
      'tiktok_privacy_level_required /posts/1/variants',
      'unknown_member /all',
      'unknown_member /posts/1/note',
    ]);
  });
});
