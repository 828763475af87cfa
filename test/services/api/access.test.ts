import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { mintSession } from '#runtime/identity/sessions.ts';
import { type Scope, scopes } from '#schemas/apikey.ts';
import { type Mode, type Role, roles } from '#schemas/common.ts';
import { grantableScopes } from '#schemas/grant.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { type CallerCredential, credentials, outcomeOf } from '#services/api/contract/access.ts';
import { contractPages, contractsFolder } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { createApiKey } from '#services/workflows/provision.ts';
import type { Caller, World } from '#test/support/http.ts';
import { type App, oauthOf, oauthWorld } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

/** The table of who may do what, and what the server answers: every role, kind of credential, mode and operation. */

const nowhere = '00000000-0000-4000-8000-000000000000';
const refusals = ['insufficient_scope', 'role_required', 'first_party_only', 'client_limited', 'sandbox_only'];

const ask = async (caller: Caller, { method, path, example }: Operation): Promise<string> => {
  const { status, body, text } = await caller.request(method, path.replace(/\{\w+\}/g, nowhere), {
    ...(example.body === undefined ? {} : { body: example.body }),
  });
  const code = body?.code ?? '';
  // Figures are unavailable: nothing of this world counts them.
  assert.ok(status !== 401 && (status < 500 || code === 'unavailable'), text);
  if (status === 403) assert.ok(refusals.includes(code), text);
  return status === 403 ? code : 'allowed';
};

/** What a live key may do, the sandbox aside. */
const live = ({ codes }: Operation, outcome: string): string =>
  outcome === 'allowed' && codes.includes('sandbox_only') ? 'sandbox_only' : outcome;

suite('role × scope × operation × kind of credential', (t) => {
  let world: World;
  let app: App;
  const members = new Map<Role, string>();
  const clients = { live: '', test: '' };
  t.before(async () => {
    world = await oauthWorld();
    app = await oauthOf(world).register();
    for (const role of roles) {
      members.set(role, role === 'owner' ? world.memberId : await world.memberOf(world.workspaceId, role));
    }
    for (const [mode, by] of [
      ['live', world.owner],
      ['test', world.tester],
    ] as const) {
      clients[mode] = (await by.post('/clients', { name: 'Limit', type: 'brand' })).data.id;
    }
  });
  t.after(() => world?.close());

  const keyOf = async (role: Role, mode: Mode, more: { scopes?: readonly Scope[]; limited?: boolean } = {}) => {
    const { secret } = await createApiKey(world.operator, {
      workspaceId: world.workspaceId,
      memberId: members.get(role) ?? '',
      name: 'access',
      scopes: more.scopes ?? scopes,
      mode,
      expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
      clientIds: more.limited === true ? [clients[mode]] : null,
    });
    return world.callerWith(secret);
  };
  /** An app that a member gave all that an app can be given, or these scopes. */
  const appOf = async (role: Role, mode: Mode, given: readonly string[] = grantableScopes) => {
    const memberId = members.get(role) ?? '';
    const { access_token } = await oauthOf(world).tokensOf(app, {
      query: { resource: world.deps.baseUrl(), scope: given.join(' ') },
      result: { memberId, mode, scopes: given },
    });
    return world.callerWith(access_token);
  };
  const callerOf = async ({ kind, limited }: CallerCredential, role: Role, mode: Mode): Promise<Caller> => {
    if (kind === 'apikey') return keyOf(role, mode, { limited });
    if (kind === 'oauth') return appOf(role, mode);
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    const memberId = members.get(role) ?? '';
    return world.callerWith((await mintSession(sessions, { workspaceId: world.workspaceId, memberId, mode })).token);
  };
  /** Some at once, because most of a call is waiting. */
  const each = async (check: (operation: Operation) => Promise<void>): Promise<void> => {
    const width = 8;
    for (let at = 0; at < operations.length; at += width) {
      await Promise.all(operations.slice(at, at + width).map(check));
    }
  };

  t('the committed page matches the table (make contracts)', async () => {
    for (const [name, text] of Object.entries(contractPages(operations))) {
      assert.equal(await readFile(new URL(name, contractsFolder), 'utf8'), text, `${name} has drifted: make contracts`);
    }
  });

  for (const credential of credentials) {
    t(`${credential.name}: every role, mode and operation as the table says`, async () => {
      for (const role of roles) {
        const by = [await callerOf(credential, role, 'live'), await callerOf(credential, role, 'test')] as const;
        await world.settled();
        await each(async (operation) => {
          const expected = outcomeOf(operation, { role, credential, hasScope: true });
          const answers = [await ask(by[0], operation), await ask(by[1], operation)];
          assert.deepEqual(
            answers,
            [live(operation, expected), expected],
            `${operation.id} by a ${role}, live and test`,
          );
        });
      }
    });
  }

  t('an app without the scope may not call an operation; with it alone, whose role carries it', async () => {
    for (const scope of grantableScopes) {
      const lacking = await appOf(
        'manager',
        'test',
        grantableScopes.filter((one) => one !== scope),
      );
      const only = await appOf('manager', 'live', [scope]);
      const credential = { name: 'OAuth token', kind: 'oauth', limited: false } as const;
      await world.settled();
      await each(async (operation) => {
        if (operation.scope !== scope) return;
        const allowed = outcomeOf(operation, { role: 'manager', credential, hasScope: true });
        const answers = [await ask(lacking, operation), await ask(only, operation)];
        assert.deepEqual(answers, ['insufficient_scope', live(operation, allowed)]);
      });
    }
  });

  t('without its scope nobody may call an operation; with its scope alone, whose role carries it', async () => {
    const [credential] = credentials;
    for (const role of ['owner', 'viewer'] as const) {
      const keys = new Map<Scope, { readonly lacking: Caller; readonly only: Caller }>();
      for (const scope of scopes) {
        const lacking = await keyOf(role, 'test', { scopes: scopes.filter((one) => one !== scope) });
        keys.set(scope, { lacking, only: await keyOf(role, 'live', { scopes: [scope] }) });
      }
      await world.settled();
      await each(async (operation) => {
        const pair = operation.scope === null ? undefined : keys.get(operation.scope);
        if (pair === undefined) return;
        const allowed = outcomeOf(operation, { role, credential, hasScope: true });
        const answers = [await ask(pair.lacking, operation), await ask(pair.only, operation)];
        assert.deepEqual(answers, ['insufficient_scope', live(operation, allowed)], `${operation.id} by a ${role}`);
      });
    }
  });
});
