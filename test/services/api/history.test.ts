import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { ReadBudget, readWithin } from '#services/api/audit/streams.ts';
import { operations } from '#services/api/operations.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, refused, tomorrow } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** What auditors are told of each kind of thing: who changed which member, with what, and why. */

interface Change {
  readonly field: string;
  readonly old: unknown;
  readonly new: unknown;
}

const changesOf = (row: Answered['rows'][number] | undefined): Readonly<Record<string, readonly [unknown, unknown]>> =>
  Object.fromEntries(((row?.changes ?? []) as readonly Change[]).map((one) => [one.field, [one.old, one.new]]));
const typesOf = ({ rows }: Answered): readonly unknown[] => rows.map(({ type }) => type);

suite('the history of things', { timeoutMs: 120_000 }, (t) => {
  const keys = new TestKeys();
  let world: World;
  let by: Caller;
  let stranger: Caller;

  t.before(async () => {
    world = await startWorld({ codec: new EventCodec(keys) });
    by = world.tester;
    stranger = (await world.agency('Another')).tester;
  });
  t.after(() => world?.close());

  const twin = () => testTwinIdOf(world.workspaceId);
  const historyOf = async (path: string, caller = by): Promise<Answered> => {
    const answered = await caller.get(`${path}/history?limit=100`);
    assert.equal(answered.status, 200, answered.text);
    return answered;
  };
  /** Events of the twin that no caller can cause here. */
  const stored = (stream: string, revision: number, type: string, data: object, workspaceId = twin()) =>
    world.store.append(stream, revision, [{ type, data }], contextOf(world.operator, workspaceId), stream);
  const unknownTo = async (path: string, caller = stranger) => {
    const unknown = `${path.split('/').slice(0, 2).join('/')}/${randomUUID()}`;
    for (const one of [path, unknown]) refused(await caller.get(`${one}/history`), 404, 'not_found');
  };

  t('a client: each change with its old and its new value, who made it, with which key, in which request', async () => {
    const made = await by.post('/clients', { name: 'Old & sons', type: 'brand', rules: { bannedWords: ['cheap'] } });
    const path = `/clients/${made.data.id}`;
    const renamed = await by.patch(path, { name: 'New & sons', rules: { bannedWords: ['cheap'], links: 'short' } });
    assert.equal((await by.delete(path)).status, 200);
    const history = await historyOf(path);
    assert.deepEqual(typesOf(history), ['ClientArchived', 'ClientUpdated', 'ClientCreated']);
    const [archived, updated, created] = history.rows;
    assert.deepEqual(changesOf(archived), { '/status': ['live', 'archived'] });
    assert.deepEqual(changesOf(updated), {
      '/name': ['Old & sons', 'New & sons'],
      '/rules/links': [null, 'short'],
    });
    assert.deepEqual(changesOf(created)['/name'], [null, 'Old & sons']);
    assert.ok(updated);
    const { actor, credential, correlationId, resource, resourceId, revision } = updated;
    assert.deepEqual(
      [actor, credential, correlationId, resource, resourceId, revision],
      [
        { type: 'apikey', id: world.testKey.id },
        { type: 'api_key', id: world.testKey.id },
        renamed.body.meta?.correlationId,
        ...['client', made.data.id, 1],
      ],
    );
    await unknownTo(path);
  });

  t('a post: with its targets and its requests for approval, in the order in which they came to be', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    await by.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    const draft = await by.post('/posts', own.body({ saveDraft: true, content: 'First.' }));
    const path = `/posts/${draft.data.id}`;
    const { clientId: _client, ...replaced } = own.body({ content: 'Second.' });
    assert.equal((await by.patch(path, replaced)).status, 200);
    const { data } = await by.post(`${path}/publish`, {});
    assert.equal((await by.post(`/approvals/${data.approvalId}/approve`, { comment: 'Lovely.' })).status, 200);
    const history = await historyOf(path);
    assert.deepEqual([...typesOf(history)].reverse(), [
      ...['PostDrafted', 'DraftReplaced', 'PostScheduled', 'PostSubmittedForApproval'],
      ...['TargetScheduled', 'TargetHeld', 'TargetScheduled', 'TargetHeld', 'ApprovalRequested'],
      ...['ApprovalApproved', 'PostReleased', 'TargetReleased', 'TargetReleased'],
    ]);
    const of = (type: string) => history.rows.filter((row) => row.type === type);
    assert.deepEqual(changesOf(of('DraftReplaced')[0])['/content'], ['First.', 'Second.']);
    const [approved] = of('ApprovalApproved');
    assert.deepEqual(changesOf(approved)['/status'], ['pending', 'approved']);
    assert.deepEqual([approved?.reason, approved?.resourceId], ['Lovely.', data.approvalId]);
    const [released] = of('PostReleased');
    assert.equal(released?.causationId, approved?.id);
    assert.deepEqual(changesOf(released)['/status'], ['pending_approval', 'scheduled']);
    const targets = data.targets as readonly { readonly id: string }[];
    assert.deepEqual(new Set(of('TargetReleased').map((row) => row.resourceId)), new Set(targets.map(({ id }) => id)));
    assert.deepEqual(changesOf(of('TargetReleased')[0])['/status'], ['awaiting_approval', 'pending']);
    await unknownTo(path);
  });

  t('a deleted post, and a draft that was discarded, can be asked for', async () => {
    const own = await composer(world, ['x']);
    const draft = await by.post('/posts', own.body({ saveDraft: true }));
    const live = await by.post('/posts', own.body());
    for (const { data } of [draft, live]) assert.equal((await by.delete(`/posts/${data.id}`)).status, 200);
    assert.equal((await by.get(`/posts/${draft.data.id}`)).status, 404);
    const discarded = await historyOf(`/posts/${draft.data.id}`);
    assert.deepEqual(changesOf(discarded.rows[0]), { '/status': ['draft', 'discarded'] });
    const canceled = await historyOf(`/posts/${live.data.id}`);
    const [intent] = canceled.rows.filter(({ type }) => type === 'PostTargetsChanged');
    assert.equal(intent?.reason, 'post_canceled');
    const [target] = canceled.rows.filter(({ type }) => type === 'TargetCanceled');
    assert.deepEqual(changesOf(target)['/cancelReason'], [null, 'post_canceled']);
  });

  /** All pages of so many entries; `then` runs behind the first one. */
  const walked = async (path: string, limit: number, then?: () => Promise<unknown>): Promise<Answered['rows']> => {
    const pages: Answered['rows'][] = [];
    let next: string | null | undefined;
    do {
      const page = await by.get(`${path}/history?limit=${limit}${next ? `&cursor=${next}` : ''}`);
      assert.equal(page.status, 200, page.text);
      pages.push(page.rows);
      if (pages.length === 1) await then?.();
      next = page.body.page?.nextCursor;
      assert.equal(page.body.page?.hasMore, next !== null);
    } while (next);
    assert.ok(pages.slice(0, -1).every(({ length }) => length === limit));
    return pages.flat();
  };

  t('pages follow each other without a gap, whatever happens meanwhile', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    const { data } = await by.post('/posts', own.body({ saveDraft: true, content: 'v0' }));
    const { clientId: _client, ...body } = own.body();
    for (const n of [1, 2, 3, 4]) await by.patch(`/posts/${data.id}`, { ...body, content: `v${n}` });
    const post = await historyOf(`/posts/${data.id}`);
    assert.equal(post.rows.length, 5);
    assert.deepEqual(await walked(`/posts/${data.id}`, 2, () => by.post(`/posts/${data.id}/publish`, {})), post.rows);
    const path = `/clients/${own.clientId}`;
    for (const tone of ['dry', 'warm', 'loud']) await by.patch(path, { brandVoice: { tone } });
    const client = await historyOf(path);
    assert.equal(client.rows.length, 4);
    assert.deepEqual(await walked(path, 3, () => by.patch(path, { brandVoice: {} })), client.rows);
    const five = await historyOf(path);
    assert.deepEqual(await walked(path, 5), five.rows);
    const other = await by.post('/posts', own.body({ saveDraft: true }));
    const first = await by.get(`/posts/${data.id}/history?limit=1`);
    const { nextCursor } = first.body.page ?? {};
    for (const path of [
      `/posts/${other.data.id}/history?limit=1&cursor=${nextCursor}`,
      `/posts/${data.id}/history?cursor=${nextCursor}x`,
    ])
      refused(await by.get(path), 400, 'invalid_cursor');
  });

  t('a long text is cut, with its length and the hash of the whole', async () => {
    const own = await composer(world, ['bluesky']);
    const [long, longer] = ['a'.repeat(5_000), 'b'.repeat(6_000)];
    const { data } = await by.post('/posts', own.body({ saveDraft: true, content: long }));
    const { clientId: _client, ...body } = own.body({ content: longer });
    await by.patch(`/posts/${data.id}`, body);
    const { rows } = await historyOf(`/posts/${data.id}`);
    const [old, next] = changesOf(rows[0])['/content'] as readonly Record<string, unknown>[];
    assert.deepEqual([old?.characters, next?.characters], [5_000, 6_000]);
    assert.equal(String(old?.$cut), long.slice(0, 2_000));
    assert.match(String(next?.sha256), /^[0-9a-f]{64}$/);
    assert.notEqual(next?.sha256, old?.sha256);
  });

  t('an account: its owner is named while they may be; an erasure blanks every former value', async () => {
    const own = await composer(world, ['x'], { username: 'olga_owns' });
    const path = `/accounts/${own.accounts.x}`;
    const avatarUrl = 'https://pictures.example/olga.png';
    const profile = { clientId: own.clientId, username: 'olga_owns', displayName: null, avatarUrl };
    await stored(`account-${own.accounts.x}`, 0, 'AccountProfileChanged', profile);
    assert.equal((await by.post(`${path}/disconnect`, {})).status, 200);
    const before = await historyOf(path);
    assert.equal(changesOf(before.rows[1])['/avatarUrl']?.[1], avatarUrl);
    const [gone, connected] = [before.rows[0], before.rows.at(-1)];
    assert.deepEqual(changesOf(gone)['/status'], ['connected', 'disconnected']);
    assert.equal(typeof gone?.reason, 'string');
    assert.deepEqual(changesOf(connected)['/username'], [null, 'olga_owns']);
    keys.destroy(own.clientId);
    const after = await historyOf(path);
    assert.ok(!after.text.includes('olga_owns') && !after.text.includes(avatarUrl));
    for (const field of ['/username', '/displayName', '/avatarUrl'])
      assert.equal(changesOf(after.rows.at(-1))[field], undefined);
    assert.deepEqual(changesOf(after.rows[0])['/status'], ['connected', 'disconnected']);
    await unknownTo(path);
  });

  t('a campaign, also one that was deleted', async () => {
    const { data } = await by.post('/campaigns', { name: 'Spring', startsOn: '2027-03-01' });
    await by.patch(`/campaigns/${data.id}`, { startsOn: '2027-03-02', endsOn: '2027-03-31' });
    assert.equal((await by.delete(`/campaigns/${data.id}`)).status, 200);
    const history = await historyOf(`/campaigns/${data.id}`);
    assert.deepEqual(typesOf(history), ['CampaignDeleted', 'CampaignUpdated', 'CampaignCreated']);
    assert.deepEqual(changesOf(history.rows[0]), { '/status': ['live', 'deleted'] });
    assert.deepEqual(changesOf(history.rows[1]), {
      '/startsOn': ['2027-03-01', '2027-03-02'],
      '/endsOn': [null, '2027-03-31'],
    });
    await unknownTo(`/campaigns/${data.id}`);
  });

  t('a request for approval: what the guest says who they are, and never the key of a link', async () => {
    const own = await composer(world, ['x']);
    await by.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    const { data } = await by.post('/posts', own.body());
    const path = `/approvals/${data.approvalId}`;
    const link = await by.post(`${path}/links`, {});
    const body = new URLSearchParams({ decision: 'approve', name: 'Gustav Guest', comment: '' });
    const sent = await fetch(String(link.data.url), { method: 'POST', body, redirect: 'manual' });
    assert.equal(sent.status, 303);
    const history = await historyOf(path);
    assert.deepEqual(typesOf(history), [
      ...['ApprovalApproved', 'ApprovalGuestNamed', 'ApprovalLinkCreated', 'ApprovalRequested'],
    ]);
    assert.deepEqual(changesOf(history.rows[1]), { '/guestName': [null, 'Gustav Guest'] });
    assert.deepEqual(changesOf(history.rows[0])['/decidedBy'], [null, { type: 'guest', id: link.data.linkId }]);
    assert.equal(history.rows[0]?.credential, null);
    assert.ok(!/keyVersion/.test(history.text) && !history.text.includes(String(link.data.token)));
    keys.destroy(own.clientId);
    assert.ok(!(await historyOf(path)).text.includes('Gustav'));
    await unknownTo(path);
  });

  t('a webhook endpoint, also a deleted one: which secrets sign, and nothing of a secret', async () => {
    const made = await by.post('/webhooks', { url: 'https://hooks.agency.example/a', events: ['post.*'] });
    const path = `/webhooks/${made.data.id}`;
    await by.patch(path, { events: ['post.*', 'client.*'] });
    const rotated = await by.post(`${path}/rotate-secret`, {});
    assert.equal(rotated.status, 200, rotated.text);
    await by.delete(path);
    const history = await historyOf(path);
    assert.deepEqual(typesOf(history), [
      ...['WebhookDeleted', 'WebhookSecretRotated', 'WebhookUpdated', 'WebhookRegistered'],
    ]);
    assert.deepEqual(changesOf(history.rows[2]), { '/events': [['post.*'], ['post.*', 'client.*']] });
    assert.deepEqual(Object.keys(changesOf(history.rows[1])).sort(), ['/secrets/1/expiresAt', '/secrets/2']);
    for (const secret of [made.data.secret, rotated.data.secret, 'whsec_', 'keyVersion'])
      assert.ok(!history.text.includes(String(secret)), String(secret));
    await unknownTo(path);
  });

  t('a member, also one who was removed: roles over time, and no name of a person who was erased', async () => {
    const { workspaceId } = world;
    const memberId = await world.memberOf(workspaceId, 'creator');
    const personId = randomUUID();
    const head = async () => (await world.store.readStream(`workspace-${workspaceId}`)).at(-1)?.revision ?? -1;
    const add = async (type: string, data: object) =>
      stored(`workspace-${workspaceId}`, await head(), type, { memberId, ...data }, workspaceId);
    await add('MemberIdentified', { personId });
    await add('MemberRoleChanged', { role: 'manager' });
    await add('MemberRemoved', {});
    const path = `/members/${memberId}`;
    for (const caller of [world.owner, by]) {
      const history = await historyOf(path, caller);
      assert.deepEqual(typesOf(history), ['MemberRemoved', 'MemberRoleChanged', 'MemberIdentified', 'MemberAdded']);
      assert.deepEqual(changesOf(history.rows[1]), { '/role': ['creator', 'manager'] });
      assert.deepEqual(changesOf(history.rows[0])['/role'], ['manager', null]);
      assert.deepEqual(changesOf(history.rows[3])['/name'], [null, 'A creator']);
    }
    const registered = { personId, email: 'ann@agency.example', name: 'Ann' };
    await stored(`person-${personId}`, -1, 'PersonRegistered', registered, workspaceId);
    await stored(`person-${personId}`, 0, 'PersonErased', {}, workspaceId);
    const after = await historyOf(path, world.owner);
    assert.ok(!after.text.includes('A creator'));
    assert.deepEqual(changesOf(after.rows[1]), { '/role': ['creator', 'manager'] });
    await unknownTo(path);
  });

  t('an API key, also a revoked one, with its scopes and clients and without a hash', async () => {
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    const of = { workspaceId: world.workspaceId, memberId: world.memberId, mode: 'test' } as const;
    const session = world.callerWith((await mintSession(sessions, of)).token);
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const made = await session.post('/api-keys', { name: 'Importer', mode: 'test', scopes: ['posts.read'], expiresAt });
    assert.equal(made.status, 200, made.text);
    const path = `/api-keys/${made.data.id}`;
    assert.equal((await session.post(`${path}/rotate`, {})).status, 200);
    assert.equal((await session.delete(path)).status, 200);
    for (const caller of [by, world.owner, session]) {
      const history = await historyOf(path, caller);
      assert.deepEqual(typesOf(history), ['ApiKeyRevoked', 'ApiKeyRotated', 'ApiKeyCreated']);
      assert.deepEqual(changesOf(history.rows[2])['/scopes'], [null, ['posts.read']]);
      assert.deepEqual(Object.keys(changesOf(history.rows[0])), ['/revokedAt']);
      assert.ok(!/[0-9a-f]{64}|hash/i.test(history.text), history.text);
      assert.deepEqual(history.rows[2]?.actor, { type: 'member', id: world.memberId });
    }
    await unknownTo(path);
  });

  t('a credential limited to clients gets the history of their things, and no target of another client', async () => {
    const [mine, theirs] = [await composer(world, ['x']), await composer(world, ['x'])];
    const selection = { mode: 'accounts', accountIds: [mine.accounts.x, theirs.accounts.x] };
    const schedule = { type: 'at', scheduledAt: tomorrow() };
    const body = { clientId: mine.clientId, content: 'For both.', targets: selection, schedule };
    await by.patch(`/clients/${mine.clientId}`, { approvalRequired: true });
    const both = await by.post('/posts', body);
    await by.post(`/approvals/${both.data.approvalId}/request-changes`, { comment: 'Ours alone.' });
    const { clientId: _client, ...alone } = mine.body();
    assert.equal((await by.patch(`/posts/${both.data.id}`, alone)).status, 200);
    const limited = (await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', clientIds: [mine.clientId] }))
      .caller;
    const path = `/posts/${both.data.id}`;
    const [whole, part] = [await historyOf(path), await historyOf(path, limited)];
    const targets = (answer: Answered) =>
      new Set(answer.rows.filter((row) => row.resource === 'post_target').map((row) => row.resourceId));
    assert.deepEqual([targets(whole).size, targets(part).size], [2, 1]);
    for (const foreign of [theirs.clientId, theirs.accounts.x ?? '']) {
      assert.ok(whole.text.includes(foreign));
      assert.ok(!part.text.includes(foreign));
    }
    await historyOf(`/clients/${mine.clientId}`, limited);
    await unknownTo(`/clients/${theirs.clientId}`, limited);
    await unknownTo(`/accounts/${theirs.accounts.x}`, limited);
    for (const noun of ['webhooks', 'members', 'api-keys'])
      refused(await limited.get(`/${noun}/${randomUUID()}/history`), 403, 'client_limited');
  });

  t('only an Owner, or a key that an Owner gave the scope, reads it', async () => {
    const manager = await world.memberOf(world.workspaceId, 'manager');
    const above = (await world.keyOf(world.workspaceId, manager, { mode: 'test' })).caller;
    const without = (await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes: ['posts.read'] }))
      .caller;
    const audited = operations.filter(({ tag }) => tag.name === 'audit');
    assert.equal(audited.length, 16);
    for (const { path, scope } of audited) {
      assert.equal(scope, 'events.read');
      const named = path.replace('{id}', randomUUID());
      refused(await above.get(named), 403, 'role_required');
      refused(await without.get(named), 403, 'insufficient_scope');
    }
  });

  t('a stream beyond the budget of a call is refused, and not half told', async () => {
    const stream = `client-${randomUUID()}`;
    const fields = { name: 'Long', type: 'brand', defaultPostMode: 'now', timezone: null, approvalRequired: false };
    await stored(stream, -1, 'ClientCreated', { ...fields, rules: {}, brandVoice: {} });
    for (const revision of [0, 1, 2]) await stored(stream, revision, 'ClientUpdated', { name: `Long ${revision}` });
    assert.equal((await readWithin(world.store, stream, new ReadBudget(4))).length, 4);
    await assert.rejects(readWithin(world.store, stream, new ReadBudget(3)), { code: 'history_too_long' });
  });

  t('a stream of more events than one read takes is folded from its beginning, page by page', async () => {
    const postId = randomUUID();
    const clientId = randomUUID();
    const target = planned({ targetId: randomUUID(), accountId: randomUUID(), clientId });
    const plan = { number: 1, targets: [target] };
    const scheduled = { clientId, createdBy: { type: 'member', id: 'm' }, body: postBody(), plan };
    await stored(`post-${postId}`, -1, 'PostScheduled', scheduled);
    const context = contextOf(world.operator, twin());
    const flips = Array.from({ length: 1_200 }, (_none, n) => ({
      type: 'PostCampaignChanged',
      data: { campaignId: n % 2 === 0 ? target.accountId : null, previousCampaignId: null },
    }));
    for (const from of [0, 600])
      await world.store.append(`post-${postId}`, from, flips.slice(from, from + 600), context, postId);
    const first = await historyOf(`/posts/${postId}`);
    assert.deepEqual([first.rows.length, first.rows[0]?.revision], [100, 1_200]);
    assert.deepEqual(changesOf(first.rows[0]), { '/campaignId': [target.accountId, null] });
    let page = first;
    let rows = 0;
    for (;;) {
      rows += page.rows.length;
      const next = page.body.page?.nextCursor;
      if (!next) break;
      page = await by.get(`/posts/${postId}/history?limit=100&cursor=${next}`);
      assert.equal(page.status, 200, page.text);
    }
    assert.equal(rows, 1_201);
    assert.deepEqual(changesOf(page.rows.at(-1))['/status'], [null, 'scheduled']);
  });
});
