import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { type WorkspaceCommand, workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { linkToken } from '#runtime/identity/link-token.ts';
import { platforms } from '#schemas/common.ts';
import { invitePage } from '#services/pages/invites/html.ts';
import { contextOf, revokeApiKey } from '#services/workflows/provision.ts';
import { given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

suite('connect links', (t) => {
  let world: World;
  let clientId: string;
  t.before(async () => {
    world = await startWorld();
    clientId = (await world.tester.post('/clients', { name: '<b>Acme & Söhne</b>', type: 'brand' })).data.id;
  });
  t.after(() => world.close());

  const mint = async (body: object = { platforms: ['bluesky', 'twitter'] }, key = randomUUID()) => {
    const made = await world.tester.post(`/clients/${clientId}/connect-invites`, body, { key });
    assert.equal(made.status, 200, made.text);
    return made;
  };
  const page = (token: unknown) => fetch(`${world.origin()}/invite/${token}`);
  const submit = (token: unknown, fields: Record<string, string>) =>
    fetch(`${world.origin()}/invite/${token}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
      redirect: 'manual',
    });

  t('is minted with the platforms asked for, 48 hours by default', async () => {
    const { data } = await mint({ platforms: ['twitter', 'bluesky', 'x'], recipientEmail: 'canary@example.org' });
    assert.deepEqual(data.platformsRequested, ['x', 'bluesky']);
    assert.equal(data.url, `${world.origin()}/invite/${data.token}`);
    const hours = (Date.parse(String(data.expiresAt)) - Date.parse(String(data.createdAt))) / 3_600_000;
    assert.equal(hours, 48);
    const { rows } = await world.pool.query("select encode(data, 'escape') as data from es.events where stream = $1", [
      `invite-${data.inviteId}`,
    ]);
    assert.doesNotMatch(rows[0].data, /canary/);
    assert.ok(!rows[0].data.includes(String(data.token)));
  });

  t('refuses unknown and archived clients and invalid bodies', async () => {
    const path = `/clients/${clientId}/connect-invites`;
    for (const body of [
      {},
      { platforms: [] },
      { platforms: ['myspace'] },
      { platforms: ['x'], expiresInHours: 0 },
      { platforms: ['x'], expiresInHours: 169 },
      { platforms: ['x'], expiresInHours: 1.5 },
      { platforms: ['x'], recipientEmail: 'nobody' },
    ]) {
      const refused = await world.tester.post(path, body);
      assert.equal(refused.body.code, 'validation_failed', JSON.stringify(body));
    }
    const archived = (await world.tester.post('/clients', { name: 'Gone', type: 'brand' })).data.id;
    await world.tester.delete(`/clients/${archived}`);
    const refused = await world.tester.post(`/clients/${archived}/connect-invites`, { platforms: ['x'] });
    assert.equal(refused.body.code, 'client_archived');
  });

  t('works while its maker may make one; the end of a key alone ends no link', async () => {
    const { workspaceId } = world;
    const memberId = await world.memberOf(workspaceId, 'manager');
    const key = await world.keyOf(workspaceId, memberId, { mode: 'test' });
    const made = await key.caller.post(`/clients/${clientId}/connect-invites`, { platforms: ['x'] });
    assert.equal(made.status, 200, made.text);
    const { token } = made.data;
    const command = (what: WorkspaceCommand) =>
      execute(world.store, workspace, workspaceId, what, contextOf(world.operator, workspaceId));
    await revokeApiKey(world.operator, workspaceId, key.id);
    assert.equal((await page(token)).status, 200, 'the key has ended, its member has not');
    await command({ type: 'ChangeRole', memberId, role: 'creator' });
    assert.equal((await page(token)).status, 404);
    await command({ type: 'ChangeRole', memberId, role: 'manager' });
    assert.equal((await page(token)).status, 200);
    await command({ type: 'RemoveMember', memberId });
    assert.equal((await submit(token, { platform: 'x', way: 'form', username: 'late', timezone: '' })).status, 404);
  });

  t('is listed with its recipient, uses and maker, without its address, and is revoked by its client', async () => {
    const { id } = (await world.tester.post('/clients', { name: 'Listed', type: 'brand' })).data;
    const path = `/clients/${id}/connect-invites`;
    const made = await world.tester.post(path, { platforms: ['x'], recipientEmail: 'social@acme.example' });
    const { inviteId, token } = made.data;
    await world.tester.post(path, { platforms: ['bluesky'] });
    const fields = { platform: 'x', way: 'form', username: 'listed', timezone: '' };
    assert.equal((await submit(token, fields)).status, 303);
    await world.settled();
    const listed = await world.tester.get(`${path}?limit=1`);
    const next = await world.tester.get(`${path}?limit=1&cursor=${listed.body.page?.nextCursor}`);
    assert.deepEqual([listed.rows.length, listed.rows[0]?.platformsRequested], [1, ['bluesky']]);
    const [row] = next.rows;
    assert.deepEqual([row?.inviteId, row?.recipientEmail, row?.isRevoked], [inviteId, 'social@acme.example', false]);
    assert.deepEqual([row?.url, row?.token], [null, null]);
    assert.deepEqual(row?.createdBy, { type: 'apikey', id: world.testKey.id });
    assert.deepEqual([row?.accountIds].flat().length, 1);
    const other = await world.agency('Another');
    for (const [by, of] of [
      [other.tester, path],
      [world.owner, path],
      [world.tester, `/clients/${clientId}/connect-invites`],
    ] as const) {
      assert.equal((await by.delete(`${of}/${inviteId}`)).status, 404);
    }
    assert.equal((await other.tester.get(path)).status, 404);
    for (let at = 0; at < 2; at += 1) {
      assert.equal((await world.tester.delete(`${path}/${inviteId}`)).data.isRevoked, true);
    }
    assert.equal((await page(token)).status, 404);
  });

  t('a repeat shows the same token until the link expires, then none', async () => {
    const key = randomUUID();
    const body = { platforms: ['x'], expiresInHours: 1 };
    const first = await mint(body, key);
    const again = await mint(body, key);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
    const reused = await world.tester.post(`/clients/${clientId}/connect-invites`, { platforms: ['x'] }, { key });
    assert.equal(reused.body.code, 'idempotency_key_reused');
    world.clock.shiftMs = 3_600_001;
    const late = await mint(body, key);
    world.clock.shiftMs = 0;
    assert.equal(late.data.token, null);
    assert.equal(late.data.url, null);
    assert.equal(late.data.inviteId, first.data.inviteId);
  });

  t('the page escapes, loads nothing, leaks nothing, and needs no script', async () => {
    const { data } = await mint();
    const answer = await page(data.token);
    const html = await answer.text();
    assert.equal(answer.status, 200);
    assert.match(html, /&lt;b&gt;Acme &amp; Söhne&lt;\/b&gt;/);
    assert.doesNotMatch(html, /<b>Acme|<script|https?:\/\//);
    assert.match(html, /Bluesky/);
    assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/);
  });

  t('connects sandbox accounts of all ten networks, each shown by GET /accounts', async () => {
    const { data } = await mint({ platforms: [...platforms] });
    for (const platform of platforms) {
      const answer = await submit(data.token, { platform, username: `acme_${platform}`, timezone: 'Asia/Tokyo' });
      assert.equal(answer.status, 303, await answer.text());
      assert.equal(answer.headers.get('location'), `/invite/${data.token}`);
    }
    await world.settled();
    const { rows } = await world.tester.get(`/accounts?clientId=${clientId}`);
    assert.deepEqual(rows.map(({ platform }) => platform).sort(), [...platforms].sort());
    for (const row of rows) {
      assert.equal(row.status, 'connected');
      assert.equal(row.timezone, 'Asia/Tokyo');
      assert.deepEqual((await world.tester.get(`/accounts/${row.id}`)).data, row);
    }
    assert.equal((await world.tester.get(`/clients/${clientId}`)).data.accountCount, 10);
    assert.equal((await world.tester.patch(`/clients/${clientId}`, { approvalRequired: true })).data.accountCount, 10);
    const html = await (await page(data.token)).text();
    assert.match(html, /acme_x/);
    const some = await world.tester.get(`/accounts?clientId=${clientId}&platform=twitter,bluesky`);
    assert.deepEqual(some.rows.map(({ platform }) => platform).sort(), ['bluesky', 'x']);
    const empty = await world.owner.get(`/accounts?clientId=${clientId}`);
    assert.deepEqual(empty.rows, []);
  });

  t('the same account again is the same account, and a repeat of the form stores nothing', async () => {
    const { data } = await mint({ platforms: ['threads'] });
    const fields = { platform: 'threads', username: '@Twice' };
    await submit(data.token, fields);
    const before = await world.head();
    assert.equal((await submit(data.token, fields)).status, 303);
    assert.equal(await world.head(), before);
    const second = await mint({ platforms: ['threads'] });
    await submit(second.data.token, fields);
    const stored = await world.eventsAfter(before);
    assert.deepEqual(
      stored.map(({ type }) => type),
      ['ConnectInviteCreated', 'ConnectInviteUsed', 'AccountReauthorized'],
    );
  });

  t('if we died between use and connect, the next try connects', async () => {
    const { data } = await mint({ platforms: ['pinterest'] });
    const { inviteId } = data;
    const { externalId } = world.deps.sandboxProfile('pinterest', 'halfway');
    const accountId = accountIdOf(clientId, 'pinterest', externalId);
    const context = contextOf(world.operator, (await world.tester.get('/agency')).data.id);
    const use = { type: 'Use', now: new Date().toISOString(), accountId, platform: 'pinterest' } as const;
    await execute(world.store, invite, String(inviteId), use, context);
    assert.doesNotMatch(await (await page(data.token)).text(), /halfway/);
    assert.equal((await submit(data.token, { platform: 'pinterest', username: 'halfway' })).status, 303);
    assert.match(await (await page(data.token)).text(), /halfway/);
  });

  t('a link connects at most its number of accounts, also when more arrive at once', async () => {
    const { data } = await mint({ platforms: ['x'], maxAccounts: 3 });
    assert.equal(data.maxAccounts, 3);
    assert.equal((await mint()).data.maxAccounts, 50);
    const names = Array.from({ length: 8 }, (_, n) => `guest_${n}`);
    const at = await world.head();
    const answers = await Promise.all(names.map((username) => submit(data.token, { platform: 'x', username })));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [303, 303, 303, 409, 409, 409, 409, 409]);
    const facts = (await world.eventsAfter(at)).map(({ type }) => type);
    assert.deepEqual(facts.filter((type) => type === 'ConnectInviteUsed').length, 3);
    assert.deepEqual(facts.filter((type) => type === 'AccountConnected').length, 3);
    const connected = names[answers.findIndex(({ status }) => status === 303)] ?? '';
    assert.equal((await submit(data.token, { platform: 'x', username: connected })).status, 303);
    const refused = await submit(data.token, { platform: 'x', username: 'one_more' });
    assert.equal(refused.status, 409);
    assert.match(await refused.text(), /has connected its 3 accounts/);
    const second = await mint({ platforms: ['x'], maxAccounts: 1 });
    assert.equal((await submit(second.data.token, { platform: 'x', username: 'one_more' })).status, 303);
    for (const maxAccounts of [0, 1_001, 1.5]) {
      const body = { platforms: ['x'], maxAccounts };
      const wrong = await world.tester.post(`/clients/${clientId}/connect-invites`, body);
      assert.equal(wrong.body.code, 'validation_failed');
    }
  });

  t('shows the guest the fault of the form, and stores nothing', async () => {
    const { data } = await mint({ platforms: ['x'] });
    const before = await world.head();
    for (const fields of [
      { platform: 'x', username: '' },
      { platform: 'x', username: '@' },
      { platform: 'x', username: 'a\0b' },
      { platform: 'x', username: 'x'.repeat(254) },
      { platform: 'bluesky', username: 'a' },
      { platform: '<script>', username: 'a' },
      { platform: 'x', username: 'a', timezone: '<Mars>' },
    ]) {
      const answer = await submit(data.token, fields);
      assert.equal(answer.status, 422, JSON.stringify(fields));
      assert.doesNotMatch(await answer.text(), /<script>|<Mars>/);
    }
    const json = await fetch(`${world.origin()}/invite/${data.token}`, { method: 'POST', body: '{}' });
    assert.equal(json.status, 415);
    const huge = await submit(data.token, { platform: 'x', username: 'a'.repeat(100_000) });
    assert.equal(huge.status, 413);
    assert.equal(await world.head(), before);
  });

  t('takes a handle of Bluesky that is as long as the name of a host may be', async () => {
    const { data } = await mint({ platforms: ['bluesky'] });
    const username = `${'a'.repeat(59)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}.xyz`;
    assert.equal(username.length, 253);
    assert.equal((await submit(data.token, { platform: 'bluesky', username })).status, 303);
  });

  t('a live link that could connect none of its networks is refused, and its key stays free', async () => {
    const live = (await world.owner.post('/clients', { name: 'Live', type: 'brand' })).data.id;
    const before = await world.head();
    // A key that was used would refuse the other body for that.
    const key = randomUUID();
    for (const some of [['x'], platforms]) {
      const made = await world.owner.post(`/clients/${live}/connect-invites`, { platforms: some }, { key });
      assert.equal(made.status, 422, made.text);
      assert.equal(made.body.code, 'platform_not_available');
    }
    assert.equal(await world.head(), before);
    await world.owner.delete(`/clients/${live}`);
    const late = await world.owner.post(`/clients/${live}/connect-invites`, { platforms: ['x'] }, { key });
    assert.equal(late.body.code, 'client_archived');
  });

  t('a live link that was minted before says that its networks cannot be connected yet', async () => {
    const live = (await world.owner.post('/clients', { name: 'Live before', type: 'brand' })).data.id;
    const id = randomUUID();
    const command = {
      type: 'Create',
      clientId: live,
      platforms: ['x', 'threads'],
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      keyVersion: 'v1',
      recipientEmail: null,
      maxAccounts: 50,
    } as const;
    await execute(world.store, invite, id, command, contextOf(world.operator, world.workspaceId));
    const token = linkToken(world.secrets, 'invite', [id], 'v1');
    const html = await (await page(token)).text();
    assert.match(html, /Cannot be connected here yet: X, Threads\./);
    assert.doesNotMatch(html, /<form/);
    const tried = await submit(token, { platform: 'x', username: 'real' });
    assert.equal(tried.status, 422);
    assert.match(await tried.text(), /That network cannot be connected here\./);
  });

  t('a page offers those networks that can be connected, and names the others', () => {
    const connector = {
      kind: 'form',
      title: 'With an app password',
      usernameLabel: 'Handle',
      secrets: [{ name: 'password', label: 'App <password>', hint: null, maxLength: 9 }],
      connect: async () => ({ kind: 'refused', words: '' }) as const,
    } as const;
    const still = { clientName: 'Acme', path: '/invite/token', expiresAt: '2026-02-01T08:00:00.000Z', connected: [] };
    const shown = { ...still, connectors: { bluesky: [connector] }, refused: null };
    const html = invitePage({ ...shown, mode: 'live', platforms: ['x', 'bluesky'], offered: ['bluesky'] });
    assert.match(html, /<legend>Bluesky<\/legend>/);
    assert.doesNotMatch(html, /<legend>X<\/legend>|sandbox/);
    assert.match(html, /Cannot be connected here yet: X\./);
    const all = invitePage({ ...shown, mode: 'test', platforms: ['x', 'bluesky'], offered: ['x', 'bluesky'] });
    assert.doesNotMatch(all, /Cannot be connected/);
    const refused = { platform: 'bluesky', way: 'form', username: 'acme', timezone: '', words: 'No.' } as const;
    const live = { ...still, mode: 'live', platforms: ['bluesky'], offered: ['bluesky'], refused } as const;
    const form = invitePage({ ...live, connectors: { bluesky: [connector] } });
    assert.match(form, /<label for="password-bluesky">App &lt;password&gt;<\/label>/);
    assert.match(form, /name="password" type="password" required maxlength="9" autocomplete="off">/);
    assert.match(form, /<label for="username-bluesky">Handle<\/label>\n<input[^>]+value="acme">/);
  });

  t('unknown, forged, revoked, expired and archived: one and the same 404 page', async () => {
    const expired = (await mint({ platforms: ['x'], expiresInHours: 1 })).data;
    const revoked = (await mint({ platforms: ['x'] })).data;
    const context = contextOf(world.operator, (await world.tester.get('/agency')).data.id);
    await execute(world.store, invite, String(revoked.inviteId), { type: 'Revoke', reason: null }, context);
    const home = (await world.tester.post('/clients', { name: 'Archived later', type: 'brand' })).data.id;
    const orphan = (await world.tester.post(`/clients/${home}/connect-invites`, { platforms: ['x'] })).data;
    await world.tester.delete(`/clients/${home}`);
    const genuine = String((await mint()).data.token);
    const forged = `${genuine.slice(0, -4)}AAAA`;
    const unknown = linkToken(world.secrets, 'invite', [randomUUID()], 'v1');
    world.clock.shiftMs = 3_600_001;
    const pages = new Set<string>();
    for (const token of [
      expired.token,
      revoked.token,
      orphan.token,
      forged,
      unknown,
      'nonsense',
      '%00',
      'a'.repeat(64),
    ]) {
      for (const answer of [await page(token), await submit(token, { platform: 'x', username: 'a' })]) {
        assert.equal(answer.status, 404, String(token));
        assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
        pages.add(await answer.text());
      }
    }
    world.clock.shiftMs = 0;
    assert.equal(pages.size, 1);
    for (const line of world.lines) {
      assert.ok(!line.includes(genuine) && !line.includes(String(revoked.token)), 'a token was logged');
    }
    assert.ok(world.lines.some((line) => line.includes('/invite/…')));
  });

  t('given a link was minted, when it is used, two facts are stored', async () => {
    const { data } = await mint({ platforms: ['telegram'] });
    const before = await world.head();
    await submit(data.token, { platform: 'telegram', username: 'facts' });
    assert.deepEqual(
      (await world.eventsAfter(before)).map(({ type }) => type),
      ['ConnectInviteUsed', 'AccountConnected'],
    );
    await given(world, []).request('GET', '/agency').then(200, []);
  });
});
