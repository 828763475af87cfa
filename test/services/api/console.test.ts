import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { SMTPServer } from 'smtp-server';
import { mintSession } from '#runtime/identity/sessions.ts';
import { type Mode, type Role, roles } from '#schemas/common.ts';
import { sessionPrincipal } from '#services/api/callers/bearer-tokens.ts';
import { manageMember } from '#services/api/console/team.ts';
import { openMailer } from '#services/auth/people/mail.ts';
import { findSession, startSession } from '#services/auth/people/sessions.ts';
import { findTeamInvite, joinAsNew } from '#services/auth/people/team-invites.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { Answered, Caller, World } from '#test/support/http.ts';
import { livingFor } from '#test/support/meddling.ts';
import { Browser, claimsOf, oauthOf, oauthWorld, pkce } from '#test/support/oauth.ts';
import { goodPassword, peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What members do in the console, as operations of the contract. */

const monthMs = 30 * 86_400_000;

suite('first-party operations', (t) => {
  let world: World;
  let mails: { readonly to: string; readonly text: string }[];
  let smtp: SMTPServer;
  let owner: Caller;
  let other: Awaited<ReturnType<World['agency']>>;

  const sessionOf = async (workspaceId: string, memberId: string, mode: Mode = 'live'): Promise<Caller> => {
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    return world.callerWith((await mintSession(sessions, { workspaceId, memberId, mode })).token);
  };
  const memberOf = async (role: Role) => {
    const memberId = await world.memberOf(world.workspaceId, role);
    await world.settled();
    return { memberId, session: await sessionOf(world.workspaceId, memberId) };
  };
  const inAMonth = (): string => new Date(world.deps.clock() + monthMs).toISOString();
  const keyBody = (more: object = {}) => ({
    ...{ name: 'A key', mode: 'test', scopes: ['agency.read', 'clients.read'], expiresAt: inAMonth() },
    ...more,
  });

  t.before(async () => {
    mails = [];
    smtp = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const to = session.envelope.rcptTo.map(({ address }) => address).join();
          mails.push({ to, text: Buffer.concat(chunks).toString('utf8').replaceAll('=\r\n', '') });
          done();
        });
      },
    });
    smtp.listen(0, '127.0.0.1');
    await once(smtp.server, 'listening');
    const { port } = smtp.server.address() as { port: number };
    const quiet = () => undefined;
    const logger = { info: quiet, warn: quiet, error: quiet };
    const mailer = openMailer(`smtp://127.0.0.1:${port}`, 'Postline <postline@example.com>', logger);
    world = await oauthWorld({}, { deps: { mailer } });
    other = await world.agency('Southern Cross');
    owner = await sessionOf(world.workspaceId, world.memberId);
  });
  t.after(async () => {
    world?.deps.mailer?.close();
    await new Promise<void>((resolve) => smtp.close(() => resolve()));
    await world?.close();
  });

  t('a key is shown once, works at once, and shows when it was used', async () => {
    const { status, data, text } = await owner.post('/api-keys', keyBody());
    assert.equal(status, 200, text);
    const secret = String(data.secret);
    assert.ok(secret.startsWith('sk_test_') && secret.startsWith(String(data.prefix)));
    await world.settled();
    assert.equal((await world.callerWith(secret).get('/agency')).data.mode, 'test');
    const listed = await owner.get('/api-keys');
    assert.ok(!listed.text.includes(secret));
    const row = listed.rows.find(({ id }) => id === data.id);
    assert.deepEqual([row?.memberId, row?.scopes, row?.clientIds], [world.memberId, data.scopes, null]);
    const used = await until('the use is written', async () =>
      (await owner.get('/api-keys')).rows.find(({ id, lastUsedAt }) => id === data.id && lastUsedAt !== null),
    );
    assert.ok(Math.abs(Date.parse(String(used.lastUsedAt)) - world.deps.clock()) < 60_000);
    assert.ok(!world.lines.join('\n').includes(secret));
  });

  t('what a member leaves is listed, also after the removal, and each of it can be ended', async () => {
    const { memberId, session } = await memberOf('manager');
    const key = await world.keyOf(world.workspaceId, memberId, { mode: 'test' });
    const client = await key.caller.post('/clients', { name: `Left ${randomUUID()}`, type: 'brand' });
    const made = await key.caller.post(`/clients/${client.data.id}/connect-invites`, { platforms: ['x'] });
    const hook = await session.post('/webhooks', { url: 'https://hooks.agency.example/in', events: ['post.*'] });
    assert.equal(hook.status, 200, hook.text);
    await world.settled();
    const left = async () => {
      await world.settled();
      const { rows, text } = await owner.get(`/members/${memberId}/left`);
      assert.ok(!text.includes(String(made.data.token)));
      return rows.map(({ kind, id, mode }) => [kind, id, mode]).sort();
    };
    const all = [
      ['api_key', key.id, 'test'],
      ['connect_invite', made.data.inviteId, 'test'],
      ['webhook', hook.data.id, 'live'],
    ];
    assert.deepEqual(await left(), all);
    assert.equal((await owner.delete(`/members/${memberId}`)).status, 200);
    assert.deepEqual(await left(), all);
    await owner.delete(`/api-keys/${key.id}`);
    await owner.delete(`/webhooks/${hook.data.id}`);
    await world.tester.delete(`/clients/${client.data.id}/connect-invites/${made.data.inviteId}`);
    assert.deepEqual(await left(), []);
    assert.equal((await owner.get(`/members/${randomUUID()}/left`)).status, 404);
    const stranger = await sessionOf(other.workspaceId, other.memberId);
    assert.equal((await stranger.get(`/members/${memberId}/left`)).status, 404);
  });

  t('a key acts for its maker: whom the body names makes no difference', async () => {
    const { memberId, session } = await memberOf('manager');
    const made = await session.post(
      '/api-keys',
      keyBody({ memberId: world.memberId, role: 'owner', id: randomUUID() }),
    );
    assert.equal(made.data.memberId, memberId);
  });

  t('nobody makes a key above the own role, and no role below Manager makes keys', async () => {
    const { session } = await memberOf('manager');
    const above = await session.post('/api-keys', keyBody({ scopes: ['posts.read', 'events.read'] }));
    assert.deepEqual([above.status, above.body.errors?.[0]?.path], [422, '/scopes/1']);
    for (const role of ['creator', 'viewer'] as const) {
      const refused = await (await memberOf(role)).session.post('/api-keys', keyBody());
      assert.equal(refused.body.code, 'role_required');
    }
  });

  t('a key needs a name, known scopes, clients of its workspace, and an end within a year', async () => {
    const theirs = (await other.owner.post('/clients', { name: 'Theirs', type: 'brand' })).data.id;
    const live = (await world.owner.post('/clients', { name: 'Live', type: 'brand' })).data.id;
    const days = (count: number) => new Date(world.deps.clock() + count * 86_400_000).toISOString();
    for (const [wrong, path] of [
      [{ name: '' }, '/name'],
      [{ scopes: [] }, '/scopes'],
      [{ scopes: ['root'] }, '/scopes/0'],
      [{ mode: 'prod' }, '/mode'],
      [{ expiresAt: days(-1) }, '/expiresAt'],
      [{ expiresAt: days(367) }, '/expiresAt'],
      [{ clientIds: [] }, '/clientIds'],
      [{ clientIds: [theirs] }, '/clientIds'],
      [{ clientIds: [live], mode: 'test' }, '/clientIds'],
      [{ clientIds: [randomUUID()] }, '/clientIds'],
    ] as const) {
      const { status, body, text } = await owner.post('/api-keys', keyBody(wrong));
      assert.deepEqual([status, body.errors?.[0]?.path], [422, path], `${JSON.stringify(wrong)}: ${text}`);
    }
    const limited = await owner.post('/api-keys', keyBody({ clientIds: [live], mode: 'live' }));
    assert.equal(limited.status, 200, limited.text);
    await world.settled();
    const seen = await world.callerWith(String(limited.data.secret)).get('/clients');
    assert.deepEqual(
      seen.rows.map(({ id }) => id),
      [live],
    );
  });

  t('rotation gives a new key beside the former one; revocation ends both within a second', async () => {
    const made = await owner.post('/api-keys', keyBody());
    const rotated = await owner.post(`/api-keys/${made.data.id}/rotate`);
    assert.notEqual(rotated.data.secret, made.data.secret);
    assert.notEqual(rotated.data.previousUntil, null);
    await world.settled();
    const both = [made, rotated].map(({ data }) => world.callerWith(String(data.secret)));
    for (const one of both) assert.equal((await one.get('/agency')).status, 200);
    const revoked = await owner.delete(`/api-keys/${made.data.id}`);
    assert.notEqual(revoked.data.revokedAt, null);
    assert.equal((await owner.delete(`/api-keys/${made.data.id}`)).status, 200);
    for (const one of both) {
      await until('the key has no power', async () => (await one.get('/agency')).body.code === 'token_revoked');
    }
    assert.equal((await owner.post(`/api-keys/${made.data.id}/rotate`)).status, 422);
  });

  t('a rotation shows a key to its member and to Owners alone: it gives nobody the power of another', async () => {
    const made = await owner.post('/api-keys', keyBody());
    const manager = await memberOf('manager');
    await world.settled();
    const taken = await manager.session.post(`/api-keys/${made.data.id}/rotate`);
    assert.deepEqual([taken.status, taken.body.code, taken.data?.secret], [403, 'role_required', undefined]);
    const own = await manager.session.post('/api-keys', keyBody());
    await world.settled();
    const colleague = await memberOf('manager');
    assert.equal((await colleague.session.post(`/api-keys/${own.data.id}/rotate`)).body.code, 'role_required');
    assert.equal((await manager.session.post(`/api-keys/${own.data.id}/rotate`)).status, 200);
    assert.equal((await owner.post(`/api-keys/${own.data.id}/rotate`)).status, 200);
    // To end a key gives no power: whoever sees a leak stops it.
    assert.equal((await colleague.session.delete(`/api-keys/${made.data.id}`)).status, 200);
  });

  t('who has just lost a role cannot take it back while the read models are behind', async () => {
    const { memberId } = await memberOf('owner');
    const { workspaceId, operator, deps } = world;
    const before = { id: randomUUID(), memberId, role: 'owner', mode: 'live', liveWorkspaceId: workspaceId } as const;
    const context = { ...contextOf(operator, workspaceId), giveUpAt: performance.now() + 5_000 };
    const call = { deps, principal: sessionPrincipal(before), context, positions: new Map() };
    await owner.request('PUT', `/members/${memberId}/role`, { body: { role: 'viewer' } });
    const again = manageMember(call, memberId, { type: 'ChangeRole', role: 'owner' });
    await assert.rejects(again, { code: 'role_required' });
    await owner.delete(`/members/${memberId}`);
    const other = (await memberOf('viewer')).memberId;
    await assert.rejects(manageMember(call, other, { type: 'RemoveMember' }), { code: 'role_required' });
  });

  t('one mailbox gets few invitations by mail, however often they are made and revoked', async () => {
    const email = `bombed.${randomUUID()}@example.com`;
    const mailed: unknown[] = [];
    for (let at = 0; at < 6; at += 1) {
      const made = await owner.post('/team-invites', { email, role: 'viewer' });
      assert.equal(made.status, 200, made.text);
      mailed.push(made.data.mailed);
      await world.settled();
      assert.equal((await owner.delete(`/team-invites/${made.data.id}`)).status, 200);
    }
    assert.deepEqual([mailed[0], mailed.at(-1)], [true, false], 'the link is still in the answer');
    const other = await owner.post('/team-invites', { email: `free.${randomUUID()}@example.com`, role: 'viewer' });
    assert.equal(other.data.mailed, true);
    await owner.delete(`/team-invites/${other.data.id}`);
  });

  t('Owners give every role, Managers those of creators and viewers, and the last Owner stays', async () => {
    const manager = (await memberOf('manager')).session;
    const ask = async (by: Caller, from: Role, to: Role): Promise<number> => {
      const { memberId } = await memberOf(from);
      return (await by.request('PUT', `/members/${memberId}/role`, { body: { role: to } })).status;
    };
    for (const from of roles) {
      for (const to of roles) {
        const low = (role: Role) => role === 'creator' || role === 'viewer';
        assert.equal(await ask(manager, from, to), low(from) && low(to) ? 200 : 403, `manager: ${from} to ${to}`);
      }
    }
    assert.equal(await ask(owner, 'viewer', 'manager'), 200);
    const alone = await sessionOf(other.workspaceId, other.memberId);
    const leaving = await alone.delete(`/members/${other.memberId}`);
    assert.deepEqual([leaving.status, leaving.body.code], [422, 'validation_failed']);
    const { memberId } = await memberOf('manager');
    assert.equal((await manager.delete(`/members/${memberId}`)).body.code, 'role_required');
    assert.equal((await owner.delete(`/members/${memberId}`)).status, 200);
    assert.equal((await owner.delete(`/members/${memberId}`)).status, 404);
  });

  t('an invitation goes by mail, makes a member once, and shows its link in one answer', async () => {
    const email = 'invited@example.com';
    const made = await owner.post('/team-invites', {
      email: ' Invited@Example.com',
      role: 'creator',
      expiresInHours: 2,
    });
    assert.deepEqual([made.data.email, made.data.mailed, made.data.role], [email, true, 'creator']);
    const url = String(made.data.url);
    const mail = await until('the mail is there', () => mails.find(({ to }) => to === email));
    const mailed = /\/join\/[\w-]+/.exec(mail.text.replaceAll('=3D', '='))?.[0] ?? '';
    assert.ok(mailed !== '' && !url.endsWith(mailed), 'only who reads the mail has its link');
    await world.settled();
    const listed = await owner.get('/team-invites');
    assert.ok(!listed.text.includes('/join/'));
    assert.deepEqual(
      listed.rows.map(({ id }) => id),
      [made.data.id],
    );
    const people = peopleDepsOf(world);
    const link = await findTeamInvite(people, url.split('/join/')[1] ?? '');
    assert.ok(link !== null);
    const personId = await joinAsNew(people, link, { email, name: 'Ina Invited', password: goodPassword });
    await world.settled();
    const member = (await owner.get('/members')).rows.find((one) => one.personId === personId);
    assert.deepEqual([member?.name, member?.email, member?.role], ['Ina Invited', email, 'creator']);
    assert.equal(member?.emailProvenAt, null, 'whoever invites has seen this link');
    assert.deepEqual((await owner.get('/team-invites')).rows, []);
    assert.equal((await owner.delete(`/team-invites/${made.data.id}`)).status, 404);
  });

  t('a revoked invitation is a dead link; Managers invite no Owners', async () => {
    const manager = (await memberOf('manager')).session;
    assert.equal((await manager.post('/team-invites', { role: 'owner' })).body.code, 'role_required');
    const made = await manager.post('/team-invites', { role: 'viewer' });
    assert.deepEqual([made.data.email, made.data.mailed], [null, false]);
    const token = String(made.data.url).split('/join/')[1] ?? '';
    const people = peopleDepsOf(world);
    assert.ok((await findTeamInvite(people, token)) !== null);
    assert.equal((await manager.delete(`/team-invites/${made.data.id}`)).status, 200);
    assert.equal(await findTeamInvite(people, token), null);
    for (const body of [{ role: 'king' }, { role: 'viewer', email: 'no' }, { role: 'viewer', expiresInHours: 721 }]) {
      assert.equal((await owner.post('/team-invites', body)).status, 422, JSON.stringify(body));
    }
  });

  t('an app is listed to Owners and to its member, and loses its access for good', async () => {
    const app = await oauthOf(world).register({ client_name: 'An <b>agent</b>' });
    const creator = await memberOf('creator');
    const { access_token: token, refresh_token } = await oauthOf(world).tokensOf(app, {
      query: { resource: world.deps.baseUrl(), scope: 'agency.read' },
      result: { memberId: creator.memberId, scopes: ['agency.read'] },
    });
    await world.settled();
    assert.equal((await world.callerWith(token).get('/agency')).status, 200);
    const [mine] = (await creator.session.get('/apps')).rows;
    assert.deepEqual([mine?.clientName, mine?.memberId, mine?.revokedAt], ['An <b>agent</b>', creator.memberId, null]);
    assert.ok((await owner.get('/apps')).rows.some(({ id }) => id === mine?.id));
    const stranger = (await memberOf('viewer')).session;
    assert.deepEqual((await stranger.get('/apps')).rows, []);
    assert.equal((await stranger.delete(`/apps/${mine?.id}`)).status, 404);
    assert.equal((await creator.session.delete(`/apps/${mine?.id}`)).status, 200);
    assert.equal((await creator.session.delete(`/apps/${mine?.id}`)).status, 200);
    await until(
      'it has no power',
      async () => (await world.callerWith(token).get('/agency')).body.code === 'token_revoked',
    );
    assert.equal((await oauthOf(world).refresh(app, refresh_token)).json.error, 'invalid_grant');
  });

  t('an app beyond the newest that a list shows can be ended too', async () => {
    const app = await oauthOf(world).register();
    const result = { scopes: ['agency.read'] };
    const { access_token } = await oauthOf(world).tokensOf(app, { query: { scope: 'agency.read' }, result });
    const grantId = String(claimsOf(access_token).gid);
    const [given] = await world.store.readStream(`grant-${grantId}`);
    const further = Array.from({ length: 500 }, () => randomUUID());
    const events = [{ type: 'GrantGiven', data: given?.data }];
    const context = contextOf(world.operator, world.workspaceId);
    await Promise.all(further.map((id) => world.store.append(`grant-${id}`, -1, events, context, `grant-${id}`)));
    await world.settled();
    const { rows } = await owner.get('/apps');
    assert.ok(rows.length === 500 && rows.every(({ id }) => id !== grantId));
    const ended = await owner.delete(`/apps/${grantId}`);
    assert.equal(ended.status, 200, ended.text);
    assert.notEqual(ended.data.revokedAt, null);
  });

  t('what has power is listed, however much that came after it has ended', async () => {
    const alone = await sessionOf(other.workspaceId, other.memberId);
    const key = (await alone.post('/api-keys', keyBody())).data;
    const owned = { memberId: other.memberId, workspaceId: other.workspaceId };
    const app = await oauthOf(world).register();
    const { gid } = claimsOf((await oauthOf(world).tokensOf(app, { result: owned })).access_token);
    const context = contextOf(world.operator, other.workspaceId);
    const [made] = await world.store.readStream(`apikey-${key.id}`);
    const [given] = await world.store.readStream(`grant-${gid}`);
    await Promise.all(
      Array.from({ length: 500 }, async () => {
        const [keyId, grantId] = [randomUUID(), randomUUID()];
        const hash = keyId.replaceAll('-', '').padEnd(64, '0');
        const keys = [
          { type: 'ApiKeyCreated', data: { ...made?.data, hash } },
          { type: 'ApiKeyRevoked', data: {} },
        ];
        const grants = [
          { type: 'GrantGiven', data: given?.data },
          { type: 'GrantRevoked', data: { by: 'person' } },
        ];
        await world.store.append(`apikey-${keyId}`, -1, keys, context, `apikey-${keyId}`);
        await world.store.append(`grant-${grantId}`, -1, grants, context, `grant-${grantId}`);
      }),
    );
    await world.settled();
    for (const [path, id] of [
      ['/api-keys', key.id],
      ['/apps', gid],
    ] as const) {
      const { rows } = await alone.get(path);
      assert.equal(rows.length, 500, path);
      assert.ok(
        rows.some((one) => one.id === id),
        path,
      );
    }
  });

  t('sessions are those of the person: listed, ended, and nobody else’s', async () => {
    const ann = await personOf(world, { role: 'creator' });
    const eve = await personOf(world, { role: 'owner' });
    const people = peopleDepsOf(world);
    const started = await startSession(people, {
      personId: ann.personId,
      by: 'password',
      device: 'Firefox',
      address: '192.0.2.9',
    });
    const [annsOwn, eves] = [
      await sessionOf(world.workspaceId, ann.memberId),
      await sessionOf(world.workspaceId, eve.memberId),
    ];
    const [row] = (await annsOwn.get('/sessions')).rows;
    assert.deepEqual([row?.id, row?.device, row?.current], [started.id, 'Firefox', false]);
    assert.deepEqual((await eves.get('/sessions')).rows, []);
    assert.equal((await eves.delete(`/sessions/${started.id}`)).status, 404);
    assert.ok((await findSession(people, started.secret)) !== null);
    assert.equal((await annsOwn.delete(`/sessions/${started.id}`)).status, 200);
    assert.equal(await findSession(people, started.secret), null);
    assert.deepEqual((await owner.get('/sessions')).rows, []);
  });

  t('ids of another workspace are unknown ids', async () => {
    const key = await owner.post('/api-keys', keyBody());
    const invite = await owner.post('/team-invites', { role: 'viewer' });
    const { memberId } = await memberOf('viewer');
    await world.settled();
    const before = await world.head();
    const strangers = [
      await sessionOf(other.workspaceId, other.memberId),
      await sessionOf(other.workspaceId, other.memberId, 'test'),
    ];
    const body = { role: 'owner' };
    for (const by of strangers) {
      for (const [method, path, id] of [
        ['POST', '/api-keys/{id}/rotate', key.data.id],
        ['DELETE', '/api-keys/{id}', key.data.id],
        ['PUT', '/members/{id}/role', memberId],
        ['DELETE', '/members/{id}', memberId],
        ['DELETE', '/team-invites/{id}', invite.data.id],
      ] as const) {
        const ask = (of: string) => by.request(method, path.replace('{id}', of), method === 'PUT' ? { body } : {});
        const [foreign, unknown] = [await ask(id), await ask(randomUUID())];
        const words = ({ status, body: said }: typeof foreign) => ({ status, ...said, correlationId: '' });
        assert.deepEqual(words(foreign), words(unknown), `${method} ${path}`);
        assert.equal(foreign.status, 404, foreign.text);
      }
      for (const path of ['/api-keys', '/members', '/team-invites', '/apps']) {
        const { text } = await by.get(path);
        for (const id of [key.data.id, memberId, invite.data.id]) assert.ok(!text.includes(id), path);
      }
    }
    assert.equal(await world.head(), before);
  });

  t('a session in the sandbox manages the same keys and team', async () => {
    const sandboxed = await sessionOf(world.workspaceId, world.memberId, 'test');
    const made = await sandboxed.post('/api-keys', keyBody({ mode: 'live' }));
    await world.settled();
    assert.equal((await world.callerWith(String(made.data.secret)).get('/agency')).data.mode, 'live');
    const ids = (answer: { readonly rows: readonly { readonly id: string }[] }) => answer.rows.map(({ id }) => id);
    assert.deepEqual(ids(await sandboxed.get('/api-keys')), ids(await owner.get('/api-keys')));
    assert.deepEqual(ids(await sandboxed.get('/members')), ids(await owner.get('/members')));
  });

  t('are refused to keys and apps', async () => {
    const app = await oauthOf(world).register();
    const { access_token } = await oauthOf(world).tokensOf(app, {
      query: { resource: world.deps.baseUrl(), scope: 'agency.read' },
      result: { scopes: ['agency.read'] },
    });
    await world.settled();
    for (const by of [world.owner, world.tester, world.callerWith(access_token)]) {
      for (const path of ['/api-keys', '/members', '/team-invites', '/apps', '/sessions']) {
        assert.equal((await by.get(path)).body.code, 'first_party_only', path);
      }
    }
  });

  t('a workspace has 100 keys and 1,000 grants with power, however many ask at once', async () => {
    const { workspaceId, memberId } = await world.agency('Full');
    const session = await sessionOf(workspaceId, memberId);
    const fill = (kind: string, count: number) =>
      world.pool.query(
        `insert into ops.credential_places (id, kind, workspace_id)
         select gen_random_uuid(), $1, $2 from generate_series(1, $3)`,
        [kind, workspaceId, count],
      );
    // Two keys came with the workspace.
    await fill('apikey', 96);
    const answers = await Promise.all(Array.from({ length: 5 }, () => session.post('/api-keys', keyBody())));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 409, 409, 409]);
    assert.equal(answers.find(({ status }) => status === 409)?.body.code, 'too_many_keys');
    const made = answers.find(({ status }) => status === 200);
    assert.equal((await session.delete(`/api-keys/${made?.data.id}`)).status, 200);
    assert.equal((await session.post('/api-keys', keyBody())).status, 200, 'a revoked key leaves room');
    assert.equal((await session.post('/api-keys', keyBody())).status, 409);
    // Those of callers that died lapse.
    await world.pool.query(`update ops.credential_places set taken_at = taken_at - interval '2 min'`);
    assert.equal((await session.post('/api-keys', keyBody())).status, 200);

    const it = oauthOf(world);
    const app = await it.register();
    const result = { workspaceId, memberId };
    await fill('grant', 999);
    await it.tokensOf(app, { result });
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(app, pkce()));
    const refused = await it.finish(browser, uid, it.consent(uid, result));
    assert.deepEqual([refused.get('error'), refused.get('code')], ['access_denied', null]);
    assert.match(refused.get('error_description') ?? '', /too many connected apps/);
  });

  t(
    'an api that dies between the row of a withdrawal and the event has taken nothing; the repeat takes it',
    async () => {
      const made = await owner.post('/api-keys', keyBody());
      await world.settled();
      const key = world.callerWith(String(made.data.secret));
      const { survived } = await livingFor(world, 0, () => owner.delete(`/api-keys/${made.data.id}`));
      assert.equal(survived, false);
      const { rowCount } = await world.pool.query('select 1 from auth.withdrawals where subject = $1', [made.data.id]);
      assert.equal(rowCount, 1);
      assert.equal((await key.get('/agency')).status, 200);
      assert.equal((await owner.delete(`/api-keys/${made.data.id}`)).status, 200);
      await until('the key has no power', async () => (await key.get('/agency')).body.code === 'token_revoked');
    },
  );

  // The last one: the read models of this world stand still from here on.
  t('what was taken away has no power within a second, though the read models stand still', async () => {
    const caller = ({ data }: Answered) => world.callerWith(String(data.secret));
    const [revoked, rotated, kept] = [
      await owner.post('/api-keys', keyBody()),
      await owner.post('/api-keys', keyBody()),
      await owner.post('/api-keys', keyBody()),
    ];
    const next = await owner.post(`/api-keys/${rotated.data.id}/rotate`);
    const [leaver, demoted] = [await memberOf('manager'), await memberOf('manager')];
    const keyOfLeaver = await leaver.session.post('/api-keys', keyBody());
    const app = await oauthOf(world).register();
    const tokenOf = async (memberId: string) => {
      const query = { resource: world.deps.baseUrl(), scope: 'agency.read' };
      return oauthOf(world).tokensOf(app, { query, result: { memberId, scopes: ['agency.read'] } });
    };
    const [given, left] = [await tokenOf(world.memberId), await tokenOf(leaver.memberId)];
    await world.settled();
    const living = [revoked, rotated, next, kept, keyOfLeaver].map(caller);
    living.push(leaver.session, demoted.session);
    living.push(...[given, left].map(({ access_token }) => world.callerWith(access_token)));
    for (const one of living) assert.equal((await one.get('/agency')).status, 200);
    await world.stopProjections();

    assert.equal((await owner.delete(`/api-keys/${revoked.data.id}`)).status, 200);
    assert.equal((await owner.post(`/api-keys/${rotated.data.id}/rotate`)).status, 200);
    assert.equal((await owner.delete(`/apps/${claimsOf(given.access_token).gid}`)).status, 200);
    assert.equal((await owner.delete(`/members/${leaver.memberId}`)).status, 200);
    const role = { body: { role: 'viewer' } };
    assert.equal((await owner.request('PUT', `/members/${demoted.memberId}/role`, role)).status, 200);
    const answered = performance.now();
    const codeOf = async (by: Caller) => (await by.get('/agency')).body.code ?? 'ok';
    const dead: readonly (readonly [string, () => Promise<unknown>, string])[] = [
      ['a revoked key', () => codeOf(caller(revoked)), 'token_revoked'],
      ['the key before the last two rotations', () => codeOf(caller(rotated)), 'invalid_token'],
      ['a key of who left', () => codeOf(caller(keyOfLeaver)), 'token_revoked'],
      ['a session of who left', () => codeOf(leaver.session), 'token_revoked'],
      ['the app of who left', () => codeOf(world.callerWith(left.access_token)), 'token_revoked'],
      ['a revoked app', () => codeOf(world.callerWith(given.access_token)), 'token_revoked'],
      ['a demoted manager', async () => (await demoted.session.get('/api-keys')).body.code, 'role_required'],
    ];
    for (const [what, ask, code] of dead) {
      await until(what, async () => (await ask()) === code, { withinMs: 15_000 });
    }
    assert.ok(performance.now() - answered < 1_500, `${performance.now() - answered} ms`);
    const refreshed = await oauthOf(world).refresh(app, left.refresh_token);
    assert.equal(refreshed.json.error, 'invalid_grant');
    for (const one of [caller(kept), caller(next), owner]) assert.equal(await codeOf(one), 'ok');

    // No write waits for the read models: what they have never seen is taken away too.
    const unseen = await owner.post('/api-keys', keyBody());
    assert.equal((await owner.delete(`/api-keys/${unseen.data.id}`)).status, 200);
  });
});
