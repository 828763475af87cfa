import assert from 'node:assert/strict';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { operations } from '#services/api/operations.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { resetPassword } from '#services/auth/people/security.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { consoleWorld, type ShownPage, signedIn } from '#test/support/console.ts';
import type { Caller, World } from '#test/support/http.ts';
import { type App, Browser, claimsOf, oauthOf, pkce } from '#test/support/oauth.ts';
import { peopleDepsOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What the consent page offers, what stands ticked on it, and what a token with all of it may do from then on. */

const ticked = [
  ...['agency.read', 'clients.read', 'accounts.read', 'posts.read', 'analytics.read', 'reports.read'],
  ...['besttimes.read', 'media.read', 'posts.compose', 'media.manage'],
];
/** Powers that nobody expects to give away: the person ticks them. */
const unticked = [
  ...['clients.manage', 'accounts.connect', 'reports.manage', 'approvals.read', 'approvals.decide'],
  ...['campaigns.read', 'campaigns.manage'],
];

const boxesOf = ({ html }: ShownPage): ReadonlyMap<string, boolean> =>
  new Map(
    [...html.matchAll(/<input type="checkbox" name="scope"[^>]*value="([^"]+)"([^>]*)>/g)].map(
      ([, name = '', more = '']) => [name, more.includes('checked')],
    ),
  );

suite('consent to an app', (t) => {
  let world: World;
  let app: App;
  let olga: Awaited<ReturnType<typeof signedIn>>;
  t.before(async () => {
    world = await consoleWorld();
    app = await oauthOf(world).register();
    olga = await signedIn(world, { name: 'Olga Owner' });
  });
  t.after(() => world?.close());

  const begun = async (scope: string) => {
    const browser = new Browser();
    const uid = await oauthOf(world).begin(browser, oauthOf(world).authorizeUrl(app, pkce(), { scope }));
    return { browser, uid, page: await olga.browser.get(`/consent/${uid}`) };
  };

  t(
    'offers all that an app asks for; powers over clients, connections, campaigns and reports are unticked',
    async () => {
      const { page } = await begun([...ticked, ...unticked, 'webhooks.manage', 'events.read'].join(' '));
      const boxes = boxesOf(page);
      assert.deepEqual([...boxes.keys()].sort(), [...ticked, ...unticked].sort());
      assert.deepEqual([...boxes].flatMap(([name, is]) => (is ? [name] : [])).sort(), [...ticked].sort());
      for (const words of [
        'Create, change and archive clients, and say whether their posts need approval',
        'Make links with which others connect their social accounts, and disconnect accounts',
        'Start runs of saved reports',
        'See campaigns',
        'Create, change and delete campaigns, and move their posts',
      ]) {
        assert.ok(page.text.includes(words), words);
      }
    },
  );

  t('gives what was left ticked and what was ticked, and nothing that was not asked for', async () => {
    const { browser, uid } = await begun('posts.read clients.manage accounts.connect');
    const sent = await olga.browser.post(`/consent/${uid}`, {
      ...{ decision: 'allow', mode: 'test', workspace: world.workspaceId },
      scope: ['posts.read', 'clients.manage', 'campaigns.manage'],
    });
    assert.equal(sent.status, 303, sent.text);
    const done = await browser.open(sent.location);
    const toApp = await browser.open(done.location);
    assert.ok(new URL(toApp.location).searchParams.get('code'));
    const { rows } = await world.pool.query<{ data: { scopes: string[] } }>(
      `select data from es.events where type = 'GrantGiven' order by position desc limit 1`,
    );
    const stored = Buffer.isBuffer(rows[0]?.data) ? JSON.parse(String(rows[0]?.data)) : rows[0]?.data;
    assert.deepEqual(stored?.scopes, ['posts.read', 'clients.manage']);
  });

  t('gives nothing once the sign-in of the person began anew: a stranger could have kept it for later', async () => {
    const ann = await signedIn(world, { name: 'Ann' });
    const browser = new Browser();
    const url = oauthOf(world).authorizeUrl(app, pkce(), { scope: 'posts.read' });
    const uid = await oauthOf(world).begin(browser, url);
    await ann.browser.get(`/consent/${uid}`);
    const fields = { decision: 'allow', mode: 'test', workspace: world.workspaceId, scope: 'posts.read' };
    const sent = await ann.browser.post(`/consent/${uid}`, fields);
    assert.equal(sent.status, 303, sent.text);
    const people = peopleDepsOf(world);
    const { token } = await mintPersonLink(people, ann.personId, 'reset');
    assert.equal(await resetPassword(people, token, 'a brand new password'), ann.personId);
    const done = await browser.open(sent.location);
    const { searchParams } = new URL((await browser.open(done.location)).location);
    assert.deepEqual([searchParams.get('error'), searchParams.get('code')], ['access_denied', null]);
  });

  t('an app that names no scope is asked about reads alone', async () => {
    const browser = new Browser();
    const uid = await oauthOf(world).begin(browser, oauthOf(world).authorizeUrl(app, pkce()));
    const boxes = boxesOf(await olga.browser.get(`/consent/${uid}`));
    assert.ok([...boxes.keys()].every((name) => name.endsWith('.read') && !unticked.includes(name)));
  });

  const nowhere = '00000000-0000-4000-8000-000000000000';
  const answers = async (caller: Caller, scopes: readonly string[]) => {
    const asked = operations.filter(({ scope }) => scope !== null && scopes.includes(scope));
    assert.ok(asked.length > 10, 'operations of these scopes');
    const codes = await Promise.all(
      asked.map(async ({ id, method, path, example }) => {
        const body = example.body === undefined ? {} : { body: example.body };
        const { status, body: got } = await caller.request(method, path.replace(/\{\w+\}/g, nowhere), body);
        return [id, status === 401 || status === 403 ? `${status} ${got.code}` : 'passed'] as const;
      }),
    );
    return new Map(codes);
  };

  t('a token loses a power with the role of its person, and everything with the membership', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'manager');
    const powers = ['clients.manage', 'accounts.connect', 'campaigns.manage', 'reports.manage'];
    const tokens = await oauthOf(world).tokensOf(app, {
      query: { resource: world.deps.baseUrl(), scope: powers.join(' ') },
      result: { memberId, mode: 'test', scopes: powers },
    });
    assert.equal(claimsOf(tokens.access_token).scope, grantableScopes.filter((one) => powers.includes(one)).join(' '));
    const caller = world.callerWith(tokens.access_token);
    const tell = async (command: Parameters<typeof workspace.decide>[0]): Promise<void> => {
      await execute(world.store, workspace, world.workspaceId, command, contextOf(world.operator, world.workspaceId));
      await world.settled();
    };
    await world.settled();
    const asManager = await answers(caller, powers);
    assert.deepEqual(
      [...asManager].flatMap(([id, answer]) => (answer === 'passed' ? [] : [`${id} ${answer}`])),
      ['archiveClient 403 role_required'],
    );
    const allAnswer = (expected: string) =>
      until(`all answer ${expected}`, async () =>
        [...(await answers(caller, powers)).values()].every((answer) => answer === expected),
      );
    for (const role of ['creator', 'viewer'] as const) {
      await tell({ type: 'ChangeRole', memberId, role });
      await allAnswer('403 role_required');
    }
    await tell({ type: 'RemoveMember', memberId });
    await allAnswer('401 token_revoked');
  });
});
