import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { operations } from '#services/api/operations.ts';
import { guideNames } from '#services/pages/docs/guides.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { ConsoleBrowser, consoleWorld, type ShownPage, signedIn } from '#test/support/console.ts';
import { codeOf } from '#test/support/guides.ts';
import type { World } from '#test/support/http.ts';
import { goodPassword, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

let world: World;
let olga: Awaited<ReturnType<typeof signedIn>>;

/** The part of a page that begins with a heading of these words, until the next. */
const rowOf = ({ html }: ShownPage, words: string): string =>
  html.split('<li><h3>').find((row) => row.includes(words)) ?? '';
const idIn = (row: string): string => /\/([0-9a-f-]{36})\//.exec(row)?.[1] ?? '';

const removeMember = async (memberId: string) => {
  const command = { type: 'RemoveMember', memberId } as const;
  await execute(world.store, workspace, world.workspaceId, command, contextOf(world.operator, world.workspaceId));
  await world.settled();
};

/** Networks that are set up, as the test wants them. */
const live = { credentials: {}, attempts: {}, connectors: {} as Record<string, readonly []> } as unknown as NonNullable<
  Deps['live']
> & { readonly connectors: Record<string, readonly []> };

suite('pages of a workspace', (t) => {
  t.before(async () => {
    world = await consoleWorld({ deps: { live } });
    olga = await signedIn(world, { name: 'Olga Owner' });
  });
  t.after(() => world?.close());

  t('a person begins in the sandbox and looks at what they choose', async () => {
    const { browser } = olga;
    assert.match((await browser.get('/console')).text, /North Star Sandbox/);
    assert.match((await browser.send('/console', '/console/workspace', { mode: 'live' })).text, /North Star Live/);
    assert.match((await browser.get('/team')).text, /North Star Live/);
    await browser.send('/console', '/console/workspace', { mode: 'test' });
  });

  t('the page names the networks whose real accounts a link can ask for here', async () => {
    const words = async () => /Live (Real accounts[^.]*)\./.exec((await olga.browser.get('/console')).text)?.[1];
    assert.match((await words()) ?? '', /of which this installation connects none yet/);
    try {
      for (const platform of ['youtube', 'x', 'bluesky']) live.connectors[platform] = [];
      assert.match((await words()) ?? '', /that this installation connects: X, YouTube, and Bluesky$/);
    } finally {
      for (const platform of Object.keys(live.connectors)) delete live.connectors[platform];
    }
  });

  t('nobody looks at a workspace of which they are no member', async () => {
    const other = await world.agency('Not yours');
    const { browser } = olga;
    for (const form of [
      { workspace: other.workspaceId, mode: 'live' },
      { workspace: randomUUID(), mode: 'live' },
      { workspace: "x' or 1=1", mode: 'live' },
      { mode: 'both' },
    ]) {
      await browser.get('/console');
      assert.equal((await browser.post('/console/workspace', form)).status, 404, JSON.stringify(form));
      assert.match((await browser.get('/console')).text, /North Star Sandbox/);
    }
    // Even where the row of the session names it.
    await world.pool.query('update auth.sessions set workspace_id = $1 where person_id = $2', [
      other.workspaceId,
      olga.personId,
    ]);
    assert.match((await browser.get('/team')).text, /North Star Sandbox/);
    assert.ok(!browser.page.text.includes('Not yours'));
  });

  t('a key that is made here works over REST, is shown once, rotates and is revoked', async () => {
    const { browser } = olga;
    const empty = await browser.send('/developers', '/developers/keys', { name: '', mode: 'test', life: '30' });
    assert.equal(empty.status, 422);
    const form = { name: 'My <importer>', mode: 'test', scope: ['agency.read', 'clients.read'], life: '365' };
    const made = await browser.send('/developers', '/developers/keys', form);
    assert.equal(made.status, 200, made.text);
    const secretIn = ({ html }: ShownPage) => /id="secret">(sk_test_[\w-]+)</.exec(html)?.[1] ?? '';
    const secret = secretIn(made);
    await world.settled();
    const caller = world.callerWith(secret);
    assert.equal((await caller.get('/agency')).status, 200);
    assert.equal((await caller.get('/posts')).body.code, 'insufficient_scope');
    const listed = await browser.get('/developers');
    assert.ok(!listed.html.includes(secret), 'the secret is shown twice');
    assert.ok(!world.lines.join('').includes(secret), 'the secret is in the log');
    const row = rowOf(listed, 'My &lt;importer&gt;');
    assert.match(row, /never used|last used/);
    const rotated = await browser.post(`/developers/keys/${idIn(row)}/rotate`);
    const next = secretIn(rotated);
    assert.notEqual(next, secret);
    assert.match(rotated.text, /The former key works until/);
    await world.settled();
    for (const one of [secret, next]) assert.equal((await world.callerWith(one).get('/agency')).status, 200);
    const gone = await browser.send('/developers', `/developers/keys/${idIn(row)}/revoke`);
    assert.match(gone.text, /The key is revoked/);
    assert.match(rowOf(gone, 'My &lt;importer&gt;'), /Revoked/);
    await world.settled();
    await until('the key has no power', async () => {
      return (await world.callerWith(next).get('/agency')).body.code === 'token_revoked';
    });
    assert.equal((await browser.get(`/developers/keys/${idIn(row)}/rotate`)).location, '/developers');
    for (const id of [randomUUID(), 'x']) {
      await browser.get('/developers');
      assert.equal((await browser.post(`/developers/keys/${id}/revoke`)).status, 404);
    }
  });

  t('the form of a sandbox key is ticked for all that the guides do, that of a live key for reading', async () => {
    const { browser } = olga;
    const tickedIn = ({ html }: ShownPage): readonly string[] =>
      [...html.matchAll(/name="scope" id="scope-[\w.]+" value="([\w.]+)" checked/g)].map(([, name = '']) => name);
    const ticked = tickedIn(await browser.get('/developers'));
    // What happened is read by a key that an Owner makes for an auditor.
    const calls = guideNames
      .filter((name) => name !== 'auditing')
      .flatMap((name) => codeOf(name, 'bash').flatMap((code) => code.split('curl ').slice(1)));
    const wanted = calls.flatMap((call) => {
      const path = /https:\/\/api\.example\/v1(\/[^\s"?]*)/.exec(call)?.[1];
      if (path === undefined) return [];
      const pattern = path.replace(/\$\w+/g, '{id}');
      const method = /-X (\w+)/.exec(call)?.[1] ?? 'GET';
      const found = operations.find((one) => one.method === method && one.path === pattern);
      assert.ok(found, `${method} ${path} of a guide is no operation`);
      return found.scope ?? [];
    });
    assert.ok(new Set(wanted).size > 5, wanted.join());
    assert.deepEqual([...new Set(wanted)].filter((scope) => !ticked.includes(scope)).sort(), []);
    assert.ok(olga.browser.page.html.includes('value="events.read"') && !ticked.includes('events.read'));
    await browser.send('/console', '/console/workspace', { mode: 'live' });
    const ofLive = tickedIn(await browser.get('/developers'));
    assert.deepEqual(
      ofLive.filter((scope) => !scope.endsWith('.read')),
      [],
    );
    assert.ok(!ofLive.includes('events.read'));
    await browser.send('/console', '/console/workspace', { mode: 'test' });
  });

  t('a key can be limited to clients of the mode it works in', async () => {
    const { browser } = olga;
    const { id } = (await world.tester.post('/clients', { name: 'Café <i>', type: 'brand' })).data;
    await world.settled();
    const shown = await browser.get('/developers');
    assert.match(shown.text, /These are the clients of Sandbox .*Café <i>/);
    const form = { name: 'Limited', scope: ['clients.read'], client: [id], life: '30' };
    const wrong = await browser.post('/developers/keys', { ...form, mode: 'live' });
    assert.deepEqual([wrong.status, /must be clients of the live workspace/.test(wrong.text)], [422, true]);
    const made = await browser.post('/developers/keys', { ...form, mode: 'test' });
    assert.equal(made.status, 200, made.text);
    assert.match(rowOf(await browser.get('/developers'), 'Limited').replaceAll(/\s+/g, ' '), /Only for: <bdi>Café/);
  });

  t('the clients of a key are told by name, whichever mode the person looks at', async () => {
    const { browser } = olga;
    const names = ['Anna Bakes', 'Bruno Builds'];
    const made = await Promise.all(names.map((name) => world.tester.post('/clients', { name, type: 'brand' })));
    await world.settled();
    const form = { name: 'For two', scope: ['clients.read'], client: made.map(({ data }) => data.id), life: '30' };
    await browser.send('/developers', '/developers/keys', { ...form, mode: 'test' });
    for (const mode of ['live', 'test']) {
      await browser.send('/console', '/console/workspace', { mode });
      const { text } = await browser.get('/developers');
      assert.match(text, /Only for: (Anna Bakes , Bruno Builds|Bruno Builds , Anna Bakes) \./, mode);
    }
  });

  t('a key has no scope above the role, and below a Manager nobody makes one', async () => {
    const { browser } = await signedIn(world, { role: 'manager' });
    const shown = await browser.get('/developers');
    assert.ok(!shown.html.includes('value="events.read"'));
    const above = await browser.post('/developers/keys', {
      name: 'Up',
      mode: 'test',
      scope: 'events.read',
      life: '30',
    });
    assert.equal(above.status, 422, above.text);
    for (const role of ['creator', 'viewer'] as const) {
      const low = await signedIn(world, { role });
      assert.equal((await low.browser.get('/developers')).status, 403);
      assert.match(low.browser.page.text, /Your role does not allow it/);
      await low.browser.get('/console');
      assert.ok(!low.browser.page.html.includes('href="/developers"'));
      const made = await low.browser.post('/developers/keys', { name: 'x', mode: 'test', scope: 'posts.read' });
      assert.equal(made.status, 403);
    }
  });

  t('an Owner invites, changes roles and removes; the member sees nothing at the next request', async () => {
    const { browser } = olga;
    const form = { email: 'Zoe@Example.com', role: 'viewer', hours: '24' };
    const invited = await browser.send('/team', '/team/invites', form);
    assert.equal(invited.status, 200, invited.text);
    const [url = ''] = /http[^ ]+\/join\/[\w-]{64}/.exec(invited.text) ?? [];
    await world.settled();
    assert.match((await browser.get('/team')).text, /Open invitations zoe@example.com Viewer/);
    assert.ok(!browser.page.html.includes('/join/'));
    const zoe = new ConsoleBrowser(world.origin);
    await zoe.get(new URL(url).pathname);
    await zoe.post(new URL(url).pathname, { email: 'zoe@example.com', name: 'Zoë', password: goodPassword });
    assert.match((await zoe.get('/console')).text, /You are Viewer here/);
    const team = await browser.get('/team');
    assert.ok(!team.text.includes('Open invitations'), team.text);
    const id = idIn(rowOf(team, 'Zoë'));
    await browser.post(`/team/members/${id}/role`, { role: 'manager' });
    await world.settled();
    assert.match((await zoe.get('/console')).text, /You are Manager here/);
    assert.equal((await zoe.get('/developers')).status, 200);
    await browser.send('/team', `/team/members/${id}/remove`);
    assert.match(browser.page.text, /The member is removed/);
    await world.settled();
    assert.equal((await zoe.get('/team')).status, 403);
  });

  t('an invitation is withdrawn', async () => {
    const { browser } = olga;
    const invited = await browser.send('/team', '/team/invites', { role: 'creator', hours: '168' });
    const [url = ''] = /http[^ ]+\/join\/[\w-]{64}/.exec(invited.text) ?? [];
    await world.settled();
    const row = rowOf(await browser.get('/team'), 'Whoever has the link');
    const id = idIn(row);
    assert.match((await browser.send('/team', `/team/invites/${id}/withdraw`)).text, /The invitation is withdrawn/);
    assert.equal((await new ConsoleBrowser(world.origin).get(new URL(url).pathname)).status, 404);
  });

  t('a Manager cannot make, change or remove an Owner, and the last Owner stays', async () => {
    const { browser } = await signedIn(world, { role: 'manager' });
    const team = await browser.get('/team');
    assert.ok(!team.html.includes('value="owner"'));
    for (const [path, form] of [
      [`/team/members/${olga.memberId}/role`, { role: 'viewer' }],
      [`/team/members/${olga.memberId}/remove`, {}],
      ['/team/invites', { role: 'owner' }],
    ] as const) {
      await browser.get('/team');
      const sent = await browser.post(path, form);
      assert.deepEqual([sent.status, /Only an owner may/.test(sent.text)], [403, true], sent.text);
    }
    const foreign = await world.agency('Elsewhere');
    await browser.get('/team');
    assert.equal((await browser.post(`/team/members/${foreign.memberId}/remove`)).status, 404);
  });

  t('ids of another workspace are unknown', async () => {
    const other = await world.agency('Third');
    const person = await personOf(world, { workspaceId: other.workspaceId });
    const browser = new ConsoleBrowser(world.origin);
    await browser.signIn(person.email, goodPassword);
    const { id: keyId } = other.liveKey;
    for (const path of [
      `/developers/keys/${world.liveKey.id}/revoke`,
      `/developers/keys/${world.liveKey.id}/rotate`,
      `/team/members/${olga.memberId}/remove`,
      `/team/invites/${randomUUID()}/withdraw`,
      `/apps/${randomUUID()}/revoke`,
    ]) {
      await browser.get('/console');
      assert.equal((await browser.post(path, { role: 'viewer' })).status, 404, path);
    }
    assert.equal((await browser.send('/developers', `/developers/keys/${keyId}/revoke`)).status, 200);
  });

  t('a removed member sees nothing at the next request', async () => {
    const { browser, memberId } = await signedIn(world, { role: 'owner' });
    assert.equal((await browser.get('/developers')).status, 200);
    await removeMember(memberId);
    const { status, text } = await browser.get('/developers');
    assert.equal(status, 403);
    assert.ok(!text.includes('sk_'));
    assert.equal(
      (await browser.post('/developers/keys', { name: 'x', scope: 'posts.read', mode: 'test' })).status,
      403,
    );
  });
});
