import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AccountCommand, account } from '#domain/account.ts';
import { keyedIdOf, testTwinIdOf } from '#domain/ids.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, composer, refused, tomorrow } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

interface Target {
  readonly id: string;
  readonly platform: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly timezone: string;
  readonly content: string;
}
const targetsOf = (answer: Answered): readonly Target[] => answer.data.targets as readonly Target[];

const {
  world,
  tester,
  composed: all,
} = await composedWorld(['x', 'bluesky', 'linkedin', 'telegram'], {
  timezone: 'Europe/Berlin',
  zones: { x: 'Asia/Tokyo' },
});

suite('posts over HTTP', (t) => {
  /** Nothing may be stored by what was refused. */
  const appendsNothing = async (ask: () => Promise<Answered>): Promise<Answered> => {
    const before = await world.head();
    const answer = await ask();
    assert.equal(await world.head(), before, 'a refused call stored events');
    return answer;
  };
  const create = (more: Record<string, unknown> = {}, key?: string) =>
    tester.post('/posts', all.body(more), key === undefined ? {} : { key });

  t('creates a post with a target per account, and answers what a later GET answers', async () => {
    const before = await world.head();
    const made = await create({ unknown: 1, status: 'published', id: randomUUID() });
    assert.equal(made.status, 200, made.text);
    const stored = await world.eventsAfter(before);
    assert.deepEqual(
      stored.map((one) => one.type),
      ['PostScheduled', ...Array(4).fill('TargetScheduled')],
    );
    assert.equal(made.data.status, 'scheduled');
    assert.deepEqual(made.data.counts, { total: 4, pending: 4 });
    const read = await tester.get(`/posts/${made.data.id}`);
    assert.deepEqual(read.data, made.data);
    assert.equal(read.headers.get('etag'), '"0"');
    assert.equal(made.headers.get('etag'), '"0"');
    for (const target of targetsOf(made)) {
      const one = await tester.get(`/post-targets/${target.id}`);
      assert.deepEqual(one.data, target);
    }
  });

  t('members that are not sent have their defaults, in a draft and in a post', async () => {
    const { clientId, targets } = all.body();
    const bare = { clientId, targets, schedule: { type: 'now' } };
    const time = { scheduledAt: null, scheduledLocal: null, from: null, to: null, spreadMinutes: null };
    const defaults = {
      ...{ content: '', mediaIds: [], variants: [], scheduleMode: 'managed', timezone: 'UTC', aiDisclosure: false },
      ...{ requestApproval: false, campaignId: null, externalRef: null, thread: null, mediaAltTexts: null },
      ...{ coverMediaId: null, coverFrameMs: null, schedule: { type: 'now', ...time } },
      targetSelection: { mode: 'group', clientId, accountIds: null, platforms: null },
    };
    const shown = ({ data }: Answered) => Object.fromEntries(Object.keys(defaults).map((name) => [name, data[name]]));
    const draft = await tester.post('/posts', { ...bare, saveDraft: true });
    assert.deepEqual([draft.data.status, shown(draft)], ['draft', defaults], draft.text);
    const post = await tester.post('/posts', { ...bare, content: 'Now.' });
    assert.deepEqual([post.data.status, shown(post)], ['scheduled', { ...defaults, content: 'Now.' }], post.text);
    const nested = await tester.post('/posts', {
      ...bare,
      saveDraft: true,
      variants: [{ platform: 'x' }],
      thread: { segments: [{}, { content: 'Two.' }] },
    });
    assert.deepEqual(nested.data.variants, [
      { platform: 'x', contentOverride: null, mediaIdsOverride: null, overrides: {} },
    ]);
    const segments = ['', 'Two.'].map((content) => ({ content, mediaIds: [] }));
    assert.deepEqual(nested.data.thread, { segments });
  });

  t('a wall-clock time is each target’s own; a variant’s text is its platform’s', async () => {
    const made = await create({
      schedule: { type: 'at', scheduledLocal: `${tomorrow().slice(0, 10)}T09:00`, scheduledAt: tomorrow() },
      variants: [{ platform: 'twitter', contentOverride: 'short', overrides: { nonsense: { deep: [1] } } }],
    });
    const byPlatform = new Map(targetsOf(made).map((one) => [one.platform, one]));
    assert.equal(byPlatform.get('x')?.timezone, 'Asia/Tokyo');
    assert.equal(byPlatform.get('x')?.scheduledAt.slice(11, 16), '00:00');
    assert.equal(byPlatform.get('bluesky')?.timezone, 'Europe/Berlin');
    assert.equal(byPlatform.get('x')?.content, 'short');
    assert.equal(byPlatform.get('bluesky')?.content, 'A word from us.');
    assert.deepEqual((made.data.variants as { overrides: unknown }[])[0]?.overrides, { nonsense: { deep: [1] } });
  });

  t(
    'a repeat under the key answers the post as created; another body under it is refused; 20 callers make one',
    async () => {
      const key = randomUUID();
      const body = all.body({ content: `Word ${key}` });
      const answers = await Promise.all(Array.from({ length: 20 }, () => tester.post('/posts', body, { key })));
      assert.deepEqual([...new Set(answers.map((one) => one.text.replace(/"correlationId":"[^"]+"/, '')))].length, 1);
      assert.equal(answers.filter((one) => one.headers.get('idempotent-replayed') === null).length, 1);
      const target = targetsOf(answers[0] as Answered)[0] as Target;
      await tester.post(`/post-targets/${target.id}/cancel`);
      const later = await tester.post('/posts', body, { key });
      assert.deepEqual(later.data, answers[0]?.data);
      refused(
        await appendsNothing(() => tester.post('/posts', { ...body, content: 'other' }, { key })),
        422,
        'idempotency_key_reused',
      );
      refused(await tester.post('/posts', body, { key: null }), 400, 'idempotency_key_required');
    },
  );

  t('a refused call leaves its key free', async () => {
    const key = randomUUID();
    refused(
      await appendsNothing(() => tester.post('/posts', all.body({ content: 'x'.repeat(50_001) }), { key })),
      422,
      'validation_failed',
      ['/content'],
    );
    assert.equal((await tester.post('/posts', all.body(), { key })).status, 200);
  });

  t('the networks’ rules give one entry per offending target, and nothing is stored', async () => {
    const long = await appendsNothing(() => create({ content: 'ä'.repeat(301) }));
    refused(long, 422, 'validation_failed', ['/content', '/content']);
    assert.match(long.text, new RegExp(all.accounts.x ?? 'none'));
    const wrong = {
      variants: [
        { platform: 'linkedin', overrides: { visibility: 'EVERYBODY' } },
        { platform: 'x', overrides: { replySettings: 'verifiedOnly' } },
      ],
    };
    refused(await appendsNothing(() => create(wrong)), 422, 'validation_failed', ['/variants/0/overrides/visibility']);
    // A missing required override is never refused here: that target fails when it is published.
    const board = await composer(world, ['pinterest']);
    const { id } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
    assert.equal((await tester.post('/posts', board.body({ mediaIds: [id] }))).status, 200);
  });

  t('bodies that contradict themselves', async () => {
    const cases: [Record<string, unknown>, string, string[]][] = [
      [{ targets: { mode: 'group' } }, 'validation_failed', ['/targets/clientId']],
      [{ targets: { mode: 'group', clientId: randomUUID() } }, 'validation_failed', ['/targets/clientId']],
      [{ targets: { mode: 'selection' } }, 'validation_failed', ['/targets/accountIds']],
      [{ targets: { mode: 'accounts', accountIds: [randomUUID()] } }, 'validation_failed', ['/targets/accountIds/0']],
      [{ schedule: { type: 'at' } }, 'validation_failed', ['/schedule/scheduledAt']],
      [
        { schedule: { type: 'range', from: tomorrow(), to: tomorrow().replace(/^\d{4}/, '2020') } },
        'validation_failed',
        ['/schedule/to'],
      ],
      [
        { schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' } },
        'schedule_in_past',
        Array(4).fill('/schedule'),
      ],
      [
        { schedule: { type: 'at', scheduledAt: '2090-01-01T00:00:00Z' } },
        'schedule_too_far',
        Array(4).fill('/schedule'),
      ],
      [{ timezone: 'Mars/Olympus' }, 'validation_failed', ['/timezone']],
      [{ variants: [{ platform: 'x' }, { platform: 'twitter' }] }, 'validation_failed', ['/variants/1/platform']],
      [{ targets: { mode: 'group', clientId: all.clientId, platforms: ['threads'] } }, 'no_targets', []],
      [{ content: '  ' }, 'validation_failed', Array(4).fill('/content')],
      [
        { clientId: randomUUID(), targets: { mode: 'accounts', accountIds: [all.accounts.x] } },
        'validation_failed',
        ['/clientId'],
      ],
    ];
    for (const [more, code, paths] of cases) {
      refused(await appendsNothing(() => create(more)), 422, code, paths);
    }
  });

  t('an entry that concerns one account names it in its own member', async () => {
    const past = await create({ schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' } });
    const named = (answer: Answered) =>
      Object.fromEntries((answer.body.errors ?? []).map(({ platform, accountId }) => [platform, accountId]));
    assert.deepEqual(named(past), all.accounts);
    const long = await create({ content: 'x'.repeat(3_001) });
    assert.ok((long.body.errors ?? []).length > 1, long.text);
    for (const { accountId, platform, code, message } of long.body.errors ?? []) {
      assert.equal(code, 'text_too_long');
      assert.equal(all.accounts[platform ?? ''], accountId);
      assert.doesNotMatch(message, /account|[0-9a-f]{8}-/);
    }
  });

  t('a thread is published by segments on networks with threads, as the content on others', async () => {
    const segments = [{ content: 'first' }, { content: 'second' }];
    const made = await create({ content: 'elsewhere', thread: { segments } });
    assert.equal(made.status, 200);
    for (const target of made.data.targets as { platform: string; content: string }[]) {
      assert.equal(target.content, target.platform === 'x' ? 'first' : 'elsewhere', target.platform);
    }
    const bare = { content: '', thread: { segments } };
    const paths = Array(3).fill('/content');
    refused(await appendsNothing(() => create(bare)), 422, 'thread_not_supported', paths);
    const alone = { mode: 'group', clientId: all.clientId, platforms: ['x'] };
    assert.equal((await create({ ...bare, targets: alone })).status, 200);
    const cases: [unknown, string][] = [
      [[{ content: 'only one' }], '/thread/segments'],
      [Array(51).fill({ content: 'x' }), '/thread/segments'],
      [[{ content: 'a' }, { content: ' ' }], '/thread/segments/1'],
      [[{ content: 'a' }, { content: 'x'.repeat(281) }], '/thread/segments/1/content'],
    ];
    for (const [wrong, path] of cases) {
      const asked = { ...bare, thread: { segments: wrong }, targets: alone };
      refused(await appendsNothing(() => create(asked)), 422, 'validation_failed', [path]);
    }
  });

  t('native stays managed on a network without a scheduler, with a reason', async () => {
    const made = await create({ scheduleMode: 'native' });
    assert.equal(made.data.scheduleMode, 'native');
    for (const target of made.data.targets as { scheduleMode: string; scheduleModeReason: string }[]) {
      assert.deepEqual([target.scheduleMode, target.scheduleModeReason], ['managed', 'platform_has_no_scheduler']);
    }
  });

  t('platforms beside another selection than a group: a warning, on the draft and when it is published', async () => {
    const { x = '' } = all.accounts;
    const beside = (mode: string) => ({ mode, accountIds: [x], platforms: ['bluesky', 'bluesky'] });
    const codesOf = ({ body }: Answered) =>
      (body.meta as { readonly warnings?: readonly { readonly code: string; readonly id: string }[] }).warnings?.map(
        ({ code, id }) => [code, id],
      );
    for (const mode of ['selection', 'accounts']) {
      const key = randomUUID();
      const body = all.body({ content: `Word ${key}`, targets: beside(mode) });
      const made = await tester.post('/posts', body, { key });
      assert.deepEqual(
        targetsOf(made).map(({ platform }) => platform),
        ['x'],
        made.text,
      );
      assert.deepEqual(codesOf(made), [['member_without_effect', made.data.id]]);
      assert.deepEqual(made.data.targetSelection, { ...beside(mode), clientId: null, platforms: ['bluesky'] });
      const again = await tester.post('/posts', body, { key });
      assert.deepEqual(codesOf(again), codesOf(made));
      const other = { ...body, content: `Other ${key}` };
      const plain = all.body({ content: `Plain ${key}` });
      const many = { posts: [other, plain, { ...body, idempotencyKey: key }] };
      const bulk = await tester.post('/posts/bulk', many, { key: `${key}-bulk` });
      const [first] = bulk.data.results as readonly { readonly post: { readonly id: string } }[];
      const reported = [first?.post.id, made.data.id].map((id) => ['member_without_effect', id]);
      assert.deepEqual(codesOf(bulk)?.toSorted(), reported.toSorted());
      const repeat = await tester.post('/posts/bulk', many, { key: `${key}-bulk` });
      assert.deepEqual(codesOf(repeat)?.toSorted(), reported.toSorted());
    }
    const content = `Word ${randomUUID()}`;
    const draft = await create({ content, targets: beside('selection'), saveDraft: true });
    const warned = [['member_without_effect', draft.data.id]];
    assert.deepEqual(codesOf(draft), warned);
    const { clientId: _, ...replaced } = all.body({ content, targets: beside('accounts') });
    assert.deepEqual(codesOf(await tester.patch(`/posts/${draft.data.id}`, replaced)), warned);
    assert.deepEqual(codesOf(await tester.post(`/posts/${draft.data.id}/publish`, {})), warned);
    assert.equal(
      codesOf(await create({ content: `One ${content}`, targets: { mode: 'selection', accountIds: [x] } })),
      undefined,
    );
    const group = { mode: 'group', clientId: all.clientId, platforms: ['x'] };
    assert.equal(codesOf(await create({ content: `Two ${content}`, targets: group })), undefined);
  });

  t('members of another schedule type are ignored, whatever they hold', async () => {
    const nothing = { scheduledAt: null, scheduledLocal: null, from: null, to: null, spreadMinutes: null };
    const soon = { scheduledLocal: 'tonight', from: 7, to: { deep: [1] }, spreadMinutes: 5 };
    const now = await tester.post('/posts', all.body({ schedule: { type: 'now', scheduledAt: 'soon', ...soon } }));
    assert.equal(now.status, 200, now.text);
    assert.deepEqual(now.data.schedule, { ...nothing, type: 'now', spreadMinutes: 5 });
    const at = tomorrow();
    const draft = { saveDraft: true, schedule: { type: 'at', scheduledAt: at, from: 'soon', to: null } };
    const saved = await tester.post('/posts', all.body(draft));
    assert.deepEqual(saved.data.schedule, { ...nothing, type: 'at', scheduledAt: at });
    const path = `/posts/${saved.data.id}/publish`;
    const published = await tester.post(path, { schedule: { type: 'now', scheduledAt: 'soon' } });
    assert.equal(published.status, 200, published.text);
    for (const [schedule, paths] of [
      [{ type: 'at', scheduledAt: 'soon', from: 'soon' }, ['/schedule/scheduledAt']],
      [{ type: 'range', from: at, to: 'soon', scheduledAt: 'soon' }, ['/schedule/to']],
      [{ type: 'later', scheduledAt: 'soon' }, ['/schedule/type']],
    ] as const) {
      refused(await tester.post('/posts', all.body({ schedule })), 422, 'validation_failed', paths);
    }
  });

  t('accounts of several clients, of the wrong client, disconnected; archived clients; approvals', async () => {
    const other = await composer(world, ['x']);
    const both = [all.accounts.x, other.accounts.x, other.accounts.x];
    const made = await create({ targets: { mode: 'accounts', accountIds: both } });
    assert.equal(targetsOf(made).length, 2);
    const repeated = [all.accounts.x, all.accounts.x, randomUUID()];
    refused(await create({ targets: { mode: 'accounts', accountIds: repeated } }), 422, 'validation_failed', [
      '/targets/accountIds/2',
    ]);
    refused(await create({ targets: { mode: 'selection', accountIds: both } }), 422, 'account_not_in_client', [
      '/targets/accountIds/1',
    ]);
    const lapsed = await composer(world, ['x', 'bluesky', 'threads']);
    const tell = (id: string | undefined, command: AccountCommand) =>
      execute(world.store, account, id ?? '', command, contextOf(world.operator, testTwinIdOf(world.workspaceId)));
    await tell(lapsed.accounts.x, { type: 'Disconnect', reason: 'revoked' });
    await tell(lapsed.accounts.bluesky, { type: 'RequireReauth', reason: 'expired' });
    await world.settled();
    const named = { mode: 'selection', accountIds: [lapsed.accounts.threads, lapsed.accounts.x] };
    refused(await tester.post('/posts', lapsed.body({ targets: named })), 422, 'account_disconnected', [
      '/targets/accountIds/1',
    ]);
    const group = await tester.post('/posts', lapsed.body());
    assert.deepEqual(
      targetsOf(group)
        .map(({ platform }) => platform)
        .sort(),
      ['bluesky', 'threads'],
    );
    await tester.delete(`/clients/${other.clientId}`);
    refused(await create({ targets: { mode: 'accounts', accountIds: both } }), 422, 'client_archived');
    refused(await tester.post('/posts', other.body()), 422, 'client_archived');
  });

  t('a draft: kept as sent, replaced whole, published with every gate', async () => {
    const made = await create({
      saveDraft: true,
      content: 'ä'.repeat(301),
      schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' },
    });
    assert.equal(made.data.status, 'draft');
    assert.deepEqual(made.data.targets, []);
    const path = `/posts/${made.data.id}`;
    refused(await tester.post(`${path}/publish`, {}), 422, 'schedule_in_past');
    refused(await tester.post(`${path}/publish`, { schedule: { type: 'now' } }), 422, 'validation_failed');
    refused(await tester.patch(path, { targets: all.body().targets }), 422, 'validation_failed', ['/schedule']);
    refused(await tester.patch(path, {}, { headers: { 'if-match': '"7"' } }), 422, 'validation_failed');
    const { clientId: _client, ...replacement } = all.body({ content: 'Better.' });
    refused(await tester.patch(path, replacement, { headers: { 'if-match': '"7"' } }), 412, 'revision_mismatch');
    const replaced = await tester.patch(path, replacement, { headers: { 'if-match': '"0"' } });
    assert.equal(replaced.status, 200, replaced.text);
    assert.equal(replaced.data.content, 'Better.');
    assert.deepEqual((await tester.get(path)).data, replaced.data);
    const key = randomUUID();
    const published = await tester.post(`${path}/publish`, undefined, { key });
    assert.equal(published.status, 200, published.text);
    assert.equal(published.data.status, 'scheduled');
    assert.equal(targetsOf(published).length, 4);
    assert.deepEqual((await tester.get(path)).data, published.data);
    const again = await tester.post(`${path}/publish`, undefined, { key });
    assert.deepEqual(again.data, published.data);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    refused(await tester.post(`${path}/publish`, {}), 409, 'post_not_draft');
    refused(await tester.patch(path, replacement), 409, 'post_not_draft');
  });

  t('20 callers publish a draft: one plan, its targets once', async () => {
    const made = await create({ saveDraft: true });
    const key = randomUUID();
    const path = `/posts/${made.data.id}/publish`;
    const same = await Promise.all(Array.from({ length: 20 }, () => tester.post(path, {}, { key })));
    assert.deepEqual(
      same.map((one) => one.status),
      Array(20).fill(200),
    );
    assert.deepEqual([...new Set(same.map((one) => JSON.stringify(one.data)))].length, 1);
    const stored = await world.store.readStream(`post-${made.data.id}`);
    assert.deepEqual(
      stored.map((one) => one.type),
      ['PostDrafted', 'PostScheduled'],
    );
  });

  t('lists: the newest first, by keyset, with every filter', async () => {
    const mine = await composer(world, ['x', 'bluesky']);
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      const made = await tester.post('/posts', mine.body({ content: `post ${n} 100%`, saveDraft: n === 4 }));
      ids.unshift(made.data.id);
    }
    await world.settled();
    const filter = `clientId=${mine.clientId}`;
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Answered = await tester.get(`/posts?${filter}&limit=2${cursor === null ? '' : `&cursor=${cursor}`}`);
      assert.equal(page.body.page?.cursor, cursor);
      assert.ok(page.rows.every((row) => !('targets' in row) && !('variants' in row)));
      seen.push(...page.rows.map((row) => row.id));
      cursor = page.body.page?.nextCursor ?? null;
    } while (cursor !== null);
    assert.deepEqual(seen, ids);
    const count = async (query: string) => (await tester.get(`/posts?${filter}&${query}`)).rows.length;
    assert.equal(await count('status=draft'), 1);
    assert.equal(await count('status=draft,scheduled'), 5);
    assert.equal(await count('platform=twitter'), 4);
    assert.equal(await count('platform=tiktok'), 0);
    assert.equal(await count('search=100%25'), 5);
    assert.equal(await count('search=POST%203'), 1);
    assert.equal(await count(`from=${new Date().toISOString()}`), 4);
    assert.equal(await count(`to=${new Date().toISOString()}`), 1);
    assert.equal(await count(`campaignId=${randomUUID()}`), 0);
    refused(await tester.get('/posts?status=nonsense'), 400, 'invalid_parameter');
    refused(await tester.get('/posts?platfrom=x'), 400, 'invalid_parameter');
  });

  t('stored under the tenant, in the stream its key names', async () => {
    const key = randomUUID();
    const made = await create({}, key);
    const twin = testTwinIdOf(world.workspaceId);
    assert.equal(made.data.id, keyedIdOf(twin, 'createPost', key));
    const [event] = await world.store.readStream(`post-${made.data.id}`);
    assert.equal(event?.metadata.workspaceId, twin);
    assert.equal(event?.metadata.partitionKey, made.data.id);
    refused(await world.owner.get(`/posts/${made.data.id}`), 404, 'not_found');
  });

  t(
    'instants beyond the range that a store can hold are refused as input, never 5xx, whatever the format allows',
    async () => {
      const odd = [
        '2027-06-30T23:59:60Z',
        '2027-01-01T00:00:00+02',
        '0000-06-01T00:00:00Z',
        '0001-01-01T00:00:00+23:00',
        '9999-12-31T23:59:59-23:00',
      ];
      for (const scheduledAt of odd) {
        const schedule = { type: 'at', scheduledAt };
        for (const saveDraft of [false, true]) {
          const answer = await appendsNothing(() => create({ saveDraft, schedule }));
          refused(answer, 422, 'validation_failed', ['/schedule/scheduledAt']);
        }
        for (const list of ['posts', 'post-targets']) {
          const answer = await tester.get(`/${list}?from=${encodeURIComponent(scheduledAt)}`);
          refused(answer, 400, 'invalid_parameter', ['/from']);
        }
      }
      for (const list of ['posts', 'post-targets']) {
        for (const query of [
          'from=0002-01-01T00:00:00Z',
          'to=9999-12-31T23:59:59.999Z',
          'to=9999-12-30T00:00:00-23:00',
        ]) {
          assert.equal((await tester.get(`/${list}?${query}`)).status, 200, query);
        }
      }
    },
  );

  t('a post over 400 KiB as stored is refused', async () => {
    const variants = [
      'x',
      'bluesky',
      'tiktok',
      'pinterest',
      'facebook',
      'linkedin',
      'youtube',
      'threads',
      'telegram',
    ].map((platform) => ({ platform, contentOverride: 'ж'.repeat(40_000) }));
    const draft = await appendsNothing(() => create({ saveDraft: true, variants }));
    refused(draft, 422, 'validation_failed', ['']);
  });
});
