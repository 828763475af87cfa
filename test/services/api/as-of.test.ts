import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { feedEnd } from '#projections/feed/read.ts';
import { feedUses } from '#projections/feed/uses.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { restored } from '#runtime/work/restores.ts';
import { pastOf, publishTarget, shownOf } from '#test/support/as-of.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { suite } from '#test/support/suite.ts';

/** Things and lists as they were: what a caught-up GET answered at an event of the feed is answered for it ever after. */

interface Seen {
  readonly sequence: number;
  /** By the database. */
  readonly instant: string;
  /** By path: status and data. */
  readonly answers: ReadonlyMap<string, unknown>;
}

suite('the past', { timeoutMs: 240_000 }, (t) => {
  const keys = new TestKeys();
  let world: World;
  let by: Caller;
  let numbering: Numbering;
  let own: Composer;
  let other: Composer;
  const seen: Seen[] = [];
  const things = new Set<string>();
  /** Lists that a thing of the first rounds narrows. */
  const filters = new Set<string>();
  const farOff = new Date(Date.now() + 10 * 86_400_000).toISOString();
  t.before(async () => {
    world = await startWorld({
      codec: new EventCodec(keys),
      rate: { perMinute: 1_000_000, burst: 1_000_000 },
    });
    numbering = startNumbering(world);
    by = world.tester;
    own = await composer(world, ['x', 'bluesky']);
    other = await composer(world, ['x']);
  });
  t.after(async () => {
    await numbering?.stop();
    await world?.close();
  });

  const twin = () => testTwinIdOf(world.workspaceId);
  const done = (answered: Answered): Answered => {
    assert.ok(answered.status < 300, answered.text);
    return answered;
  };
  const withClient = (list: string): string => `${list}&clientId=${own.clientId}`;
  const lists = (): readonly string[] => [
    ...[own.clientId, other.clientId].flatMap((id) =>
      ['posts', 'post-targets', 'accounts', 'campaigns', 'approvals'].map(
        (noun) => `/${noun}?limit=100&clientId=${id}`,
      ),
    ),
    ...['/clients?limit=100', '/clients?archived=true', '/webhooks?limit=100'],
    `/posts?limit=100&clientId=${own.clientId}&status=scheduled,publishing`,
    `/post-targets?limit=3&clientId=${own.clientId}&platform=x`,
    ...[`/posts?from=${farOff}`, '/posts?externalRef=ours-1'].map(withClient),
    ...[`/post-targets?to=${farOff}`, '/post-targets?externalRef=ours-1'].map(withClient),
    ...[...filters],
  ];
  const at = (path: string, asOf: number | string) => by.get(pastOf(path, asOf));
  const settle = async (): Promise<number> => {
    await world.settled();
    await numbering.numbered();
    return (await feedEnd(world.pool, twin())).size;
  };
  const record = async (): Promise<void> => {
    const sequence = await settle();
    const { rows } = await world.pool.query<{ now: Date }>('select clock_timestamp() as now');
    const answers = new Map<string, unknown>();
    for (const path of [...things, ...lists()]) answers.set(path, shownOf(await by.get(path)));
    seen.push({ sequence, instant: rows[0]?.now.toISOString() ?? '', answers });
  };
  const publish = (targetId: string, postId: string) => publishTarget(world, twin(), targetId, postId);

  t('each thing and each list of a client is answered as a caught-up GET answered it then', async () => {
    const { clientId } = own;
    for (const id of [clientId, other.clientId]) things.add(`/clients/${id}`);
    for (const id of [...Object.values(own.accounts), ...Object.values(other.accounts)]) things.add(`/accounts/${id}`);
    const made = async (path: string, body: object): Promise<string> => {
      const { id } = done(await by.post(path, body)).data;
      things.add(`${path}/${id}`);
      return id;
    };
    const post = async (more: Readonly<Record<string, unknown>> = {}) => {
      const { data } = done(await by.post('/posts', own.body(more)));
      things.add(`/posts/${data.id}`);
      if (data.approvalId !== null) things.add(`/approvals/${data.approvalId}`);
      const targets = data.targets as readonly { readonly id: string; readonly accountId: string }[];
      for (const { id } of targets) things.add(`/post-targets/${id}`);
      return { id: data.id, approvalId: String(data.approvalId), targets };
    };
    await record();
    // Writes of one round run beside each other; the answers between the rounds are recorded.
    const [hook, campaign, shared] = await Promise.all([
      made('/webhooks', { url: 'https://example.com/hook', events: ['post.*'] }),
      made('/campaigns', { name: 'Spring', clientId }),
      made('/campaigns', { name: 'All', clientId: other.clientId }),
    ]);
    const [first, second, third] = await Promise.all([
      post({ campaignId: campaign, externalRef: 'ours-1' }),
      post({ content: 'Second.', campaignId: campaign }),
      post({ content: 'Third.' }),
    ]);
    const draft = (await post({ content: 'Draft.', saveDraft: true })).id;
    filters.add(`/posts?clientId=${clientId}&campaignId=${campaign}`);
    filters.add(`/post-targets?clientId=${clientId}&postId=${first.id}&accountId=${own.accounts.x}`);
    await record();
    await Promise.all([
      by.post(`/posts/${first.id}/revise`, { content: 'Better.' }).then(done),
      publish(second.targets[0]?.id ?? '', second.id),
      by.patch(`/clients/${clientId}`, { name: `Renamed ${randomUUID()}`, approvalRequired: true }).then(done),
      by.post(`/webhooks/${hook}/rotate-secret`, {}).then(done),
      by
        .post(`/post-targets/${third.targets[0]?.id}/reschedule`, {
          scheduledAt: new Date(Date.now() + 30 * 86_400_000).toISOString(),
        })
        .then(done),
      by.post(`/campaigns/${campaign}/unassign`, { postIds: [second.id] }).then(done),
    ]);
    await record();
    const held = await post({ content: 'To be approved.', campaignId: campaign });
    filters.add(`/approvals?clientId=${clientId}&postId=${held.id}`);
    const rejected = await post({ content: 'To be refused.' });
    await record();
    await Promise.all([
      by.post(`/approvals/${held.approvalId}/approve`, { comment: 'Fine.' }).then(done),
      by.post(`/approvals/${rejected.approvalId}/request-changes`, { comment: 'No.' }).then(done),
      by.delete(`/posts/${draft}`).then(done),
      by.delete(`/campaigns/${campaign}`).then(done),
      by.patch(`/campaigns/${shared}`, { name: 'Everything' }).then(done),
      by.post(`/accounts/${own.accounts.bluesky}/disconnect`, {}).then(done),
    ]);
    await record();
    await Promise.all([
      by.delete(`/webhooks/${hook}`).then(done),
      by.delete(`/posts/${third.id}`).then(done),
      by.delete(`/clients/${other.clientId}`).then(done),
      ...Array.from({ length: 8 }, (_, n) => post({ content: `More ${n}.` })),
    ]);
    await record();
    const wrong: unknown[] = [];
    for (const { sequence, answers } of seen) {
      for (const [path, then] of answers) {
        const answered = await at(path, sequence);
        try {
          assert.deepEqual(shownOf(answered), then, `${path} as of ${sequence}`);
          if (answered.status === 200) assert.equal(answered.body.meta?.asOf?.event, `1.${sequence}`);
        } catch (error) {
          wrong.push(error);
        }
      }
    }
    if (wrong.length > 0) throw wrong[0];
    const gone = seen.at(-1)?.answers.get(`/campaigns/${campaign}`);
    assert.deepEqual(gone, [404, 'not_found'], 'the property covers what is gone');
  });

  t(
    'an instant is the last event that is not later; the answer stays after a restore, whose epoch counts',
    async () => {
      const check = async (prefix: string): Promise<void> => {
        for (const { sequence, instant, answers } of seen.filter((_, n) => n % 2 === 0)) {
          for (const path of [...answers.keys()].filter((_, n) => n % 5 === 0)) {
            assert.deepEqual(shownOf(await at(path, instant)), answers.get(path), `${path} at ${instant}`);
            assert.deepEqual(
              shownOf(await at(path, `${prefix}${sequence}`)),
              answers.get(path),
              `${path} as of ${sequence}`,
            );
          }
        }
      };
      await check('1.');
      const before = await settle();
      await restored(world.pool, new Date().toISOString(), 'ada');
      done(await by.post('/clients', { name: `After ${randomUUID()}`, type: 'brand' }));
      const size = await settle();
      assert.ok(size > before);
      await check('1.');
      await check('2.');
      const path = `/clients/${own.clientId}`;
      assert.equal((await at(path, `2.${size}`)).status, 200);
      const lost = await at(path, `1.${size}`);
      refused(lost, 400, 'invalid_parameter', ['/asOf']);
      assert.match(lost.text, new RegExp(`up to ${before} were kept`));
    },
  );

  t('a moment that is none is refused in words that say why', async () => {
    const path = `/clients/${own.clientId}`;
    const size = await settle();
    const later = new Date(Date.now() + 3_600_000).toISOString();
    for (const [asOf, said] of [
      [later, 'lies in the future'],
      ['2001-01-31T08:00:00Z', 'before the first event'],
      ['0', 'before the first event'],
      [`${size + 1_000_000}`, 'behind the end of the feed'],
      ['99.1', 'names no epoch'],
      ['2026-02-30T08:00:00Z', 'instant'],
      ['2026-01-31T99:00:00Z', 'instant'],
      ['yesterday', 'an event of the feed'],
    ] as const) {
      const answered = await at(path, asOf);
      refused(answered, 400, 'invalid_parameter', ['/asOf']);
      assert.match(answered.text, new RegExp(said), asOf);
    }
    for (const list of [`/posts?clientId=${own.clientId}&search=a`, '/clients?search=a']) {
      const answered = await at(list, size);
      refused(answered, 400, 'invalid_parameter', ['/search']);
      assert.match(answered.text, /cannot be sent with asOf, which takes (clientId|type)/);
    }
    for (const noun of ['posts', 'post-targets', 'accounts', 'campaigns', 'approvals']) {
      refused(await at(`/${noun}`, size), 400, 'invalid_parameter', ['/clientId']);
    }
    // Just now: the question waits until no event of that instant can come any more.
    const { rows } = await world.pool.query<{ now: Date }>('select clock_timestamp() as now');
    const now = rows[0]?.now.toISOString() ?? '';
    const { status, body } = await at(path, now);
    assert.deepEqual([status, body.meta?.asOf], [200, { event: `2.${size}`, at: now }]);
    assert.equal((await by.get(path)).body.meta?.asOf, undefined);
  });

  t('an auditor alone may ask, pays for it, and it is noted; a limited key asks about its clients', async () => {
    const size = await settle();
    const path = `/clients/${own.clientId}`;
    const key = async (scopes: readonly string[], clientIds?: readonly string[]): Promise<Caller> => {
      const limit = clientIds === undefined ? {} : { clientIds };
      return (await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes, ...limit })).caller;
    };
    const plain = await key(['clients.read', 'posts.read', 'accounts.read']);
    assert.equal((await plain.get(path)).status, 200);
    const without = await plain.get(`${path}?asOf=${size}`);
    refused(without, 403, 'insufficient_scope');
    assert.match(without.text, /events\.read/);
    const auditor = await key(['events.read']);
    refused(await auditor.get(`${path}?asOf=${size}`), 403, 'insufficient_scope');

    const scopes = ['clients.read', 'posts.read', 'accounts.read', 'approvals.read', 'webhooks.read', 'events.read'];
    const limited = await key(scopes, [other.clientId]);
    refused(await limited.get(`${path}?asOf=${size}`), 404, 'not_found');
    assert.equal((await limited.get(`/clients/${other.clientId}?asOf=${size}`)).status, 200);
    assert.deepEqual((await limited.get(`/posts?clientId=${own.clientId}&asOf=${size}`)).rows, []);
    assert.deepEqual(
      (await limited.get(`/clients?archived=true&asOf=${size}`)).rows.map(({ id }) => id),
      [other.clientId],
    );
    for (const one of things) {
      if (one.startsWith('/posts/') || one.startsWith('/post-targets/') || one.startsWith('/approvals/')) {
        refused(await limited.get(`${one}?asOf=${size}`), 404, 'not_found');
      }
    }
    refused(await limited.get(`/webhooks?asOf=${size}`), 403, 'client_limited');

    const stranger = (await world.agency('Another')).tester;
    await settle();
    for (const one of things) {
      const answered = await stranger.get(`${one}?asOf=1`);
      assert.ok([400, 404].includes(answered.status), answered.text);
    }
    const [use] = (await feedUses(world.pool, twin(), 1_000)).filter(({ asked }) => asked.includes(own.clientId));
    assert.match(use?.asked ?? '', /"asOf":/);
  });
});
